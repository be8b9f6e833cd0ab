package conform6

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// newValues is a type with an attribute of every type, and a nested object in every mode of the framework.
func newValues() resource.Resource {
	inner := func() map[string]schema.Attribute {
		return map[string]schema.Attribute{
			"key":   schema.StringAttribute{Optional: true},
			"value": schema.StringAttribute{Optional: true, Computed: true},
			"id":    schema.StringAttribute{Computed: true},
		}
	}
	element := schema.NestedAttributeObject{Attributes: inner()}
	block := schema.NestedBlockObject{Attributes: inner()}
	return &object{typeName: "conform6_values", schema: schema.Schema{
		Attributes: common(map[string]schema.Attribute{
			"flag":     schema.BoolAttribute{Optional: true},
			"whole":    schema.Int64Attribute{Optional: true},
			"ratio":    schema.Float64Attribute{Optional: true},
			"number":   schema.NumberAttribute{Optional: true},
			"items":    schema.ListAttribute{Optional: true, ElementType: types.StringType},
			"bag":      schema.SetAttribute{Optional: true, ElementType: types.NumberType},
			"tags":     schema.MapAttribute{Optional: true, ElementType: types.BoolType},
			"pair":     schema.ObjectAttribute{Optional: true, AttributeTypes: map[string]attr.Type{"left": types.StringType, "right": types.NumberType}},
			"anything": schema.DynamicAttribute{Optional: true},
			"single":   schema.SingleNestedAttribute{Optional: true, Attributes: inner()},
			"list":     schema.ListNestedAttribute{Optional: true, NestedObject: element},
			"set":      schema.SetNestedAttribute{Optional: true, NestedObject: element},
			"map":      schema.MapNestedAttribute{Optional: true, NestedObject: element},
			"chosen":   schema.SingleNestedAttribute{Optional: true, Computed: true, Attributes: inner()},
		}),
		Blocks: map[string]schema.Block{
			"block_single": schema.SingleNestedBlock{Attributes: inner()},
			"block_list":   schema.ListNestedBlock{NestedObject: block},
			"block_set":    schema.SetNestedBlock{NestedObject: block},
		},
	}}
}
