package planning

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"

	"github.com/zclconf/go-cty/cty"
)

// This file plans one change with its provider.

// planWithProvider plans a change with its provider and fills in the change.
func (pr *proposal) planWithProvider(ctx context.Context, c *ledger.Change, r *resource.Resource) (*expected, error) {
	// An earlier attempt may have set these.
	c.Message, c.Diagnostics, c.Drift, c.Refreshed, c.Importing, c.Checks, c.Read, c.WaitsFor = "", nil, nil, nil, nil,
		false, false, nil
	c.Prevented, c.Blocked, c.Reconfigured, c.Configuration, c.Final = false, "", false, ledger.Configuration{}, nil
	c.AccountChanged = false
	c.Recorded, c.RecordedSensitive, c.Unsettled, c.Preconditions.Arguments = nil, nil, nil, nil
	c.Secrets, c.ProviderArguments, c.Origins, c.Discloses, c.Expressions = nil, nil, nil, nil, nil
	switch r.Mode {
	case v1alpha1.ModeData:
		return pr.planDataSource(ctx, c, r)
	case v1alpha1.ModeAction:
		v, err := pr.planAction(ctx, c, r)
		return &expected{recorded: v, prior: v, planned: v}, err // it has no recorded value
	}
	rec, err := pr.Ledger.Instance(ctx, r.Ref)
	if err != nil {
		return nil, err
	}
	wanted := !r.Deleting && !pr.plan.Spec.Destroy
	if rec.Intent != nil {
		lost, err := pr.checkIntent(ctx, c, r, rec)
		if err != nil {
			return nil, err
		}
		if lost {
			return pr.forgetLost(c, r, rec)
		}
	}
	if c.Deposed == "" && changes.RecordLost(r, rec) {
		switch {
		case wanted && !importsLost(pr.plan, r):
			return nil, changes.LostRecord("plan", r)
		case !wanted && !pr.plan.Spec.RefreshOnly:
			c.Diagnostics = append(c.Diagnostics, changes.ForgetsLostRecord(r))
		}
	}
	state := &rec.State
	if c.Deposed != "" {
		d := rec.FindDeposed(c.Deposed)
		if d == nil {
			return nil, fmt.Errorf("%s: %w", c.Address, errObjectChanged)
		}
		state, wanted = &d.State, false
	}
	if !wanted && r.Lifecycle.Forgets() && !pr.plan.Spec.RefreshOnly && state.Exists() {
		return pr.forget(c, r, state, resourceset.ForgetReason(r.Object))
	}
	return pr.planManaged(ctx, c, r, rec, state, wanted)
}

// bind binds a change to the arguments of a provider that plans or reads it.
func bind(c *ledger.Change, p *session.Session) {
	if p.Config == nil {
		return
	}
	if c.Preconditions.Arguments == nil {
		c.Preconditions.Arguments = map[string]ledger.Arguments{}
	}
	c.Preconditions.Arguments[p.ConfigName()] = p.Arguments()
}

// bindRecorded binds a replace to the arguments with which the old instance is destroyed, if that has another
// ProviderConfig.
func (pr *proposal) bindRecorded(ctx context.Context, c *ledger.Change, r *resource.Resource,
	state *ledger.State) error {
	name := state.ProviderConfig
	if _, bound := c.Preconditions.Arguments[name]; bound || name == "" || c.Forget {
		return nil
	}
	arguments, err := pr.past.ArgumentsOf(ctx, r, name)
	if err != nil {
		return err
	}
	bound := maps.Clone(c.Preconditions.Arguments)
	if bound == nil {
		bound = map[string]ledger.Arguments{}
	}
	bound[name] = arguments
	c.Preconditions.Arguments = bound
	return nil
}

// checkIntent handles an intent without a recorded outcome. It returns an error if the call may still be running, or if
// the outcome of a create is unknown. lost is true if the plan must forget such a create, because its object or
// the namespace of its set was deleted.
func (pr *proposal) checkIntent(ctx context.Context, c *ledger.Change, r *resource.Resource,
	rec *ledger.Instance) (lost bool, err error) {
	abandoned, err := changes.IntentAbandoned(ctx, pr.Ledger, rec.Intent)
	if err != nil {
		return false, err
	}
	if !abandoned {
		return false, &busyError{rec.Intent}
	}
	if rec.Intent.Action != v1alpha1.ActionCreate || rec.Exists() {
		return false, nil
	}
	leaves := r.Deleting
	if !leaves && r.Ref.Set != "" { // the deletion of a namespace does not mark instances
		if leaves, err = pr.Configs.Terminating(ctx, r.Ref.Namespace); err != nil {
			return false, err
		}
	}
	if leaves {
		return c.Deposed == "" && !pr.plan.Spec.RefreshOnly, nil
	}
	if importsLost(pr.plan, r) {
		return false, nil // the import names the resource, so the user has found it
	}
	return false, changes.LostCreate(r, rec)
}

