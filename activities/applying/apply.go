package applying

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/policy"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/store"

	"github.com/zclconf/go-cty/cty"
)

// apply checks that the step is not stale, and runs it.
func (s *stepRun) apply(ctx context.Context) error {
	c := s.Change
	rec, err := s.Ledger.Instance(ctx, c.Object)
	if err != nil {
		return err
	}
	obj, err := s.Objects.Get(ctx, c.Object)
	if errors.Is(err, store.ErrGone) {
		if s.OutcomeRecorded(rec) && changes.Removes(c) {
			return nil // the object was removed with its infrastructure
		}
		return changes.ErrObjectDeleted
	}
	if err != nil {
		return err
	}
	r, err := resource.Of(obj, s.Catalog)
	if err != nil {
		return err
	}
	s.resource, s.object = r, obj
	if err := s.checkElsewhere(ctx, rec); err != nil {
		return err
	}
	s.recordInterrupted(ctx, rec)
	if !s.Begun {
		terminating := func() (bool, error) { return s.Configs.Terminating(ctx, c.Object.Namespace) }
		if err := changes.CheckNamespace(c, terminating); err != nil {
			return err
		}
	}
	switch key := s.deposedKey(); {
	case r.Mode == v1alpha1.ModeData || r.Mode == v1alpha1.ModeAction:
		return s.readOrInvoke(ctx, r)
	case key != "":
		return s.destroyDeposed(ctx, r, rec, key)
	case c.Preconditions.From != nil:
		if err := s.moveRecord(ctx, rec); err != nil {
			return err
		}
	}
	if s.OutcomeRecorded(rec) {
		return s.finishRecorded(ctx, r, rec)
	}
	resumed, err := s.resume(ctx, rec)
	if err != nil {
		return err
	}
	if err := s.checkPlanned(ctx, r, rec); err != nil {
		if changes.StaleReasonOf(err) != "" && rec.Intent.Of(s.Plan.UID, c.Index) {
			return notRepeated(rec.Intent, err)
		}
		return err
	}
	switch {
	case c.Action == v1alpha1.ActionRead, c.Action == v1alpha1.ActionForget,
		c.Importing != nil && !rec.Exists() && !c.HalfDone:
		if err := s.checkSecrets(ctx); err != nil {
			return err
		}
	}
	if c.Action == v1alpha1.ActionCreate && c.Importing == nil && c.Preconditions.From == nil && changes.RecordLost(r,
		rec) {
		s.recordLost = true
		return changes.LostRecord("apply", r)
	}
	if c.Action == v1alpha1.ActionDelete || c.Action == v1alpha1.ActionForget {
		if err := s.Ledger.KeepApplied(ctx, rec); err != nil {
			return err
		}
	}
	switch {
	case c.Action == v1alpha1.ActionRead:
		return s.recordRefresh(ctx, rec)
	case c.Action == v1alpha1.ActionForget:
		return s.forget(ctx, rec)
	case c.Importing != nil && !rec.Exists() && !c.HalfDone:
		if err := s.recordImport(ctx, r, rec); err != nil {
			return err
		}
	}
	return s.change(ctx, rec, resumed)
}

// notRepeated returns the error of a step whose change became stale after the server had stopped during the step's
// call. It is no *changes.StaleError, because the call may have changed the infrastructure.
func notRepeated(i *ledger.Intent, why error) error {
	return fmt.Errorf("the server stopped during the %s, which may have been made. It was not tried again: %v",
		strings.ToLower(string(i.Action)), why)
}

// checkPlanned returns an error if the change is stale, or if a user of the plan lost a right to it. rec is nil for an
// object without recorded state.
func (s *stepRun) checkPlanned(ctx context.Context, r *resource.Resource, rec *ledger.Instance) error {
	if err := s.CheckStale(r, rec); err != nil {
		return err
	}
	return s.checkRights(ctx, rec)
}

