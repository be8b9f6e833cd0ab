package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/workflows"

	"github.com/zclconf/go-cty/cty"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
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
	tracker := plan.NewTracker(len(work.steps), func(i int) []int { return work.steps[i].DependsOn })
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
	leave, err := a.alone.enter(ctx, po.UID, c.Object.UID)
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
	s := &stepRun{Activities: a, plan: po, change: c, destroy: in.Destroy, begun: begun}
	err = s.make(ctx)
	switch {
	case s.answered:
		// What the provider said counts, also when the server stops: an attempt that is forgotten is made again.
		ctx = context.WithoutCancel(ctx)
	case ctx.Err() != nil && err != nil:
		return workflows.StepResult{}, ctx.Err()
	}
	if re, ok := errors.AsType[*retryError](err); ok && attempt < attempts {
		c.Message = fmt.Sprintf("attempt %d: %v", attempt, re)
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

// halves says whether a change has two steps.
func halves(c *ledger.Change) bool {
	return c.Action == v1alpha1.ActionReplace && !c.Forget && !keepsOld(c)
}

// firstHalf says whether a step is the first of the two of a replace.
func firstHalf(c *ledger.Change, destroy bool) bool {
	return halves(c) && destroy != c.CreateBeforeDestroy
}

// stepRun is the making of one step.
type stepRun struct {
	*Activities
	plan    *v1alpha1.Plan
	change  *ledger.Change
	destroy bool
	// begun is true when an earlier attempt began the change, and did not record how it ended.
	begun bool

	// resource is set once the object was read.
	resource *resource
	// after is set once the provider said what is there now.
	after *cty.Value
	// scope is what the step's expressions see; nil when it has none.
	scope *scope
	// warnings are what the provider said beside its answers.
	warnings plan.Diagnostics
	// answered is set once the provider was asked to make the change, whatever came of it.
	answered bool
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
		if _, ok := errors.AsType[*staleError](err); ok {
			c.State = v1alpha1.ChangeStale
		} else if _, ok := errors.AsType[*unknownError](err); ok {
			c.State = v1alpha1.ChangeUnknown
		}
		c.Diagnostics = append(s.warnings, diagnosticsOf(err)...)
	}
	addr, _ := plan.ParseAddress(c.Address)
	if err == nil && len(s.warnings) > 0 {
		c.Diagnostics = append(c.Diagnostics, s.warnings...)
	}
	c.Diagnostics = s.scope.maskAll(plan.WithAddress(c.Diagnostics, addr))
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
	gone := c.State == v1alpha1.ChangeDone && (c.Action == v1alpha1.ActionDelete || c.Action == v1alpha1.ActionForget)
	nothingMade := c.State == v1alpha1.ChangeFailed && c.Action == v1alpha1.ActionCreate && s.after != nil && s.after.IsNull()
	if gone || nothingMade {
		rec, err := s.Ledger.Instance(ctx, c.Object)
		if err != nil {
			return err
		}
		if !rec.Living() && rec.Intent == nil {
			// There is nothing that the object would have to outlive.
			if err := s.Objects.Release(ctx, c.Object); err != nil || gone && c.Bound.Deleting {
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
			condition.Reconciling(&st.conditions, g, v1alpha1.ReasonApplying, what)
		case v1alpha1.ChangeDone:
			st.observed = g
			switch {
			case c.Action == v1alpha1.ActionForget:
				st.attributes = nil
				condition.Waiting(&st.conditions, g, v1alpha1.ReasonAwaitingPlan, "The infrastructure was left alone and is no longer managed. The next plan creates it anew, unless lifecycle.import names it; delete the object if it shall do neither.")
			case gone:
				st.attributes = nil
				condition.Waiting(&st.conditions, g, v1alpha1.ReasonAwaitingPlan, "The infrastructure was destroyed by a plan. The next plan creates it again; delete the object if it shall not.")
			case c.Action == v1alpha1.ActionRead && c.Mode == "" && s.after != nil && s.after.IsNull():
				st.attributes = nil
				condition.Stalled(&st.conditions, g, v1alpha1.ReasonGone, "The infrastructure was removed by something other than Hykube. The next plan creates it again.")
			case c.Action == v1alpha1.ActionRead && c.Mode == "":
				condition.Stalled(&st.conditions, g, v1alpha1.ReasonDrifted, fmt.Sprintf("The infrastructure was changed by something other than Hykube: %v. The next plan changes it back if the spec says otherwise.", c.Drift))
			case c.Action == v1alpha1.ActionInvoke:
				condition.Ready(&st.conditions, g, v1alpha1.ReasonApplied, "The action was run.")
			case c.Mode == v1alpha1.ModeData:
				condition.Ready(&st.conditions, g, v1alpha1.ReasonApplied, "It was read.")
			default:
				condition.Ready(&st.conditions, g, v1alpha1.ReasonApplied, "The infrastructure is what the spec asks for.")
			}
		case v1alpha1.ChangeStale:
			if !st.good() {
				condition.Stalled(&st.conditions, g, v1alpha1.ReasonStale, "Not applied: "+c.Message+".")
			}
		case v1alpha1.ChangeUnknown:
			condition.Stalled(&st.conditions, g, v1alpha1.ReasonCreateUnknown, describe(c.Diagnostics))
		default:
			condition.Stalled(&st.conditions, g, v1alpha1.ReasonApplyFailed, describe(c.Diagnostics))
		}
	})
}

