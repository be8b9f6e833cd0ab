package simprovider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// cloudList lists the objects of a resource type. Its other methods are those of the resource type.
type cloudList[M any, P model[M]] struct {
	identifiedResource[M, P]
}

type listModel struct {
	NamePrefix types.String `tfsdk:"name_prefix"`
	Tags       types.Map    `tfsdk:"tags"`
}

func newNetworkList() list.ListResource {
	return &cloudList[networkModel, *networkModel]{*newNetwork().(*identifiedResource[networkModel, *networkModel])}
}

func newInstanceList() list.ListResource {
	return &cloudList[instanceModel, *instanceModel]{newInstance().(*instanceResource).identifiedResource}
}

func (l *cloudList[M, P]) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "Lists the objects of type " + l.typeName + ", in the order in which they were created.",
		Attributes: map[string]schema.Attribute{
			"name_prefix": schema.StringAttribute{Optional: true, Description: "Only objects whose name begins with this."},
			"tags":        schema.MapAttribute{Optional: true, ElementType: types.StringType, Description: "Only objects that have all of these tags."},
		},
	}
}

func (l *cloudList[M, P]) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var m listModel
	var diags diag.Diagnostics
	if diags.Append(req.Config.Get(ctx, &m)...); diags.HasError() || !l.ready(&diags) {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	stream.Results = func(push func(list.ListResult) bool) {
		sent := int64(0)
		err := l.cloud.list(ctx, l.collection, func(o object) bool {
			if !m.matches(o) {
				return true
			}
			sent++
			return push(l.result(ctx, req, o)) && (req.Limit <= 0 || sent < req.Limit)
		})
		if err != nil {
			var diags diag.Diagnostics
			l.failed(&diags, "list", err)
			push(list.ListResult{Diagnostics: diags})
		}
	}
}

func (l *cloudList[M, P]) result(ctx context.Context, req list.ListRequest, o object) list.ListResult {
	r := req.NewListResult(ctx)
	r.DisplayName = text(o["name"])
	l.identify(ctx, r.Identity, o.id(), &r.Diagnostics)
	if !req.IncludeResource {
		return r
	}
	// The result starts with nulls of the right types, as after an import.
	v := P(new(M))
	state := tfsdk.State{Schema: req.ResourceSchema, Raw: nulls(req.ResourceSchema.Type().TerraformType(ctx))}
	if r.Diagnostics.Append(state.Get(ctx, v)...); r.Diagnostics.HasError() {
		return r
	}
	v.decode(ctx, o, &r.Diagnostics)
	r.Diagnostics.Append(r.Resource.Set(ctx, v)...)
	return r
}

func (m *listModel) matches(o object) bool {
	if !strings.HasPrefix(text(o["name"]), m.NamePrefix.ValueString()) {
		return false
	}
	have, _ := o["tags"].(map[string]any)
	want, _ := plain(m.Tags).(map[string]any)
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

// nulls returns an object whose attributes are all null.
func nulls(t tftypes.Type) tftypes.Value {
	o, ok := t.(tftypes.Object)
	if !ok {
		return tftypes.NewValue(t, nil)
	}
	attrs := map[string]tftypes.Value{}
	for name, at := range o.AttributeTypes {
		attrs[name] = tftypes.NewValue(at, nil)
	}
	return tftypes.NewValue(o, attrs)
}
