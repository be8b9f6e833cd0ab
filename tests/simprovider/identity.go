package simprovider

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/metaschema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// identifiedResource is a resource type with an identity: the region and the ID, which never change.
type identifiedResource[M any, P model[M]] struct{ cloudResource[M, P] }

type identityModel struct {
	Region types.String `tfsdk:"region"`
	ID     types.String `tfsdk:"id"`
}

func (r *identifiedResource[M, P]) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"region": identityschema.StringAttribute{OptionalForImport: true, Description: "Region that it is in; the provider's when it is not set."},
		"id":     identityschema.StringAttribute{RequiredForImport: true, Description: "Identifier that the cloud gave."},
	}}
}

// identify sets the identity of an object. identity is nil for types without one.
func (r *cloudResource[M, P]) identify(ctx context.Context, identity *tfsdk.ResourceIdentity, id string, diags *diag.Diagnostics) {
	if identity == nil || id == "" {
		return
	}
	// The region of an existing object stays, even if the provider's configuration changes.
	var m identityModel
	if !identity.Raw.IsNull() && identity.Raw.IsFullyKnown() {
		diags.Append(load(ctx, identity, &m)...)
	}
	if m.Region.ValueString() == "" {
		m.Region = types.StringValue(r.cloud.region)
	}
	m.ID = types.StringValue(id)
	diags.Append(store(ctx, identity, &m)...)
}

func (r *cloudResource[M, P]) importIdentity(ctx context.Context, identity *tfsdk.ResourceIdentity, resp *resource.ImportStateResponse) {
	var m identityModel
	if resp.Diagnostics.Append(identity.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	if region := m.Region.ValueString(); region != "" && region != r.cloud.region {
		resp.Diagnostics.AddAttributeError(path.Root("region"), "Another region",
			fmt.Sprintf("The provider works in %s, and the identity is of %s. Import it with a provider configuration of that region.", r.cloud.region, region))
		return
	}
	id := m.ID.ValueString()
	if _, err := r.cloud.read(ctx, r.collection, id); isNotFound(err) {
		resp.Diagnostics.AddAttributeError(path.Root("id"), "There is nothing to import", fmt.Sprintf("No %s has the id %q.", r.typeName, id))
		return
	} else if err != nil {
		r.failed(&resp.Diagnostics, "import", err)
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), id)...)
	r.identify(ctx, resp.Identity, id, &resp.Diagnostics)
}

// moveIdentity takes the identity of another type. The next read sets one that was never recorded.
func moveIdentity(ctx context.Context, from *tfprotov6.RawState, resp *resource.MoveStateResponse) {
	var known struct{ Region, ID string }
	if from == nil || len(from.JSON) == 0 || json.Unmarshal(from.JSON, &known) != nil || known.ID == "" {
		return
	}
	resp.Diagnostics.Append(resp.TargetIdentity.Set(ctx, &identityModel{Region: types.StringValue(known.Region), ID: types.StringValue(known.ID)})...)
}

// moduleKey is the context key of a call's module.
type moduleKey struct{}

type metaModel struct {
	ModuleName types.String `tfsdk:"module_name"`
}

func (p *simProvider) MetaSchema(_ context.Context, _ provider.MetaSchemaRequest, resp *provider.MetaSchemaResponse) {
	resp.Schema = metaschema.Schema{Attributes: map[string]metaschema.Attribute{
		"module_name": metaschema.StringAttribute{Optional: true, Description: "Name of the module; the cloud logs it with each call."},
	}}
}

// withModule stores the module in the meta-configuration, if there is one.
func withModule(ctx context.Context, meta tfsdk.Config, diags *diag.Diagnostics) context.Context {
	if meta.Schema == nil || meta.Raw.IsNull() {
		return ctx
	}
	var m metaModel
	diags.Append(meta.Get(ctx, &m)...)
	return context.WithValue(ctx, moduleKey{}, m.ModuleName.ValueString())
}
