package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"
	aschema "github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	dschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	eschema "github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	lschema "github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/metaschema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	rschema "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

var (
	_ provider.ProviderWithListResources      = tiny{}
	_ provider.ProviderWithActions            = tiny{}
	_ provider.ProviderWithEphemeralResources = tiny{}
	_ provider.ProviderWithFunctions          = tiny{}
	_ provider.ProviderWithMetaSchema         = tiny{}
)

func (tiny) MetaSchema(_ context.Context, _ provider.MetaSchemaRequest, r *provider.MetaSchemaResponse) {
	r.Schema = metaschema.Schema{Attributes: map[string]metaschema.Attribute{"module": metaschema.StringAttribute{Optional: true}}}
}

func (tiny) ListResources(context.Context) []func() list.ListResource {
	return []func() list.ListResource{func() list.ListResource { return &host{} }}
}

func (tiny) Actions(context.Context) []func() action.Action {
	return []func() action.Action{func() action.Action { return poke{} }}
}

func (tiny) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{func() ephemeral.EphemeralResource { return &key{} }}
}

func (tiny) Functions(context.Context) []func() function.Function {
	return []func() function.Function{func() function.Function { return shout{} }}
}

// host is the resource tiny_host. It has an identity. It exists unless its name begins with "no".
type host struct{}

type hostModel struct {
	Name types.String `tfsdk:"name"`
	Seen types.String `tfsdk:"seen"`
}

type hostIdentity struct {
	Name types.String `tfsdk:"name"`
}

func (*host) Metadata(_ context.Context, _ resource.MetadataRequest, r *resource.MetadataResponse) {
	r.TypeName = "tiny_host"
}

func (*host) Schema(_ context.Context, _ resource.SchemaRequest, r *resource.SchemaResponse) {
	r.Schema = rschema.Schema{Attributes: map[string]rschema.Attribute{
		"name": rschema.StringAttribute{Required: true},
		"seen": rschema.StringAttribute{Computed: true},
	}}
}

func (*host) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, r *resource.IdentitySchemaResponse) {
	r.IdentitySchema = identityschema.Schema{Version: 1, Attributes: map[string]identityschema.Attribute{
		"name": identityschema.StringAttribute{RequiredForImport: true},
	}}
}

func (*host) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, r *list.ListResourceSchemaResponse) {
	r.Schema = lschema.Schema{Attributes: map[string]lschema.Attribute{"prefix": lschema.StringAttribute{Optional: true}}}
}

func (*host) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var prefix types.String
	req.Config.GetAttribute(ctx, path.Root("prefix"), &prefix)
	stream.Results = func(push func(list.ListResult) bool) {
		for i := 0; ; i++ { // never ends, so the caller must stop reading
			r := req.NewListResult(ctx)
			name := types.StringValue(fmt.Sprintf("%s%d", prefix.ValueString(), i))
			r.DisplayName = "Host " + name.ValueString()
			r.Diagnostics.Append(r.Identity.Set(ctx, hostIdentity{name})...)
			if req.IncludeResource {
				r.Diagnostics.Append(r.Resource.Set(ctx, hostModel{name, types.StringValue("listed")})...)
			}
			if !push(r) {
				return
			}
		}
	}
}

func (*host) Create(ctx context.Context, req resource.CreateRequest, r *resource.CreateResponse) {
	var m hostModel
	r.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	var module types.String
	r.Diagnostics.Append(req.ProviderMeta.GetAttribute(ctx, path.Root("module"), &module)...)
	m.Seen = types.StringValue("created by " + module.ValueString())
	r.Diagnostics.Append(r.State.Set(ctx, m)...)
	r.Diagnostics.Append(r.Identity.Set(ctx, hostIdentity{m.Name})...)
}

func (*host) Read(ctx context.Context, req resource.ReadRequest, r *resource.ReadResponse) {
	var m hostModel
	r.Diagnostics.Append(req.State.Get(ctx, &m)...)
	r.Diagnostics.Append(r.Identity.Set(ctx, hostIdentity{m.Name})...)
	if strings.HasPrefix(m.Name.ValueString(), "no") {
		r.State.RemoveResource(ctx)
		return
	}
	if m.Seen.IsNull() {
		m.Seen = types.StringValue("read")
	}
	r.Diagnostics.Append(r.State.Set(ctx, m)...)
}

func (*host) Update(ctx context.Context, req resource.UpdateRequest, r *resource.UpdateResponse) {
	r.State.Raw = req.Plan.Raw
}

func (*host) Delete(ctx context.Context, req resource.DeleteRequest, r *resource.DeleteResponse) {
	var id hostIdentity
	if r.Diagnostics.Append(req.Identity.Get(ctx, &id)...); id.Name.ValueString() == "" {
		r.Diagnostics.AddError("No identity", "Nothing says what to destroy.")
	}
}

