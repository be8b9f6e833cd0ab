package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/workflows"

	"github.com/zclconf/go-cty/cty"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/api/meta"
)

// staleError says that what a change is bound to moved after the plan was made.
type staleError struct{ what string }

func (e *staleError) Error() string { return e.what + "; make a new plan" }

// unknownError says that a create was begun and nobody knows what it did.
type unknownError struct{ error }

// retryError says that a step may well succeed a little later, and that trying it again is safe.
type retryError struct{ error }

// Step makes one step of an approved plan.
func (a *Activities) Step(ctx context.Context, in workflows.StepInput) (workflows.StepResult, error) {
	defer heartbeat(ctx)()
	po, err := a.plan(ctx, in.Plan)
	if err != nil {
		return workflows.StepResult{}, err
	}
	result, err := a.step(ctx, po, in, int(activity.GetInfo(ctx).Attempt))
	if _, ok := errors.AsType[*retryError](err); ok {
		// Why stands with the change: what a provider says may hold what payloads must not.
		return result, temporal.NewApplicationError("the provider could not be reached, or asked to be called later", "Transient")
	}
	if err == nil && !result.OK && result.State != string(v1alpha1.ChangePending) {
		// The Web UI shows the step as failed. It is not tried again.
		return result, temporal.NewNonRetryableApplicationError(fmt.Sprintf("the change is %s; kubectl hykube status %s -n %s says why",
			result.State, in.Plan.Name, in.Plan.Namespace), workflows.ErrorStep, nil)
	}
	return result, err
}

// Lane makes all steps of a large plan, in dependency order, and takes up what an earlier attempt left.
func (a *Activities) Lane(ctx context.Context, p workflows.Plan) error {
	defer heartbeat(ctx)()
	po, err := a.plan(ctx, p)
	if err != nil {
		return err
	}
	work, err := a.loadWork(ctx, po.UID)
	if err != nil {
		return err
	}
	tracker := graph.NewTracker(len(work.steps), func(i int) []int { return work.steps[i].DependsOn })
	return run(ctx, tracker, width, func(ctx context.Context, i int) (bool, error) {
		if cancelled, err := a.cancelled(ctx, p); err != nil || cancelled {
			return false, err
		}
		in := workflows.StepInput{Plan: p, Change: work.steps[i].Change, Destroy: work.steps[i].Destroy}
		pause := time.Second
		for attempt := 1; ; attempt++ {
			result, err := a.step(ctx, po, in, attempt)
			if _, ok := errors.AsType[*retryError](err); !ok {
				return result.OK, err
			}
			select {
			case <-time.After(pause):
				pause = min(2*pause, 30*time.Second)
			case <-ctx.Done():
				return false, ctx.Err()
			}
		}
	})
}

// cancelled says whether somebody asked to stop the plan.
func (a *Activities) cancelled(ctx context.Context, p workflows.Plan) (bool, error) {
	po, err := a.plan(ctx, p)
	if err != nil {
		return false, err
	}
	return po.Status.Cancel != nil, nil
}

