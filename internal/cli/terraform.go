package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	tfjson "github.com/hashicorp/terraform-json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
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
// fields for them.
type planJSON struct {
	*tfjson.Plan
	Applyable bool `json:"applyable"`
	Errored   bool `json:"errored"`
}

// terraformJSON prints a plan as `terraform show -json` does. docs/plans.md says what differs.
func (o *showOptions) terraformJSON(ctx context.Context, p *v1alpha1.Plan) error {
	t := &terraformPlan{session: o.session, plan: p, planned: &tfjson.StateModule{}, prior: &tfjson.StateModule{},
		config: &tfjson.Config{ProviderConfigs: map[string]*tfjson.ProviderConfig{}, RootModule: &tfjson.ConfigModule{}}}
	for c, err := range o.changes(ctx, p) {
		if err != nil {
			return err
		}
		if err := t.add(ctx, c); err != nil {
			return err
		}
	}
	e := json.NewEncoder(o.Out)
	e.SetEscapeHTML(false)
	if err := e.Encode(t.document()); err != nil {
		return fmt.Errorf("print plan %q: %w", p.Name, err)
	}
	return nil
}

// terraformPlan collects what Terraform's JSON of a plan has.
type terraformPlan struct {
	*session
	plan           *v1alpha1.Plan
	changes        []*tfjson.ResourceChange
	drift          []*tfjson.ResourceChange
	planned, prior *tfjson.StateModule
	config         *tfjson.Config
	invocations    []*tfjson.ActionInvocation
	effects        bool // something is left to be done
	unfinished     bool // something could not be planned
}

func (t *terraformPlan) add(ctx context.Context, c *v1alpha1.PlanChange) error {
	switch {
	case c.Action == "":
		t.unfinished = true
		return nil
	case c.Action == v1alpha1.ActionInvoke:
		t.effects = true
		t.invocations = append(t.invocations, &tfjson.ActionInvocation{
			Address: c.Address, Type: c.Type, Name: c.Object.Name, ProviderName: c.Provider,
			ConfigValues: rawOr(c.After, "null"), ConfigSensitive: rawOr(c.AfterSensitive, "{}"), ConfigUnknown: rawOr(c.AfterUnknown, "{}"),
			InvokeActionTrigger: &tfjson.InvokeActionTrigger{},
		})
		return nil
	}
	if c.Mode == v1alpha1.ModeAction {
		return nil // it ran before
	}
	data := c.Mode == v1alpha1.ModeData
	t.configure(c)
	if c.Action == v1alpha1.ActionRead && !data {
		// A refresh changes records alone: Terraform calls that drift, and what it found the prior state.
		t.effects = true
		t.drift = append(t.drift, driftChange(c, rawOr(c.Before, "null"), rawOr(c.BeforeSensitive, "false"), rawOr(c.After, "null"), rawOr(c.AfterSensitive, "false")))
		t.addPrior(c, c.After, c.AfterSensitive)
		return nil
	}
	t.addPrior(c, c.Before, c.BeforeSensitive)
	// Of what is to be destroyed, Terraform does not tell how it drifted.
	if len(c.Drift) > 0 && !data && !t.plan.Spec.Destroy {
		d, err := t.found(ctx, c)
		if err != nil {
			return err
		}
		t.drift = append(t.drift, d)
	}
	switch {
	case data && c.Action == v1alpha1.ActionNoOp:
		return nil // it was read while the plan was made, and is in the prior state
	case isNull(c.Before) && isNull(c.After):
		return nil // an object without infrastructure is nothing to Terraform
	case t.plan.Spec.RefreshOnly:
		return nil
	}
	t.effects = t.effects || !diff.Quiet(c)
	t.changes = append(t.changes, t.change(c))
	if c.Deposed == "" && c.Action != v1alpha1.ActionDelete {
		r := stateResource(c, c.After, c.AfterSensitive)
		t.planned.Resources = append(t.planned.Resources, r)
	}
	return nil
}

