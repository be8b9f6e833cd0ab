package simprovider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

type dnsRecordModel struct {
	ID     types.String `tfsdk:"id"`
	Name   types.String `tfsdk:"name"`
	Type   types.String `tfsdk:"type"`
	TTL    types.Int64  `tfsdk:"ttl"`
	Values types.Set    `tfsdk:"values"`
	FQDN   types.String `tfsdk:"fqdn"`
}

func newDNSRecord() resource.Resource {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	return &cloudResource[dnsRecordModel, *dnsRecordModel]{
		typeName: "sim_dns_record", collection: "dns-records",
		schema: schema.Schema{
			Description: "A DNS record of the zone sim.example. There is one for each name and type.",
			Attributes: map[string]schema.Attribute{
				"id":   idAttribute(),
				"name": schema.StringAttribute{Required: true, PlanModifiers: replace, Validators: []validator.String{notEmpty{}}, Description: "Name within the zone. Another one replaces the record."},
				"type": schema.StringAttribute{
					Required: true, PlanModifiers: replace, Validators: []validator.String{stringvalidator.OneOf("A", "AAAA", "CNAME", "TXT", "MX", "SRV")},
					Description: "Type: A, AAAA, CNAME, TXT, MX or SRV. Another one replaces the record.",
				},
				"ttl": schema.Int64Attribute{
					Optional: true, Computed: true, Default: int64default.StaticInt64(300), Validators: []validator.Int64{int64validator.AtLeast(1)},
					Description: "How many seconds resolvers may keep the record; 300 when it is not set.",
				},
				"values": schema.SetAttribute{
					Required: true, ElementType: types.StringType, Validators: []validator.Set{setvalidator.SizeAtLeast(1)},
					Description: "Values of the record, without order; at least one.",
				},
				"fqdn": kept("Full name of the record."),
			},
		},
	}
}

func (m *dnsRecordModel) key() string { return m.ID.ValueString() }

func (m *dnsRecordModel) encode(_ context.Context, creating bool, _ *diag.Diagnostics) map[string]any {
	f := map[string]any{"ttl": plain(m.TTL), "values": plain(m.Values)}
	if creating {
		f["name"], f["type"] = plain(m.Name), plain(m.Type)
	}
	return f
}

func (m *dnsRecordModel) decode(_ context.Context, o object, diags *diag.Diagnostics) {
	m.ID, m.Name, m.Type, m.FQDN = stringOf(o["id"]), stringOf(o["name"]), stringOf(o["type"]), stringOf(o["fqdn"])
	m.TTL, m.Values = intOf(o["ttl"]), setOf(o["values"], m.Values, diags)
}
