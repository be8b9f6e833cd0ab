package simprovider

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// tokenSession is the ephemeral resource sim_token: a credential that must be renewed. The cloud calls it a session.
type tokenSession struct{ cloud *cloud }

type sessionModel struct {
	Name      types.String `tfsdk:"name"`
	Scopes    types.List   `tfsdk:"scopes"`
	TTL       types.String `tfsdk:"ttl"`
	ID        types.String `tfsdk:"id"`
	Value     types.String `tfsdk:"value"`
	ExpiresAt types.String `tfsdk:"expires_at"`
}

// sessionKey is the key of the session's ID in the private data.
const sessionKey = "session"

func newTokenSession() ephemeral.EphemeralResource { return &tokenSession{} }

func (t *tokenSession) Metadata(_ context.Context, _ ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = "sim_token"
}

func (t *tokenSession) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "A short-lived token of the cloud's API. It is renewed while it is needed, and closed afterwards.",
		Attributes: map[string]schema.Attribute{
			"name":       schema.StringAttribute{Required: true, Validators: []validator.String{notEmpty{}}, Description: "Name that the cloud logs the token with."},
			"scopes":     schema.ListAttribute{Optional: true, ElementType: types.StringType, Description: "What the token allows, such as network:read."},
			"ttl":        schema.StringAttribute{Optional: true, Computed: true, Validators: []validator.String{isDuration{}}, Description: "How long it lives without a renewal; 10m when it is not set."},
			"id":         schema.StringAttribute{Computed: true, Description: "Identifier that the cloud gave."},
			"value":      schema.StringAttribute{Computed: true, Sensitive: true, Description: "The token."},
			"expires_at": schema.StringAttribute{Computed: true, Description: "When it ends, in RFC 3339."},
		},
	}
}

func (t *tokenSession) Configure(_ context.Context, req ephemeral.ConfigureRequest, _ *ephemeral.ConfigureResponse) {
	t.cloud, _ = req.ProviderData.(*cloud)
}

func (t *tokenSession) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m sessionModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() || !t.ready(&resp.Diagnostics) {
		return
	}
	o, err := t.cloud.create(ctx, "sessions", map[string]any{"name": plain(m.Name), "scopes": plain(m.Scopes), "ttl": plain(m.TTL)})
	if err != nil {
		resp.Diagnostics.AddError("Can't open sim_token", "The cloud did not do it: "+err.Error())
		return
	}
	m.ID, m.Value, m.ExpiresAt, m.TTL = stringOf(o["id"]), stringOf(o["value"]), stringOf(o["expires_at"]), stringOf(o["ttl"])
	id, err := json.Marshal(o.id())
	if err != nil {
		resp.Diagnostics.AddError("Can't open sim_token", err.Error())
		return
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, sessionKey, id)...)
	resp.Diagnostics.Append(resp.Result.Set(ctx, &m)...)
	resp.RenewAt = halfway(o)
}

func (t *tokenSession) Renew(ctx context.Context, req ephemeral.RenewRequest, resp *ephemeral.RenewResponse) {
	id, ok := t.session(ctx, req.Private, &resp.Diagnostics)
	if !ok {
		return
	}
	o, err := t.cloud.action(ctx, "sessions", id, "renew", nil)
	if err != nil {
		resp.Diagnostics.AddError("Can't renew sim_token", "The cloud did not do it: "+err.Error())
		return
	}
	resp.RenewAt = halfway(o)
}

func (t *tokenSession) Close(ctx context.Context, req ephemeral.CloseRequest, resp *ephemeral.CloseResponse) {
	id, ok := t.session(ctx, req.Private, &resp.Diagnostics)
	if !ok {
		return
	}
	if err := t.cloud.remove(ctx, "sessions", id); err != nil {
		resp.Diagnostics.AddError("Can't close sim_token", fmt.Sprintf("The session %s lives until its time is over. The cloud did not close it: %v", id, err))
	}
}

func (t *tokenSession) session(ctx context.Context, private interface {
	GetKey(context.Context, string) ([]byte, diag.Diagnostics)
}, diags *diag.Diagnostics,
) (id string, ok bool) {
	b, d := private.GetKey(ctx, sessionKey)
	if diags.Append(d...); diags.HasError() || !t.ready(diags) {
		return "", false
	}
	if err := json.Unmarshal(b, &id); err != nil {
		diags.AddError("The private data of sim_token can't be read", err.Error())
		return "", false
	}
	return id, true
}

func (t *tokenSession) ready(diags *diag.Diagnostics) bool { return configuredCloud(t.cloud, diags) }

// halfway returns the time of the next renewal: half of the session's life, so that a late renewal is still in time.
func halfway(o object) time.Time {
	ends, err := time.Parse(time.RFC3339Nano, text(o["expires_at"]))
	if err != nil {
		return time.Time{}
	}
	return time.Now().Add(time.Until(ends) / 2)
}