// publishDeposed says on the object when an old instance could not be destroyed; what is there now is not its concern.
func (s *stepRun) publishDeposed(ctx context.Context) error {
	c := s.change
	if c.State == v1alpha1.ChangeDone {
		return nil
	}
	return s.writeStatus(ctx, c.Object, func(st *status) {
		condition.Stalled(&st.conditions, c.Object.Generation, v1alpha1.ReasonApplyFailed,
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
		s.recall(rec)
	}
	return s.publish(ctx)
}

// make checks that the step is still the one that was approved, and makes it.
func (s *stepRun) make(ctx context.Context) error {
	c := s.change
	rec, err := s.Ledger.Instance(ctx, c.Object)
	if err != nil {
		return err
	}
	obj, err := s.Objects.Get(ctx, c.Object)
	if errors.Is(err, ErrGone) {
		if s.madeBefore(rec) && (c.Action == v1alpha1.ActionDelete || c.Action == v1alpha1.ActionForget) {
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
		if err := s.unmoved(r, nil); err != nil {
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
	if c.Bound.From != nil {
		if err := s.takeOver(ctx, obj, rec); err != nil {
			return err
		}
	}
	creating := c.Action == v1alpha1.ActionCreate || c.Action == v1alpha1.ActionReplace && !s.destroy
	resumed := rec.Intent.Of(s.plan.UID, c.Index)
	switch {
	case s.madeBefore(rec):
		return s.remember(ctx, r, rec)
	case s.brokeBefore(rec):
		s.recall(rec)
		return &instance.DiagnosticsError{Operation: "apply", Diagnostics: plan.Diagnostics{problem(r.addr, "Create failed",
			"The create ended in an error, which was lost when the server stopped, and left something behind. The next plan replaces it.")}}
	case resumed && rec.Intent.Action == v1alpha1.ActionCreate:
		return &unknownError{lostCreate(r.addr, rec.Intent)}
	case rec.Intent != nil && !resumed:
		if resumed, err = s.inherits(ctx, rec); err != nil {
			return err
		}
	}
	if err := s.unmoved(r, rec); err != nil {
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

	l, err := s.lease(ctx, r, &rec.State, !s.destroy, s.plan.Status.RequestedBy)
	if err != nil {
		return s.retryable(err, true)
	}
	defer l.release()
	if half := s.destroy && c.Action == v1alpha1.ActionReplace; !half && l.config != c.ProviderConfig {
		// The approval was about the configuration, too. The half of a replace that destroys goes by the one that is recorded.
		return &staleError{fmt.Sprintf("it would be made with the ProviderConfig %q, and the plan was made with %q", l.config, c.ProviderConfig)}
	}
	prior, err := s.prior(ctx, l, rec, resumed)
	if err != nil {
		return s.retryable(err, true)
	}
	scope := s.newScope(s.plan, r.ref.Namespace, nil)
	s.scope = scope
	defer func() {
		if cerr := scope.close(context.WithoutCancel(ctx)); cerr != nil {
			s.Logger.Warn("close ephemeral resources", "address", c.Address, "error", cerr)
		}
	}()
	v := &look{ctx: ctx, scope: scope}
	var p *instance.Planned
	null := cty.NullVal(r.schema.Block.ImpliedType())
	config := instance.Config{Written: null, Effective: null}
	if s.destroy {
		p, s.warnings, err = l.PlanDelete(ctx, prior)
	} else {
		p, config, err = s.planAgain(v, r, l, prior)
	}
	if err != nil {
		return s.retryable(err, true)
	}
	if s.destroy && !prior.Exists() || p.Action == v1alpha1.ActionNoOp {
		if err := s.save(ctx, l, rec, r, prior, nil); err != nil || s.destroy {
			return err
		}
		return s.fulfilled(v, rec, r, prior.Value)
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
		if err := s.depose(rec); err != nil {
			return err
		}
	}
	if err := s.intend(ctx, rec, action, ""); err != nil {
		return err
	}

	o := l.Apply(ctx, prior, p, config.Effective)
	// From here on nothing may be lost, whoever wants to stop.
	ctx, s.answered = context.WithoutCancel(ctx), true
	v.ctx = ctx
	s.warnings = append(s.warnings, warningsOf(o.Diagnostics)...)
	if o.Lost && creating {
		return &unknownError{fmt.Errorf("the provider did not answer: %w; look whether %s exists before anything else is done", o.Err, r.addr)}
	}
	if o.Lost {
		// The intent stays: the next attempt reads what is there before it goes on.
		return &retryError{o.Err}
	}
	rec.Quarantine = o.Quarantine
	if len(o.Quarantine) > 0 && creating {
		// Something was made, and nobody can say what: the intent stays, so that nothing is made twice.
		if err := s.keep(ctx, rec); err != nil {
			return errors.Join(o.Err, err)
		}
		return &unknownError{fmt.Errorf("%w; its answer is kept (kubectl hykube state show), and %s is left alone until somebody has looked", o.Err, r.addr)}
	}
	if err := s.save(ctx, l, rec, r, o.State, o.Err); err != nil {
		return errors.Join(o.Err, err)
	}
	if o.Err == nil && !s.destroy {
		return s.fulfilled(v, rec, r, o.State.Value)
	}
	return s.retryable(o.Err, !creating || throttled(o.Err) && !o.State.Exists())
}

// fulfilled checks the postconditions of what is there now. What does not hold them is kept, and the next plan looks at it.
func (s *stepRun) fulfilled(v *look, rec *ledger.Instance, r *resource, value cty.Value) error {
	_, err := v.holds(r, postconditions, plan.MarkSensitive(r.schema.Block, value))
	if err == nil {
		return nil
	}
	rec.Object.Generation = 0
	return errors.Join(err, s.conflict(s.Ledger.Save(v.ctx, rec)))
}

// intend writes down what is about to be asked of the provider. Who wants to stop does so before: a write that is cut off may
// have been made all the same, and would then look like a call whose answer was lost.
func (s *stepRun) intend(ctx context.Context, rec *ledger.Instance, action v1alpha1.Action, deposed string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	rec.Intent = &ledger.Intent{Plan: s.plan.UID, Change: s.change.Index, Action: action, Deposed: deposed, At: time.Now().UTC()}
	return s.conflict(s.Ledger.Save(context.WithoutCancel(ctx), rec))
}

// warningsOf leaves errors out.
func warningsOf(diags plan.Diagnostics) plan.Diagnostics {
	return slices.DeleteFunc(slices.Clone(diags), func(d v1alpha1.Diagnostic) bool { return d.Severity == v1alpha1.SeverityError })
}

// unmoved checks what the change is bound to; rec is nil for what has no state to be bound to.
func (s *stepRun) unmoved(r *resource, rec *ledger.Instance) error {
	c := s.change
	state := c.Bound.State
	switch {
	case rec == nil:
	case c.Action == v1alpha1.ActionReplace && !s.destroy && rec.Plan == s.plan.UID && !rec.Exists():
		// The first half took it away.
	case s.triedBefore(rec), rec.Plan == s.plan.UID && rec.MovedFrom != "" && c.Bound.From != nil:
		// It was this step that moved it.
	default:
		state = rec.Digest()
	}
	switch {
	// A deletion is told before the generation, which it raises.
	case r.deleting != c.Bound.Deleting:
		return &staleError{"the object was marked for deletion after the plan was made"}
	case r.ref.Generation != c.Object.Generation:
		return &staleError{fmt.Sprintf("the object was changed after the plan was made (generation %d, planned %d)", r.ref.Generation, c.Object.Generation)}
	case state != c.Bound.State:
		return &staleError{"the recorded state moved after the plan was made"}
	case r.entry.Package.Version != c.ProviderVersion:
		return &staleError{fmt.Sprintf("the provider is now version %s, and the plan was made with %s", r.entry.Package.Version, c.ProviderVersion)}
	}
	return nil
}

// prior is the state that the step starts from: the recorded one, or what was read while planning, or, after an attempt
// whose outcome is not known, what is there now.
func (s *stepRun) prior(ctx context.Context, l *lease, rec *ledger.Instance, resumed bool) (instance.State, error) {
	if s.change.Action == v1alpha1.ActionReplace && !s.destroy {
		return l.Null(), nil
	}
	from := &rec.State
	if s.change.Refreshed != nil && !s.triedBefore(rec) {
		from = s.change.Refreshed
	}
	prior, err := l.Load(ctx, from)
	if err != nil || !resumed {
		return prior, err
	}
	prior, _, err = l.Read(ctx, prior)
	return prior, err
}

// planAgain asks the provider once more, now that all values are known, and refuses anything but what was approved.
func (s *stepRun) planAgain(v *look, r *resource, l *lease, prior instance.State) (*instance.Planned, instance.Config, error) {
	c := s.change
	if open, err := v.holds(r, preconditions, cty.NilVal); err != nil || open {
		return nil, instance.Config{}, cmp.Or(err, fmt.Errorf("a value that a precondition of %s refers to is still not known", c.Address))
	}
	config, err := v.evaluate(r, prior)
	if err != nil {
		return nil, config, err
	}
	if plain, _ := config.Effective.UnmarkDeep(); !plain.IsWhollyKnown() {
		return nil, config, fmt.Errorf("a value that %s refers to is still not known", c.Address)
	}
	prior.Tainted = false // the first half of the replace took the tainted instance away
	p, diags, err := l.Plan(v.ctx, prior, config, false)
	if err != nil {
		return nil, config, err
	}
	s.warnings = warningsOf(diags)
	approved := c.Action
	if approved == v1alpha1.ActionReplace {
		approved = v1alpha1.ActionCreate
	}
	if p.Action != approved && !(approved == v1alpha1.ActionUpdate && p.Action == v1alpha1.ActionNoOp) {
		return nil, config, &staleError{fmt.Sprintf("with all values known the provider would %s, and %s was approved", p.Action, approved)}
	}
	ty := r.schema.Block.ImpliedType()
	promised, err := ctymsgpack.Unmarshal(c.Planned, ty)
	if err != nil {
		return nil, config, fmt.Errorf("decode planned value of %s: %w", c.Address, err)
	}
	if errs := plan.CheckCompatible(r.schema.Block, promised, p.Value); len(errs) > 0 {
		return nil, config, &staleError{fmt.Sprintf("with all values known the provider plans something other than was approved: %v", errors.Join(errs...))}
	}
	return p, config, nil
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
	if err := s.Ledger.Save(ctx, rec); err != nil {
		return s.conflict(err)
	}
	if !rec.Exists() {
		s.after = new(cty.NullVal(s.resource.schema.Block.ImpliedType()))
		return nil
	}
	s.recall(rec)
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
		s.recall(rec)
	} else {
		if err := l.Record(&rec.State, state); err != nil {
			return err
		}
		s.after = &state.Value
		rec.Type, rec.ProviderConfig, rec.ProviderVersion = r.addr.Type, l.config, r.entry.Package.Version
		if creating && c.Forget {
			dropDeposed(rec, c.DeposedKey)
		}
		if !s.destroy {
			rec.Dependencies, rec.CreateBeforeDestroy = c.Dependencies, c.CreatesFirst
		}
	}
	rec.Object, rec.Provider, rec.Plan, rec.Intent = c.Object, r.entry.Name, s.plan.UID, nil
	rec.Made = &ledger.Made{Plan: s.plan.UID, Change: c.Index, Destroy: s.destroy, Broken: failure != nil}
	if failure != nil && !(creating && state.Exists()) {
		rec.Made = nil
	}
	if failure != nil {
		rec.Object.Generation = 0 // what the spec asks for was not reached, so the next plan has to look at it
	}
	if !rec.Living() && (c.Action == v1alpha1.ActionDelete || c.Action == v1alpha1.ActionCreate) {
		return s.conflict(s.Ledger.Forget(ctx, rec))
	}
	return s.keep(ctx, rec)
}

// keep saves a record. Once the provider answered, it is saved whoever else wrote it: the intent keeps others away, and if one
// of them did not mind it, what the provider said must not be lost.
func (s *stepRun) keep(ctx context.Context, rec *ledger.Instance) error {
	err := s.Ledger.Save(ctx, rec)
	if s.answered && errors.Is(err, ledger.ErrConflict) {
		s.Logger.ErrorContext(ctx, "a record was written while a change of it was under way; what the provider said replaces it",
			"plan", s.plan.Name, "namespace", s.plan.Namespace, "address", s.change.Address)
		err = s.Ledger.Keep(ctx, rec)
	}
	return s.conflict(err)
}

func (s *stepRun) conflict(err error) error {
	if errors.Is(err, ledger.ErrConflict) {
		return &staleError{"another plan changed it at the same time"}
	}
	return err
}

// retryable marks an error that passes, when trying again is safe.
func (s *stepRun) retryable(err error, safe bool) error {
	if err != nil && safe && (transient(err) || throttled(err)) {
		return &retryError{err}
	}
	return err
}
