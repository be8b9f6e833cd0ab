// Package terraformjson writes a plan as `terraform show -json` prints it. docs/scripts.md lists the differences.
package terraformjson

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	tfjson "github.com/hashicorp/terraform-json"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/openapi"
)

const (
	// planFormat and stateFormat are the versions of Terraform's JSON that are printed:
	// https://developer.hashicorp.com/terraform/internals/json-format
	planFormat  = "1.2"
	stateFormat = "1.0"
	// terraformVersion is the Terraform whose format that is; readers of plans want to see one.
	terraformVersion = "1.11.4"
)

// planJSON is a plan as `terraform show -json` prints it. terraform-json reads no applyable and errored, and so has no
// fields for them; and it cannot write expressions.
type planJSON struct {
	*tfjson.Plan
	Config    *configJSON `json:"configuration"`
	Applyable bool        `json:"applyable"`
	Errored   bool        `json:"errored"`
}

// Source reads what the changes of a plan do not tell. What the caller may not read is left out: who may read a plan need not be
// allowed to read every object.
type Source interface {
	// Read reads objects, for the other methods. Only the end of ctx is an error.
	Read(ctx context.Context, objects []v1alpha1.ObjectReference) error
	// Spec returns the spec of an object and the addresses in its dependsOn; nil unless the object is as it was planned.
	Spec(object v1alpha1.ObjectReference) (spec map[string]any, dependsOn []string)
	// Dependencies returns the addresses of everything that an object refers to, directly or not.
	Dependencies(ctx context.Context, object v1alpha1.ObjectReference) ([]string, error)
	// Schemas returns the schemas of a provider's kinds.
	Schemas(ctx context.Context, provider string) map[string]*openapi.Schema
	// Provider returns the specs of a Provider and of a ProviderConfig in a namespace.
	Provider(ctx context.Context, provider, namespace, config string) (v1alpha1.ProviderSpec, v1alpha1.ProviderConfigSpec)
}

// Plan collects what Terraform's JSON of a plan has.
type Plan struct {
	source         Source
	plan           *v1alpha1.Plan
	failed         bool
	changes        []*tfjson.ResourceChange
	drift          []*tfjson.ResourceChange
	planned, prior *tfjson.StateModule
	entries        []entry
	config         *configJSON
	invocations    []*tfjson.ActionInvocation
	effects        bool // something is left to be done
	unfinished     bool // something could not be planned
}

// New returns the JSON of a plan without changes.
func New(p *v1alpha1.Plan, failed bool, source Source) *Plan {
	return &Plan{source: source, plan: p, failed: failed, planned: &tfjson.StateModule{}, prior: &tfjson.StateModule{},
		config: &configJSON{ProviderConfigs: map[string]*configProvider{}}}
}

