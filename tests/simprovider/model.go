package simprovider

import (
	"context"
	"fmt"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// These functions read and write the model of a resource, a struct whose exported fields are all attr.Values. The framework can
// do that, too. But it compiles a regular expression for each field each time, which takes a fifth of the time of an
// apply.

// load sets the fields of a model from a plan, a state or an identity that is not null.
func load(ctx context.Context, from interface {
	Get(ctx context.Context, target any) diag.Diagnostics
}, model any) diag.Diagnostics {
	var o types.Object
	if diags := from.Get(ctx, &o); diags.HasError() {
		return diags
	}
	attributes := o.Attributes()
	for name, field := range fields(model) {
		value, ok := attributes[name]
		if !ok || reflect.TypeOf(value) != field.Type() {
			panic(fmt.Sprintf("attribute %s of %T is a %T", name, model, value))
		}
		field.Set(reflect.ValueOf(value))
	}
	return nil
}

// store sets a plan, a state or an identity from the fields of a model.
func store(ctx context.Context, to interface {
	Set(ctx context.Context, value any) diag.Diagnostics
}, model any) diag.Diagnostics {
	attributes, attributeTypes := map[string]attr.Value{}, map[string]attr.Type{}
	for name, field := range fields(model) {
		value := field.Interface().(attr.Value)
		attributes[name], attributeTypes[name] = value, value.Type(ctx)
	}
	o, diags := types.ObjectValue(attributeTypes, attributes)
	if diags.HasError() {
		return diags
	}
	return to.Set(ctx, o)
}

// fields returns the exported fields of a model, a pointer to a struct, by the names of their attributes.
func fields(model any) map[string]reflect.Value {
	v := reflect.ValueOf(model).Elem()
	out := make(map[string]reflect.Value, v.NumField())
	for i := range v.NumField() {
		if field := v.Type().Field(i); field.IsExported() {
			out[field.Tag.Get("tfsdk")] = v.Field(i)
		}
	}
	return out
}