// step makes one step and records how it ended.
func (a *Activities) step(ctx context.Context, po *v1alpha1.Plan, in workflows.StepInput, attempt int) (workflows.StepResult, error) {
	c, err := a.Ledger.Change(ctx, po.UID, int32(in.Change))
	if err != nil {
		return workflows.StepResult{}, err
	}
	leave, err := a.locks.lock(ctx, po.UID, c.Object.UID)
	if err != nil {
		return workflows.StepResult{}, err
	}
	defer leave()
	if c, err = a.Ledger.Change(ctx, po.UID, int32(in.Change)); err != nil { // an earlier attempt may have been at it
		return workflows.StepResult{}, err
	}
	if ended(c, in.Destroy) {
		if attempt > 1 {
			// The attempt that made it may have ended before the object could be told.
			s := &stepRun{Activities: a, plan: po, change: c, destroy: in.Destroy}
			if err := s.publishAgain(ctx); err != nil {
				return workflows.StepResult{}, err
			}
		}
		return workflows.StepResult{OK: c.State == v1alpha1.ChangeDone || c.State == v1alpha1.ChangeRunning, State: string(c.State)}, nil
	}
	begun := c.State == v1alpha1.ChangeRunning
	if !begun {
		a.progress.moved(in.Plan, c.State, v1alpha1.ChangeRunning)
		c.State, c.StartedAt = v1alpha1.ChangeRunning, now()
		if err := a.Ledger.SaveChange(ctx, po.UID, c); err != nil {
			return workflows.StepResult{}, err
		}
	}
	under, left := a.cancels.beginStep(po, in.Plan, c)
	defer left()
	said := a.reportApplying(ctx, c)
	defer said()
	s := &stepRun{Activities: a, plan: po, change: c, destroy: in.Destroy, begun: begun, retried: attempt > 1, active: under}
	err = a.guard("apply "+c.Address, func() error { return s.apply(ctx) })
	if _, bug := errors.AsType[*bugError](err); bug && s.asked == v1alpha1.ActionCreate {
		err = &unknownError{err} // the provider may have been asked, and may have answered
	}
	said()
	switch {
	case s.answered:
		// What the provider said counts, also when the server stops: an attempt that is forgotten is made again.
		ctx = context.WithoutCancel(ctx)
	case ctx.Err() != nil && err != nil:
		return workflows.StepResult{}, ctx.Err()
	case s.interrupted(err) && !c.HalfDone && begun:
		err = fmt.Errorf("the plan was cancelled before it was tried again: %s", cmp.Or(c.Message, "an earlier attempt was cut off"))
	case s.interrupted(err):
		return a.resetPending(ctx, in, c)
	}
	if re, ok := errors.AsType[*retryError](err); ok && attempt < attempts && !under.isCancelled() {
		c.Message = s.scope.mask(fmt.Sprintf("attempt %d: %v", attempt, re))
		if err := a.Ledger.SaveChange(ctx, po.UID, c); err != nil {
			return workflows.StepResult{}, err
		}
		return workflows.StepResult{}, re
	}
	return s.record(ctx, in, err)
}

// ended says whether a step was made, or given up, before.
func ended(c *ledger.Change, destroy bool) bool {
	switch c.State {
	case v1alpha1.ChangePending:
		return false
	case v1alpha1.ChangeRunning:
		return c.HalfDone && firstHalf(c, destroy)
	default:
		return true
	}
}

// hasTwoSteps says whether a change has two steps.
func hasTwoSteps(c *ledger.Change) bool {
	return c.Action == v1alpha1.ActionReplace && !c.Forget && !leavesDeposed(c)
}

// firstHalf says whether a step is the first of the two of a replace.
func firstHalf(c *ledger.Change, destroy bool) bool {
	return hasTwoSteps(c) && destroy != c.CreateBeforeDestroy
}

// stepRun is the making of one step.
type stepRun struct {
	*Activities
	plan    *v1alpha1.Plan
	change  *ledger.Change
	destroy bool
	// begun is true when an earlier attempt began the change, and did not record how it ended.
	begun bool
	// retried is true when an earlier attempt ended.
	retried bool
	// active tells when the plan is cancelled; nil when nobody does.
	active *activePlan

	// resource is set once the object was read.
	resource *resource
	// after is set once the provider said what is there now.
	after *cty.Value
	// scope is what the step's expressions see; nil when it has none.
	scope *scope
	// warnings are what the provider said beside its answers.
	warnings diag.Diagnostics
	// asked is what the provider is about to be asked to do, from when that is written down.
	asked v1alpha1.Action
	// answered is set once the provider was asked to make the change, whatever came of it.
	answered bool
}

// openScope gives the step what its expressions see, until the returned function is called.
func (s *stepRun) openScope(ctx context.Context, r *resource) (closed func()) {
	s.scope = s.newScope(s.plan, r.ref.Namespace, nil)
	return func() {
		if err := s.scope.close(context.WithoutCancel(ctx)); err != nil { // a step that was made is not undone by that
			s.warnings = append(s.warnings, unclosed(err))
		}
	}
}

