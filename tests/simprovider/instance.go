package simprovider

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

type instanceModel struct {
	ID               types.String `tfsdk:"id"`
	Name             types.String `tfsdk:"name"`
	SubnetID         types.String `tfsdk:"subnet_id"`
	Image            types.String `tfsdk:"image"`
	Size             types.String `tfsdk:"size"`
	CPU              types.Int64  `tfsdk:"cpu"`
	Public           types.Bool   `tfsdk:"public"`
	Tags             types.Map    `tfsdk:"tags"`
	NetworkInterface types.List   `tfsdk:"network_interface"`
	Metadata         types.Object `tfsdk:"metadata"`
	Timeouts         types.Object `tfsdk:"timeouts"`
	PrivateIP        types.String `tfsdk:"private_ip"`
	PublicIP         types.String `tfsdk:"public_ip"`
	Status           types.String `tfsdk:"status"`
	CreatedAt        types.String `tfsdk:"created_at"`
	UpdatedAt        types.String `tfsdk:"updated_at"`
}

func newInstance() resource.Resource {
	return &instanceResource{*instancesAs("sim_instance", instanceSchema())}
}

// newServer returns sim_server, the former name of sim_instance, for tests of a move from one type to the other.
func newServer() resource.Resource {
	s := instanceSchema()
	s.DeprecationMessage = "Use sim_instance, which takes over a sim_server that is moved to it."
	return instancesAs("sim_server", s)
}

func instancesAs(typeName string, s schema.Schema) *identifiedResource[instanceModel, *instanceModel] {
	return &identifiedResource[instanceModel, *instanceModel]{cloudResource[instanceModel, *instanceModel]{
		typeName: typeName, collection: "instances", schema: s,
		modifyPlan: func(state, plan *instanceModel) {
			// Only a change of public changes the public address. Without this, every update would make it unknown.
			if plan.PublicIP.IsUnknown() && plan.Public.Equal(state.Public) {
				plan.PublicIP = state.PublicIP
			}
		},
	}}
}

// instanceResource is sim_instance. It can take over a sim_server.
type instanceResource struct {
	identifiedResource[instanceModel, *instanceModel]
}

func (r *instanceResource) MoveState(context.Context) []resource.StateMover {
	return []resource.StateMover{{
		SourceSchema: new(instanceSchema()),
		StateMover: func(ctx context.Context, req resource.MoveStateRequest, resp *resource.MoveStateResponse) {
			// The framework reports the fields that this does not handle.
			if req.SourceTypeName != "sim_server" || !strings.HasSuffix(req.SourceProviderAddress, "/hykube/sim") || req.SourceState == nil {
				return
			}
			var m instanceModel
			if resp.Diagnostics.Append(req.SourceState.Get(ctx, &m)...); resp.Diagnostics.HasError() {
				return
			}
			resp.Diagnostics.Append(resp.TargetState.Set(ctx, &m)...)
			moveIdentity(ctx, req.SourceIdentity, resp)
		},
	}}
}

func instanceSchema() schema.Schema {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	return schema.Schema{
		Description: "A virtual machine. The create waits until it runs.",
		Attributes: map[string]schema.Attribute{
			"id":        idAttribute(),
			"name":      nameAttribute("instance"),
			"subnet_id": schema.StringAttribute{Required: true, PlanModifiers: replace, Description: "Subnet that the instance is in. Another one replaces the instance."},
			"image":     schema.StringAttribute{Required: true, PlanModifiers: replace, Description: "Image that the instance is made from; the data source sim_images lists them. Another one replaces the instance."},
			"size":      schema.StringAttribute{Optional: true, Computed: true, Default: stringdefault.StaticString("small"), Description: "Size, such as small, medium or large; small when it is not set."},
			"cpu": schema.Int64Attribute{
				Optional: true, Computed: true, Default: int64default.StaticInt64(1), Validators: []validator.Int64{int64validator.Between(1, 128)},
				Description: "Number of CPUs, from 1 to 128; 1 when it is not set.",
			},
			"public": schema.BoolAttribute{Optional: true, Computed: true, Default: booldefault.StaticBool(false), Description: "Whether the instance has a public address; false when it is not set."},
			"tags":   tagsAttribute(),
			"metadata": schema.SingleNestedAttribute{
				Optional: true, Description: "What the instance can read about itself.",
				Attributes: map[string]schema.Attribute{
					"owner":          schema.StringAttribute{Optional: true, Description: "Who is asked about the instance."},
					"startup_script": schema.StringAttribute{Optional: true, Sensitive: true, Description: "Script that runs at the first start."},
					"priority":       schema.Int64Attribute{Optional: true, Computed: true, Default: int64default.StaticInt64(0), Description: "Order among instances that start at once; 0 when it is not set."},
				},
			},
			"private_ip": kept("Address within the subnet."),
			"public_ip":  schema.StringAttribute{Computed: true, Description: "Public address; null when the instance is not public."},
			"status":     kept("State of the instance as last seen, such as running."),
			"created_at": createdAttribute(),
			"updated_at": schema.StringAttribute{Computed: true, Description: "When it was last changed, in RFC 3339."},
		},
		Blocks: map[string]schema.Block{
			"network_interface": schema.ListNestedBlock{
				Description: "A further network interface.",
				NestedObject: schema.NestedBlockObject{Attributes: map[string]schema.Attribute{
					"address": schema.StringAttribute{
						Optional: true, Computed: true, Description: "Address of the interface; the cloud chooses when it is not set.",
						PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
					},
					"security_groups": schema.SetAttribute{Optional: true, ElementType: types.StringType, Description: "Names of the security groups of the interface."},
				}},
			},
			"timeouts": schema.SingleNestedBlock{
				Description: "How long operations may take, such as 30s or 10m; 5m when it is not set.",
				Attributes: map[string]schema.Attribute{
					"create": schema.StringAttribute{Optional: true, Validators: []validator.String{isDuration{}}, Description: "For the create, until the instance runs."},
					"update": schema.StringAttribute{Optional: true, Validators: []validator.String{isDuration{}}, Description: "For an update."},
					"delete": schema.StringAttribute{Optional: true, Validators: []validator.String{isDuration{}}, Description: "For the delete, until the instance is gone."},
				},
			},
		},
	}
}

