// Package conform6 is a Terraform provider of protocol 6 that misbehaves on command. It uses the plugin framework,
// which refuses to break most rules, so server.go changes the answers of the framework.
package conform6

import (
	"cmp"
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/metaschema"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/hykube/hykube/tests/conformance/cloud"
)

// Address is the provider's source address.
const Address = "registry.terraform.io/hykube/conform6"

type honest struct{ options cloud.Options }

type config struct {
	Directory types.String `tfsdk:"directory"`
}

func (*honest) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "conform6"
}

func (*honest) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"directory": schema.StringAttribute{Optional: true, Description: "Directory that is the cloud; " + cloud.DirectoryEnv + " counts when it is not set."},
	}}
}

func (*honest) MetaSchema(_ context.Context, _ provider.MetaSchemaRequest, resp *provider.MetaSchemaResponse) {
	resp.Schema = metaschema.Schema{Attributes: map[string]metaschema.Attribute{"module": metaschema.StringAttribute{Optional: true}}}
}

func (*honest) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var m config
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	c, err := cloud.Open(cmp.Or(m.Directory.ValueString(), os.Getenv(cloud.DirectoryEnv)))
	if err != nil {
		resp.Diagnostics.AddError("No cloud", err.Error())
		return
	}
	resp.ResourceData, resp.DataSourceData, resp.EphemeralResourceData, resp.ActionData, resp.ListResourceData = c, c, c, c, c
}

func (p *honest) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		newThing, newValues, newMoved,
		func() resource.Resource { return newOld(p.options.First()) },
	}
}

func (*honest) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{func() datasource.DataSource { return &lookup{} }}
}

func (*honest) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{func() ephemeral.EphemeralResource { return &token{} }}
}

func (*honest) ListResources(context.Context) []func() list.ListResource {
	return []func() list.ListResource{func() list.ListResource { return &listing{} }}
}

func (*honest) Actions(context.Context) []func() action.Action {
	return []func() action.Action{func() action.Action { return &reboot{} }}
}

func (*honest) Functions(context.Context) []func() function.Function {
	return []func() function.Function{func() function.Function { return join{} }}
}