// readOrInvoke checks the step of a data source or an action, and runs it.
func (s *stepRun) readOrInvoke(ctx context.Context, r *resource.Resource) error {
	if err := s.checkPlanned(ctx, r, nil); err != nil {
		return err
	}
	if r.Mode == v1alpha1.ModeData {
		return s.readData(ctx)
	}
	return s.invoke(ctx)
}

// laterError is the error of an attempt that has done nothing, and leaves the step to a later one.
type laterError struct{ why string }

func (e *laterError) Error() string { return e.why }

// checkElsewhere returns a *laterError if another process makes the call of this step. Temporal starts another attempt
// if the first one stops sending heartbeats, although it may still wait for its provider.
func (s *stepRun) checkElsewhere(ctx context.Context, rec *ledger.Instance) error {
	i := rec.Intent
	if !i.Of(s.Plan.UID, s.Change.Index) || i.Process == "" || i.Process == s.Processes.Own() {
		return nil
	}
	address, err := s.Processes.Live(ctx, i.Process)
	if err != nil {
		return store.Failed(err)
	}
	if address != "" {
		return &laterError{"another attempt of this change waits for its provider, in the process of " + address}
	}
	return nil
}

// recordInterrupted completes the audit log if the server ended during a call of this step. The process that made the
// call recorded only that it began.
func (s *stepRun) recordInterrupted(ctx context.Context, rec *ledger.Instance) {
	i := rec.Intent
	if !i.Of(s.Plan.UID, s.Change.Index) || i.Process == "" || i.Process == s.Processes.Own() {
		return
	}
	config := rec.ProviderConfig
	if old := rec.FindDeposed(i.Deposed); old != nil {
		config = old.ProviderConfig
	}
	if err := s.RecordInterrupted(s.Plan, s.resource, audit.Operation(strings.ToLower(string(i.Action))), config,
		i.At); err != nil {
		s.Logger.WarnContext(ctx, "record an interrupted call", "plan", s.Plan.Name, "namespace", s.Plan.Namespace,
			"address", s.Change.Address, "error", err)
	}
}

// resume handles an intent that an earlier attempt or another plan left. It returns true if the step continues that
// operation; the caller must then read the current state. It never repeats a create whose outcome is unknown.
func (s *stepRun) resume(ctx context.Context, rec *ledger.Instance) (resumed bool, err error) {
	resumed = rec.Intent.Of(s.Plan.UID, s.Change.Index)
	switch {
	case s.FailureRecorded(rec):
		s.loadRecorded(rec)
		s.Change.Left = v1alpha1.LeftTainted
		return false, &diag.Failure{Operation: "apply",
			Diagnostics: diag.Diagnostics{lang.Problem(s.resource.Address, "", "Create failed",
				"The create failed and left a resource. The server stopped before it recorded the error. The next plan replaces the resource.")}}
	case resumed && rec.Intent.Action == v1alpha1.ActionCreate:
		return false, &unknownError{changes.InterruptedCreate(s.resource, rec)}
	case rec.Intent != nil && !resumed:
		return s.TakesOverIntent(ctx, s.Ledger, rec)
	}
	return resumed, nil
}

