// Package terraformjson writes a plan in the format of `terraform show -json`. docs/scripts.md lists the differences.
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
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/openapi"
)

const (
	// planFormat and stateFormat are the versions of Terraform's JSON formats:
	// https://developer.hashicorp.com/terraform/internals/json-format
	planFormat  = "1.2"
	stateFormat = "1.0"
	// terraformVersion is the Terraform version with these formats. Readers of plans expect one.
	terraformVersion = "1.11.4"
)

// planJSON is a plan in the format of `terraform show -json`. tfjson.Plan lacks the fields applyable and errored, and
// cannot encode expressions.
type planJSON struct {
	*tfjson.Plan
	Config    *configJSON `json:"configuration"`
	Applyable bool        `json:"applyable"`
	Errored   bool        `json:"errored"`
}

// Source reads data that the changes of a plan lack. It omits data that the caller may not read: the right to read a
// plan does not include all its objects.
type Source interface {
	// Read reads the objects for the other methods. It fails only if ctx ends.
	Read(ctx context.Context, objects []v1alpha1.ObjectReference) error
	// Spec returns the spec of an object and the addresses in its dependsOn. It returns nil if the object has changed
	// since it was planned.
	Spec(object v1alpha1.ObjectReference) (spec map[string]any, dependsOn []string)
	// Dependencies returns the addresses of an object's direct and indirect dependencies.
	Dependencies(ctx context.Context, object v1alpha1.ObjectReference) ([]string, error)
	// Schemas returns the schemas of a provider's kinds.
	Schemas(ctx context.Context, provider string) map[string]*openapi.Schema
	// Provider returns the specs of a Provider and of a ProviderConfig in a namespace.
	Provider(ctx context.Context, provider, namespace,
		config string) (v1alpha1.ProviderSpec, v1alpha1.ProviderConfigSpec)
}

// Plan collects the content of a plan for Terraform's JSON format.
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
	repeated       map[string]bool // the addresses of ResourceSets in config
	effects        bool            // the plan has changes to apply
	unfinished     bool            // a change could not be planned
	// withheld are the addresses of the changes whose values the reader may not read.
	withheld []string
}

// New returns the JSON of a plan without changes.
func New(p *v1alpha1.Plan, failed bool, source Source) *Plan {
	return &Plan{source: source, plan: p, failed: failed, planned: &tfjson.StateModule{}, prior: &tfjson.StateModule{},
		config: &configJSON{ProviderConfigs: map[string]*configProvider{}}}
}

