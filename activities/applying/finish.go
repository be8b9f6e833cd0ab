package applying

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/workflows"

	"github.com/zclconf/go-cty/cty"
)

// Finish records the outcome of a plan's apply, on the plan and on the changes that were not attempted.
func (a *Applier) Finish(ctx context.Context, f workflows.Finish) (workflows.Finished, error) {
	po, err := changes.ReadPlan(ctx, a.Plans, f.Plan)
	if err != nil {
		return workflows.Finished{}, err
	}
	if a.cancels.hasRunningSteps(po.UID) {
		return workflows.Finished{}, errStepsRunning
	}
	a.progress.end(f.Plan)
	defer a.orders.forget(po.UID)
	defer a.judges.forget(po.UID)
	if po.Ended() && po.Status.Progress == nil {
		return workflows.Finished{Outcome: workflows.OutcomeRefused}, nil
	}
	if why := changes.NotApproved(po); why != "" {
		return workflows.Finished{}, refused(f.Plan, why)
	}
	work, err := changes.Load(ctx, a.Ledger, po.UID)
	if err != nil {
		return workflows.Finished{}, err
	}
	// A lane reads the cancel from the Plan object, perhaps before the workflow receives the signal.
	cancelled := f.Cancelled || po.Status.Cancel != nil
	begun := slices.ContainsFunc(work.Changes, func(c changes.StoredChange) bool { return c.Begun })
	stale, err := a.skipPending(ctx, po, work, cancelled)
	if err != nil {
		return workflows.Finished{}, err
	}
	counts := work.Progress()
	o := outcomeOf(po, work, stale, cancelled, begun)
	failed := a.checks(ctx, po, work)
	err = a.Plans.UpdateStatus(ctx, f.Plan.Namespace, f.Plan.Name, workflows.ObjectUID(f.Plan),
		func(s *v1alpha1.PlanStatus) {
			c, g, applied := &s.Conditions, po.Generation, o.name == workflows.OutcomeApplied
			s.Progress, s.PausedUntil, s.Checks = &counts, nil, failed
			if s.FinishedAt == nil { // an earlier attempt may have written it
				s.FinishedAt = changes.Now()
			}
			if len(stale) > 0 {
				condition.Set(c, g, v1alpha1.ConditionStale, true, v1alpha1.ReasonStale, changes.ListObstacles(stale))
			}
			condition.Set(c, g, v1alpha1.ConditionApplied, applied, o.reason, o.message)
			if applied {
				condition.Ready(c, g, o.reason, o.message)
			} else {
				condition.Stalled(c, g, o.reason, o.message)
			}
		})
	finished := workflows.Finished{Outcome: o.name, Done: int(counts.Done), Failed: int(counts.Failed),
		Skipped: int(counts.Skipped)}
	for i := range work.Changes {
		finished.NotMade = addNotMade(finished.NotMade, &work.Changes[i])
	}
	return finished, err
}

