// Package instance is the life of one instance of a resource type, as a provider takes part in it: load, read, plan and
// apply, with the checks that keep a provider to its word. It follows Terraform's resource instance change lifecycle
// (https://github.com/hashicorp/terraform/blob/main/docs/resource-instance-change-lifecycle.md). It talks to one
// provider and to nothing else: what is wanted and what is recorded come in as values, and go out as values.
package instance

//lint:file-ignore SA1019 the mark is for those who write providers; who calls them has to honour it

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/schema"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Type is a resource type together with a configured provider of it.
type Type struct {
	// Name is the Terraform type name, such as "sim_network".
	Name string
	// Schema is the type's current schema.
	Schema *schema.Schema
	// PlanDestroy is true when the provider wants to be asked before a destroy.
	PlanDestroy bool
	// Provider is configured, unless the configuration is not known yet.
	Provider tfprotov6.ProviderServer
}

// State is an instance as the provider knows it.
type State struct {
	// Value conforms to the type's schema and is wholly known; null when nothing exists. Secrets are marked.
	Value cty.Value
	// Private is the provider's own.
	Private []byte
	// Tainted is true when the instance must be replaced.
	Tainted bool
}

// Exists says whether there is anything.
func (s State) Exists() bool { return s.Value != cty.NilVal && !s.Value.IsNull() }

// DiagnosticsError is an error that a provider returned, whole.
type DiagnosticsError struct {
	// Operation is what the provider was asked for, such as "read".
	Operation string
	// Diagnostics hold at least one error.
	Diagnostics plan.Diagnostics
}

func (e *DiagnosticsError) Error() string {
	for _, d := range e.Diagnostics {
		if d.Severity != v1alpha1.SeverityError {
			continue
		}
		if d.Detail == "" {
			return fmt.Sprintf("%s: %s", e.Operation, d.Summary)
		}
		return fmt.Sprintf("%s: %s: %s", e.Operation, d.Summary, d.Detail)
	}
	return e.Operation + ": refused without a reason"
}

// Null is the state of nothing.
func (t *Type) Null() State { return State{Value: cty.NullVal(t.Schema.Block.ImpliedType())} }

// Load turns what the ledger holds into a state of the current schema. The provider upgrades it always, even when
// the versions are equal, as the protocol demands.
func (t *Type) Load(ctx context.Context, rec *ledger.Instance) (State, error) {
	if !rec.Exists() {
		return t.Null(), nil
	}
	if rec.SchemaVersion > t.Schema.Version {
		return State{}, fmt.Errorf("load state of %s: it was written by a newer provider (schema version %d, this provider's is %d); install the provider version %s or newer",
			t.Name, rec.SchemaVersion, t.Schema.Version, rec.ProviderVersion)
	}
	raw := rec.Attributes
	if rec.SchemaVersion == t.Schema.Version {
		var err error
		if raw, err = stripUnknownAttributes(raw, t.Schema.Block); err != nil {
			return State{}, fmt.Errorf("load state of %s: %w", t.Name, err)
		}
	}
	resp, err := t.Provider.UpgradeResourceState(ctx, &tfprotov6.UpgradeResourceStateRequest{
		TypeName: t.Name, Version: rec.SchemaVersion, RawState: &tfprotov6.RawState{JSON: raw},
	})
	if err != nil {
		return State{}, fmt.Errorf("upgrade state of %s: %w", t.Name, err)
	}
	if diags := plan.FromProto(resp.Diagnostics); plan.HasErrors(diags) {
		return State{}, &DiagnosticsError{"upgrade state", diags}
	}
	v, err := t.decode(resp.UpgradedState)
	if err != nil {
		return State{}, fmt.Errorf("upgrade state of %s: the provider answered with a value that does not fit its schema: %w", t.Name, err)
	}
	if !v.IsWhollyKnown() {
		return State{}, fmt.Errorf("upgrade state of %s: the provider answered with unknown values, which is a bug of the provider", t.Name)
	}
	paths, err := decodePaths(rec.Sensitive)
	if err != nil {
		return State{}, fmt.Errorf("load state of %s: %w", t.Name, err)
	}
	return State{Value: markPaths(v, paths), Private: rec.Private, Tainted: rec.Tainted}, nil
}