func (t *terraformPlan) document() planJSON {
	p := t.plan
	failed := planFailed(p)
	out := planJSON{
		Plan: &tfjson.Plan{
			FormatVersion:     planFormat,
			TerraformVersion:  terraformVersion,
			PlannedValues:     &tfjson.StateValues{RootModule: t.planned},
			ResourceDrift:     sortChanges(t.drift),
			ResourceChanges:   sortChanges(t.changes),
			Config:            t.config,
			ActionInvocations: t.invocations,
			Complete:          new(!failed && !t.unfinished && len(p.Spec.Targets)+len(p.Spec.Exclude) == 0 && p.Spec.Selector == nil),
		},
		Applyable: !failed && t.effects,
		Errored:   failed,
	}
	sortResources(t.planned)
	if len(t.prior.Resources) > 0 {
		sortResources(t.prior)
		out.PriorState = &tfjson.State{FormatVersion: stateFormat, TerraformVersion: terraformVersion, Values: &tfjson.StateValues{RootModule: t.prior}}
	}
	slices.SortFunc(t.config.RootModule.Resources, func(a, b *tfjson.ConfigResource) int { return strings.Compare(a.Address, b.Address) })
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
func (t *terraformPlan) addPrior(c *v1alpha1.PlanChange, values, marks *runtime.RawExtension) {
	if isNull(values) {
		return
	}
	r := stateResource(c, values, marks)
	r.DeposedKey, r.Tainted = c.Deposed, c.ActionReason == string(tfjson.ActionReasonReplaceBecauseTainted)
	t.prior.Resources = append(t.prior.Resources, r)
}

// configure adds what the plan says of the configuration: which resources there are, and with which provider.
func (t *terraformPlan) configure(c *v1alpha1.PlanChange) {
	if c.Deposed != "" || c.Action == v1alpha1.ActionForget || c.ActionReason == string(tfjson.ActionReasonDeleteBecauseNoResourceConfig) {
		return
	}
	group, _, _ := strings.Cut(c.Object.APIVersion, "/")
	name, _ := v1alpha1.ProviderOfGroup(group)
	name = cmp.Or(name, path.Base(c.Provider))
	key, alias := name, ""
	if c.ProviderConfig != "" && c.ProviderConfig != defaultConfig {
		key, alias = name+"."+c.ProviderConfig, c.ProviderConfig
	}
	if t.config.ProviderConfigs[key] == nil {
		t.config.ProviderConfigs[key] = &tfjson.ProviderConfig{Name: name, FullName: c.Provider, Alias: alias}
	}
	t.config.RootModule.Resources = append(t.config.RootModule.Resources, &tfjson.ConfigResource{
		Address: c.Address, Mode: tfMode(c), Type: c.Type, Name: c.Object.Name, ProviderConfigKey: key,
	})
}

// defaultConfig is the ProviderConfig of objects that name none.
const defaultConfig = "default"

// found is the drift of a change that goes on from what was found. The change has the values that were found; what was
// recorded stands in the object's status as long as the plan is not applied.
func (t *terraformPlan) found(ctx context.Context, c *v1alpha1.PlanChange) (*tfjson.ResourceChange, error) {
	recorded, err := t.recorded(ctx, c)
	if err != nil {
		return nil, err
	}
	after := map[string]json.RawMessage{}
	if !isNull(c.Before) {
		if err := json.Unmarshal(c.Before.Raw, &after); err != nil {
			return nil, fmt.Errorf("read change of %s: %w", c.Address, err)
		}
	}
	before := map[string]json.RawMessage{}
	gone := isNull(c.Before)
	if gone {
		// The attributes of the type are those of the planned value; a status leaves out what is null.
		for _, k := range append(fieldNames(c.After), fieldNames(c.AfterUnknown)...) {
			before[k] = json.RawMessage("null")
		}
		for k, v := range recorded {
			before[k] = v
		}
	} else {
		drifted := map[string]bool{}
		for _, p := range c.Drift {
			drifted[p[:attributeEnd(p)]] = true
		}
		for k, v := range after {
			switch r, ok := recorded[k]; {
			case !drifted[k]:
				before[k] = v
			case ok:
				before[k] = r
			case recorded != nil:
				before[k] = json.RawMessage("null")
			}
		}
	}
	b, err := json.Marshal(before)
	if err != nil {
		return nil, fmt.Errorf("read change of %s: %w", c.Address, err)
	}
	if gone {
		return driftChange(c, b, marksOf(before, c.AfterSensitive), json.RawMessage("null"), json.RawMessage("false")), nil
	}
	return driftChange(c, b, marksOf(before, c.BeforeSensitive), rawOr(c.Before, "null"), rawOr(c.BeforeSensitive, "{}")), nil
}

// marksOf are the marks of secret values without those inside of what is null here.
func marksOf(values map[string]json.RawMessage, marks *runtime.RawExtension) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(rawOr(marks, "{}"), &m) != nil || m == nil {
		return json.RawMessage("{}")
	}
	for k, mark := range m {
		if v, ok := values[k]; !ok || string(v) == "null" && string(mark) != "true" {
			delete(m, k)
		}
	}
	out, err := json.Marshal(m)
	if err != nil {
		return json.RawMessage("{}")
	}
	return out
}