func interfaceType() types.ObjectType {
	return types.ObjectType{AttrTypes: map[string]attr.Type{
		"address": types.StringType, "security_groups": types.SetType{ElemType: types.StringType},
	}}
}

func metadataTypes() map[string]attr.Type {
	return map[string]attr.Type{"owner": types.StringType, "startup_script": types.StringType, "priority": types.Int64Type}
}

func (m *instanceModel) key() string { return m.ID.ValueString() }

func (m *instanceModel) encode(_ context.Context, creating bool, _ *diag.Diagnostics) map[string]any {
	f := map[string]any{
		"name": plain(m.Name), "size": plain(m.Size), "cpu": plain(m.CPU), "public": plain(m.Public), "tags": plain(m.Tags),
		"network_interfaces": plain(m.NetworkInterface), "metadata": plain(m.Metadata),
	}
	if creating {
		f["subnet_id"], f["image"] = plain(m.SubnetID), plain(m.Image)
	}
	return f
}

func (m *instanceModel) decode(_ context.Context, o object, diags *diag.Diagnostics) {
	m.ID, m.Name, m.SubnetID, m.Image = stringOf(o["id"]), stringOf(o["name"]), stringOf(o["subnet_id"]), stringOf(o["image"])
	m.Size, m.CPU, m.Public = stringOf(o["size"]), intOf(o["cpu"]), boolOf(o["public"])
	m.PrivateIP, m.PublicIP, m.Status = stringOf(o["private_ip"]), stringOf(o["public_ip"]), stringOf(o["status"])
	m.CreatedAt, m.UpdatedAt = stringOf(o["created_at"]), stringOf(o["updated_at"])
	m.Tags = mapOf(o["tags"], m.Tags, diags)
	m.decodeInterfaces(o["network_interfaces"], diags)
	m.decodeMetadata(o["metadata"], diags)
}

func (m *instanceModel) decodeInterfaces(v any, diags *diag.Diagnostics) {
	var before []attr.Value
	if !m.NetworkInterface.IsUnknown() {
		before = m.NetworkInterface.Elements()
	}
	list, _ := v.([]any)
	elems := []attr.Value{}
	for i, e := range list {
		nic, _ := e.(map[string]any)
		groups := types.SetNull(types.StringType)
		if i < len(before) {
			if o, ok := before[i].(types.Object); ok {
				groups, _ = o.Attributes()["security_groups"].(types.Set)
			}
		}
		obj, d := types.ObjectValue(interfaceType().AttrTypes, map[string]attr.Value{
			"address": stringOf(nic["address"]), "security_groups": setOf(nic["security_groups"], groups, diags),
		})
		diags.Append(d...)
		elems = append(elems, obj)
	}
	// A block that is not configured is an empty list, never null.
	out, d := types.ListValue(interfaceType(), elems)
	diags.Append(d...)
	m.NetworkInterface = out
}

func (m *instanceModel) decodeMetadata(v any, diags *diag.Diagnostics) {
	md, ok := v.(map[string]any)
	if !ok {
		m.Metadata = types.ObjectNull(metadataTypes())
		return
	}
	out, d := types.ObjectValue(metadataTypes(), map[string]attr.Value{
		"owner": stringOf(md["owner"]), "startup_script": stringOf(md["startup_script"]), "priority": intOf(md["priority"]),
	})
	diags.Append(d...)
	m.Metadata = out
}

// settled reports whether the instance runs. Reads return any status, also after drift; only a create and an update
// wait.
func (m *instanceModel) settled(o object) (bool, error) { return running("instance", o) }

func (m *instanceModel) timeout(operation string) time.Duration {
	s, _ := m.Timeouts.Attributes()[operation].(types.String)
	d, _ := time.ParseDuration(s.ValueString()) // already validated; null means none
	return d
}

// isDuration accepts a positive duration such as 30s.
type isDuration struct{}

func (isDuration) Description(context.Context) string { return "a duration such as 30s or 10m" }

func (v isDuration) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (isDuration) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if d, err := time.ParseDuration(req.ConfigValue.ValueString()); err != nil || d <= 0 {
		resp.Diagnostics.AddAttributeError(req.Path, "Not a duration", fmt.Sprintf("%q is no duration such as 30s or 10m.", req.ConfigValue.ValueString()))
	}
}