func (*host) ImportState(ctx context.Context, req resource.ImportStateRequest, r *resource.ImportStateResponse) {
	resource.ImportStatePassthroughWithIdentity(ctx, path.Root("name"), path.Root("name"), req, r)
}

// where is the data source tiny_where. It returns the region.
type where struct{}

func (where) Metadata(_ context.Context, _ datasource.MetadataRequest, r *datasource.MetadataResponse) {
	r.TypeName = "tiny_where"
}

func (where) Schema(_ context.Context, _ datasource.SchemaRequest, r *datasource.SchemaResponse) {
	r.Schema = dschema.Schema{Attributes: map[string]dschema.Attribute{
		"name":   dschema.StringAttribute{Required: true},
		"answer": dschema.StringAttribute{Computed: true},
	}}
}

func (where) Read(ctx context.Context, req datasource.ReadRequest, r *datasource.ReadResponse) {
	var name types.String
	r.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("name"), &name)...)
	r.State.Raw = req.Config.Raw
	r.Diagnostics.Append(r.State.SetAttribute(ctx, path.Root("answer"), "here is "+name.ValueString())...)
}

// key is the ephemeral resource tiny_key.
type key struct{}

func (*key) Metadata(_ context.Context, _ ephemeral.MetadataRequest, r *ephemeral.MetadataResponse) {
	r.TypeName = "tiny_key"
}

func (*key) Schema(_ context.Context, _ ephemeral.SchemaRequest, r *ephemeral.SchemaResponse) {
	r.Schema = eschema.Schema{Attributes: map[string]eschema.Attribute{"value": eschema.StringAttribute{Computed: true}}}
}

func (*key) Open(ctx context.Context, _ ephemeral.OpenRequest, r *ephemeral.OpenResponse) {
	r.RenewAt = time.Now().Add(time.Hour)
	r.Diagnostics.Append(r.Private.SetKey(ctx, "kept", []byte(`"open"`))...)
	r.Diagnostics.Append(r.Result.SetAttribute(ctx, path.Root("value"), "sesame")...)
}

func (*key) Renew(ctx context.Context, req ephemeral.RenewRequest, r *ephemeral.RenewResponse) {
	r.Diagnostics.Append(r.Private.SetKey(ctx, "kept", []byte(`"renewed"`))...)
}

func (*key) Close(ctx context.Context, req ephemeral.CloseRequest, r *ephemeral.CloseResponse) {
	kept, diags := req.Private.GetKey(ctx, "kept")
	r.Diagnostics.Append(diags...)
	r.Diagnostics.AddWarning("Closed", string(kept))
}

// poke is the action tiny_poke.
type poke struct{}

func (poke) Metadata(_ context.Context, _ action.MetadataRequest, r *action.MetadataResponse) {
	r.TypeName = "tiny_poke"
}

func (poke) Schema(_ context.Context, _ action.SchemaRequest, r *action.SchemaResponse) {
	r.Schema = aschema.Schema{Attributes: map[string]aschema.Attribute{"times": aschema.Int64Attribute{Required: true}}}
}

func (poke) Invoke(ctx context.Context, req action.InvokeRequest, r *action.InvokeResponse) {
	var times types.Int64
	r.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("times"), &times)...)
	if times.ValueInt64() == 13 {
		panic("unlucky")
	}
	for i := range times.ValueInt64() {
		r.SendProgress(action.InvokeProgressEvent{Message: fmt.Sprintf("poke %d", i+1)})
	}
	r.Diagnostics.AddWarning("Ouch", "That was rude.")
}

// shout is the function shout.
type shout struct{}

func (shout) Metadata(_ context.Context, _ function.MetadataRequest, r *function.MetadataResponse) {
	r.Name = "shout"
}

func (shout) Definition(_ context.Context, _ function.DefinitionRequest, r *function.DefinitionResponse) {
	r.Definition = function.Definition{
		Summary:           "Shout words",
		Parameters:        []function.Parameter{function.StringParameter{Name: "first"}},
		VariadicParameter: function.StringParameter{Name: "more", AllowNullValue: true},
		Return:            function.StringReturn{},
	}
}

func (shout) Run(ctx context.Context, req function.RunRequest, r *function.RunResponse) {
	var first string
	var more []types.String
	r.Error = function.ConcatFuncErrors(r.Error, req.Arguments.Get(ctx, &first, &more))
	words := []string{strings.ToUpper(first)}
	for _, w := range more {
		if w.ValueString() == "please" {
			r.Error = function.ConcatFuncErrors(r.Error, function.NewArgumentFuncError(1, "no shouting that"))
		}
		words = append(words, strings.ToUpper(w.ValueString()))
	}
	r.Error = function.ConcatFuncErrors(r.Error, r.Result.Set(ctx, strings.Join(words, " ")))
}
