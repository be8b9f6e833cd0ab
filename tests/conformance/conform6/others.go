package conform6

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"
	actionschema "github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	dataschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	ephemeralschema "github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	listschema "github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/hykube/hykube/tests/conformance/cloud"
)

// lookup is the data source conform6_lookup: the ID of the first thing with a name, and its note.
type lookup struct{ cloud *cloud.Cloud }

func (*lookup) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "conform6_lookup"
}

func (*lookup) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = dataschema.Schema{Attributes: map[string]dataschema.Attribute{
		"name":      dataschema.StringAttribute{Required: true},
		"behaviour": dataschema.StringAttribute{Optional: true},
		"id":        dataschema.StringAttribute{Computed: true},
		"note":      dataschema.StringAttribute{Computed: true},
	}}
}

func (d *lookup) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	d.cloud, _ = req.ProviderData.(*cloud.Cloud)
}

func (d *lookup) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	resp.State.Raw = req.Config.Raw
	ids, err := d.cloud.IDs("conform6_thing")
	if err != nil {
		resp.Diagnostics.AddError("Can't look up", err.Error())
		return
	}
	for _, id := range ids {
		o, err := d.cloud.Get("conform6_thing", id)
		if err == nil && o["name"] == textOf(req.Config.Raw, "name") {
			resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), id)...)
			resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("note"), o["note"])...)
			return
		}
	}
	resp.Diagnostics.AddAttributeError(path.Root("name"), "No such thing", "Nothing has that name.")
}

// token is the ephemeral resource conform6_token.
type token struct{ cloud *cloud.Cloud }

type tokenModel struct {
	Name      types.String `tfsdk:"name"`
	Behaviour types.String `tfsdk:"behaviour"`
	Renew     types.String `tfsdk:"renew"`
	Value     types.String `tfsdk:"value"`
}

func (*token) Metadata(_ context.Context, _ ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = "conform6_token"
}

func (*token) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = ephemeralschema.Schema{Attributes: map[string]ephemeralschema.Attribute{
		"name":      ephemeralschema.StringAttribute{Required: true},
		"behaviour": ephemeralschema.StringAttribute{Optional: true},
		"renew":     ephemeralschema.StringAttribute{Optional: true, Description: "How long the value is good for, such as 100ms."},
		"value":     ephemeralschema.StringAttribute{Computed: true},
	}}
}

func (t *token) Configure(_ context.Context, req ephemeral.ConfigureRequest, _ *ephemeral.ConfigureResponse) {
	t.cloud, _ = req.ProviderData.(*cloud.Cloud)
}

func (t *token) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m tokenModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	m.Value = types.StringValue("value-of-" + m.Name.ValueString())
	if d, err := time.ParseDuration(m.Renew.ValueString()); err == nil {
		resp.RenewAt = time.Now().Add(d)
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, "renew", []byte(`"`+m.Renew.ValueString()+`"`))...)
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, "name", []byte(`"`+m.Name.ValueString()+`"`))...)
	resp.Diagnostics.Append(resp.Result.Set(ctx, &m)...)
}

func (t *token) Renew(ctx context.Context, req ephemeral.RenewRequest, resp *ephemeral.RenewResponse) {
	every, diags := req.Private.GetKey(ctx, "renew")
	resp.Diagnostics.Append(diags...)
	if d, err := time.ParseDuration(strings.Trim(string(every), `"`)); err == nil {
		resp.RenewAt = time.Now().Add(d)
	}
	resp.Private = req.Private
}

func (t *token) Close(context.Context, ephemeral.CloseRequest, *ephemeral.CloseResponse) {}

// listing lists conform6_thing.
type listing struct{ cloud *cloud.Cloud }

func (*listing) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "conform6_thing"
}

func (*listing) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = listschema.Schema{Attributes: map[string]listschema.Attribute{
		"prefix":    listschema.StringAttribute{Optional: true},
		"behaviour": listschema.StringAttribute{Optional: true},
	}}
}

func (l *listing) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	l.cloud, _ = req.ProviderData.(*cloud.Cloud)
}

