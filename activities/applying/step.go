package applying

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// unknownError is the error if the outcome of a create, or of an action's run, is unknown.
type unknownError struct{ error }

// diagnosticsOf returns the diagnostics of the error of a step. A failure that itself says that the outcome is unknown
// keeps its title. An error that adds the unknown outcome to an answer of the provider is one diagnostic with the whole
// text.
func diagnosticsOf(err error) diag.Diagnostics {
	if u, ok := err.(*unknownError); ok { //nolint:errorlint // a wrapped one has more text
		if f, ok := u.error.(*diag.Failure); ok { //nolint:errorlint // as above
			return diag.Of(f)
		}
	}
	return diag.Of(err)
}

// RetryError is the error of a step that may succeed later and is safe to retry.
type RetryError struct{ error }

// Step runs one step of an approved plan. It returns a *RetryError if another attempt may succeed.
func (a *Applier) Step(ctx context.Context, in workflows.StepInput, attempt int) (workflows.StepResult, error) {
	po, err := a.applyingPlan(ctx, in.Plan)
	if err != nil {
		return workflows.StepResult{}, err
	}
	if len(po.Status.Rollouts) > 0 {
		return workflows.StepResult{}, refused(in.Plan, "its lane alone runs the steps, at the pace of its rollouts")
	}
	of, err := a.checkOrder(ctx, po, in)
	if err != nil {
		return workflows.StepResult{}, err
	}
	return a.step(ctx, po, in, of, attempt, nil)
}

