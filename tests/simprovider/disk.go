package simprovider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

type diskModel struct {
	ID         types.String `tfsdk:"id"`
	Name       types.String `tfsdk:"name"`
	SizeGB     types.Int64  `tfsdk:"size_gb"`
	Type       types.String `tfsdk:"type"`
	Encrypted  types.Bool   `tfsdk:"encrypted"`
	InstanceID types.String `tfsdk:"instance_id"`
	Tags       types.Map    `tfsdk:"tags"`
	CreatedAt  types.String `tfsdk:"created_at"`
}

func newDisk() resource.Resource {
	const shrinks = "A disk can grow in place; a smaller size replaces it."
	return &cloudResource[diskModel, *diskModel]{
		typeName: "sim_disk", collection: "disks",
		schema: schema.Schema{
			Description: "A disk, attached to an instance or to none. Attaching is a call of its own, after the create.",
			Attributes: map[string]schema.Attribute{
				"id":   idAttribute(),
				"name": nameAttribute("disk"),
				"size_gb": schema.Int64Attribute{
					Required: true, Description: "Size in GB. " + shrinks, Validators: []validator.Int64{int64validator.AtLeast(1)},
					PlanModifiers: []planmodifier.Int64{int64planmodifier.RequiresReplaceIf(
						func(_ context.Context, req planmodifier.Int64Request, resp *int64planmodifier.RequiresReplaceIfFuncResponse) {
							resp.RequiresReplace = !req.PlanValue.IsUnknown() && req.PlanValue.ValueInt64() < req.StateValue.ValueInt64()
						}, shrinks, shrinks)},
				},
				"type": schema.StringAttribute{
					Optional: true, Computed: true, Default: stringdefault.StaticString("ssd"), Validators: []validator.String{stringvalidator.OneOf("ssd", "hdd", "nvme")},
					Description:   "Type: ssd (the default), hdd or nvme. Another one replaces the disk.",
					PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
				},
				"encrypted": schema.BoolAttribute{
					Optional: true, Computed: true, Default: booldefault.StaticBool(false),
					Description:   "Whether the disk is encrypted; false when it is not set. Another value replaces the disk.",
					PlanModifiers: []planmodifier.Bool{boolplanmodifier.RequiresReplace()},
				},
				"instance_id": schema.StringAttribute{Optional: true, Description: "Instance that the disk is attached to; none when it is not set."},
				"tags":        tagsAttribute(),
				"created_at":  createdAttribute(),
			},
		},
	}
}

func (m *diskModel) key() string { return m.ID.ValueString() }

func (m *diskModel) encode(_ context.Context, creating bool, _ *diag.Diagnostics) map[string]any {
	f := map[string]any{"name": plain(m.Name), "size_gb": plain(m.SizeGB), "tags": plain(m.Tags)}
	if creating {
		f["type"], f["encrypted"] = plain(m.Type), plain(m.Encrypted)
	}
	return f
}

func (m *diskModel) decode(_ context.Context, o object, diags *diag.Diagnostics) {
	m.ID, m.Name, m.SizeGB, m.Type = stringOf(o["id"]), stringOf(o["name"]), intOf(o["size_gb"]), stringOf(o["type"])
	m.Encrypted, m.InstanceID, m.CreatedAt = boolOf(o["encrypted"]), stringOf(o["instance_id"]), stringOf(o["created_at"])
	m.Tags = mapOf(o["tags"], m.Tags, diags)
}

// steps attaches the disk to its instance, after it detached the disk from another one.
func (m *diskModel) steps(ctx context.Context, c *cloud, now object) (next object, err error) {
	is, want := text(now["instance_id"]), m.InstanceID.ValueString()
	if is == want {
		return nil, nil
	}
	if is != "" {
		if next, err = c.action(ctx, "disks", now.id(), "detach", nil); err != nil {
			return nil, fmt.Errorf("detach from %s: %w", is, err)
		}
	}
	if want != "" {
		attached, err := c.action(ctx, "disks", now.id(), "attach", map[string]any{"instance_id": want})
		if err != nil {
			return next, fmt.Errorf("attach to %s: %w", want, err)
		}
		next = attached
	}
	return next, nil
}