// recorded are the attributes of an object as they were when the plan was made; nil when nobody can tell any more.
func (t *terraformPlan) recorded(ctx context.Context, c *v1alpha1.PlanChange) (map[string]json.RawMessage, error) {
	if c.State != v1alpha1.ChangePending && c.State != v1alpha1.ChangeSkipped {
		return nil, nil
	}
	gvr, _, err := t.mapping(schema.FromAPIVersionAndKind(c.Object.APIVersion, c.Object.Kind))
	if err != nil {
		return nil, nil // its provider is gone, and the status with it
	}
	u, err := t.resource(gvr, c.Object.Namespace).Get(ctx, c.Object.Name, metav1.GetOptions{})
	if err != nil || u.GetUID() != c.Object.UID {
		return nil, ctx.Err()
	}
	attributes, _, _ := unstructured.NestedMap(u.Object, "status", "attributes")
	out := map[string]json.RawMessage{}
	for k, v := range attributes {
		if out[k], err = json.Marshal(v); err != nil {
			return nil, fmt.Errorf("read status of %s: %w", c.Address, err)
		}
	}
	return out, nil
}

// attributeEnd is where the name of the attribute ends that a path begins with.
func attributeEnd(p string) int {
	if i := strings.IndexAny(p, ".["); i >= 0 {
		return i
	}
	return len(p)
}

func fieldNames(r *runtime.RawExtension) []string {
	var m map[string]json.RawMessage
	if json.Unmarshal(rawOr(r, "null"), &m) != nil {
		return nil
	}
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	return out
}

func driftChange(c *v1alpha1.PlanChange, before, beforeMarks, after, afterMarks json.RawMessage) *tfjson.ResourceChange {
	actions := tfjson.Actions{tfjson.ActionUpdate}
	if string(after) == "null" {
		actions = tfjson.Actions{tfjson.ActionDelete}
	}
	return &tfjson.ResourceChange{
		Address: c.Address, PreviousAddress: previous(c), Mode: tfMode(c), Type: c.Type, Name: c.Object.Name, ProviderName: c.Provider, DeposedKey: c.Deposed,
		Change: &tfjson.Change{Actions: actions, Before: before, After: after, AfterUnknown: json.RawMessage("{}"), BeforeSensitive: beforeMarks, AfterSensitive: afterMarks},
	}
}

func (t *terraformPlan) change(c *v1alpha1.PlanChange) *tfjson.ResourceChange {
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
func (t *terraformPlan) actionReason(c *v1alpha1.PlanChange) tfjson.ActionReason {
	ends := c.Deposed == "" && (c.Action == v1alpha1.ActionDelete || c.Action == v1alpha1.ActionForget)
	switch {
	case c.ActionReason == "delete_because_requested", ends && t.plan.Spec.Destroy:
		return tfjson.ActionReasonNone
	case ends && c.ActionReason == "":
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
