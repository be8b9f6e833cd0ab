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

type subnetModel struct {
	ID        types.String `tfsdk:"id"`
	NetworkID types.String `tfsdk:"network_id"`
	Name      types.String `tfsdk:"name"`
	CIDR      types.String `tfsdk:"cidr"`
	Zone      types.String `tfsdk:"zone"`
	Tags      types.Map    `tfsdk:"tags"`
	CreatedAt types.String `tfsdk:"created_at"`
}

func newSubnet() resource.Resource {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	return &identifiedResource[subnetModel, *subnetModel]{cloudResource[subnetModel, *subnetModel]{
		typeName: "sim_subnet", collection: "subnets",
		schema: schema.Schema{
			Description: "A part of a network, in one zone. It can't be deleted while it has instances.",
			Attributes: map[string]schema.Attribute{
				"id": idAttribute(),
				"network_id": schema.StringAttribute{
					Required: true, PlanModifiers: replace,
					Description: "Network that the subnet is part of. Another one replaces the subnet.",
				},
				"name": nameAttribute("subnet"),
				"cidr": schema.StringAttribute{
					Required: true, PlanModifiers: replace, Validators: []validator.String{isCIDR{}},
					Description: "Address block of the subnet, within the network's. Another one replaces the subnet.",
				},
				"zone": schema.StringAttribute{
					Optional: true, Computed: true,
					Description:   "Zone that the subnet is in; the cloud chooses when it is not set. Another one replaces the subnet.",
					PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown(), stringplanmodifier.RequiresReplace()},
				},
				"tags":       tagsAttribute(),
				"created_at": createdAttribute(),
			},
		},
	}}
}

func (m *subnetModel) key() string { return m.ID.ValueString() }

func (m *subnetModel) encode(_ context.Context, creating bool, _ *diag.Diagnostics) map[string]any {
	f := map[string]any{"name": plain(m.Name), "tags": plain(m.Tags)}
	if creating {
		f["network_id"], f["cidr"], f["zone"] = plain(m.NetworkID), plain(m.CIDR), plain(m.Zone)
	}
	return f
}

func (m *subnetModel) decode(_ context.Context, o object, diags *diag.Diagnostics) {
	m.ID, m.Name, m.CIDR, m.CreatedAt = stringOf(o["id"]), stringOf(o["name"]), stringOf(o["cidr"]), stringOf(o["created_at"])
	m.NetworkID, m.Zone = stringOf(o["network_id"]), stringOf(o["zone"])
	m.Tags = mapOf(o["tags"], m.Tags, diags)
}