// record writes down how a step ended: in the change first, then on the object.
func (s *stepRun) record(ctx context.Context, in workflows.StepInput, err error) (workflows.StepResult, error) {
	c := s.change
	switch {
	case err == nil && firstHalf(c, s.destroy):
		c.HalfDone, c.Message = true, ""
	case err == nil:
		c.State, c.Message = v1alpha1.ChangeDone, ""
	default:
		c.State, c.Message = v1alpha1.ChangeFailed, firstLine(err)
		if _, ok := errors.AsType[*staleError](err); ok && !c.HalfDone { // of a replacement, the first half was made
			c.State = v1alpha1.ChangeStale
		} else if _, ok := errors.AsType[*unknownError](err); ok {
			c.State = v1alpha1.ChangeUnknown
		}
		c.Diagnostics = append(s.warnings, diagnosticsOf(err)...)
	}
	addr, _ := lang.ParseAddress(c.Address)
	if err == nil && len(s.warnings) > 0 {
		c.Diagnostics = append(c.Diagnostics, s.warnings...)
	}
	c.Diagnostics = s.scope.maskAll(lang.WithAddress(c.Diagnostics, addr))
	c.Message = s.scope.mask(c.Message)
	if c.State != v1alpha1.ChangeRunning {
		c.FinishedAt = now()
	}
	if err != nil && s.answered {
		// A server that stops may not take the object's status any more. That must not make a failed create look untried.
		if err := s.Ledger.SaveChange(ctx, s.plan.UID, c); err != nil {
			return workflows.StepResult{}, err
		}
	}
	if err := s.publish(ctx); err != nil {
		return workflows.StepResult{}, err
	}
	if err := s.Ledger.SaveChange(ctx, s.plan.UID, c); err != nil {
		return workflows.StepResult{}, err
	}
	if c.State != v1alpha1.ChangeRunning {
		s.progress.moved(in.Plan, v1alpha1.ChangeRunning, c.State)
	}
	return workflows.StepResult{OK: c.State == v1alpha1.ChangeDone || c.State == v1alpha1.ChangeRunning, State: string(c.State)}, nil
}

func firstLine(err error) string {
	d := diagnosticsOf(err)
	for _, x := range d {
		if x.Severity == v1alpha1.SeverityError {
			if x.Detail != "" && x.Summary == "Change could not be made" {
				return x.Detail
			}
			return x.Summary
		}
	}
	return err.Error()
}