// Record writes a state into a ledger record.
func (t *Type) Record(rec *ledger.Instance, s State) error {
	v, marks := s.Value.UnmarkDeepWithPaths()
	if !s.Exists() {
		rec.Attributes, rec.Private, rec.Sensitive, rec.Tainted = nil, nil, nil, false
		return nil
	}
	raw, err := ctyjson.Marshal(v, t.Schema.Block.ImpliedType())
	if err != nil {
		return fmt.Errorf("encode state of %s: %w", t.Name, err)
	}
	sensitive, err := encodePaths(marks)
	if err != nil {
		return fmt.Errorf("encode state of %s: %w", t.Name, err)
	}
	rec.Type, rec.SchemaVersion = t.Name, t.Schema.Version
	rec.Attributes, rec.Private, rec.Sensitive, rec.Tainted = raw, s.Private, sensitive, s.Tainted
	return nil
}

// Read asks the provider what is there now. The state it returns is null when nothing is.
func (t *Type) Read(ctx context.Context, s State) (State, plan.Diagnostics, error) {
	if !s.Exists() {
		return s, nil, nil
	}
	v, marks := s.Value.UnmarkDeepWithPaths()
	current, err := t.encode(v)
	if err != nil {
		return State{}, nil, err
	}
	resp, err := t.Provider.ReadResource(ctx, &tfprotov6.ReadResourceRequest{
		TypeName: t.Name, CurrentState: current, Private: s.Private,
		ClientCapabilities: &tfprotov6.ReadResourceClientCapabilities{},
	})
	if err != nil {
		return State{}, nil, fmt.Errorf("read %s: %w", t.Name, err)
	}
	diags := plan.FromProto(resp.Diagnostics)
	if plan.HasErrors(diags) {
		return State{}, diags, &DiagnosticsError{"read", diags}
	}
	now, err := t.decode(resp.NewState)
	if err != nil {
		return State{}, diags, fmt.Errorf("read %s: the provider answered with a value that does not fit its schema: %w", t.Name, err)
	}
	if !now.IsWhollyKnown() {
		return State{}, diags, fmt.Errorf("read %s: the provider answered with unknown values, which is a bug of the provider", t.Name)
	}
	if err := t.checkWriteOnly("read", now); err != nil {
		return State{}, diags, err
	}
	return State{Value: remark(now, marks), Private: resp.Private, Tainted: s.Tainted}, diags, nil
}

// Planned is what the provider promises to do.
type Planned struct {
	Action v1alpha1.Action
	// Reason is Terraform's, such as "replace_because_cannot_update".
	Reason string
	// Value is what will be there, unknown where only the apply can tell; null for a delete. Secrets are marked.
	Value   cty.Value
	Private []byte
	// Replace holds the paths that force a replace.
	Replace []cty.Path
	// Legacy is true for providers that are allowed to break their word about values (terraform-plugin-sdk).
	Legacy bool
}

// Config is what an instance should be. Both values may hold unknown values and marks.
type Config struct {
	// Written is what the spec says.
	Written cty.Value
	// Effective is Written with the changes that are to be ignored taken back.
	Effective cty.Value
}

// Plan asks the provider what it would do to bring the prior state to the configuration. forced asks for a replace.
func (t *Type) Plan(ctx context.Context, prior State, config Config, forced bool) (*Planned, plan.Diagnostics, error) {
	diags, err := t.Validate(ctx, config.Effective)
	if err != nil {
		return nil, diags, err
	}
	basis := prior
	if prior.Tainted {
		// A tainted instance is planned as if it were not there, and replaced.
		basis = t.Null()
	}
	p, more, err := t.planOnce(ctx, basis, config.Effective, basis.Private, true)
	diags = append(diags, more...)
	if err != nil {
		return nil, diags, err
	}
	if prior.Tainted {
		p.Action, p.Reason = v1alpha1.ActionReplace, "replace_because_tainted"
		return p, diags, nil
	}
	p.Action, p.Reason = plan.Decide(unmarked(prior.Value), unmarked(p.Value), p.Replace, forced, false)
	if p.Action == v1alpha1.ActionReplace {
		// A second plan, as for a create, says what the new instance will be. There is nothing left to ignore, its
		// warnings repeat the first's, and of the checks only those of the wire are made.
		anew, more, err := t.planOnce(ctx, t.Null(), config.Written, p.Private, false)
		if err != nil {
			return nil, append(diags, more...), err
		}
		p.Value, p.Private, p.Legacy = anew.Value, anew.Private, anew.Legacy
	}
	return p, diags, nil
}