// checks evaluates the check blocks of the Modules that a plan changed with the recorded values, and returns what does
// not hold. The apply is over, so an error is only logged.
func (a *Applier) checks(ctx context.Context, po *v1alpha1.Plan, work *changes.Stored) (failed diag.Diagnostics) {
	if a.Index == nil || po.Spec.Destroy {
		return nil
	}
	names, err := a.Index.CheckedModules(ctx, po.Namespace)
	names = slices.DeleteFunc(names, func(name string) bool {
		return !slices.ContainsFunc(work.Changes,
			func(c changes.StoredChange) bool { return c.Object.Set == name && v1alpha1.InModule(c.Object.Name) })
	})
	if err == nil && len(names) > 0 {
		s := a.NewScope(po, po.Namespace, func(lang.Address) (cty.Value, bool) { return cty.NilVal, false })
		for _, name := range names {
			diags, cerr := s.Checks(ctx, name)
			failed, err = append(failed, diags...), errors.Join(err, cerr)
		}
		err = errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	if err != nil {
		a.Logger.Warn("evaluate the check blocks after an apply", "namespace", po.Namespace, "plan", po.Name, "error",
			err)
	}
	return diag.Limit(failed)
}

// outcome is the outcome of an apply, with the reason and the message of the plan's conditions.
type outcome struct{ name, reason, message string }

// outcomeOf returns the outcome of an apply. begun is true if a change began.
func outcomeOf(po *v1alpha1.Plan, work *changes.Stored, stale []changes.Obstacle, cancelled, begun bool) outcome {
	var o outcome
	switch counts := work.Progress(); {
	case counts.Failed == 0 && counts.Skipped == 0 && counts.Blocked == 0:
		return outcome{workflows.OutcomeApplied, v1alpha1.ReasonApplied,
			fmt.Sprintf("%d of %d changes were made.", counts.Done, counts.Total)}
	case counts.Failed == 0 && counts.Skipped == 0:
		return outcome{workflows.OutcomeApplied, v1alpha1.ReasonAppliedInPart,
			fmt.Sprintf("Applied in part: %d of %d changes were made. %s left out, as the approval says.",
				counts.Done, counts.Total+counts.Blocked,
				changes.Counted(int(counts.Blocked), "is blocked and was", "are blocked and were"))}
	case cancelled && len(stale) == 0:
		// A change may have failed because the watcher asked the provider to stop. The message has the number of
		// failures.
		o.name, o.reason = workflows.OutcomeCancelled, v1alpha1.ReasonCancelled
	case len(stale) == int(counts.Failed):
		o.name, o.reason = workflows.OutcomeStale, v1alpha1.ReasonStale
	default:
		o.name, o.reason = workflows.OutcomeFailed, v1alpha1.ReasonApplyFailed
	}
	o.message = incompleteText(po, work, stale)
	if !begun && len(stale) > 0 {
		o.message = fmt.Sprintf("Nothing was applied: %s. Make a new plan.", changes.ListObstacles(stale))
	}
	return o
}

// incompleteText counts the changes that were made and those that were not.
func incompleteText(po *v1alpha1.Plan, work *changes.Stored, stale []changes.Obstacle) string {
	counts, unknown := work.Progress(), unknownOutcomes(work)
	notMade := fmt.Sprintf("%d failed", int(counts.Failed)-len(stale)-len(unknown))
	if len(unknown) > 0 { // the provider may have made them
		notMade += fmt.Sprintf(", the outcome of %d is unknown", len(unknown))
	}
	if len(stale) > 0 {
		notMade += fmt.Sprintf(", %d stale", len(stale))
	}
	return fmt.Sprintf("%d of %d changes were made, %s, %d were not tried.%s %s",
		counts.Done, counts.Total, notMade, counts.Skipped, notMadeText(po, work), nextStepText(po, unknown))
}

// skipPending marks the changes that are pending or running as skipped. It returns the stale changes.
func (a *Applier) skipPending(ctx context.Context, po *v1alpha1.Plan, work *changes.Stored,
	cancelled bool) ([]changes.Obstacle, error) {
	var stale []changes.Obstacle
	stopped := work.StoppedRollouts(po)
	for i := range work.Changes {
		c := &work.Changes[i]
		if c.NoSteps {
			continue
		}
		if c.State == v1alpha1.ChangePending || c.State == v1alpha1.ChangeRunning {
			why := ""
			if c.Rolled {
				why = stopped[c.Object.SetUID]
			}
			if err := a.skip(ctx, po, i, work, cancelled, why); err != nil {
				return nil, err
			}
		}
		if c.State == v1alpha1.ChangeStale {
			stale = append(stale, changes.Obstacle{Address: c.Address, Why: whyFailed(c)})
		}
	}
	return stale, nil
}

// notMadeText names the changes that were not made, and the command that shows why.
func notMadeText(po *v1alpha1.Plan, w *changes.Stored) string {
	text := halfReplaced(w) + failures(w)
	if unknown := unknownOutcomes(w); len(unknown) > 0 {
		var names []changes.Obstacle
		for _, c := range unknown {
			names = append(names, changes.Obstacle{Address: c.Address})
		}
		text += " Outcome unknown: " + changes.ListObstacles(names) + "."
	}
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%s To see why: kubectl hykube status %s -n %s.", text, po.Name, po.Namespace)
}

// unknownOutcomes returns the changes that were begun and whose outcome is unknown.
func unknownOutcomes(w *changes.Stored) []*changes.StoredChange {
	var unknown []*changes.StoredChange
	for i := range w.Changes {
		if c := &w.Changes[i]; c.State == v1alpha1.ChangeUnknown {
			unknown = append(unknown, c)
		}
	}
	return unknown
}

// nextStepText returns the next step after a plan that was not applied completely. Plans fail because of a create with
// an unknown outcome, but not because of an action.
func nextStepText(po *v1alpha1.Plan, unknown []*changes.StoredChange) string {
	isCreate := func(c *changes.StoredChange) bool { return c.Action != v1alpha1.ActionInvoke }
	if !slices.ContainsFunc(unknown, isCreate) {
		return "Make a new plan for the rest."
	}
	flags := changes.ResolveFlags(unknown[0].Object)
	for _, c := range unknown {
		if all := changes.ResolveFlags(c.Object); len(all) > len(flags) {
			flags = all
		}
	}
	return fmt.Sprintf("Check whether the resources with an unknown outcome exist. Then: kubectl hykube resolve KIND/NAME %s -n %s. "+
		"Before that, a plan fails unless it leaves them out with --exclude.", flags, po.Namespace)
}

// failures names the first few failed changes.
func failures(w *changes.Stored) string {
	var text []changes.Obstacle
	for i := range w.Changes {
		switch c := &w.Changes[i]; c.State {
		case v1alpha1.ChangeFailed, v1alpha1.ChangeStale:
			if !halfFailed(c.HalfDone, c.State) {
				text = append(text, changes.Obstacle{Address: c.Address, Why: whyFailed(c)})
			}
		}
	}
	if len(text) == 0 {
		return ""
	}
	return " Not made: " + changes.ListObstacles(text) + "."
}

// halfReplaced names the replacements of which one half alone succeeded.
func halfReplaced(w *changes.Stored) string {
	var destroyed, created []changes.Obstacle
	left := map[v1alpha1.LeftInstance][]changes.Obstacle{}
	for i := range w.Changes {
		switch c := &w.Changes[i]; {
		case !halfFailed(c.HalfDone, c.State):
		case c.Left != "":
			left[c.Left] = append(left[c.Left], changes.Obstacle{Address: c.Address, Why: whyFailed(c)})
		case c.CreateBeforeDestroy:
			created = append(created, changes.Obstacle{Address: c.Address, Why: whyFailed(c)})
		default:
			destroyed = append(destroyed, changes.Obstacle{Address: c.Address, Why: whyFailed(c)})
		}
	}
	text := ""
	if n := len(destroyed); n > 0 {
		text += fmt.Sprintf(" %d destroyed and not created again: %s; the next plan creates %s.", n,
			changes.ListObstacles(destroyed), pronoun(n))
	}
	for _, l := range []v1alpha1.LeftInstance{v1alpha1.LeftTainted, v1alpha1.LeftUnchecked} {
		if n := len(left[l]); n > 0 {
			text += fmt.Sprintf(" %d destroyed, and the new instance %s: %s.", n, newInstanceText(l),
				changes.ListObstacles(left[l]))
		}
	}
	if n := len(created); n > 0 {
		text += fmt.Sprintf(" %d replaced, but the old instance still exists: %s; the next plan destroys %s.", n,
			changes.ListObstacles(created), pronoun(n))
	}
	return text
}

func pronoun(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// newInstanceText describes the new instance that a failed replacement left.
func newInstanceText(l v1alpha1.LeftInstance) string {
	if l == v1alpha1.LeftTainted {
		return "exists and is tainted, so the next plan replaces it"
	}
	return "exists, but a postcondition failed; the next plan checks it again"
}

// halfFailed reports whether the second half of a replacement failed or was not tried.
func halfFailed(halfDone bool, state v1alpha1.ChangeState) bool {
	return halfDone && state == v1alpha1.ChangeFailed
}

// whyFailed returns the reason for a change that was not made. It returns "" if the change has diagnostics: their text
// may have values of the object, and not every reader of plans may get it.
func whyFailed(c *changes.StoredChange) string {
	if c.Diagnosed {
		return ""
	}
	return strings.TrimSuffix(c.Message, ".")
}

// skip records that a change was not attempted, or not finished. stopped is why the rollout of its set stopped; empty
// if it did not.
func (a *Applier) skip(ctx context.Context, po *v1alpha1.Plan, i int, w *changes.Stored, cancelled bool,
	stopped string) error {
	c := &w.Changes[i]
	state, reason, message := v1alpha1.ChangeSkipped, v1alpha1.ReasonSkipped, ""
	blockers := w.Blockers(c)
	switch {
	case cancelled:
		reason, message = v1alpha1.ReasonCancelled, "the plan was cancelled before it was tried"
	case len(blockers) > 0:
		message = blockersText(c, blockers)
	case stopped != "":
		message = stopped
	case po.Status.Progress == nil:
		message = "no change of the plan was applied"
	default:
		message = "a change that it depends on did not succeed"
	}
	text := "Not tried: " + message + "."
	if c.HalfDone {
		if cancelled {
			message = "the plan was cancelled"
		}
		state, reason = v1alpha1.ChangeFailed, v1alpha1.ReasonReplaceIncomplete
		text = replaceIncompleteText(c.CreateBeforeDestroy, c.DeposedKey, message+".")
	}
	c, err := w.Edit(ctx, a.Ledger, po.UID, i, func(c *ledger.Change) {
		c.State, c.Message, c.FinishedAt = state, message, changes.Now()
	})
	if err != nil {
		return err
	}
	a.Metrics.Step(string(c.Action), string(c.State))
	return a.stall(ctx, c, reason, text)
}

// blockersText names the dependencies of a change that were not done.
func blockersText(c *changes.StoredChange, blockers []*changes.StoredChange) string {
	refers := func(b *changes.StoredChange) bool { return slices.Contains(b.Requires, c.Address) }
	first := refers(blockers[0])
	var names []string
	more := 0
	for _, b := range blockers {
		switch {
		case refers(b) != first:
		case len(names) == maxBlockers:
			more++
		case !slices.Contains(names, b.Address): // a replace and its deposed instance have the same address
			names = append(names, b.Address)
		}
	}
	list := changes.List(names, more)
	switch {
	case first && len(names) == 1:
		return list + " depends on it, and its change must succeed first"
	case first:
		return list + " depend on it, and their changes must succeed first"
	case len(names) == 1:
		return "it depends on " + list + ", whose change did not succeed"
	default:
		return "it depends on " + list + ", whose changes did not succeed"
	}
}

// maxBlockers is the maximum number of changes in the message of a skipped one.
const maxBlockers = 3

// replaceIncompleteText describes a replacement whose first half alone is done.
func replaceIncompleteText(createBeforeDestroy bool, deposed, why string) string {
	if createBeforeDestroy {
		return fmt.Sprintf("The new instance was created, and the old one (deposed %s) is still there; the next plan destroys it. %s", deposed, why)
	}
	return "The old instance was destroyed, and the new one was not created; the next plan creates it. " + why
}
