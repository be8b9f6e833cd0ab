package conform6

import (
	"context"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// old is conform6_old. In the first generation, its schema has version 0, with a size such as "10GB", and its identity
// has version 0, a path. Now the size is a number, the version is 2, and the identity is the ID, in version 1.
type old struct {
	identified
	first bool
}

func newOld(first bool) resource.Resource {
	s := oldSchema()
	if !first {
		s = schema.Schema{Version: 2, Attributes: common(map[string]schema.Attribute{"size_gb": schema.NumberAttribute{Optional: true}})}
	}
	return &old{identified{object{typeName: "conform6_old", schema: s}}, first}
}

func oldSchema() schema.Schema {
	return schema.Schema{Attributes: common(map[string]schema.Attribute{"size": schema.StringAttribute{Optional: true}})}
}

func (r *old) IdentitySchema(ctx context.Context, req resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	r.identified.IdentitySchema(ctx, req, resp)
	resp.IdentitySchema.Version = 1
	if r.first {
		resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{"path": identityschema.StringAttribute{RequiredForImport: true}}}
	}
}

func (r *old) UpgradeState(context.Context) map[int64]resource.StateUpgrader {
	if r.first {
		return nil
	}
	return map[int64]resource.StateUpgrader{
		0: {PriorSchema: new(oldSchema()), StateUpgrader: func(ctx context.Context, req resource.UpgradeStateRequest, resp *resource.UpgradeStateResponse) {
			var m struct {
				ID        types.String `tfsdk:"id"`
				Name      types.String `tfsdk:"name"`
				Behaviour types.String `tfsdk:"behaviour"`
				Size      types.String `tfsdk:"size"`
			}
			if resp.Diagnostics.Append(req.State.Get(ctx, &m)...); resp.Diagnostics.HasError() {
				return
			}
			size, err := strconv.ParseFloat(strings.TrimSuffix(m.Size.ValueString(), "GB"), 64)
			if err != nil {
				resp.Diagnostics.AddAttributeError(path.Root("size"), "Can't upgrade the size", err.Error())
				return
			}
			resp.Diagnostics.Append(resp.State.Set(ctx, &struct {
				ID        types.String `tfsdk:"id"`
				Name      types.String `tfsdk:"name"`
				Behaviour types.String `tfsdk:"behaviour"`
				Size      *big.Float   `tfsdk:"size_gb"`
			}{m.ID, m.Name, m.Behaviour, big.NewFloat(size)})...)
		}},
	}
}

func (r *old) UpgradeIdentity(context.Context) map[int64]resource.IdentityUpgrader {
	if r.first {
		return nil
	}
	return map[int64]resource.IdentityUpgrader{
		0: {IdentityUpgrader: func(ctx context.Context, req resource.UpgradeIdentityRequest, resp *resource.UpgradeIdentityResponse) {
			var m struct{ Path string }
			if err := json.Unmarshal(req.RawIdentity.JSON, &m); err != nil {
				resp.Diagnostics.AddError("Can't upgrade the identity", err.Error())
				return
			}
			resp.Diagnostics.Append(resp.Identity.Set(ctx, &struct {
				ID string `tfsdk:"id"`
			}{strings.TrimPrefix(m.Path, "old/")})...)
		}},
	}
}

// moved is conform6_moved, which takes over a conform6_thing, also from a provider of the same name at another address.
// In the cloud it remains a thing, because the provider is not configured when a state moves.
type moved struct{ identified }

func newMoved() resource.Resource {
	return &moved{identified{object{typeName: "conform6_moved", collection: "conform6_thing", schema: schema.Schema{Attributes: common(map[string]schema.Attribute{
		"title": schema.StringAttribute{Optional: true},
	})}}}}
}

func (r *moved) MoveState(context.Context) []resource.StateMover {
	return []resource.StateMover{{StateMover: func(ctx context.Context, req resource.MoveStateRequest, resp *resource.MoveStateResponse) {
		if req.SourceTypeName != "conform6_thing" || !strings.HasSuffix(req.SourceProviderAddress, "/conform6") {
			return
		}
		var m struct{ ID, Name, Note string }
		if err := json.Unmarshal(req.SourceRawState.JSON, &m); err != nil {
			resp.Diagnostics.AddError("Can't move", err.Error())
			return
		}
		for name, v := range map[string]string{"id": m.ID, "name": m.Name, "title": m.Note} {
			resp.Diagnostics.Append(resp.TargetState.SetAttribute(ctx, path.Root(name), v)...)
		}
		identify(ctx, resp.TargetIdentity, m.ID, &resp.Diagnostics)
	}}}
}