// Validate asks the provider whether it accepts the configuration, which may hold unknown values.
func (t *Type) Validate(ctx context.Context, config cty.Value) (plan.Diagnostics, error) {
	c, err := t.encode(unmarked(config))
	if err != nil {
		return nil, err
	}
	resp, err := t.Provider.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{
		TypeName: t.Name, Config: c,
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	if err != nil {
		return nil, fmt.Errorf("validate %s: %w", t.Name, err)
	}
	diags := plan.FromProto(resp.Diagnostics)
	if plan.HasErrors(diags) {
		return diags, &DiagnosticsError{"validate", diags}
	}
	return diags, nil
}

func (t *Type) planOnce(ctx context.Context, prior State, config cty.Value, private []byte, check bool) (*Planned, plan.Diagnostics, error) {
	priorValue := unmarked(prior.Value)
	configValue, marks := config.UnmarkDeepWithPaths()
	proposed := plan.ProposedNew(t.Schema.Block, priorValue, configValue)

	req := &tfprotov6.PlanResourceChangeRequest{
		TypeName: t.Name, PriorPrivate: private,
		ClientCapabilities: &tfprotov6.PlanResourceChangeClientCapabilities{},
	}
	var err error
	if req.PriorState, err = t.encode(priorValue); err != nil {
		return nil, nil, err
	}
	if req.Config, err = t.encode(configValue); err != nil {
		return nil, nil, err
	}
	if req.ProposedNewState, err = t.encode(proposed); err != nil {
		return nil, nil, err
	}
	resp, err := t.Provider.PlanResourceChange(ctx, req)
	if err != nil {
		return nil, nil, fmt.Errorf("plan %s: %w", t.Name, err)
	}
	diags := plan.FromProto(resp.Diagnostics)
	if plan.HasErrors(diags) {
		return nil, diags, &DiagnosticsError{"plan", diags}
	}
	if resp.Deferred != nil {
		return nil, diags, fmt.Errorf("plan %s: the provider put the change off although it was not told that it may, which is a bug of the provider", t.Name)
	}
	value, err := t.decode(resp.PlannedState)
	if err != nil {
		return nil, diags, fmt.Errorf("plan %s: the provider planned a value that does not fit its schema: %w", t.Name, err)
	}
	p := &Planned{Private: resp.PlannedPrivate, Legacy: resp.UnsafeToUseLegacyTypeSystem} //nolint:staticcheck // the protocol's own word for it
	if err := t.checkWriteOnly("plan", value); err != nil {
		return nil, diags, err
	}
	// The checks see the marks, so that no secret gets into what they say.
	if errs := plan.CheckPlanned(t.Schema.Block, prior.Value, config, value); check && len(errs) > 0 && !p.Legacy {
		return nil, diags, brokenWord("plan", t.Name, "planned a value that the configuration does not allow", errs)
	}
	paths := make([]cty.Path, 0, len(resp.RequiresReplace))
	for _, ap := range resp.RequiresReplace {
		path, err := plan.FromProtoPath(ap)
		if err != nil {
			return nil, diags, fmt.Errorf("plan %s: %w", t.Name, err)
		}
		paths = append(paths, path)
	}
	if p.Replace, err = plan.RequiredReplace(t.Schema.Block, paths, priorValue, value); err != nil {
		return nil, diags, fmt.Errorf("plan %s: %w", t.Name, err)
	}
	p.Value = remark(value, marks)
	return p, diags, nil
}

// PlanDelete asks the provider before a destroy, if it wants to be asked.
func (t *Type) PlanDelete(ctx context.Context, prior State) (*Planned, plan.Diagnostics, error) {
	ty := t.Schema.Block.ImpliedType()
	p := &Planned{Action: v1alpha1.ActionDelete, Value: cty.NullVal(ty), Private: prior.Private}
	if !t.PlanDestroy || !prior.Exists() {
		return p, nil, nil
	}
	req := &tfprotov6.PlanResourceChangeRequest{
		TypeName: t.Name, PriorPrivate: prior.Private,
		ClientCapabilities: &tfprotov6.PlanResourceChangeClientCapabilities{},
	}
	var err error
	if req.PriorState, err = t.encode(unmarked(prior.Value)); err != nil {
		return nil, nil, err
	}
	null, err := t.encode(cty.NullVal(ty))
	if err != nil {
		return nil, nil, err
	}
	req.Config, req.ProposedNewState = null, null
	resp, err := t.Provider.PlanResourceChange(ctx, req)
	if err != nil {
		return nil, nil, fmt.Errorf("plan destroy of %s: %w", t.Name, err)
	}
	diags := plan.FromProto(resp.Diagnostics)
	if plan.HasErrors(diags) {
		return nil, diags, &DiagnosticsError{"plan destroy", diags}
	}
	if v, err := t.decode(resp.PlannedState); err != nil || !v.IsNull() {
		return nil, diags, fmt.Errorf("plan destroy of %s: the provider planned to leave something, which is a bug of the provider", t.Name)
	}
	p.Private = resp.PlannedPrivate
	return p, diags, nil
}

// Outcome is what an apply left behind.
type Outcome struct {
	// State is what is there now, as far as is known. It must be saved even when there is an error.
	State State
	// Err is what went wrong: a *DiagnosticsError when the provider said so.
	Err         error
	Diagnostics plan.Diagnostics
	// Lost is true when the provider's answer never came: nobody knows what happened.
	Lost bool
}

// Apply makes a planned change: a create when prior is null, a delete when the planned value is, else an update.
// config is wholly known. The call is not interrupted when ctx ends, since nobody would know then what it did.
func (t *Type) Apply(ctx context.Context, prior State, p *Planned, config cty.Value) Outcome {
	priorValue, plannedValue := unmarked(prior.Value), unmarked(p.Value)
	configValue, configMarks := config.UnmarkDeepWithPaths()
	deleting, creating := plannedValue.IsNull(), priorValue.IsNull()
	keep := func(err error) Outcome { return Outcome{State: prior, Err: err} }

	req := &tfprotov6.ApplyResourceChangeRequest{TypeName: t.Name, PlannedPrivate: p.Private}
	var err error
	if req.PriorState, err = t.encode(priorValue); err != nil {
		return keep(err)
	}
	if req.PlannedState, err = t.encode(plannedValue); err != nil {
		return keep(err)
	}
	if req.Config, err = t.encode(configValue); err != nil {
		return keep(err)
	}
	resp, err := t.Provider.ApplyResourceChange(context.WithoutCancel(ctx), req)
	if err != nil {
		o := keep(fmt.Errorf("apply %s: %w", t.Name, err))
		o.Lost = true
		return o
	}
	diags := plan.FromProto(resp.Diagnostics)
	o := Outcome{State: prior, Diagnostics: diags}
	if plan.HasErrors(diags) {
		o.Err = &DiagnosticsError{"apply", diags}
	}
	if resp.NewState == nil {
		if o.Err == nil {
			o.Err = fmt.Errorf("apply %s: the provider answered without a state, which is a bug of the provider", t.Name)
		}
		return o
	}
	value, err := t.decode(resp.NewState)
	if err != nil {
		if o.Err == nil {
			o.Err = fmt.Errorf("apply %s: the provider answered with a value that does not fit its schema; the state from before is kept: %w", t.Name, err)
		}
		return o
	}
	if err := t.checkWriteOnly("apply", value); err != nil {
		o.Err = errors.Join(o.Err, err)
		return o
	}
	if !value.IsWhollyKnown() {
		if o.Err == nil {
			o.Err = fmt.Errorf("apply %s: the provider left values unknown, which is a bug of the provider; they are recorded as null", t.Name)
		}
		value = cty.UnknownAsNull(value)
	}
	switch {
	case o.Err == nil && deleting && !value.IsNull():
		o.Err = fmt.Errorf("apply %s: the provider says that it destroyed the instance and still returns it, which is a bug of the provider", t.Name)
	case o.Err == nil && !deleting && value.IsNull():
		o.Err = fmt.Errorf("apply %s: the provider says that it succeeded and returns nothing, which is a bug of the provider", t.Name)
		return o
	case o.Err != nil && value.IsNull():
		// An error and no object: what was there is still there. For a create that is nothing.
		return o
	}
	o.State = State{Value: remark(value, configMarks), Private: resp.Private, Tainted: prior.Tainted && !creating}
	if o.Err != nil {
		if creating {
			o.State.Tainted = true
		}
		return o
	}
	if !deleting && !resp.UnsafeToUseLegacyTypeSystem { //nolint:staticcheck // the protocol's own word for it
		if errs := plan.CheckCompatible(t.Schema.Block, p.Value, value); len(errs) > 0 {
			o.Err = brokenWord("apply", t.Name, "left something other than it had planned", errs)
		}
	}
	return o
}

func (t *Type) encode(v cty.Value) (*tfprotov6.DynamicValue, error) {
	d, err := schema.Encode(v, t.Schema.Block.ImpliedType())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	return d, nil
}

func (t *Type) decode(d *tfprotov6.DynamicValue) (cty.Value, error) {
	return schema.Decode(d, t.Schema.Block.ImpliedType())
}

// checkWriteOnly refuses a state that holds what must never be stored.
func (t *Type) checkWriteOnly(operation string, state cty.Value) error {
	if errs := plan.CheckWriteOnly(t.Schema.Block, state); len(errs) > 0 {
		return brokenWord(operation, t.Name, "returned write-only values, which must never be stored,", errs)
	}
	return nil
}

func brokenWord(operation, typeName, what string, errs []error) error {
	d := plan.Diagnostics{{
		Severity: v1alpha1.SeverityError,
		Summary:  "Provider produced an inconsistent result",
		Detail:   fmt.Sprintf("The provider %s for %s. This is a bug of the provider; please report it there.", what, typeName),
	}}
	for _, e := range errs {
		d[0].Detail += "\n  - " + e.Error()
	}
	return &DiagnosticsError{operation, d}
}

// stripUnknownAttributes removes top-level attributes that the schema no longer has: a provider may drop one without a
// new schema version, and upgrading would fail on it.
func stripUnknownAttributes(raw json.RawMessage, b *schema.Block) (json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("decode stored attributes: %w", err)
	}
	stripped := false
	for name := range m {
		if b.Attribute(name) == nil && b.NestedBlock(name) == nil {
			delete(m, name)
			stripped = true
		}
	}
	if !stripped {
		return raw, nil
	}
	return json.Marshal(m)
}

// Recorded is the value that a ledger record holds, without asking the provider; its schema must not have changed.
func Recorded(rec *ledger.Instance, s *schema.Schema) (cty.Value, error) {
	if rec.SchemaVersion != s.Version {
		return cty.NilVal, fmt.Errorf("the state of %s was written with schema version %d and the provider's is %d; plan it first", rec.Type, rec.SchemaVersion, s.Version)
	}
	raw, err := stripUnknownAttributes(rec.Attributes, s.Block)
	if err != nil {
		return cty.NilVal, err
	}
	v, err := ctyjson.Unmarshal(raw, s.Block.ImpliedType())
	if err != nil {
		return cty.NilVal, fmt.Errorf("decode state of %s: %w", rec.Type, err)
	}
	paths, err := decodePaths(rec.Sensitive)
	if err != nil {
		return cty.NilVal, err
	}
	return markPaths(v, paths), nil
}
