package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	tfjson "github.com/hashicorp/terraform-json"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
)

const (
	// planFormat is the version of Terraform's JSON plan that is printed:
	// https://developer.hashicorp.com/terraform/internals/json-format
	planFormat = "1.2"
	// terraformVersion is the Terraform whose format that is; readers of plans want to see one.
	terraformVersion = "1.9.0"
)

// terraformJSON prints a plan as `terraform show -json` does.
func (o *showOptions) terraformJSON(ctx context.Context, p *v1alpha1.Plan) error {
	root := &tfjson.StateModule{}
	out := &tfjson.Plan{
		FormatVersion:    planFormat,
		TerraformVersion: terraformVersion,
		PlannedValues:    &tfjson.StateValues{RootModule: root},
		ResourceChanges:  []*tfjson.ResourceChange{},
		Config:           &tfjson.Config{RootModule: &tfjson.ConfigModule{}},
		Complete:         new(len(p.Spec.Targets) == 0 && p.Spec.Selector == nil),
	}
	if t := p.Status.PlannedAt; t != nil {
		out.Timestamp = t.UTC().Format(time.RFC3339)
	}
	for c, err := range o.changes(ctx, p) {
		if err != nil {
			return err
		}
		rc := resourceChange(c)
		if c.Action == v1alpha1.ActionRead {
			// A refresh changes records alone: Terraform calls that drift.
			rc.Change.Actions = tfjson.Actions{tfjson.ActionUpdate}
			out.ResourceDrift = append(out.ResourceDrift, rc)
			continue
		}
		out.ResourceChanges = append(out.ResourceChanges, rc)
		if values, ok := plain(c.After).(map[string]any); ok {
			root.Resources = append(root.Resources, &tfjson.StateResource{
				Address: c.Address, Mode: tfjson.ManagedResourceMode, Type: c.Type, Name: c.Object.Name,
				ProviderName: c.Provider, AttributeValues: values, SensitiveValues: rawOr(c.AfterSensitive, "{}"),
			})
		}
	}
	e := json.NewEncoder(o.Out)
	e.SetEscapeHTML(false)
	if err := e.Encode(out); err != nil {
		return fmt.Errorf("print plan %q: %w", p.Name, err)
	}
	return nil
}

func resourceChange(c *v1alpha1.PlanChange) *tfjson.ResourceChange {
	change := &tfjson.Change{
		// Raw JSON, so that numbers stay what they are, and null where Terraform writes null.
		Before:          rawOr(c.Before, "null"),
		After:           rawOr(c.After, "null"),
		AfterUnknown:    rawOr(c.AfterUnknown, "{}"),
		BeforeSensitive: rawOr(c.BeforeSensitive, "false"),
		AfterSensitive:  rawOr(c.AfterSensitive, "false"),
	}
	if paths, ok := plain(c.ReplacePaths).([]any); ok {
		change.ReplacePaths = paths
	}
	switch c.Action {
	case v1alpha1.ActionCreate:
		change.Actions = tfjson.Actions{tfjson.ActionCreate}
	case v1alpha1.ActionUpdate:
		change.Actions = tfjson.Actions{tfjson.ActionUpdate}
	case v1alpha1.ActionReplace:
		change.Actions = tfjson.Actions{tfjson.ActionDelete, tfjson.ActionCreate}
	case v1alpha1.ActionDelete:
		change.Actions = tfjson.Actions{tfjson.ActionDelete}
	case v1alpha1.ActionRead:
		change.Actions = tfjson.Actions{tfjson.ActionRead}
	default:
		change.Actions = tfjson.Actions{tfjson.ActionNoop}
	}
	return &tfjson.ResourceChange{
		Address: c.Address, Mode: tfjson.ManagedResourceMode, Type: c.Type, Name: c.Object.Name,
		ProviderName: c.Provider, Change: change, ActionReason: tfjson.ActionReason(c.ActionReason),
	}
}

func rawOr(r *runtime.RawExtension, empty string) json.RawMessage {
	if r == nil || len(r.Raw) == 0 {
		return json.RawMessage(empty)
	}
	return json.RawMessage(r.Raw)
}

func plain(r *runtime.RawExtension) any {
	var v any
	if err := json.Unmarshal(rawOr(r, "null"), &v); err != nil {
		return nil
	}
	return v
}
