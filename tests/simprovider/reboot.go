package simprovider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// reboot is the action sim_reboot.
type reboot struct{ cloud *cloud }

type rebootModel struct {
	InstanceID types.String `tfsdk:"instance_id"`
	Timeout    types.String `tfsdk:"timeout"`
}

func newReboot() action.Action { return &reboot{} }

func (r *reboot) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = "sim_reboot"
}

func (r *reboot) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "Reboots an instance, and waits until it runs again.",
		Attributes: map[string]schema.Attribute{
			"instance_id": schema.StringAttribute{Required: true, Validators: []validator.String{notEmpty{}}, Description: "Identifier of the instance."},
			"timeout":     schema.StringAttribute{Optional: true, Validators: []validator.String{isDuration{}}, Description: "How long it may take until the instance runs again; 5m when it is not set."},
		},
	}
}

func (r *reboot) Configure(_ context.Context, req action.ConfigureRequest, _ *action.ConfigureResponse) {
	r.cloud, _ = req.ProviderData.(*cloud)
}

// ModifyPlan returns an error early if there is nothing to reboot.
func (r *reboot) ModifyPlan(ctx context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	var m rebootModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() || m.InstanceID.IsUnknown() || r.cloud == nil {
		return
	}
	if _, err := r.cloud.read(ctx, "instances", m.InstanceID.ValueString()); isNotFound(err) {
		resp.Diagnostics.AddAttributeError(path.Root("instance_id"), "There is nothing to reboot", fmt.Sprintf("No instance has the id %q.", m.InstanceID.ValueString()))
	}
}

func (r *reboot) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var m rebootModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() || !configuredCloud(r.cloud, &resp.Diagnostics) {
		return
	}
	limit := defaultTimeout
	if d, err := time.ParseDuration(m.Timeout.ValueString()); err == nil {
		limit = d
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the reboot took longer than its timeout of %s", limit))
	defer cancel()
	id := m.InstanceID.ValueString()
	tell := func(format string, args ...any) {
		resp.SendProgress(action.InvokeProgressEvent{Message: fmt.Sprintf(format, args...)})
	}
	failed := func(err error) {
		resp.Diagnostics.AddError("Can't reboot the instance", fmt.Sprintf("The instance %s was not rebooted: %v", id, err))
	}
	tell("rebooting %s", id)
	o, err := r.cloud.action(ctx, "instances", id, "reboot", nil)
	if err != nil {
		failed(err)
		return
	}
	tell("%s is %s", id, text(o["status"]))
	var never error
	last, err := r.cloud.visible(ctx, "instances", o, func(o object) bool {
		var done bool
		done, never = running("instance", o)
		return done || never != nil
	})
	if err == nil {
		err = never
	}
	if err != nil {
		failed(err)
		return
	}
	tell("%s is %s", id, text(last["status"]))
}

// configuredCloud returns an error if there is no cloud to call, because the provider's configuration was not wholly
// known.
func configuredCloud(c *cloud, diags *diag.Diagnostics) bool {
	if c == nil {
		diags.AddError("The provider is not configured", "Its configuration was not wholly known. Apply what it depends on first.")
	}
	return c != nil
}

// running reports whether an object with a status runs. It returns an error if the object never will.
func running(what string, o object) (bool, error) {
	switch text(o["status"]) {
	case "pending":
		return false, nil
	case "failed":
		return false, fmt.Errorf("%s %s failed to start", what, o.id())
	}
	return true, nil
}