// change creates, updates or destroys the current instance. It plans again with all values known, writes the intent,
// calls the provider and records the answer.
func (s *stepRun) change(ctx context.Context, rec *ledger.Instance, resumed bool) error {
	if err := s.checkReplaceable(ctx); err != nil {
		return err
	}
	ctx, done := s.active.withCancel(ctx)
	defer done()
	defer s.openScope(ctx, s.resource)()
	l, err := s.lease(ctx, rec)
	if err != nil {
		return err
	}
	defer l.Release()
	if err := s.checkReconfigured(ctx, l, &rec.State); err != nil {
		return err
	}
	prior, err := s.prior(ctx, l, rec, resumed)
	if err != nil {
		return s.retryable(err, true)
	}
	v := &scope.Evaluator{Ctx: ctx, Scope: s.scope}
	p, config, err := s.planStep(v, l, prior)
	if err != nil {
		return s.retryable(err, true)
	}
	if s.Destroy && !prior.Exists() || p.Action == v1alpha1.ActionNoOp {
		if err := s.saveBegun(ctx); err != nil {
			return err
		}
		if err := s.save(ctx, l, rec, s.resource, prior, nil); err != nil || s.Destroy {
			return err
		}
		return s.checkPostconditions(v, rec, s.resource, prior.Value)
	}
	if err := s.judgeStep(ctx, v, l, p); err != nil {
		return err
	}
	if err := s.recordIntent(ctx, l, rec, p); err != nil {
		return err
	}
	if err := s.mayCall(ctx, rec, l.Null().Value); err != nil {
		return err
	}
	o := l.Apply(ctx, prior, p, config.Written)
	// From here on, record the answer even if ctx is cancelled.
	v.Ctx, s.answered = context.WithoutCancel(ctx), true
	s.Change.MayExist = s.creating() && o.Err != nil && !o.State.Exists() && !diag.NothingDone(o.Err)
	return s.recordAnswer(v, l, rec, p, o)
}

// creating reports whether the step creates an instance.
func (s *stepRun) creating() bool {
	return s.Change.Action == v1alpha1.ActionCreate || s.Change.Action == v1alpha1.ActionReplace && !s.Destroy
}

// lease acquires the provider with the approved configuration. The destroy step of a replace uses the recorded
// configuration.
func (s *stepRun) lease(ctx context.Context, rec *ledger.Instance) (*scope.Lease, error) {
	c := s.Change
	l, err := s.scope.Lease(ctx, s.resource, &rec.State, !s.Destroy, session.ApplySlotAndRate)
	if err != nil {
		return nil, s.unacquired(err)
	}
	err = s.checkAfterWait(ctx, rec)
	if err == nil && !(s.Destroy && c.Action == v1alpha1.ActionReplace) {
		err = s.checkSession(ctx, l.Session)
	}
	if err != nil {
		l.Release()
		return nil, err
	}
	return l, nil
}

// planStep makes the provider plan the step with all values known. A destroy has a null configuration.
func (s *stepRun) planStep(v *scope.Evaluator, l *scope.Lease,
	prior instance.State) (p *instance.Planned, config instance.Config, err error) {
	null := cty.NullVal(s.resource.Schema.Block.ImpliedType())
	none := instance.Config{Written: null, Effective: null}
	switch {
	case s.Destroy && s.Change.Action == v1alpha1.ActionReplace:
		// The provider planned the destroy as part of the replace. Its private data, such as new timeouts, are those of
		// that plan.
		return &instance.Planned{Action: v1alpha1.ActionDelete, Value: null, Private: s.Change.PlannedPrivate}, none,
			nil
	case s.Destroy:
		p, s.warnings, err = l.PlanDelete(v.Ctx, prior, s.Change.PlannedPrivate)
		return p, none, err
	default:
		return s.planAgain(v, s.resource, l, prior)
	}
}

// judgeStep judges the change with the values that the step knows. A replacement that destroys first is judged before
// that, with the values of its configuration. Those of changes that follow the destroy are unknown until the create,
// which is judged again.
func (s *stepRun) judgeStep(ctx context.Context, v *scope.Evaluator, l *scope.Lease, p *instance.Planned) error {
	switch {
	case !policy.Flagged(s.Change.AfterUnknown):
		return nil
	case !s.Destroy:
		return s.judge(ctx, p.Value)
	case s.Change.Action != v1alpha1.ActionReplace || s.Change.HalfDone:
		return nil
	}
	if undecided, err := s.undecided(ctx); err != nil || !undecided {
		return err
	}
	pending, err := s.pendingDependencies(ctx)
	if err != nil {
		return err
	}
	early := &scope.Evaluator{Ctx: v.Ctx,
		Scope: s.scope.Before(func(addr lang.Address) bool { return pending[addr.String()] })}
	config, err := early.Config(s.resource, l.Null())
	if err != nil && len(pending) > 0 {
		return nil // such as an ephemeral resource with an unknown argument
	}
	if err != nil {
		return s.retryable(err, true)
	}
	planned, err := changes.PlannedValue(s.Change, s.resource.Schema.Block)
	if err != nil {
		return err
	}
	return s.judge(ctx, withConfigured(planned, config.Effective))
}

