// Package simprovider is the Terraform provider "sim" of the simulated cloud: protocol 6, on the plugin framework. It
// waits for the end of throttling and of eventual consistency. It removes the state of missing objects, and returns a
// partial state if a later step fails. It calls the cloud over HTTP. It does not import the cloud, and of Hykube only
// sdk/batch, as other providers may.
package simprovider

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Address is the provider's source address.
const Address = "registry.terraform.io/hykube/sim"

// defaultRetries is the number of retries after an answer that asks for one.
const defaultRetries = 5

// New returns the provider of a version. Versions 0.0.x have no sim_bucket, and sim_database with its first schema, for
// tests of upgrades.
func New(version string) func() provider.Provider {
	return func() provider.Provider { return &simProvider{version: version, getenv: os.Getenv} }
}

type simProvider struct {
	version string
	getenv  func(string) string
}

type providerModel struct {
	Endpoint         types.String `tfsdk:"endpoint"`
	Token            types.String `tfsdk:"token"`
	Region           types.String `tfsdk:"region"`
	MaxRetries       types.Int64  `tfsdk:"max_retries"`
	RetryLostCreates types.Bool   `tfsdk:"retry_lost_creates"`
}

func (p *simProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = "sim", p.version
}

func (p *simProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "Resources of a simulated cloud, for demos and tests.",
		Attributes: map[string]schema.Attribute{
			"endpoint": schema.StringAttribute{
				Optional:    true,
				Description: "Address of the cloud, such as http://127.0.0.1:8600. The environment variable SIMCLOUD_ADDRESS counts when it is not set.",
			},
			"token": schema.StringAttribute{
				Optional: true, Sensitive: true,
				Description: "Token that the cloud asks for. The environment variable SIMCLOUD_TOKEN counts when it is not set.",
			},
			"region": schema.StringAttribute{
				Optional:    true,
				Description: "Region to work in: eu-central-1 (the default), eu-west-1, us-east-1 or us-west-2.",
				Validators:  []validator.String{stringvalidator.OneOf("eu-central-1", "eu-west-1", "us-east-1", "us-west-2")},
			},
			"max_retries": schema.Int64Attribute{
				Optional: true,
				Description: "How often a call is repeated after HTTP 502, 503 or 504, or a lost answer; 5 when it is not set. Throttling (429) is " +
					"waited out as long as the operation may take.",
				Validators: []validator.Int64{int64validator.Between(0, 100)},
			},
			"retry_lost_creates": schema.BoolAttribute{
				Optional: true,
				Description: "Repeat a create whose answer was lost, with the same client token. False when it is not set: the create fails then, " +
					"and whoever called must find out whether it happened.",
			},
		},
	}
}

func (p *simProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var m providerModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	if m.Endpoint.IsUnknown() || m.Token.IsUnknown() || m.Region.IsUnknown() {
		return // a plan may continue without the cloud; calls that need it return an error
	}
	c := &cloud{
		endpoint: strings.TrimSuffix(cmp.Or(m.Endpoint.ValueString(), p.getenv("SIMCLOUD_ADDRESS")), "/"),
		token:    cmp.Or(m.Token.ValueString(), p.getenv("SIMCLOUD_TOKEN")),
		region:   cmp.Or(m.Region.ValueString(), "eu-central-1"), maxRetries: defaultRetries,
		retryLostCreates: m.RetryLostCreates.ValueBool(),
		// The provider has its own transport, with room for many concurrent calls. The default keeps 2 idle
		// connections, and would open new ones all the time.
		http: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 128, IdleConnTimeout: time.Minute}},
	}
	c.calls.Call = c.sendAll
	if !m.MaxRetries.IsNull() {
		c.maxRetries = int(m.MaxRetries.ValueInt64())
	}
	if c.endpoint == "" {
		resp.Diagnostics.AddAttributeError(path.Root("endpoint"), "No endpoint of the cloud",
			"Set endpoint in the provider's configuration, or the environment variable SIMCLOUD_ADDRESS.")
		return
	}
	if u, err := url.Parse(c.endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		resp.Diagnostics.AddAttributeError(path.Root("endpoint"), "The endpoint is no address",
			"An endpoint is a URL such as http://127.0.0.1:8600.")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := c.account(ctx); err != nil {
		if e, ok := asAPIError(err); ok && e.status == http.StatusUnauthorized {
			resp.Diagnostics.AddAttributeError(path.Root("token"), "The cloud refuses the token",
				"The cloud at "+c.endpoint+" answered: "+e.Error()+". Set token in the provider's configuration, or the environment variable SIMCLOUD_TOKEN.")
			return
		}
		resp.Diagnostics.AddAttributeError(path.Root("endpoint"), "The cloud can't be reached",
			"The cloud at "+c.endpoint+" did not tell its account: "+err.Error()+". Check the endpoint, and that the cloud runs.")
		return
	}
	resp.ResourceData, resp.DataSourceData, resp.EphemeralResourceData, resp.ActionData, resp.ListResourceData = c, c, c, c, c
}

func (p *simProvider) Resources(context.Context) []func() resource.Resource {
	all := []func() resource.Resource{newNetwork, newSubnet, newInstance, newServer, newDisk, newDNSRecord, newToken, newPassword}
	if strings.HasPrefix(p.version, "0.0.") && !strings.HasSuffix(p.version, "-dev") {
		return append(all, newFirstDatabase)
	}
	return append(all, newBucket, newDatabase)
}

func (p *simProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{newNetworkData, newImageData, newImagesData}
}

func (p *simProvider) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{newTokenSession}
}

func (p *simProvider) ListResources(context.Context) []func() list.ListResource {
	return []func() list.ListResource{newNetworkList, newInstanceList}
}

func (p *simProvider) Actions(context.Context) []func() action.Action {
	return []func() action.Action{newReboot}
}

func (p *simProvider) Functions(context.Context) []func() function.Function {
	return []func() function.Function{newParseID, newCIDRJoin}
}
