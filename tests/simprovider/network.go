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

type networkModel struct {
	ID        types.String `tfsdk:"id"`
	Name      types.String `tfsdk:"name"`
	CIDR      types.String `tfsdk:"cidr"`
	Tags      types.Map    `tfsdk:"tags"`
	CreatedAt types.String `tfsdk:"created_at"`
}

func newNetwork() resource.Resource {
	return &identifiedResource[networkModel, *networkModel]{cloudResource[networkModel, *networkModel]{
		typeName: "sim_network", collection: "networks",
		schema: schema.Schema{
			Description: "A private network. It can't be deleted while it has subnets.",
			Attributes: map[string]schema.Attribute{
				"id":   idAttribute(),
				"name": nameAttribute("network"),
				"cidr": schema.StringAttribute{
					Optional: true, Computed: true,
					Description:   "Address block of the network; 10.0.0.0/16 when it is not set. Another one replaces the network.",
					Validators:    []validator.String{isCIDR{}},
					PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown(), stringplanmodifier.RequiresReplace()},
				},
				"tags":       tagsAttribute(),
				"created_at": createdAttribute(),
			},
		},
	}}
}

func (m *networkModel) key() string { return m.ID.ValueString() }

func (m *networkModel) encode(_ context.Context, creating bool, _ *diag.Diagnostics) map[string]any {
	f := map[string]any{"name": plain(m.Name), "tags": plain(m.Tags)}
	if creating {
		f["cidr"] = plain(m.CIDR)
	}
	return f
}

func (m *networkModel) decode(_ context.Context, o object, diags *diag.Diagnostics) {
	m.ID, m.Name, m.CIDR, m.CreatedAt = stringOf(o["id"]), stringOf(o["name"]), stringOf(o["cidr"]), stringOf(o["created_at"])
	m.Tags = mapOf(o["tags"], m.Tags, diags)
}