// recordIntent records the call that follows: it adds the finalizer to the object and writes the intent.
func (s *stepRun) recordIntent(ctx context.Context, l *scope.Lease, rec *ledger.Instance, p *instance.Planned) error {
	if s.Destroy {
		return s.writeIntent(ctx, rec, v1alpha1.ActionDelete, "")
	}
	if err := s.checkSize(p); err != nil {
		return err
	}
	if err := s.addFinalizer(ctx); err != nil {
		return err
	}
	if !s.creating() {
		return s.writeIntent(ctx, rec, v1alpha1.ActionUpdate, "")
	}
	exists, err := s.existsDespiteThrottle(ctx, l, p)
	if err != nil {
		return err
	}
	if err := s.vacate(rec); err != nil {
		return err
	}
	rec.ProviderConfig = l.ConfigName() // the ProviderConfig is in use once the intent is written
	if err := s.writeIntent(ctx, rec, v1alpha1.ActionCreate, ""); err != nil {
		return err
	}
	if exists != nil {
		return exists
	}
	return s.checkConfigStays(ctx, l, rec)
}

// addFinalizer adds the finalizer to the object. It returns a *changes.StaleError if the object was deleted or changed.
func (s *stepRun) addFinalizer(ctx context.Context) error {
	obj, err := s.Objects.AddFinalizer(ctx, s.object)
	if errors.Is(err, store.ErrGone) {
		return changes.Stale(v1alpha1.StaleObjectChanged, "the object was deleted or changed after the plan was made")
	}
	if err == nil {
		s.object = obj
	}
	return err
}

// recordAnswer records the provider's answer to a change. If it is unknown whether an instance exists, the intent
// stays, so that no step creates it again.
func (s *stepRun) recordAnswer(v *scope.Evaluator, l *scope.Lease, rec *ledger.Instance, p *instance.Planned,
	o instance.Outcome) error {
	ctx, r, creating := v.Ctx, s.resource, s.creating()
	s.warnings = append(s.warnings, diag.Warnings(o.Diagnostics)...)
	s.scope.NoteSecretState(l.Schema.Block, o.State)
	lost := diag.IsFailure(o.Err, diag.Lost)
	cutOff := o.Err != nil && l.Stopped() && len(o.Quarantine) == 0
	switch {
	case lost && creating:
		return &unknownError{fmt.Errorf("the provider did not answer: %w; the resource may exist", o.Err)}
	case lost || cutOff && !creating && !s.active.isCancelled():
		// The next attempt reads the current state first. After a cancel there is no next attempt, and this answer is
		// final.
		return &RetryError{o.Err}
	case cutOff && !o.State.Exists():
		return &unknownError{fmt.Errorf(
			"the server asked the provider to stop, because the plan was cancelled or the server stopped: %w; the resource may exist", o.Err)}
	}
	rec.Quarantine = o.Quarantine
	if len(o.Quarantine) > 0 && creating {
		if err := s.saveRecord(ctx, rec); err != nil {
			return errors.Join(o.Err, err)
		}
		return &unknownError{fmt.Errorf(
			"%w; the resource may exist, and Hykube keeps the answer: kubectl hykube state show", o.Err)}
	}
	// Providers on the legacy SDK may return another value than the planned one, with which dependants were planned.
	rec.Unplanned = !s.Destroy && o.Err == nil && len(plan.CheckCompatible(r.Schema.Block, p.Value, o.State.Value)) > 0
	if err := s.save(ctx, l, rec, r, o.State, o.Err); err != nil {
		return errors.Join(o.Err, err)
	}
	s.warnTooLarge(rec)
	if o.Err == nil && !s.Destroy {
		err := s.checkPostconditions(v, rec, r, o.State.Value)
		if err != nil && creating {
			s.Change.Left = v1alpha1.LeftUnchecked
		}
		return err
	}
	if creating && o.State.Exists() {
		s.Change.Left = v1alpha1.LeftTainted
	}
	return s.retryable(o.Err, !creating || session.Throttled(o.Err) && !o.State.Exists())
}