// importsLost reports whether a plan resolves a create with an unknown outcome by an import.
func importsLost(po *v1alpha1.Plan, r *resource.Resource) bool {
	return r.Lifecycle.Import != nil && !po.Spec.Destroy
}

// planManaged plans the current instance of a resource or a deposed one. state is the recorded state of that instance.
func (pr *proposal) planManaged(ctx context.Context, c *ledger.Change, r *resource.Resource, rec *ledger.Instance,
	state *ledger.State, wanted bool) (*expected, error) {
	l, err := pr.scopeFor(wanted).Lease(ctx, r, state, wanted, session.SlotAndRate)
	if err != nil {
		return nil, err
	}
	defer l.Release()
	c.ProviderConfig = l.ConfigName()
	bind(c, l.Session)
	pr.bindAccount(ctx, c, l.Session, rec)
	ctx = pr.withAnswers(ctx, c, r, l.Session)
	pr.noteAccount(r, l.Session)
	recorded, prior, missed, err := pr.currentState(ctx, c, r, l, state)
	if err != nil {
		return nil, err
	}
	if missed {
		return pr.notFound(c, r, l, state, wanted)
	}
	var p *instance.Planned
	var diags diag.Diagnostics
	switch {
	case pr.plan.Spec.RefreshOnly:
		p = &instance.Planned{Action: v1alpha1.ActionNoOp, Value: prior.Value, Private: prior.Private}
		if len(c.Drift) > 0 {
			p.Action = v1alpha1.ActionRead
		}
		prior = recorded
	case !wanted && !prior.Exists() && (state.Exists() || r.Deleting && len(rec.Deposed) == 0):
		return pr.forget(c, r, state, plan.ReasonGone)
	case !wanted && !prior.Exists():
		// only deposed instances remain, which have their own changes
		p = &instance.Planned{Action: v1alpha1.ActionNoOp, Value: prior.Value}
	case !wanted:
		p, diags, err = pr.planDestroy(ctx, c, r, l, state, prior)
	default:
		if !prior.Exists() && !rec.Exists() && r.Lifecycle.Import != nil {
			if prior, err = pr.importState(ctx, c, r, l, rec); err != nil {
				return nil, err
			}
		}
		if p, diags, err = pr.planWanted(ctx, c, r, l, state, prior); err != nil {
			break
		}
		diags = append(diags, createWarnings(c, r, p.Action, prior.Exists())...)
		if p.Action == v1alpha1.ActionReplace && !c.Forget && c.Importing == nil {
			err = pr.warnOtherManagers(ctx, c, r, state, l)
		}
		if p.Action == v1alpha1.ActionReplace && err == nil {
			err = pr.bindRecorded(ctx, c, r, state)
		}
	}
	c.Diagnostics = append(c.Diagnostics, lang.WithAddress(diags, r.Address)...)
	if err != nil {
		c.Diagnostics = nil // the error has them
		return nil, err
	}
	block := r.Schema.Block
	pr.scope.NoteSecretState(block, prior)
	pr.scope.NoteSecretAttributes(block, p.Value)
	if p.Final {
		c.Final = &ledger.FinalPlan{Configuration: ledger.Configuration(l.Digest)}
		if c.Final.Identity, err = l.MarshalPlannedIdentity(p.Identity); err != nil {
			return nil, err
		}
	}
	if wanted && rec.Exists() && !pr.plan.Spec.RefreshOnly {
		if err := pr.noteExpressions(c, r, rec, prior.Value, p.Value); err != nil {
			return nil, err
		}
	}
	e := &expected{recorded: lang.MarkSensitive(block, recorded.Value), prior: lang.MarkSensitive(block, prior.Value),
		planned: lang.MarkSensitive(block, p.Value)}
	return e, describeChange(c, block, prior, p)
}

// planDestroy plans the destroy of an instance that exists.
func (pr *proposal) planDestroy(ctx context.Context, c *ledger.Change, r *resource.Resource, l *scope.Lease,
	state *ledger.State, prior instance.State) (*instance.Planned, diag.Diagnostics, error) {
	if r.Lifecycle.PreventDestroy && c.Deposed == "" {
		prevent(c)
	}
	p, diags, err := l.PlanDelete(ctx, prior, nil)
	if err != nil {
		return nil, diags, err
	}
	if r.Deleting && c.Deposed == "" {
		p.Reason = cmp.Or(resourceset.LeavingReason(r.Object), plan.ReasonNoConfig)
	}
	return p, diags, pr.warnOtherManagers(ctx, c, r, state, l)
}

