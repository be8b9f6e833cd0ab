package simprovider

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

type databaseModel struct {
	ID                     types.String `tfsdk:"id"`
	Name                   types.String `tfsdk:"name"`
	Engine                 types.String `tfsdk:"engine"`
	EngineVersion          types.String `tfsdk:"engine_version"`
	StorageGB              types.Int64  `tfsdk:"storage_gb"`
	AdminPasswordWO        types.String `tfsdk:"admin_password_wo"`
	AdminPasswordWOVersion types.Int64  `tfsdk:"admin_password_wo_version"`
	Tags                   types.Map    `tfsdk:"tags"`
	Address                types.String `tfsdk:"address"`
	CreatedAt              types.String `tfsdk:"created_at"`

	// password is the password to send; nil if it does not change.
	password any
}

// databaseResource is sim_database. In older versions of the provider, its state had other schemas.
type databaseResource struct {
	identifiedResource[databaseModel, *databaseModel]
}

func newDatabase() resource.Resource {
	return &databaseResource{identifiedResource[databaseModel, *databaseModel]{cloudResource[databaseModel, *databaseModel]{
		typeName: "sim_database", collection: "databases",
		schema: schema.Schema{
			Version:     2,
			Description: "A database. The create waits until it runs.",
			Attributes: map[string]schema.Attribute{
				"id":   idAttribute(),
				"name": nameAttribute("database"),
				"engine": schema.StringAttribute{
					Required: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
					Description: "Engine: postgres or mysql. Another one replaces the database.",
				},
				"engine_version": schema.StringAttribute{Required: true, Validators: []validator.String{notEmpty{}}, Description: "Version of the engine, such as 17."},
				"storage_gb": schema.Int64Attribute{
					Optional: true, Computed: true, Default: int64default.StaticInt64(10), Validators: []validator.Int64{int64validator.AtLeast(1)},
					Description: "Size of its storage in GB, which can only grow; 10 when it is not set.",
				},
				"admin_password_wo": schema.StringAttribute{
					Optional: true, Sensitive: true, WriteOnly: true,
					Validators:  []validator.String{notEmpty{}},
					Description: "Password of the administrator. It is sent and never stored; it is sent again when admin_password_wo_version changes.",
				},
				"admin_password_wo_version": schema.Int64Attribute{
					Optional:    true,
					Description: "Number of the password. Another one sends admin_password_wo again.",
				},
				"tags":       tagsAttribute(),
				"address":    kept("Host and port of the database."),
				"created_at": createdAttribute(),
			},
		},
	}}}
}

func (m *databaseModel) key() string { return m.ID.ValueString() }

// takeConfig reads the password from the configuration, because neither the plan nor the state has it.
func (m *databaseModel) takeConfig(ctx context.Context, config tfsdk.Config, before *tfsdk.State, diags *diag.Diagnostics) {
	var was types.Int64
	if before != nil {
		diags.Append(before.GetAttribute(ctx, path.Root("admin_password_wo_version"), &was)...)
		if was.Equal(m.AdminPasswordWOVersion) {
			return
		}
	}
	var now types.String
	diags.Append(config.GetAttribute(ctx, path.Root("admin_password_wo"), &now)...)
	m.password = plain(now)
}

func (m *databaseModel) encode(_ context.Context, creating bool, _ *diag.Diagnostics) map[string]any {
	f := map[string]any{"name": plain(m.Name), "engine_version": plain(m.EngineVersion), "storage_gb": plain(m.StorageGB), "tags": plain(m.Tags)}
	if creating {
		f["engine"] = plain(m.Engine)
	}
	if m.password != nil {
		f["admin_password"] = m.password
	}
	return f
}

func (m *databaseModel) decode(_ context.Context, o object, diags *diag.Diagnostics) {
	m.ID, m.Name, m.Engine, m.EngineVersion = stringOf(o["id"]), stringOf(o["name"]), stringOf(o["engine"]), stringOf(o["engine_version"])
	m.StorageGB, m.Address, m.CreatedAt = intOf(o["storage_gb"]), stringOf(o["address"]), stringOf(o["created_at"])
	m.AdminPasswordWO = types.StringNull()
	m.Tags = mapOf(o["tags"], m.Tags, diags)
}

func (m *databaseModel) settled(o object) (bool, error) { return running("database", o) }