// writeIntent writes the intent, unless the disk lacks space for the outcome. It checks for a cancel first and then
// writes without one. An intent whose write was cancelled may exist, and would look like that of a call without an
// answer.
func (s *stepRun) writeIntent(ctx context.Context, rec *ledger.Instance, action v1alpha1.Action, deposed string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := s.Ledger.HasSpace(); err != nil {
		return store.Failed(err)
	}
	rec.Intent = &ledger.Intent{Plan: s.Plan.UID, PlanName: s.Plan.Name, Change: s.Change.Index, Action: action,
		Deposed: deposed, At: time.Now().UTC(), Process: s.Processes.Own()}
	s.intendedAction = action
	// The change may be new: it is running, or has password hashes, which another attempt must reuse.
	if s.unsaved || len(s.Change.Hashes) > 0 {
		s.unsaved = false
		return s.overtaken(ctx, s.Ledger.Intents().SaveBoth(context.WithoutCancel(ctx), rec, s.Plan.UID, s.Change))
	}
	return s.overtaken(ctx, s.Ledger.Intents().Save(context.WithoutCancel(ctx), rec))
}

// overtaken returns the error of the write of an intent. If another process has begun or ended the same step meanwhile,
// the next attempt finds what it does.
func (s *stepRun) overtaken(ctx context.Context, err error) error {
	if !errors.Is(err, ledger.ErrConflict) {
		return err
	}
	now, unread := s.Ledger.Instance(ctx, s.Change.Object)
	if unread != nil {
		return unread
	}
	if i := now.Intent; i.Of(s.Plan.UID, s.Change.Index) && i.Process != s.Processes.Own() || s.OutcomeRecorded(now) {
		if err := s.checkElsewhere(ctx, now); err != nil {
			return err
		}
		return &laterError{"another process has run another attempt of this change"}
	}
	return s.conflict(err)
}

// checkConfigStays returns an error if the ProviderConfig of a create is being deleted. It runs after the intent was
// written: a later delete then finds the intent, and checkConfigStays finds an earlier delete.
func (s *stepRun) checkConfigStays(ctx context.Context, l *scope.Lease, rec *ledger.Instance) error {
	if l.Config == nil || s.Change.Action == v1alpha1.ActionReplace {
		return nil
	}
	what, err := s.Configs.Leaving(ctx, l.Config)
	if err == nil && what == "" {
		return nil
	}
	if err == nil {
		err = scope.BeingDeleted(what)
	}
	return s.withdrawIntent(ctx, rec, l.Null().Value, err)
}

// mayCall returns an error, and removes the intent of the call that follows, if another process may count this one as
// ended, or if this one stops. The step waits then. null is the null value of the resource.
func (s *stepRun) mayCall(ctx context.Context, rec *ledger.Instance, null cty.Value) error {
	if err := s.Processes.MayCall(); err != nil {
		return s.withdrawIntent(ctx, rec, null, &laterError{fmt.Sprintf("no call begins, because %v", err)})
	}
	return nil
}

