package simprovider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

type bucketModel struct {
	ID         types.String `tfsdk:"id"`
	Name       types.String `tfsdk:"name"`
	Versioning types.Bool   `tfsdk:"versioning"`
	Rule       types.Set    `tfsdk:"rule"`
	Tags       types.Map    `tfsdk:"tags"`
	Endpoint   types.String `tfsdk:"endpoint"`
}

func newBucket() resource.Resource {
	return &identifiedResource[bucketModel, *bucketModel]{cloudResource[bucketModel, *bucketModel]{
		typeName: "sim_bucket", collection: "buckets",
		schema: schema.Schema{
			Description: "A bucket of objects. Its name is unique in the cloud.",
			Attributes: map[string]schema.Attribute{
				"id": idAttribute(),
				"name": schema.StringAttribute{
					Required: true, Validators: []validator.String{notEmpty{}}, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
					Description: "Name, unique in the cloud. Another one replaces the bucket.",
				},
				"versioning": schema.BoolAttribute{Optional: true, Computed: true, Default: booldefault.StaticBool(false), Description: "Whether former versions of objects are kept; false when it is not set."},
				"tags":       tagsAttribute(),
				"endpoint":   kept("Address of the bucket."),
			},
			Blocks: map[string]schema.Block{
				"rule": schema.SetNestedBlock{
					Description: "When objects are deleted. Rules have no order.",
					NestedObject: schema.NestedBlockObject{Attributes: map[string]schema.Attribute{
						"prefix": schema.StringAttribute{Required: true, Description: "Objects whose names begin with this."},
						"days":   schema.Int64Attribute{Required: true, Validators: []validator.Int64{int64validator.AtLeast(1)}, Description: "Age in days at which they are deleted."},
					}},
				},
			},
		},
	}}
}

func ruleType() types.ObjectType {
	return types.ObjectType{AttrTypes: map[string]attr.Type{"prefix": types.StringType, "days": types.Int64Type}}
}

func (m *bucketModel) key() string { return m.ID.ValueString() }

func (m *bucketModel) encode(_ context.Context, creating bool, _ *diag.Diagnostics) map[string]any {
	f := map[string]any{"versioning": plain(m.Versioning), "rules": plain(m.Rule), "tags": plain(m.Tags)}
	if creating {
		f["name"] = plain(m.Name)
	}
	return f
}

func (m *bucketModel) decode(_ context.Context, o object, diags *diag.Diagnostics) {
	m.ID, m.Name, m.Versioning, m.Endpoint = stringOf(o["id"]), stringOf(o["name"]), boolOf(o["versioning"]), stringOf(o["endpoint"])
	m.Tags = mapOf(o["tags"], m.Tags, diags)
	rules, _ := o["rules"].([]any)
	elems := []attr.Value{}
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		v, d := types.ObjectValue(ruleType().AttrTypes, map[string]attr.Value{"prefix": stringOf(rule["prefix"]), "days": intOf(rule["days"])})
		diags.Append(d...)
		elems = append(elems, v)
	}
	set, d := types.SetValue(ruleType(), elems)
	diags.Append(d...)
	m.Rule = set
}