// publish writes the outcome of the step to the object.
func (s *stepRun) publish(ctx context.Context) error {
	c := s.change
	g := c.Object.Generation
	gone := c.State == v1alpha1.ChangeDone && removes(c)
	nothingMade := c.State == v1alpha1.ChangeFailed && c.Action == v1alpha1.ActionCreate && s.after != nil && s.after.IsNull()
	if gone || nothingMade {
		rec, err := s.Ledger.Instance(ctx, c.Object)
		if err != nil {
			return err
		}
		if !rec.Living() && rec.Intent == nil {
			// There is nothing that the object would have to outlive.
			if err := s.Objects.Release(ctx, c.Object); err != nil || gone && c.Preconditions.Deleting {
				return err
			}
		}
	}
	if c.Deposed != "" {
		return s.publishDeposed(ctx)
	}
	return s.writeStatus(ctx, c.Object, func(st *status) {
		if s.after != nil && s.resource != nil && s.resource.mode != v1alpha1.ModeAction {
			st.attributes = plan.Attributes(s.resource.schema.Block, *s.after)
		}
		switch c.State {
		case v1alpha1.ChangeRunning:
			what := "The old instance was destroyed; the new one is about to be created."
			if c.CreateBeforeDestroy {
				what = "The new instance was created; the old one is about to be destroyed."
			}
			st.reconcile(g, what)
		case v1alpha1.ChangeDone:
			meta.RemoveStatusCondition(&st.conditions, v1alpha1.ConditionDrifted)
			switch {
			case c.Action == v1alpha1.ActionForget && c.ActionReason == plan.ReasonGone:
				st.remove(g, v1alpha1.ReasonDestroyed, "The infrastructure was removed outside of Hykube, and a plan removed its record. The next plan creates it again; delete the object if it shall not.")
			case c.Action == v1alpha1.ActionForget:
				st.remove(g, v1alpha1.ReasonForgotten, "The infrastructure was left alone and is no longer managed. The next plan creates it anew, unless lifecycle.import names it; delete the object if it shall do neither.")
			case c.Action == v1alpha1.ActionRead && gone:
				st.attributes, st.applied = nil, 0
				st.stall(g, v1alpha1.ReasonGone, "The infrastructure was removed by something other than Hykube. The next plan creates it again.")
			case gone:
				st.remove(g, v1alpha1.ReasonDestroyed, "The infrastructure was destroyed by a plan. The next plan creates it again; delete the object if it shall not.")
			case c.Action == v1alpha1.ActionRead && c.Mode == "":
				st.stall(g, v1alpha1.ReasonDrifted, fmt.Sprintf("A change made outside of Hykube was recorded: %s. The next plan changes it back if the spec says otherwise.", strings.Join(c.Drift, ", ")))
			case c.Action == v1alpha1.ActionInvoke:
				st.ready(g, "The action was run.")
			case c.Mode == v1alpha1.ModeData:
				st.ready(g, "The data source was read.")
			default:
				st.ready(g, messageApplied)
			}
		case v1alpha1.ChangeStale:
			if !st.good() {
				st.stall(g, v1alpha1.ReasonStale, "Not applied: "+c.Message+".")
			}
		case v1alpha1.ChangeUnknown:
			st.stall(g, v1alpha1.ReasonCreateUnknown, describe(c.Diagnostics))
		default:
			if halfMade(c) {
				st.stall(g, v1alpha1.ReasonReplaceIncomplete, halfText(c, describe(c.Diagnostics)))
				break
			}
			st.stall(g, v1alpha1.ReasonApplyFailed, describe(c.Diagnostics))
		}
	})
}

// publishDeposed says on the object when an old instance could not be destroyed; what is there now is not its concern.
func (s *stepRun) publishDeposed(ctx context.Context) error {
	c := s.change
	if c.State == v1alpha1.ChangeDone {
		rec, err := s.Ledger.Instance(ctx, c.Object)
		if err != nil {
			return err
		}
		return s.writeStatus(ctx, c.Object, func(st *status) {
			if st.replaceIncomplete() {
				st.settle(rec)
			}
		})
	}
	return s.writeStatus(ctx, c.Object, func(st *status) {
		st.stall(c.Object.Generation, v1alpha1.ReasonReplaceIncomplete,
			fmt.Sprintf("An old instance (deposed %s) is still there; the next plan destroys it. %s", c.Deposed, describe(c.Diagnostics)))
	})
}