// Write reads what the changes do not tell, and writes the plan.
func (t *Plan) Write(ctx context.Context, w io.Writer) error {
	if err := t.describe(ctx); err != nil {
		return err
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(t.document()); err != nil {
		return fmt.Errorf("print plan %q: %w", t.plan.Name, err)
	}
	return nil
}

// entry is a resource of the planned values or of the prior state, and the object that it belongs to.
type entry struct {
	state  *tfjson.StateResource
	object v1alpha1.ObjectReference
	prior  bool
}

// Add adds a change.
func (t *Plan) Add(c *v1alpha1.PlanChange) {
	switch {
	case c.Action == "", c.Action == v1alpha1.ActionNoOp && c.State == v1alpha1.ChangeSkipped: // it could not be planned, or was blocked
		t.unfinished = true
		return
	case c.Action == v1alpha1.ActionInvoke:
		t.effects = true
		t.invocations = append(t.invocations, &tfjson.ActionInvocation{
			Address: c.Address, Type: c.Type, Name: c.Object.Name, ProviderName: c.Provider,
			ConfigValues: rawOr(c.After, "null"), ConfigSensitive: rawOr(c.AfterSensitive, "{}"), ConfigUnknown: rawOr(c.AfterUnknown, "{}"),
			InvokeActionTrigger: &tfjson.InvokeActionTrigger{},
		})
		return
	}
	if c.Mode == v1alpha1.ModeAction {
		return // it ran before
	}
	data := c.Mode == v1alpha1.ModeData
	t.configure(c)
	if c.Action == v1alpha1.ActionRead && !data {
		// A refresh changes records alone: Terraform calls that drift, and what it found the prior state.
		t.effects = true
		if !t.plan.Spec.Destroy {
			t.drift = append(t.drift, driftChange(c, c.Before, c.BeforeSensitive, c.After, c.AfterSensitive))
		}
		t.addPrior(c, c.After, c.AfterSensitive)
		return
	}
	if diff.FoundGone(c) {
		// Terraform drops such a record without a change, and calls it drift.
		t.effects = true
		if !t.plan.Spec.Destroy {
			t.drift = append(t.drift, driftChange(c, cmp.Or(c.Recorded, c.Before), cmp.Or(c.RecordedSensitive, c.BeforeSensitive), nil, nil))
		}
		return
	}
	t.addPrior(c, c.Before, c.BeforeSensitive)
	// Of what is to be destroyed, Terraform does not tell how it drifted.
	if !isNull(c.Recorded) && !data && !t.plan.Spec.Destroy {
		t.drift = append(t.drift, driftChange(c, c.Recorded, c.RecordedSensitive, c.Before, c.BeforeSensitive))
	}
	switch {
	case data && c.Action == v1alpha1.ActionNoOp:
		return // it was read while the plan was made, and is in the prior state
	case isNull(c.Before) && isNull(c.After):
		return // an object without infrastructure is nothing to Terraform
	case t.plan.Spec.RefreshOnly:
		return
	}
	t.effects = t.effects || !diff.Quiet(c)
	t.changes = append(t.changes, t.change(c))
	if c.Deposed == "" && c.Action != v1alpha1.ActionDelete {
		r := stateResource(c, c.After, c.AfterSensitive)
		t.planned.Resources = append(t.planned.Resources, r)
		t.entries = append(t.entries, entry{state: r, object: c.Object})
	}
}

func (t *Plan) document() planJSON {
	p := t.plan
	barred := p.Status.Summary != nil && p.Status.Summary.Blocked > 0
	out := planJSON{
		Plan: &tfjson.Plan{
			FormatVersion:     planFormat,
			TerraformVersion:  terraformVersion,
			PlannedValues:     &tfjson.StateValues{RootModule: t.planned},
			ResourceDrift:     sortChanges(t.drift),
			ResourceChanges:   sortChanges(t.changes),
			ActionInvocations: t.invocations,
			Complete:          new(!t.failed && !t.unfinished && len(p.Spec.Targets)+len(p.Spec.Exclude) == 0 && p.Spec.Selector == nil),
		},
		Config:    t.config,
		Applyable: !t.failed && !barred && t.effects,
		Errored:   t.failed || barred,
	}
	sortResources(t.planned)
	if len(t.prior.Resources) > 0 {
		sortResources(t.prior)
		out.PriorState = &tfjson.State{FormatVersion: stateFormat, TerraformVersion: terraformVersion, Values: &tfjson.StateValues{RootModule: t.prior}}
	}
	if at := cmp.Or(p.Status.PlannedAt, p.Status.FinishedAt); at != nil {
		out.Timestamp = at.UTC().Format(time.RFC3339)
	}
	return out
}

// sortChanges puts changes into Terraform's order: data sources first, then by type and name, the current instance before
// deposed ones.
func sortChanges(changes []*tfjson.ResourceChange) []*tfjson.ResourceChange {
	slices.SortStableFunc(changes, func(a, b *tfjson.ResourceChange) int {
		return cmp.Or(strings.Compare(string(a.Mode), string(b.Mode)), strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name), strings.Compare(a.DeposedKey, b.DeposedKey))
	})
	return changes
}

func sortResources(m *tfjson.StateModule) {
	slices.SortStableFunc(m.Resources, func(a, b *tfjson.StateResource) int {
		return cmp.Or(strings.Compare(a.Address, b.Address), strings.Compare(a.DeposedKey, b.DeposedKey))
	})
}

// addPrior adds what is there before the plan is applied.
func (t *Plan) addPrior(c *v1alpha1.PlanChange, values, marks *runtime.RawExtension) {
	if isNull(values) {
		return
	}
	r := stateResource(c, values, marks)
	r.DeposedKey, r.Tainted = c.Deposed, c.ActionReason == string(tfjson.ActionReasonReplaceBecauseTainted)
	t.prior.Resources = append(t.prior.Resources, r)
	t.entries = append(t.entries, entry{state: r, object: c.Object, prior: true})
}

// driftChange is what was found beside what was recorded.
func driftChange(c *v1alpha1.PlanChange, recorded, recordedMarks, found, foundMarks *runtime.RawExtension) *tfjson.ResourceChange {
	d := &tfjson.ResourceChange{
		Address: c.Address, PreviousAddress: previous(c), Mode: tfMode(c), Type: c.Type, Name: c.Object.Name, ProviderName: c.Provider, DeposedKey: c.Deposed,
		Change: &tfjson.Change{
			Actions: tfjson.Actions{tfjson.ActionUpdate}, Before: rawOr(recorded, "null"), BeforeSensitive: rawOr(recordedMarks, "false"),
			After: rawOr(found, "null"), AfterSensitive: rawOr(foundMarks, "false"), AfterUnknown: json.RawMessage("{}"),
		},
	}
	if isNull(found) {
		d.Change.Actions, d.Change.AfterSensitive = tfjson.Actions{tfjson.ActionDelete}, json.RawMessage("false")
	}
	return d
}