// Write reads the data that the changes lack, and writes the plan.
func (t *Plan) Write(ctx context.Context, w io.Writer) error {
	if n := len(t.withheld); n > 0 {
		// A policy that reads an incomplete plan would accept the values that it does not see.
		return fmt.Errorf("print plan %q: you may not read the values of %d of its changes, such as %s: ask for the verb \"get\" on their objects", t.plan.Name, n, t.withheld[0])
	}
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

// Values returns the plan as generic JSON, without its configuration. It uses only the changes, and reads no other
// data. The lists of changes and drift are never missing.
func (t *Plan) Values() (map[string]any, error) {
	raw, err := json.Marshal(t.document())
	if err != nil {
		return nil, fmt.Errorf("convert plan %q: %w", t.plan.Name, err)
	}
	values := map[string]any{"resource_changes": []any{}, "resource_drift": []any{}}
	if err := utiljson.Unmarshal(raw, &values); err != nil {
		return nil, fmt.Errorf("convert plan %q: %w", t.plan.Name, err)
	}
	delete(values, "configuration")
	return values, nil
}

// entry is a resource of the planned values or of the prior state, with its object.
type entry struct {
	state  *tfjson.StateResource
	object v1alpha1.ObjectReference
	prior  bool
}

// Add adds a change.
func (t *Plan) Add(c *v1alpha1.PlanChange) {
	if c.ValuesWithheld {
		t.withheld = append(t.withheld, c.Address)
	}
	switch {
	// it could not be planned, or is blocked
	case c.Action == "", c.Action == v1alpha1.ActionNoOp && c.State == v1alpha1.ChangeSkipped:
		t.unfinished = true
		return
	case c.Action == v1alpha1.ActionInvoke:
		t.effects = true
		t.invocations = append(t.invocations, invocation(c))
		return
	}
	if c.Mode == v1alpha1.ModeAction {
		return // the action has run already
	}
	data := c.Mode == v1alpha1.ModeData
	t.configure(c)
	if c.Action == v1alpha1.ActionRead && !data {
		// A refresh only changes the record. Terraform reports that as drift, and the new values as the prior state.
		t.effects = true
		if !t.plan.Spec.Destroy {
			t.drift = append(t.drift, driftChange(c, c.Before, c.BeforeSensitive, c.After, c.AfterSensitive))
		}
		t.addPrior(c, c.After, c.AfterSensitive)
		return
	}
	if diff.FoundGone(c) {
		// Terraform removes such a record without a change, and reports it as drift.
		t.effects = true
		if !t.plan.Spec.Destroy {
			t.drift = append(t.drift, driftChange(c, cmp.Or(c.Recorded, c.Before),
				cmp.Or(c.RecordedSensitive, c.BeforeSensitive), nil, nil))
		}
		return
	}
	t.addPrior(c, c.Before, c.BeforeSensitive)
	// Terraform reports no drift for resources that the plan destroys.
	if !isNull(c.Recorded) && !data && !t.plan.Spec.Destroy {
		t.drift = append(t.drift, driftChange(c, c.Recorded, c.RecordedSensitive, c.Before, c.BeforeSensitive))
	}
	switch {
	case data && c.Action == v1alpha1.ActionNoOp:
		return // planning read it, and it is in the prior state
	case isNull(c.Before) && isNull(c.After):
		return // Terraform has no such object without infrastructure
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

func invocation(c *v1alpha1.PlanChange) *tfjson.ActionInvocation {
	return &tfjson.ActionInvocation{
		Address: c.Address, Type: c.Type, Name: c.Object.Name, ProviderName: c.Provider,
		ConfigValues: rawOr(c.After, "null"), ConfigSensitive: rawOr(c.AfterSensitive, "{}"),
		ConfigUnknown:       rawOr(c.AfterUnknown, "{}"),
		InvokeActionTrigger: &tfjson.InvokeActionTrigger{},
	}
}

func (t *Plan) document() planJSON {
	p := t.plan
	blocked := p.Status.Summary != nil && p.Status.Summary.Blocked > 0
	out := planJSON{
		Plan: &tfjson.Plan{
			FormatVersion:     planFormat,
			TerraformVersion:  terraformVersion,
			PlannedValues:     &tfjson.StateValues{RootModule: t.planned},
			ResourceDrift:     sortChanges(t.drift),
			ResourceChanges:   sortChanges(t.changes),
			ActionInvocations: t.invocations,
			Complete: new(!t.failed && !t.unfinished && len(p.Spec.Targets)+
				len(p.Spec.Exclude) == 0 && p.Spec.Selector == nil),
		},
		Config:    t.config,
		Applyable: !t.failed && !blocked && t.effects,
		Errored:   t.failed || blocked,
	}
	sortResources(t.planned)
	if len(t.prior.Resources) > 0 {
		sortResources(t.prior)
		out.PriorState = &tfjson.State{FormatVersion: stateFormat, TerraformVersion: terraformVersion,
			Values: &tfjson.StateValues{RootModule: t.prior}}
	}
	if at := cmp.Or(p.Status.PlannedAt, p.Status.FinishedAt); at != nil {
		out.Timestamp = at.UTC().Format(time.RFC3339)
	}
	return out
}

// sortChanges sorts changes in Terraform's order: data sources first, then by type and name, and the current instance
// before deposed ones.
func sortChanges(changes []*tfjson.ResourceChange) []*tfjson.ResourceChange {
	slices.SortStableFunc(changes, func(a, b *tfjson.ResourceChange) int {
		return cmp.Or(strings.Compare(string(a.Mode), string(b.Mode)), strings.Compare(a.Type, b.Type),
			strings.Compare(a.Name, b.Name), v1alpha1.CompareNames(a.Address, b.Address),
			strings.Compare(a.DeposedKey, b.DeposedKey))
	})
	return changes
}

// sortResources sorts the resources of the root module, and puts those of Modules into child modules.
func sortResources(m *tfjson.StateModule) {
	slices.SortStableFunc(m.Resources, func(a, b *tfjson.StateResource) int {
		return cmp.Or(v1alpha1.CompareNames(a.Address, b.Address), strings.Compare(a.DeposedKey, b.DeposedKey))
	})
	all, modules := m.Resources, map[string]*tfjson.StateModule{"": m}
	m.Resources = nil
	for _, r := range all {
		path, _, _ := v1alpha1.CutModulePath(r.Address)
		in := moduleAt(modules, path)
		in.Resources = append(in.Resources, r)
	}
}

// moduleAt returns the child module with a path. It adds it, and those that lead to it.
func moduleAt(modules map[string]*tfjson.StateModule, path string) *tfjson.StateModule {
	if m := modules[path]; m != nil {
		return m
	}
	caller, _, _ := v1alpha1.LastCall(path)
	parent, m := moduleAt(modules, caller), &tfjson.StateModule{Address: v1alpha1.ShownModule(path)}
	parent.ChildModules, modules[path] = append(parent.ChildModules, m), m
	return m
}

// addPrior adds a resource to the prior state.
func (t *Plan) addPrior(c *v1alpha1.PlanChange, values, marks *runtime.RawExtension) {
	if isNull(values) {
		return
	}
	r := stateResource(c, values, marks)
	r.DeposedKey, r.Tainted = c.Deposed, c.ActionReason == string(tfjson.ActionReasonReplaceBecauseTainted)
	t.prior.Resources = append(t.prior.Resources, r)
	t.entries = append(t.entries, entry{state: r, object: c.Object, prior: true})
}

// driftChange returns the change from the recorded to the actual values.
func driftChange(c *v1alpha1.PlanChange, recorded, recordedMarks, found,
	foundMarks *runtime.RawExtension) *tfjson.ResourceChange {
	d := &tfjson.ResourceChange{
		Address: c.Address, ModuleAddress: moduleOf(c), PreviousAddress: previous(c), Mode: tfMode(c), Type: c.Type,
		Name: nameOf(c), Index: indexOf(c), ProviderName: c.Provider, DeposedKey: c.Deposed,
		Change: &tfjson.Change{
			Actions: tfjson.Actions{tfjson.ActionUpdate}, Before: rawOr(recorded, "null"),
			BeforeSensitive: rawOr(recordedMarks, "false"),
			After:           rawOr(found, "null"), AfterSensitive: rawOr(foundMarks, "false"),
			AfterUnknown: json.RawMessage("{}"),
		},
	}
	if isNull(found) {
		d.Change.Actions, d.Change.AfterSensitive = tfjson.Actions{tfjson.ActionDelete}, json.RawMessage("false")
	}
	return d
}

func (t *Plan) change(c *v1alpha1.PlanChange) *tfjson.ResourceChange {
	change := &tfjson.Change{
		// Use raw JSON, so that numbers keep their digits, and null where Terraform writes null.
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
		change.After, change.AfterUnknown, change.AfterSensitive = json.RawMessage("null"), json.RawMessage("{}"),
			json.RawMessage("false")
	}
	if i := c.Importing; i != nil {
		change.Importing = &tfjson.Importing{ID: i.ID}
		if !isNull(i.Identity) {
			change.Importing.Identity = json.RawMessage(i.Identity.Raw)
		}
	}
	return &tfjson.ResourceChange{
		Address: c.Address, ModuleAddress: moduleOf(c), PreviousAddress: previous(c), Mode: tfMode(c), Type: c.Type,
		Name: nameOf(c), Index: indexOf(c),
		ProviderName: c.Provider, DeposedKey: c.Deposed, Change: change, ActionReason: t.actionReason(c),
	}
}

// actions returns Terraform's actions for a change, in the order of their execution.
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

// actionReason returns the reason in Terraform's terms. In a destroy plan, Terraform writes no reason. In other plans,
// the reason of a delete or forget is the missing configuration.
func (t *Plan) actionReason(c *v1alpha1.PlanChange) tfjson.ActionReason {
	ends := c.Deposed == "" && (c.Action == v1alpha1.ActionDelete || c.Action == v1alpha1.ActionForget)
	switch {
	case c.ActionReason == "delete_because_requested", ends && t.plan.Spec.Destroy,
		c.Action == v1alpha1.ActionForget && !ends:
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

// nameOf returns the name of a change's object, and indexOf the key of an instance of a ResourceSet; nil for others.
func nameOf(c *v1alpha1.PlanChange) string {
	_, inner := v1alpha1.SplitModuleObjectName(c.Object.Name)
	name, _, _ := v1alpha1.ParseInstanceName(inner)
	return name
}

// moduleOf returns the address of the module instance with a resource; empty outside of a Module.
func moduleOf(c *v1alpha1.PlanChange) string {
	path, _ := v1alpha1.SplitModuleObjectName(c.Object.Name)
	return v1alpha1.ShownModule(path)
}

func indexOf(c *v1alpha1.PlanChange) any {
	_, key, ok := v1alpha1.ParseInstanceName(c.Object.Name)
	switch {
	case !ok:
		return nil
	case key.Named:
		return key.Name
	default:
		return key.Index
	}
}

func tfMode(c *v1alpha1.PlanChange) tfjson.ResourceMode {
	if c.Mode == v1alpha1.ModeData {
		return tfjson.DataResourceMode
	}
	return tfjson.ManagedResourceMode
}

func stateResource(c *v1alpha1.PlanChange, values, marks *runtime.RawExtension) *tfjson.StateResource {
	r := &tfjson.StateResource{Address: c.Address, Mode: tfMode(c), Type: c.Type, Name: nameOf(c), Index: indexOf(c),
		ProviderName: c.Provider, SensitiveValues: rawOr(marks, "{}")}
	if isNull(values) {
		r.SensitiveValues = json.RawMessage("false")
		return r
	}
	var fields map[string]json.RawMessage // keep the digits of numbers
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

// isNull reports whether a value is absent or null.
func isNull(r *runtime.RawExtension) bool {
	return r == nil || len(r.Raw) == 0 || string(r.Raw) == "null"
}