// UpgradeState upgrades states of older versions. Each upgrader leads to the current version, because the framework
// calls only one.
func (r *databaseResource) UpgradeState(context.Context) map[int64]resource.StateUpgrader {
	second := map[string]schema.Attribute{"engine_version": schema.StringAttribute{Required: true}}
	for name, a := range firstDatabaseAttributes() {
		second[name] = a
	}
	return map[int64]resource.StateUpgrader{
		// The engine and its version were one string, and the storage had a unit.
		0: {PriorSchema: &schema.Schema{Attributes: firstDatabaseAttributes()}, StateUpgrader: func(ctx context.Context, req resource.UpgradeStateRequest, resp *resource.UpgradeStateResponse) {
			var old firstDatabaseModel
			if resp.Diagnostics.Append(req.State.Get(ctx, &old)...); resp.Diagnostics.HasError() {
				return
			}
			engine, version, _ := strings.Cut(old.Engine.ValueString(), "-")
			upgradeDatabase(ctx, old, engine, version, resp)
		}},
		// The storage had a unit.
		1: {PriorSchema: &schema.Schema{Attributes: second}, StateUpgrader: func(ctx context.Context, req resource.UpgradeStateRequest, resp *resource.UpgradeStateResponse) {
			var old struct {
				firstDatabaseModel
				EngineVersion types.String `tfsdk:"engine_version"`
			}
			if resp.Diagnostics.Append(req.State.Get(ctx, &old)...); resp.Diagnostics.HasError() {
				return
			}
			upgradeDatabase(ctx, old.firstDatabaseModel, old.Engine.ValueString(), old.EngineVersion.ValueString(), resp)
		}},
	}
}

func upgradeDatabase(ctx context.Context, old firstDatabaseModel, engine, version string, resp *resource.UpgradeStateResponse) {
	size, err := strconv.ParseInt(strings.TrimSuffix(old.Storage.ValueString(), "GB"), 10, 64)
	if err != nil {
		resp.Diagnostics.AddError("The recorded state can't be upgraded", fmt.Sprintf("The storage of the database %s is recorded as %q, and not as a size such as 10GB.",
			old.ID.ValueString(), old.Storage.ValueString()))
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &databaseModel{
		ID: old.ID, Name: old.Name, Engine: types.StringValue(engine), EngineVersion: types.StringValue(version), StorageGB: types.Int64Value(size),
		Address: old.Address, CreatedAt: old.CreatedAt, Tags: types.MapNull(types.StringType),
	})...)
}

// firstDatabaseModel is sim_database of the provider's versions 0.0.x, with schema version 0.
type firstDatabaseModel struct {
	ID        types.String `tfsdk:"id"`
	Name      types.String `tfsdk:"name"`
	Engine    types.String `tfsdk:"engine"`
	Storage   types.String `tfsdk:"storage"`
	Address   types.String `tfsdk:"address"`
	CreatedAt types.String `tfsdk:"created_at"`
}

func firstDatabaseAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":         idAttribute(),
		"name":       nameAttribute("database"),
		"engine":     schema.StringAttribute{Required: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()}, Description: "Engine and version, such as postgres-17."},
		"storage":    schema.StringAttribute{Required: true, Description: "Size of its storage, such as 10GB."},
		"address":    kept("Host and port of the database."),
		"created_at": createdAttribute(),
	}
}

// newFirstDatabase returns sim_database of an old version of the provider, for tests of an upgrade.
func newFirstDatabase() resource.Resource {
	return &cloudResource[firstDatabaseModel, *firstDatabaseModel]{
		typeName: "sim_database", collection: "databases",
		schema: schema.Schema{Description: "A database. The create waits until it runs.", Attributes: firstDatabaseAttributes()},
	}
}

func (m *firstDatabaseModel) key() string { return m.ID.ValueString() }

func (m *firstDatabaseModel) encode(_ context.Context, creating bool, diags *diag.Diagnostics) map[string]any {
	engine, version, _ := strings.Cut(m.Engine.ValueString(), "-")
	size, err := strconv.ParseInt(strings.TrimSuffix(m.Storage.ValueString(), "GB"), 10, 64)
	if err != nil {
		diags.AddAttributeError(path.Root("storage"), "Not a size", fmt.Sprintf("%q is no size such as 10GB.", m.Storage.ValueString()))
	}
	f := map[string]any{"name": plain(m.Name), "engine_version": version, "storage_gb": size}
	if creating {
		f["engine"] = engine
	}
	return f
}

func (m *firstDatabaseModel) decode(_ context.Context, o object, _ *diag.Diagnostics) {
	m.ID, m.Name, m.Address, m.CreatedAt = stringOf(o["id"]), stringOf(o["name"]), stringOf(o["address"]), stringOf(o["created_at"])
	m.Engine = types.StringValue(text(o["engine"]) + "-" + text(o["engine_version"]))
	m.Storage = types.StringValue(fmt.Sprintf("%vGB", o["storage_gb"]))
}

func (m *firstDatabaseModel) settled(o object) (bool, error) { return running("database", o) }