// publishAgain writes the outcome to the object once more, from what is recorded.
func (s *stepRun) publishAgain(ctx context.Context) error {
	obj, err := s.Objects.Get(ctx, s.change.Object)
	if errors.Is(err, ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.resource, err = resourceOf(obj, s.Catalog); err != nil {
		return err
	}
	if s.resource.mode != v1alpha1.ModeManaged {
		return s.publish(ctx)
	}
	rec, err := s.Ledger.Instance(ctx, s.change.Object)
	if err != nil {
		return err
	}
	if !rec.Exists() {
		s.after = new(cty.NullVal(s.resource.schema.Block.ImpliedType()))
	} else {
		s.loadRecorded(rec)
	}
	return s.publish(ctx)
}

// apply checks that the step is still the one that was approved, and makes it.
func (s *stepRun) apply(ctx context.Context) error {
	c := s.change
	rec, err := s.Ledger.Instance(ctx, c.Object)
	if err != nil {
		return err
	}
	obj, err := s.Objects.Get(ctx, c.Object)
	if errors.Is(err, ErrGone) {
		if s.outcomeRecorded(rec) && removes(c) {
			return nil // the object went with what it stood for
		}
		return &staleError{"the object was deleted after the plan was made"}
	}
	if err != nil {
		return err
	}
	r, err := resourceOf(obj, s.Catalog)
	if err != nil {
		return err
	}
	s.resource = r
	switch r.mode {
	case v1alpha1.ModeData, v1alpha1.ModeAction:
		if err := s.checkStale(r, nil); err != nil {
			return err
		}
		if r.mode == v1alpha1.ModeData {
			return s.readData(ctx)
		}
		return s.invoke(ctx)
	}
	if key := s.oldKey(); key != "" {
		return s.destroyOld(ctx, r, rec, key)
	}
	if c.Preconditions.From != nil {
		if err := s.takeOver(ctx, obj, rec); err != nil {
			return err
		}
	}
	creating := c.Action == v1alpha1.ActionCreate || c.Action == v1alpha1.ActionReplace && !s.destroy
	resumed := rec.Intent.Of(s.plan.UID, c.Index)
	switch {
	case s.outcomeRecorded(rec):
		return s.finishRecorded(ctx, r, rec)
	case s.failureRecorded(rec):
		s.loadRecorded(rec)
		return &diag.Failure{Operation: "apply", Diagnostics: diag.Diagnostics{problem(r.addr, "Create failed",
			"The create ended in an error, which was lost when the server stopped, and left something behind. The next plan replaces it.")}}
	case resumed && rec.Intent.Action == v1alpha1.ActionCreate:
		return &unknownError{lostCreate(r.addr, rec.Intent)}
	case rec.Intent != nil && !resumed:
		if resumed, err = s.takesOverIntent(ctx, rec); err != nil {
			return err
		}
	}
	if err := s.checkStale(r, rec); err != nil {
		return err
	}
	switch {
	case c.Action == v1alpha1.ActionRead:
		return s.accept(ctx, rec)
	case c.Action == v1alpha1.ActionForget:
		return s.forget(ctx, rec)
	case c.Importing != nil && !rec.Exists() && !c.HalfDone:
		if err := s.adopt(ctx, obj, r, rec); err != nil {
			return err
		}
	}

	if err := s.replaceable(ctx); err != nil {
		return err
	}
	ctx, done := s.active.withCancel(ctx)
	defer done()
	defer s.openScope(ctx, r)()
	l, err := s.scope.lease(ctx, r, &rec.State, !s.destroy, slotAndRate)
	if err != nil {
		return s.retryable(err, true)
	}
	defer l.release()
	if half := s.destroy && c.Action == v1alpha1.ActionReplace; !half {
		// The approval was about the configuration, too. The half of a replace that destroys goes by the one that is recorded.
		if l.config() != c.ProviderConfig {
			return &staleError{fmt.Sprintf("it would be made with the ProviderConfig %q, and the plan was made with %q", l.config(), c.ProviderConfig)}
		}
		if err := s.checkProviderConfig(ctx, l.cfg); err != nil {
			return err
		}
	}
	prior, err := s.prior(ctx, l, rec, resumed)
	if err != nil {
		return s.retryable(err, true)
	}
	v := &evaluator{ctx: ctx, scope: s.scope}
	var p *instance.Planned
	null := cty.NullVal(r.schema.Block.ImpliedType())
	config := instance.Config{Written: null, Effective: null}
	switch half := c.Action == v1alpha1.ActionReplace; {
	case s.destroy && half:
		// The provider planned it as part of the replace, and finds there what it kept for it, such as timeouts that are new.
		p = &instance.Planned{Action: v1alpha1.ActionDelete, Value: null, Private: c.PlannedPrivate}
	case s.destroy:
		p, s.warnings, err = l.PlanDelete(ctx, prior, c.PlannedPrivate)
	default:
		p, config, err = s.planAgain(v, r, l, prior)
	}
	if err != nil {
		return s.retryable(err, true)
	}
	if s.destroy && !prior.Exists() || p.Action == v1alpha1.ActionNoOp {
		if err := s.save(ctx, l, rec, r, prior, nil); err != nil || s.destroy {
			return err
		}
		return s.checkPostconditions(v, rec, r, prior.Value)
	}
	if !s.destroy {
		if err := s.Objects.Hold(ctx, obj); err != nil {
			if errors.Is(err, ErrGone) {
				return &staleError{"the object was deleted or changed after the plan was made"}
			}
			return err
		}
	}
	action := v1alpha1.ActionUpdate
	switch {
	case s.destroy:
		action = v1alpha1.ActionDelete
	case creating:
		action = v1alpha1.ActionCreate
		there, err := s.existsDespiteThrottle(ctx, l, p)
		if err != nil {
			return err
		}
		if err := s.depose(rec); err != nil {
			return err
		}
		rec.ProviderConfig = l.config() // it is in use once the intent is written
		if there != nil {
			return cmp.Or(s.intend(ctx, rec, action, ""), there)
		}
	}
	if err := s.intend(ctx, rec, action, ""); err != nil {
		return err
	}
	if err := s.checkConfigStays(ctx, l, rec, creating); err != nil {
		return err
	}

	o := l.Apply(ctx, prior, p, config.Written)
	// From here on nothing may be lost, whoever wants to stop.
	ctx, s.answered = context.WithoutCancel(ctx), true
	v.ctx = ctx
	s.warnings = append(s.warnings, warningsOf(o.Diagnostics)...)
	s.scope.noteSecretState(l.Schema.Block, o.State)
	lost := diag.IsFailure(o.Err, diag.Lost)
	if lost && creating {
		return &unknownError{fmt.Errorf("the provider did not answer: %w; look whether %s exists before anything else is done", o.Err, r.addr)}
	}
	cutOff := o.Err != nil && l.stopped() && len(o.Quarantine) == 0
	if lost || cutOff && !creating && !s.active.isCancelled() {
		// The intent stays: the next attempt reads what is there before it goes on. After a cancel there is none, and the answer counts.
		return &retryError{o.Err}
	}
	if cutOff && !o.State.Exists() {
		// The call may have created the instance all the same. The intent stays, so that nothing creates it twice.
		return &unknownError{fmt.Errorf("the provider was asked to stop, since the plan was cancelled or the server stopped: %w; look whether %s exists before anything else is done", o.Err, r.addr)}
	}
	rec.Quarantine = o.Quarantine
	if len(o.Quarantine) > 0 && creating {
		// Something was made, and nobody can say what: the intent stays, so that nothing is made twice.
		if err := s.keep(ctx, rec); err != nil {
			return errors.Join(o.Err, err)
		}
		return &unknownError{fmt.Errorf("%w; its answer is kept (kubectl hykube state show), and %s is left alone until a person has looked", o.Err, r.addr)}
	}
	// Providers of the legacy SDK may make something other than they planned; dependants were planned without it.
	rec.Unplanned = !s.destroy && o.Err == nil && len(plan.CheckCompatible(r.schema.Block, p.Value, o.State.Value)) > 0
	if err := s.save(ctx, l, rec, r, o.State, o.Err); err != nil {
		return errors.Join(o.Err, err)
	}
	if o.Err == nil && !s.destroy {
		return s.checkPostconditions(v, rec, r, o.State.Value)
	}
	return s.retryable(o.Err, !creating || throttled(o.Err) && !o.State.Exists())
}

// intend writes down what is about to be asked of the provider. Who wants to stop does so before: a write that is cut off may
// have been made all the same, and would then look like a call whose answer was lost.
func (s *stepRun) intend(ctx context.Context, rec *ledger.Instance, action v1alpha1.Action, deposed string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	rec.Intent = &ledger.Intent{Plan: s.plan.UID, PlanName: s.plan.Name, Change: s.change.Index, Action: action, Deposed: deposed, At: time.Now().UTC()}
	s.asked = action
	return s.conflict(s.Ledger.Save(context.WithoutCancel(ctx), rec))
}

// checkConfigStays makes sure that what a create is configured with is not being deleted. The intent is written by now: whoever deletes it from here
// on sees that it is in use, and whoever did before is seen here.
func (s *stepRun) checkConfigStays(ctx context.Context, l *lease, rec *ledger.Instance, creating bool) error {
	if !creating || l.cfg == nil || s.change.Action == v1alpha1.ActionReplace {
		return nil
	}
	what, err := s.Configs.Leaving(ctx, l.cfg)
	if err == nil && what == "" {
		return nil
	}
	if err == nil {
		err = leaving(what)
	}
	// The provider was not asked.
	rec.Intent, s.asked = nil, ""
	if rec.Living() {
		return cmp.Or(s.conflict(s.Ledger.Save(context.WithoutCancel(ctx), rec)), err)
	}
	s.after = new(cty.NullVal(l.Schema.Block.ImpliedType()))
	return cmp.Or(s.conflict(s.Ledger.Forget(context.WithoutCancel(ctx), rec)), err)
}

// accept takes what was read while planning as the recorded state.
func (s *stepRun) accept(ctx context.Context, rec *ledger.Instance) error {
	found := s.change.Refreshed
	if found == nil {
		return nil
	}
	rec.State = *found
	rec.Plan = s.plan.UID
	rec.Object.Generation = 0 // no generation of the spec asked for this
	if !rec.Exists() {
		s.after = new(cty.NullVal(s.resource.schema.Block.ImpliedType()))
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

// save records what is there now, after a call that ended in failure unless that is nil, and clears the intent.
func (s *stepRun) save(ctx context.Context, l *lease, rec *ledger.Instance, r *resource, state instance.State, failure error) error {
	c := s.change
	creating := rec.Intent != nil && rec.Intent.Action == v1alpha1.ActionCreate
	if old := rec.FindDeposed(c.DeposedKey); creating && !state.Exists() && old != nil {
		// Nothing came of the create, so the old instance is the current one again.
		rec.State = old.State
		dropDeposed(rec, c.DeposedKey)
		s.loadRecorded(rec)
	} else {
		if err := l.Record(&rec.State, state); err != nil {
			return err
		}
		s.after = &state.Value
		rec.Type, rec.ProviderConfig, rec.ProviderVersion = r.addr.Type, l.config(), r.entry.Package.Version
		if s.destroy && c.Action == v1alpha1.ActionReplace && !state.Exists() {
			rec.ProviderConfig = c.ProviderConfig // the other half needs it
		}
		if creating && c.Forget {
			dropDeposed(rec, c.DeposedKey)
		}
		if !s.destroy {
			rec.Dependencies, rec.CreateBeforeDestroy, rec.DependencyVersions = c.Dependencies, c.CreatesFirst, c.DependencyVersions
		}
	}
	rec.Object, rec.Provider, rec.Plan, rec.Intent = c.Object, r.entry.Name, s.plan.UID, nil
	rec.LastOutcome = &ledger.Outcome{Plan: s.plan.UID, Change: c.Index, Destroy: s.destroy, Failed: failure != nil}
	if failure != nil && !(creating && state.Exists()) {
		rec.LastOutcome = nil
	}
	if rec.Unplanned = rec.Unplanned || failure != nil; rec.Unplanned {
		rec.Object.Generation = 0 // what the spec asks for may not have been reached, so the next plan has to look at it
	}
	if !rec.Living() && (c.Action == v1alpha1.ActionDelete || c.Action == v1alpha1.ActionCreate) {
		return s.conflict(s.Ledger.Forget(ctx, rec))
	}
	return s.keep(ctx, rec)
}

func (s *stepRun) conflict(err error) error {
	if errors.Is(err, ledger.ErrConflict) {
		return &staleError{"another plan changed it at the same time"}
	}
	return err
}

// retryable marks a failure that passes, when trying again is safe.
func (s *stepRun) retryable(err error, safe bool) error {
	if safe && transient(err) {
		return &retryError{err}
	}
	return err
}