func (l *listing) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	behaviours := l.cloud.Behaviours("", textOf(req.Config.Raw, "behaviour"))
	stream.Results = func(push func(list.ListResult) bool) {
		ids, err := l.cloud.IDs("conform6_thing")
		if err != nil {
			push(list.ListResult{Diagnostics: diag.Diagnostics{diag.NewErrorDiagnostic("Can't list", err.Error())}})
			return
		}
		for _, id := range ids {
			if strings.HasPrefix(id, textOf(req.Config.Raw, "prefix")) && !push(l.result(ctx, req, id)) {
				return
			}
		}
		if behaviours.Has("list-warning") {
			push(list.ListResult{Diagnostics: diag.Diagnostics{diag.NewWarningDiagnostic("Incomplete", "There may be more.")}})
		}
		if behaviours.Has("list-error") {
			push(list.ListResult{Diagnostics: diag.Diagnostics{diag.NewErrorDiagnostic("Broken", "The list ends here.")}})
		}
		for behaviours.Has("list-endless") && len(ids) > 0 && ctx.Err() == nil {
			if !push(l.result(ctx, req, ids[0])) {
				return
			}
		}
	}
}

func (l *listing) result(ctx context.Context, req list.ListRequest, id string) list.ListResult {
	r := req.NewListResult(ctx)
	r.DisplayName = "thing " + id
	identify(ctx, r.Identity, id, &r.Diagnostics)
	if o, err := l.cloud.Get("conform6_thing", id); err == nil && req.IncludeResource {
		attrs := map[string]tftypes.Value{}
		for name, ty := range r.Resource.Raw.Type().(tftypes.Object).AttributeTypes {
			attrs[name] = tftypes.NewValue(ty, nil)
			if _, ok := ty.(tftypes.List); ok {
				attrs[name] = tftypes.NewValue(ty, []tftypes.Value{})
			}
		}
		r.Resource.Raw = found(tftypes.NewValue(r.Resource.Raw.Type(), attrs), o)
	}
	return r
}

// reboot is the action conform6_reboot.
type reboot struct{ cloud *cloud.Cloud }

func (*reboot) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = "conform6_reboot"
}

func (*reboot) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = actionschema.Schema{Attributes: map[string]actionschema.Attribute{
		"name":      actionschema.StringAttribute{Required: true},
		"behaviour": actionschema.StringAttribute{Optional: true},
	}}
}

func (r *reboot) Configure(_ context.Context, req action.ConfigureRequest, _ *action.ConfigureResponse) {
	r.cloud, _ = req.ProviderData.(*cloud.Cloud)
}

func (r *reboot) ModifyPlan(_ context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	if strings.Contains(textOf(req.Config.Raw, "behaviour"), "plan-error") {
		resp.Diagnostics.AddError("Can't plan", "As commanded.")
	}
}

func (r *reboot) Invoke(_ context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	resp.SendProgress(action.InvokeProgressEvent{Message: "half way"})
	resp.SendProgress(action.InvokeProgressEvent{Message: "nearly there"})
	if strings.Contains(textOf(req.Config.Raw, "behaviour"), "invoke-error") {
		resp.Diagnostics.AddError("Can't reboot", "As commanded.")
	}
}

// join is the function provider::conform6::join.
type join struct{}

func (join) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "join"
}

func (join) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Parameters:        []function.Parameter{function.StringParameter{Name: "separator"}},
		VariadicParameter: function.StringParameter{Name: "parts", AllowNullValue: true},
		Return:            function.StringReturn{},
	}
}

func (join) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var separator string
	var parts []*string
	if resp.Error = req.Arguments.Get(ctx, &separator, &parts); resp.Error != nil {
		return
	}
	var given []string
	for i, p := range parts {
		if p != nil && *p == "fail" {
			resp.Error = function.NewArgumentFuncError(int64(i+1), "this part is refused")
			return
		}
		if p != nil {
			given = append(given, *p)
		}
	}
	resp.Error = resp.Result.Set(ctx, strings.Join(given, separator))
}
