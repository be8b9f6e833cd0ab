package simprovider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

type tokenModel struct {
	ID        types.String `tfsdk:"id"`
	Name      types.String `tfsdk:"name"`
	Scopes    types.List   `tfsdk:"scopes"`
	Secret    types.String `tfsdk:"secret"`
	CreatedAt types.String `tfsdk:"created_at"`
}

func newToken() resource.Resource {
	return &cloudResource[tokenModel, *tokenModel]{
		typeName: "sim_token", collection: "tokens",
		schema: schema.Schema{
			Description: "A token of the cloud's API. The cloud tells its secret once, when it is created.",
			Attributes: map[string]schema.Attribute{
				"id": idAttribute(),
				"name": schema.StringAttribute{
					Required: true, Validators: []validator.String{notEmpty{}}, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
					Description: "Name of the token. Another one replaces it, and so gives another secret.",
				},
				"scopes": schema.ListAttribute{Optional: true, ElementType: types.StringType, Description: "What the token allows, such as network:read."},
				"secret": schema.StringAttribute{
					Computed: true, Sensitive: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
					Description: "Secret of the token; null after an import, since the cloud tells it only once.",
				},
				"created_at": createdAttribute(),
			},
		},
	}
}

func (m *tokenModel) key() string { return m.ID.ValueString() }

func (m *tokenModel) encode(_ context.Context, creating bool, _ *diag.Diagnostics) map[string]any {
	f := map[string]any{"scopes": plain(m.Scopes)}
	if creating {
		f["name"] = plain(m.Name)
	}
	return f
}

func (m *tokenModel) decode(_ context.Context, o object, diags *diag.Diagnostics) {
	m.ID, m.Name, m.CreatedAt = stringOf(o["id"]), stringOf(o["name"]), stringOf(o["created_at"])
	m.Scopes = listOf(o["scopes"], m.Scopes, diags)
	if secret := stringOf(o["secret"]); !secret.IsNull() || m.Secret.IsUnknown() {
		m.Secret = secret // only the answer to the create has it
	}
}