// createWarnings returns the warnings about a planned create or replace, and sets c.FailedCreate.
func createWarnings(c *ledger.Change, r *resource.Resource, action v1alpha1.Action,
	exists bool) (diags diag.Diagnostics) {
	if action == v1alpha1.ActionCreate {
		if r.Lifecycle.Moved != nil && c.Preconditions.From == nil && !moveApplied(r) {
			diags = append(diags, nothingToMoveWarning(r))
		}
		if c.LooksLike != "" {
			diags = append(diags, renameWarning(r, c.LooksLike))
		}
	}
	if action == v1alpha1.ActionCreate || action == v1alpha1.ActionReplace {
		c.FailedCreate = resource.StatusOf(r.Object).FailedCreate
		diags = append(diags, afterFailedCreate(r, c.FailedCreate, exists)...)
	}
	return diags
}

// planWanted plans a resource that should exist.
func (pr *proposal) planWanted(ctx context.Context, c *ledger.Change, r *resource.Resource, l *scope.Lease,
	state *ledger.State, prior instance.State) (*instance.Planned, diag.Diagnostics, error) {
	v := &scope.Evaluator{Ctx: ctx, Scope: pr.scope.WrittenBy(c.Contributors)}
	open, err := v.Holds(r, resource.Preconditions, cty.NilVal)
	if err != nil {
		return nil, nil, err
	}
	config, err := v.Config(r, prior)
	if err != nil {
		return nil, nil, err
	}
	withheld, err := pr.noteSecrets(ctx, c, r, l.Session, config.Written, state)
	if err == nil {
		config.Written, err = unknownAt(config.Written, withheld)
	}
	if err == nil {
		config.Effective, err = unknownAt(config.Effective, withheld)
	}
	if err != nil {
		return nil, nil, err
	}
	triggered, err := pr.triggered(v, r)
	if err != nil {
		return nil, nil, err
	}
	forced := pr.forced[c.Address]
	p, diags, err := l.Plan(ctx, prior, config, forced || triggered)
	if err != nil {
		return nil, diags, err
	}
	if p.Action == v1alpha1.ActionNoOp {
		c.Secrets, c.ProviderArguments, c.Origins, c.Discloses = nil, nil, nil, nil // the apply calls no provider
	}
	c.CreateBeforeDestroy, c.Forget = false, false
	if p.Action == v1alpha1.ActionReplace && l.Config != nil && l.Config.DeletionTimestamp != nil {
		return nil, diags, scope.BeingDeleted(fmt.Sprintf("the ProviderConfig %q", l.Config.Name))
	}
	if p.Action == v1alpha1.ActionReplace {
		c.Forget = r.Lifecycle.Forgets()
		c.CreateBeforeDestroy = c.CreatesFirst && !c.Forget
		if r.Lifecycle.PreventDestroy && !c.Forget {
			prevent(c)
		}
		if c.CreateBeforeDestroy || c.Forget {
			c.DeposedKey = deposedKey(pr.plan.UID, c.Index)
		}
	}
	if triggered && (p.Action == v1alpha1.ActionReplace || p.Action == v1alpha1.ActionCreate) {
		p.Reason = plan.ReasonTriggered // as in Terraform, this reason has priority
	}
	openAfter, err := v.Holds(r, resource.Postconditions, lang.MarkSensitive(r.Schema.Block, p.Value))
	c.Checks = open || openAfter
	return p, diags, err
}

// triggered reports whether an entry of lifecycle.replaceTriggeredBy changes in this plan.
func (pr *proposal) triggered(v *scope.Evaluator, r *resource.Resource) (bool, error) {
	triggers, err := resource.TriggersOf(r)
	if err != nil {
		return false, err
	}
	for _, t := range triggers {
		ref := t.References()[0]
		instances, err := pr.instancesOf(v.Ctx, ref.Address)
		if err != nil {
			return false, err
		}
		if ref.Attribute == "" && slices.ContainsFunc(instances, pr.changesInPlace) {
			return true, nil
		}
		e := pr.expectedOf(ref.Address)
		if e == nil || e.action != v1alpha1.ActionUpdate && e.action != v1alpha1.ActionReplace {
			continue
		}
		if ref.Attribute == "" || plan.Triggers(partOf(e.prior, t), partOf(e.planned, t)) {
			return true, nil
		}
	}
	return false, v.Err
}

// partOf returns the part of a resource's value that an entry of lifecycle.replaceTriggeredBy names. It returns NilVal
// if the value has no such part: a map without the key, a list without the index, or an argument that is not set.
func partOf(value cty.Value, trigger *lang.Expression) cty.Value {
	part, diags := trigger.Evaluate(func(lang.Address) (cty.Value, bool) { return value, true }, cty.NilVal)
	if diag.HasErrors(diags) {
		return cty.NilVal
	}
	return part
}