// withdrawIntent removes the intent of a call that was not made, and returns why. null is the null value of the
// resource.
func (s *stepRun) withdrawIntent(ctx context.Context, rec *ledger.Instance, null cty.Value, why error) error {
	creating := s.intendedAction == v1alpha1.ActionCreate
	rec.Intent, s.intendedAction = nil, ""
	if old := rec.FindDeposed(s.Change.DeposedKey); creating && old != nil {
		s.restoreDeposed(rec, old)
	}
	write := s.Ledger.Intents().Save
	if !rec.Living() && s.Change.Action != v1alpha1.ActionReplace { // the other half of a replace needs the record
		s.after = &null
		write = s.Ledger.Intents().Forget
	}
	if err := write(context.WithoutCancel(ctx), rec); err != nil {
		return s.conflict(err)
	}
	return why
}

// restoreDeposed makes the deposed instance of a replace the current one again, because its create left nothing.
func (s *stepRun) restoreDeposed(rec *ledger.Instance, old *ledger.Deposed) {
	rec.State = old.State
	dropDeposed(rec, s.Change.DeposedKey)
	s.loadRecorded(rec)
}

// releaseIntent notes that this process has ended the call of an intent without an outcome. Another process would wait
// for it.
func (s *stepRun) releaseIntent(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	rec, err := s.Ledger.Instance(ctx, s.Change.Object)
	if err == nil && rec.Intent.Of(s.Plan.UID, s.Change.Index) && rec.Intent.Process == s.Processes.Own() {
		rec.Intent.Process = ""
		err = s.Ledger.Intents().Save(ctx, rec)
	}
	if err != nil {
		s.Logger.WarnContext(ctx, "note the end of a call without an outcome", "plan", s.Plan.Name, "namespace",
			s.Plan.Namespace, "address", s.Change.Address, "error", err)
	}
}

// recordRefresh records the state that planning read.
func (s *stepRun) recordRefresh(ctx context.Context, rec *ledger.Instance) error {
	found := s.Change.Refreshed
	if found == nil {
		return nil
	}
	rec.State = *found
	rec.Plan, rec.Causes = s.Plan.UID, changes.CausesOf(s.Plan, s.Change)
	rec.Object.Generation = 0 // no generation of the spec produced this state
	if !rec.Exists() {
		s.after = new(cty.NullVal(s.resource.Schema.Block.ImpliedType()))
	}
	if !rec.Living() {
		return s.conflict(s.Ledger.Forget(ctx, rec))
	}
	if err := s.Ledger.Save(ctx, rec); err != nil {
		return s.conflict(err)
	}
	s.loadRecorded(rec)
	return nil
}

// save records the state after a call and removes the intent. failure is the error of the call; nil if it succeeded.
func (s *stepRun) save(ctx context.Context, l *scope.Lease, rec *ledger.Instance, r *resource.Resource,
	state instance.State, failure error) error {
	c := s.Change
	creating := rec.Intent != nil && rec.Intent.Action == v1alpha1.ActionCreate
	if old := rec.FindDeposed(c.DeposedKey); creating && !state.Exists() && old != nil {
		s.restoreDeposed(rec, old)
	} else {
		if err := writeState(l, &rec.State, state, failure); err != nil {
			return err
		}
		rec.Created = rec.Created || creating && state.Exists()
		s.after = &state.Value
		rec.Type, rec.ProviderConfig, rec.ProviderVersion = r.Address.Type, l.ConfigName(), r.Entry.Package.Version
		if s.Destroy && c.Action == v1alpha1.ActionReplace && !state.Exists() {
			rec.ProviderConfig = c.ProviderConfig // the other half needs it
		}
		if creating && c.Forget {
			dropDeposed(rec, c.DeposedKey)
		}
		if creating && failure == nil {
			s.approveAccount(ctx, l, r)
		}
		if !s.Destroy {
			rec.Dependencies, rec.CreateBeforeDestroy, rec.DependencyVersions = c.Dependencies, c.CreatesFirst,
				c.DependencyVersions
			rec.Renewed = s.renewed
			rec.Applied = ledger.AppliedArguments{Version: c.ConfigVersion, Arguments: l.Digest.Arguments}
			s.dropContributors(rec)
			rec.Expressions = appliedExpressions(r, failure)
			if rec.Inputs = c.Inputs; failure != nil || impure(r) {
				// the infrastructure may be between two specs, or the next evaluation gives another one
				rec.Inputs = ledger.Inputs{}
			}
		}
	}
	rec.Object, rec.Provider, rec.Plan, rec.Intent = c.Object, r.Entry.Name, s.Plan.UID, nil
	rec.Causes = changes.CausesOf(s.Plan, c)
	rec.LastOutcome = &ledger.Outcome{Plan: s.Plan.UID, Change: c.Index, Destroy: s.Destroy, Failed: failure != nil}
	if failure != nil && !(creating && state.Exists()) {
		rec.LastOutcome = nil
	}
	if rec.Unplanned = rec.Unplanned || failure != nil; rec.Unplanned {
		rec.Object.Generation = 0 // the state may differ from the spec, so the next plan must visit the object
	}
	switch {
	case !rec.Living() && (c.Action == v1alpha1.ActionDelete || c.Action == v1alpha1.ActionCreate):
		return s.conflict(s.outcomes().Forget(ctx, rec))
	case failure == nil && s.endsAtOnce():
		s.unsavedRecord = rec
		return nil
	}
	return s.saveRecord(ctx, rec)
}

