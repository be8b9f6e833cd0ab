package simprovider

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// These functions convert between the API's JSON and the framework's values. An absent field is null.

func stringOf(v any) types.String {
	if s, ok := v.(string); ok {
		return types.StringValue(s)
	}
	return types.StringNull()
}

func intOf(v any) types.Int64 {
	if f, ok := v.(float64); ok {
		return types.Int64Value(int64(f))
	}
	return types.Int64Null()
}

func boolOf(v any) types.Bool {
	if b, ok := v.(bool); ok {
		return types.BoolValue(b)
	}
	return types.BoolNull()
}

// mapOf keeps an empty map of the configuration, which the API does not distinguish from none.
func mapOf(v any, now types.Map, diags *diag.Diagnostics) types.Map {
	m, _ := v.(map[string]any)
	if len(m) == 0 {
		if !now.IsNull() && !now.IsUnknown() && len(now.Elements()) == 0 {
			return now
		}
		return types.MapNull(types.StringType)
	}
	elems := make(map[string]attr.Value, len(m))
	for k, v := range m {
		elems[k] = types.StringValue(fmt.Sprint(v))
	}
	out, d := types.MapValue(types.StringType, elems)
	diags.Append(d...)
	return out
}

func setOf(v any, now types.Set, diags *diag.Diagnostics) types.Set {
	list, _ := v.([]any)
	if len(list) == 0 {
		if !now.IsNull() && !now.IsUnknown() && len(now.Elements()) == 0 {
			return now
		}
		return types.SetNull(types.StringType)
	}
	out, d := types.SetValue(types.StringType, stringsOf(list))
	diags.Append(d...)
	return out
}

func listOf(v any, now types.List, diags *diag.Diagnostics) types.List {
	list, _ := v.([]any)
	if len(list) == 0 {
		if !now.IsNull() && !now.IsUnknown() && len(now.Elements()) == 0 {
			return now
		}
		return types.ListNull(types.StringType)
	}
	out, d := types.ListValue(types.StringType, stringsOf(list))
	diags.Append(d...)
	return out
}

func stringsOf(list []any) []attr.Value {
	var out []attr.Value
	for _, v := range list {
		out = append(out, types.StringValue(fmt.Sprint(v)))
	}
	return out
}

// plain returns a value as JSON. Null and unknown become null, which removes a field.
func plain(v attr.Value) any {
	if v == nil || v.IsNull() || v.IsUnknown() {
		return nil
	}
	switch v := v.(type) {
	case types.String:
		return v.ValueString()
	case types.Int64:
		return v.ValueInt64()
	case types.Bool:
		return v.ValueBool()
	case types.Map:
		out := map[string]any{}
		for k, e := range v.Elements() {
			out[k] = plain(e)
		}
		return out
	case types.Object:
		out := map[string]any{}
		for k, e := range v.Attributes() {
			if p := plain(e); p != nil {
				out[k] = p
			}
		}
		return out
	case types.List:
		return plainAll(v.Elements())
	case types.Set:
		return plainAll(v.Elements())
	}
	return nil
}

func plainAll(elems []attr.Value) []any {
	out := []any{}
	for _, e := range elems {
		out = append(out, plain(e))
	}
	return out
}

// These attributes are common to many types.

func idAttribute() schema.StringAttribute {
	return schema.StringAttribute{
		Computed: true, Description: "Identifier that the cloud gave.",
		PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
}

func nameAttribute(what string) schema.StringAttribute {
	return schema.StringAttribute{
		Required: true, Description: "Name of the " + what + ". Names need not be unique.",
		Validators: []validator.String{notEmpty{}},
	}
}

func tagsAttribute() schema.MapAttribute {
	return schema.MapAttribute{Optional: true, ElementType: types.StringType, Description: "Tags, as key and value."}
}

func createdAttribute() schema.StringAttribute {
	return schema.StringAttribute{
		Computed: true, Description: "When it was created, in RFC 3339.",
		PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
}

// kept is for computed values that never change.
func kept(description string) schema.StringAttribute {
	return schema.StringAttribute{
		Computed: true, Description: description,
		PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
}

// isCIDR accepts a CIDR block such as 10.0.0.0/16.
type isCIDR struct{}

func (isCIDR) Description(context.Context) string { return "a CIDR block such as 10.0.0.0/16" }

func (v isCIDR) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (isCIDR) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	p, err := netip.ParsePrefix(req.ConfigValue.ValueString())
	if err == nil && p == p.Masked() {
		return
	}
	detail := fmt.Sprintf("%q is no CIDR block such as 10.0.0.0/16.", req.ConfigValue.ValueString())
	if err == nil {
		detail = fmt.Sprintf("%q has host bits set; the block is %s.", req.ConfigValue.ValueString(), p.Masked())
	}
	resp.Diagnostics.AddAttributeError(req.Path, "Not a CIDR block", detail)
}

// notEmpty rejects the empty string.
type notEmpty struct{}

func (notEmpty) Description(context.Context) string { return "a string that is not empty" }

func (v notEmpty) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (notEmpty) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if !req.ConfigValue.IsNull() && !req.ConfigValue.IsUnknown() && req.ConfigValue.ValueString() == "" {
		resp.Diagnostics.AddAttributeError(req.Path, "Empty value", "This argument must not be empty.")
	}
}