func (t *Plan) change(c *v1alpha1.PlanChange) *tfjson.ResourceChange {
	change := &tfjson.Change{
		// Raw JSON, so that numbers stay what they are, and null where Terraform writes null.
		Actions:         actions(c),
		Before:          rawOr(c.Before, "null"),
		After:           rawOr(c.After, "null"),
		AfterUnknown:    rawOr(c.AfterUnknown, "{}"),
		BeforeSensitive: rawOr(c.BeforeSensitive, "false"),
		AfterSensitive:  rawOr(c.AfterSensitive, "false"),
	}
	if paths := []json.RawMessage(nil); json.Unmarshal(rawOr(c.ReplacePaths, "null"), &paths) == nil {
		for _, p := range paths {
			change.ReplacePaths = append(change.ReplacePaths, p)
		}
	}
	if c.Action == v1alpha1.ActionForget || c.Action == v1alpha1.ActionDelete {
		change.After, change.AfterUnknown, change.AfterSensitive = json.RawMessage("null"), json.RawMessage("{}"), json.RawMessage("false")
	}
	if i := c.Importing; i != nil {
		change.Importing = &tfjson.Importing{ID: i.ID}
		if !isNull(i.Identity) {
			change.Importing.Identity = json.RawMessage(i.Identity.Raw)
		}
	}
	return &tfjson.ResourceChange{
		Address: c.Address, PreviousAddress: previous(c), Mode: tfMode(c), Type: c.Type, Name: c.Object.Name,
		ProviderName: c.Provider, DeposedKey: c.Deposed, Change: change, ActionReason: t.actionReason(c),
	}
}

// actions are what Terraform calls a change, in the order in which it is made.
func actions(c *v1alpha1.PlanChange) tfjson.Actions {
	switch c.Action {
	case v1alpha1.ActionCreate:
		return tfjson.Actions{tfjson.ActionCreate}
	case v1alpha1.ActionUpdate:
		return tfjson.Actions{tfjson.ActionUpdate}
	case v1alpha1.ActionReplace:
		switch {
		case c.Forget:
			return tfjson.Actions{tfjson.ActionCreate, tfjson.ActionForget}
		case c.CreateBeforeDestroy:
			return tfjson.Actions{tfjson.ActionCreate, tfjson.ActionDelete}
		}
		return tfjson.Actions{tfjson.ActionDelete, tfjson.ActionCreate}
	case v1alpha1.ActionDelete:
		return tfjson.Actions{tfjson.ActionDelete}
	case v1alpha1.ActionForget:
		return tfjson.Actions{tfjson.ActionForget}
	case v1alpha1.ActionRead:
		return tfjson.Actions{tfjson.ActionRead}
	}
	return tfjson.Actions{tfjson.ActionNoop}
}

// actionReason is the reason in Terraform's terms. There, a plan to destroy has none; in any other one, what is destroyed
// or forgotten has no configuration any more.
func (t *Plan) actionReason(c *v1alpha1.PlanChange) tfjson.ActionReason {
	ends := c.Deposed == "" && (c.Action == v1alpha1.ActionDelete || c.Action == v1alpha1.ActionForget)
	switch {
	case c.ActionReason == "delete_because_requested", ends && t.plan.Spec.Destroy, c.Action == v1alpha1.ActionForget && !ends:
		return tfjson.ActionReasonNone
	case ends && (c.ActionReason == "" || c.Action == v1alpha1.ActionForget):
		return tfjson.ActionReasonDeleteBecauseNoResourceConfig
	}
	return tfjson.ActionReason(c.ActionReason)
}

func previous(c *v1alpha1.PlanChange) string {
	if c.PreviousAddress == c.Address {
		return ""
	}
	return c.PreviousAddress
}

func tfMode(c *v1alpha1.PlanChange) tfjson.ResourceMode {
	if c.Mode == v1alpha1.ModeData {
		return tfjson.DataResourceMode
	}
	return tfjson.ManagedResourceMode
}

func stateResource(c *v1alpha1.PlanChange, values, marks *runtime.RawExtension) *tfjson.StateResource {
	r := &tfjson.StateResource{Address: c.Address, Mode: tfMode(c), Type: c.Type, Name: c.Object.Name, ProviderName: c.Provider, SensitiveValues: rawOr(marks, "{}")}
	if isNull(values) {
		r.SensitiveValues = json.RawMessage("false")
		return r
	}
	var fields map[string]json.RawMessage // so that numbers keep their digits
	if json.Unmarshal(values.Raw, &fields) == nil {
		r.AttributeValues = make(map[string]any, len(fields))
		for k, v := range fields {
			r.AttributeValues[k] = v
		}
	}
	return r
}

func rawOr(r *runtime.RawExtension, empty string) json.RawMessage {
	if r == nil || len(r.Raw) == 0 {
		return json.RawMessage(empty)
	}
	return json.RawMessage(r.Raw)
}

// isNull is true for a value that isn't there.
func isNull(r *runtime.RawExtension) bool {
	return r == nil || len(r.Raw) == 0 || string(r.Raw) == "null"
}