// dropContributors removes from a record who contributed to the step's change, which was applied. While a deposed
// instance is left, they contribute to its destroy, too.
func (s *stepRun) dropContributors(rec *ledger.Instance) {
	if len(rec.Deposed) == 0 {
		rec.Contributors = contributor.Without(contributor.TakeBack(rec.Contributors, s.Change.TakenBack),
			s.Change.Contributors)
	}
}

// approveAccount records that a person, who did not write the arguments of the step's provider, approved that they
// create resources of the type. A later create of the type asks nobody about them. An error delays that: the next
// create asks again.
func (s *stepRun) approveAccount(ctx context.Context, l *scope.Lease, r *resource.Resource) {
	a := s.Change.Account
	if a == nil || a.Approved || a.Digest == "" || l.Config == nil || a.Arguments.Arguments != l.Digest.Arguments ||
		!changes.ApprovedByAnother(s.Plan, a.Writers) {
		return
	}
	if err := s.Ledger.ApproveAccount(ctx, l.Config, r.Address.Type, a.Digest); err != nil {
		s.Logger.WarnContext(ctx, "record an approved account", "plan", s.Plan.Name, "namespace", s.Plan.Namespace,
			"address", s.Change.Address, "error", err)
	}
}

// writeState writes a state to a record after a call. A failed change of an existing instance does not prove that the
// provider reaches it with its arguments, so the record keeps the earlier ones.
func writeState(l *scope.Lease, rec *ledger.State, state instance.State, failure error) error {
	before, existed := rec.Configuration, rec.Exists()
	if err := l.Record(rec, state); err != nil {
		return err
	}
	if failure != nil && existed {
		rec.Configuration = before
	}
	return nil
}

func (s *stepRun) conflict(err error) error {
	if errors.Is(err, ledger.ErrConflict) {
		return changes.Stale(v1alpha1.StalePlanRunning, "another plan changed this resource at the same time")
	}
	return err
}

// retryable converts a transient error to a *RetryError if a retry is safe.
func (s *stepRun) retryable(err error, safe bool) error {
	if safe && session.Transient(err) {
		return &RetryError{err}
	}
	return err
}

// checkPostconditions checks the postconditions of the current instance. An instance that fails them stays, and the
// next plan visits it.
func (s *stepRun) checkPostconditions(v *scope.Evaluator, rec *ledger.Instance, r *resource.Resource,
	value cty.Value) error {
	_, err := v.Holds(r, resource.Postconditions, lang.MarkSensitive(r.Schema.Block, value))
	if err == nil {
		return nil
	}
	rec.Object.Generation = 0
	return errors.Join(err, s.conflict(s.outcomes().Save(v.Ctx, rec)))
}