// Lane runs all steps of a large plan in dependency order, and reports its progress. It continues from the records of
// an earlier attempt. If only the pauses of rollouts are left to wait for, it ends and the plan is paused.
func (a *Applier) Lane(ctx context.Context, p workflows.Plan, report Report) (workflows.LaneResult, error) {
	po, err := a.applyingPlan(ctx, p)
	if err != nil {
		return workflows.LaneResult{}, err
	}
	if po.Status.PausedUntil != nil && po.Status.Cancel == nil { // the controller ends a pause
		return workflows.LaneResult{Paused: true}, nil
	}
	work, err := changes.Load(ctx, a.Ledger, po.UID)
	if err != nil {
		return workflows.LaneResult{}, err
	}
	if why := work.NotApproved(po); why != "" {
		return workflows.LaneResult{}, refused(p, why)
	}
	if err := a.takeOver(ctx, po, work); err != nil {
		return workflows.LaneResult{}, err
	}
	work.Order() // it may have held changes
	a.progress.resume(p, work)
	// A lane may run for hours, so it keeps the steps in memory but not the values of the changes.
	steps, width, approved, begun := work.Steps, a.width(work), approvedChanges(work), begunChanges(work)
	ahead := changes.NewReadAhead(a.Ledger, po.UID)
	source, rollouts, done := a.paced(ctx, p, po, work)
	defer done()
	reporter := a.newReporter(ctx, p, work, report)
	defer reporter.end()
	err = changes.Each(ctx, source, width, func(ctx context.Context, i int) (bool, error) {
		cancelled, err := a.cancelled(ctx, p)
		if err != nil || cancelled && !begun[steps[i].Change] {
			return false, err
		}
		po := po
		if cancelled && po.Status.Cancel == nil { // the step must not learn of it from a later poll
			po = po.DeepCopy()
			po.Status.Cancel = &v1alpha1.PlanCancel{}
		}
		in := workflows.StepInput{Plan: p, Change: steps[i].Change, Destroy: steps[i].Destroy}
		of := approved[in.Change]
		of.follows = len(steps[i].DependsOn) > 0
		pause := time.Second
		for attempt := 1; ; attempt++ {
			result, err := a.step(ctx, po, in, of, attempt, ahead)
			if _, ok := errors.AsType[*RetryError](err); !ok {
				reporter.stepped(ctx, int32(in.Change), result)
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
	if err != nil || rollouts == nil {
		return workflows.LaneResult{}, err
	}
	until := rollouts.pausedUntil()
	if until.IsZero() {
		return workflows.LaneResult{}, nil
	}
	return workflows.LaneResult{Paused: true}, a.pause(ctx, p, until)
}

// begunChanges returns the changes that an earlier attempt left running. Their steps run after a cancel, too. They then
// change no infrastructure, but record the outcome of that attempt, such as an unknown create.
func begunChanges(work *changes.Stored) map[int]bool {
	begun := map[int]bool{}
	for i := range work.Changes {
		if work.Changes[i].State == v1alpha1.ChangeRunning {
			begun[i] = true
		}
	}
	return begun
}

// width returns the maximum number of concurrent steps of a plan.
func (a *Applier) width(work *changes.Stored) int {
	if a.Catalog.TakesBatches(work.Providers()) {
		return session.BatchWidth
	}
	return session.Width
}

// cancelled reports whether a user cancelled the plan.
func (a *Applier) cancelled(ctx context.Context, p workflows.Plan) (bool, error) {
	cancelled, err := a.Plans.Cancelled(ctx, p.Namespace, p.Name, workflows.ObjectUID(p))
	if errors.Is(err, store.ErrGone) {
		return false, workflows.Deleted()
	}
	return cancelled, err
}

// step runs one step of an object and records its outcome. ahead may have read the change before; nil reads it now.
func (a *Applier) step(ctx context.Context, po *v1alpha1.Plan, in workflows.StepInput, of approvedChange, attempt int,
	ahead *changes.ReadAhead) (workflows.StepResult, error) {
	unlock, err := a.locks.lock(ctx, po.UID, of.object)
	if err != nil {
		return workflows.StepResult{}, err
	}
	defer unlock()
	if ahead != nil && attempt == 1 {
		c, err := ahead.Change(ctx, int32(in.Change))
		if err == nil {
			err = of.check(in.Plan, c)
		}
		if err != nil {
			return workflows.StepResult{}, err
		}
		// The first write of a step that has begun does not check the change, so that step reads it now.
		if c.State != v1alpha1.ChangeRunning {
			result, err := a.runStep(ctx, po, c, stepAttempt{in, attempt, of.follows, true})
			if !errors.Is(err, errOutdated) {
				return result, err
			}
		}
	}
	// Read the change only now, because an earlier attempt may have held the lock.
	c, err := a.Ledger.Change(ctx, po.UID, int32(in.Change))
	if err == nil {
		err = of.check(in.Plan, c)
	}
	if err != nil {
		return workflows.StepResult{}, err
	}
	return a.runStep(ctx, po, c, stepAttempt{in, attempt, of.follows, false})
}

// errOutdated is the error of a step whose change was read ahead and changed meanwhile. The step has written nothing.
var errOutdated = errors.New("the change is no longer as it was read")

// checkCurrent returns errOutdated if the change was read ahead and another writer has changed it since. The first
// write of a step fails then, so only a step that has not written must check this before it records an outcome.
func (s *stepRun) checkCurrent(ctx context.Context, in workflows.StepInput) error {
	now, err := s.Ledger.Change(ctx, s.Plan.UID, s.Change.Index)
	if err != nil || now.SameWrite(s.Change) {
		return err
	}
	if !s.Begun {
		s.progress.transition(in.Plan, v1alpha1.ChangeRunning, v1alpha1.ChangePending)
	}
	return errOutdated
}

// stepAttempt is one attempt of a step.
type stepAttempt struct {
	in     workflows.StepInput
	number int
	// follows is that of the approvedChange. early is true if the change was read ahead.
	follows, early bool
}

// runStep runs one step of a change, and records its outcome.
func (a *Applier) runStep(ctx context.Context, po *v1alpha1.Plan, c *ledger.Change,
	at stepAttempt) (workflows.StepResult, error) {
	in, attempt, early := at.in, at.number, at.early
	if ended(c, in.Destroy) {
		return a.stepEnded(ctx, po, c, in.Destroy, attempt)
	}
	begun := c.State == v1alpha1.ChangeRunning
	s := &stepRun{Applier: a, Step: changes.Step{Plan: po, Change: c, Destroy: in.Destroy, Begun: begun},
		retried: attempt > 1, follows: at.follows}
	if !begun {
		a.progress.transition(in.Plan, c.State, v1alpha1.ChangeRunning)
		c.State, c.StartedAt, s.unsaved = v1alpha1.ChangeRunning, changes.Now(), true
		if !writesIntentFirst(c) {
			if err := s.saveBegun(ctx); err != nil {
				if early {
					err = cmp.Or(s.checkCurrent(ctx, in), err)
				}
				return workflows.StepResult{}, err
			}
		}
	}
	active, leave := a.cancels.beginStep(po, in.Plan, c)
	defer leave()
	s.active = active
	endReport := a.reportApplying(ctx, c)
	defer endReport()
	err := bug.Guard(a.Logger, "apply "+c.Address, func() error { return s.apply(ctx) })
	if bug.Is(err) && s.intendedAction == v1alpha1.ActionCreate {
		err = &unknownError{err} // the provider may have been called, and may have answered
	}
	endReport()
	if early && !s.answered && (err != nil || s.unsaved) && ctx.Err() == nil {
		if err := s.checkCurrent(ctx, in); err != nil {
			return workflows.StepResult{}, err
		}
	}
	switch {
	case s.answered:
		// Record the provider's answer even if the server stops, because otherwise the step would run again.
		ctx = context.WithoutCancel(ctx)
	case ctx.Err() != nil && err != nil:
		if s.unsaved {
			a.progress.transition(in.Plan, v1alpha1.ChangeRunning, v1alpha1.ChangePending)
		}
		return workflows.StepResult{}, ctx.Err()
	case s.interrupted(err) && !c.HalfDone && begun:
		err = fmt.Errorf("the plan was cancelled before the change was tried again: %s",
			cmp.Or(c.Message, "an earlier attempt was interrupted"))
	case s.interrupted(err):
		return a.resetPending(ctx, in, c)
	}
	if err != nil && s.intendedAction != "" {
		s.releaseIntent(ctx)
	}
	re, again := errors.AsType[*RetryError](err)
	again = again && attempt < session.Attempts
	text := fmt.Sprintf("attempt %d: %v", attempt, err)
	if later, ok := errors.AsType[*laterError](err); ok {
		return workflows.StepResult{}, &RetryError{later}
	}
	if s.waitsForStore(err) {
		re, again, text = &RetryError{err}, true, fmt.Sprintf("the change waits for the server's database: %v", err)
	}
	if again && !active.isCancelled() {
		c.Message = s.scope.Mask(text)
		if err := a.Ledger.SaveChange(ctx, po.UID, c); err != nil {
			return workflows.StepResult{}, err
		}
		return workflows.StepResult{}, re
	}
	return s.record(ctx, in, err)
}

// waitsForStore reports whether a step failed because a store did not answer, before it began to change infrastructure.
// The step then tries again until the store answers.
func (s *stepRun) waitsForStore(err error) bool {
	return !s.answered && s.intendedAction == "" && store.IsFailed(err)
}

// writesIntentFirst reports whether the first write of a step is the intent of a provider call. The step then writes
// together with it that the change is running.
func writesIntentFirst(c *ledger.Change) bool {
	switch c.Action {
	case v1alpha1.ActionCreate, v1alpha1.ActionUpdate, v1alpha1.ActionDelete, v1alpha1.ActionReplace:
		return c.Mode == "" && c.Deposed == "" && c.Importing == nil && c.Preconditions.From == nil
	}
	return false
}

// saveBegun writes that the change is running, unless that is written.
func (s *stepRun) saveBegun(ctx context.Context) error {
	if !s.unsaved {
		return nil
	}
	s.unsaved = false
	return s.Ledger.SaveChange(ctx, s.Plan.UID, s.Change)
}

// stepEnded returns the result of a step that has run or was skipped.
func (a *Applier) stepEnded(ctx context.Context, po *v1alpha1.Plan, c *ledger.Change, destroy bool,
	attempt int) (workflows.StepResult, error) {
	// The attempt that ran the step may have stopped before it wrote the object. A lane that a restart began anew
	// counts no attempts, so it writes the outcomes again that record saves before the object.
	if attempt > 1 || c.State == v1alpha1.ChangeFailed || c.State == v1alpha1.ChangeUnknown {
		s := &stepRun{Applier: a, Step: changes.Step{Plan: po, Change: c, Destroy: destroy}}
		if err := s.publishAgain(ctx); err != nil {
			return workflows.StepResult{}, err
		}
	}
	return workflows.StepResult{OK: c.State == v1alpha1.ChangeDone || c.State == v1alpha1.ChangeRunning,
		State: string(c.State)}, nil
}

// ended reports whether a step has run or was skipped.
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

// firstHalf reports whether a step is the first of the two steps of a replace.
func firstHalf(c *ledger.Change, destroy bool) bool {
	return c.Action == v1alpha1.ActionReplace && !c.Forget && !changes.LeavesDeposed(c) &&
		destroy != c.CreateBeforeDestroy
}

// stepRun is the run of one step.
type stepRun struct {
	*Applier
	changes.Step
	// retried is true if there was an earlier attempt. follows is that of the approvedChange.
	retried, follows bool
	// active has the plan's cancellation; nil in tests without cancels.
	active *activePlan

	// unsaved is true until the step has written that the change is running.
	unsaved bool
	// resource and object are set after the object was read. object is the object as the step last read or wrote it.
	resource *resource.Resource
	object   *unstructured.Unstructured
	// after is the state in the provider's answer; nil before the answer.
	after *cty.Value
	// scope resolves the step's expressions; nil if it has none.
	scope *scope.Scope
	// renewed is set by planAgain; see ledger.Instance.
	renewed []string
	// unsavedRecord is the record with the provider's answer if the end of the step saves it; see saveOutcome.
	unsavedRecord *ledger.Instance
	// warnings are the warnings of all provider calls.
	warnings diag.Diagnostics
	// intendedAction is the action in the intent that the step has written; "" before.
	intendedAction v1alpha1.Action
	// recordLost is true if the object was applied and has no record.
	recordLost bool
	// answered is true after the provider was called to make the change, with any outcome.
	answered bool
}

// openScope creates the step's scope for expressions. The caller must call the returned function to close it.
func (s *stepRun) openScope(ctx context.Context, r *resource.Resource) (closed func()) {
	s.scope = s.NewScope(s.Plan, r.Ref.Namespace, nil).WrittenBy(s.Change.Contributors)
	if s.Change.Hashes == nil {
		s.Change.Hashes = map[string]string{}
	}
	s.scope.Hashes, s.scope.Approved = s.Change.Hashes, s.Change.Preconditions.Arguments
	return func() {
		if err := s.scope.Close(context.WithoutCancel(ctx)); err != nil { // an error here does not undo the step
			s.warnings = append(s.warnings, scope.Unclosed(err))
		}
	}
}

// record records the outcome of a step, first in the change, then on the object.
func (s *stepRun) record(ctx context.Context, in workflows.StepInput, err error) (workflows.StepResult, error) {
	if err != nil && s.unsavedRecord != nil {
		err = errors.Join(err, s.saveUnsaved(ctx))
	}
	c := s.Change
	switch {
	case err == nil && firstHalf(c, s.Destroy):
		c.HalfDone, c.Message = true, ""
	case err == nil:
		c.State, c.Message = v1alpha1.ChangeDone, ""
	default:
		c.State, c.Message = v1alpha1.ChangeFailed, diag.Brief(err)
		// otherwise the first half of the replacement is done
		if reason := changes.StaleReasonOf(err); reason != "" && !c.HalfDone {
			c.State, c.StaleReason = v1alpha1.ChangeStale, reason
		} else if _, ok := errors.AsType[*unknownError](err); ok {
			c.State = v1alpha1.ChangeUnknown
		}
		c.Diagnostics, c.Unevaluated = append(s.warnings, diagnosticsOf(err)...), diag.IsFailure(err, diag.Unevaluated)
	}
	addr, _ := lang.ParseAddress(c.Address)
	if err == nil && len(s.warnings) > 0 {
		c.Diagnostics = append(c.Diagnostics, s.warnings...)
	}
	c.Diagnostics = s.scope.MaskAll(lang.WithAddress(c.Diagnostics, addr))
	c.Message = s.scope.Mask(c.Message)
	if c.State != v1alpha1.ChangeRunning {
		c.FinishedAt = changes.Now()
	}
	if err != nil && s.answered {
		// If the server is stopping, writing the object's status may fail. A failed create must nevertheless be
		// recorded as attempted.
		if err := s.outcomes().SaveChange(ctx, s.Plan.UID, c); err != nil {
			return workflows.StepResult{}, err
		}
	}
	if s.unsavedRecord == nil || !s.saveOutcome(ctx) {
		if err := s.saveUnsaved(ctx); err != nil {
			return s.record(ctx, in, err)
		}
		if err := s.publish(ctx); err != nil {
			return workflows.StepResult{}, err
		}
		if err := s.outcomes().SaveChange(ctx, s.Plan.UID, c); err != nil {
			return workflows.StepResult{}, err
		}
	}
	if c.State != v1alpha1.ChangeRunning {
		s.progress.transition(in.Plan, v1alpha1.ChangeRunning, c.State)
		s.Metrics.Step(string(c.Action), string(c.State))
	}
	return workflows.StepResult{OK: c.State == v1alpha1.ChangeDone || c.State == v1alpha1.ChangeRunning,
		State: string(c.State)}, nil
}
