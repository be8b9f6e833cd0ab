package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/workflows"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
)

// This file ends the apply of a plan: it records what was read, tells the objects that were skipped, and sums up.

// maxNamed is how many changes a condition names.
const maxNamed = 5

// Finish records how the applying of a plan ended, for the plan and for the changes that were not tried.
func (a *Activities) Finish(ctx context.Context, f workflows.Finish) (workflows.Finished, error) {
	defer heartbeat(ctx)()
	a.progress.end(f.Plan)
	po, err := a.plan(ctx, f.Plan)
	if err != nil {
		return workflows.Finished{}, err
	}
	if po.Ended() && po.Status.Progress == nil {
		return workflows.Finished{Outcome: workflows.OutcomeRefused}, nil
	}
	work, err := a.loadWork(ctx, po.UID)
	if err != nil {
		return workflows.Finished{}, err
	}
	// A lane hears of a cancel through the object, which may be before the workflow gets the signal.
	cancelled := f.Cancelled || po.Status.Cancel != nil
	begun := slices.ContainsFunc(work.changes, func(c *ledger.Change) bool { return c.StartedAt != nil })
	var stale []Obstacle
	for _, c := range work.changes {
		if changesNothing(c) {
			continue
		}
		if c.State == v1alpha1.ChangePending || c.State == v1alpha1.ChangeRunning {
			if err := a.skip(ctx, po, c, work, cancelled); err != nil {
				return workflows.Finished{}, err
			}
		}
		if c.State == v1alpha1.ChangeStale {
			stale = append(stale, Obstacle{c.Address, c.Message})
		}
	}
	counts := work.progress()
	finished := workflows.Finished{Done: int(counts.Done), Failed: int(counts.Failed), Skipped: int(counts.Skipped)}
	err = a.Plans.UpdateStatus(ctx, f.Plan.Namespace, f.Plan.Name, uidOf(f.Plan), func(s *v1alpha1.PlanStatus) {
		c := &s.Conditions
		g := po.Generation
		s.Progress = &counts
		if s.FinishedAt == nil { // or an earlier attempt got as far as this
			s.FinishedAt = now()
		}
		if len(stale) > 0 {
			condition.Set(c, g, v1alpha1.ConditionStale, true, v1alpha1.ReasonStale, someOf(stale))
		}
		var reason, message string
		switch {
		case counts.Failed == 0 && counts.Skipped == 0:
			finished.Outcome = workflows.OutcomeApplied
			reason, message = v1alpha1.ReasonApplied, fmt.Sprintf("%d of %d changes were made.", counts.Done, counts.Total)
			if counts.Blocked > 0 {
				reason = v1alpha1.ReasonAppliedInPart
				message = fmt.Sprintf("Applied in part: %d of %d changes were made. %s left out, as the approval says.",
					counts.Done, counts.Total+counts.Blocked, counted(int(counts.Blocked), "is blocked and was", "are blocked and were"))
			}
			condition.Set(c, g, v1alpha1.ConditionApplied, true, reason, message)
			condition.Ready(c, g, reason, message)
			return
		case cancelled && len(stale) == 0:
			// What failed may have failed because the provider was asked to stop; the message counts it.
			finished.Outcome, reason = workflows.OutcomeCancelled, v1alpha1.ReasonCancelled
		case len(stale) == int(counts.Failed):
			finished.Outcome, reason = workflows.OutcomeStale, v1alpha1.ReasonStale
		default:
			finished.Outcome, reason = workflows.OutcomeFailed, v1alpha1.ReasonApplyFailed
		}
		switch {
		case !begun && len(stale) > 0:
			message = fmt.Sprintf("Nothing was applied: %s. Make a new plan.", someOf(stale))
		default:
			message = fmt.Sprintf("%d of %d changes were made, %d failed, %d were not tried.%s%s Make a new plan for the rest.",
				counts.Done, counts.Total, counts.Failed, counts.Skipped, halfReplaced(work), failures(work))
		}
		condition.Set(c, g, v1alpha1.ConditionApplied, false, reason, message)
		condition.Stalled(c, g, reason, message)
	})
	return finished, err
}

// keepRefreshed records what was read of a resource that the plan leaves alone, as the apply of a Terraform plan does: what
// refers to it was planned with that, and every refresh would find the same drift anew.
func (a *Activities) keepRefreshed(ctx context.Context, planUID types.UID, c *ledger.Change) error {
	if !recordsRefresh(c) {
		return nil
	}
	rec, err := a.Ledger.Instance(ctx, c.Object)
	if err != nil || rec.Intent != nil || rec.Digest() != c.Preconditions.State {
		return err // somebody knows more by now
	}
	rec.State, rec.Plan = *c.Refreshed, planUID
	if err := a.Ledger.Save(ctx, rec); err != nil {
		if errors.Is(err, ledger.ErrConflict) {
			return nil
		}
		return err
	}
	obj, err := a.Objects.Get(ctx, c.Object)
	if err != nil {
		if errors.Is(err, ErrGone) {
			return nil
		}
		return err
	}
	r, err := resourceOf(obj, a.Catalog)
	if err != nil {
		return err
	}
	v, err := instance.Recorded(&rec.State, r.schema)
	if err != nil {
		return err
	}
	return a.writeStatus(ctx, c.Object, func(s *status) {
		s.attributes = plan.Attributes(r.schema.Block, v)
		meta.RemoveStatusCondition(&s.conditions, v1alpha1.ConditionDrifted)
	})
}

// recordsRefresh says whether all that the apply does about a change is to record what was read.
func recordsRefresh(c *ledger.Change) bool {
	return changesNothing(c) && c.Mode == "" && c.State == v1alpha1.ChangePending && c.Refreshed.Exists()
}

// failures names what failed, the first few in full.
func failures(w *work) string {
	var text []Obstacle
	for _, c := range w.changes {
		switch c.State {
		case v1alpha1.ChangeFailed, v1alpha1.ChangeStale, v1alpha1.ChangeUnknown:
			if !halfMade(c) {
				text = append(text, Obstacle{c.Address, whyFailed(c)})
			}
		}
	}
	if len(text) == 0 {
		return ""
	}
	return " " + someOf(text) + "."
}

// halfReplaced names the replacements that ended between their destroy and their create.
func halfReplaced(w *work) string {
	var destroyed, created []Obstacle
	for _, c := range w.changes {
		switch {
		case !halfMade(c):
		case c.CreateBeforeDestroy:
			created = append(created, Obstacle{c.Address, whyFailed(c)})
		default:
			destroyed = append(destroyed, Obstacle{c.Address, whyFailed(c)})
		}
	}
	text := ""
	if n := len(destroyed); n > 0 {
		text += fmt.Sprintf(" %d destroyed and not created again: %s; the next plan creates %s.", n, someOf(destroyed), pronoun(n))
	}
	if n := len(created); n > 0 {
		text += fmt.Sprintf(" %d replaced with the old instance left: %s; the next plan destroys %s.", n, someOf(created), pronoun(n))
	}
	return text
}

func pronoun(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// halfMade says whether a replacement ended between its destroy and its create.
func halfMade(c *ledger.Change) bool { return c.HalfDone && c.State == v1alpha1.ChangeFailed }

func whyFailed(c *ledger.Change) string {
	why := c.Message
	if c.State == v1alpha1.ChangeFailed {
		why = cmp.Or(describe(c.Diagnostics), why)
	}
	return strings.TrimSuffix(why, ".")
}

// blocker finds a change that kept another from being tried, preferring one that was tried itself.
func (w *work) blocker(c *ledger.Change) (blocker *ledger.Change) {
	for _, i := range w.stepsOf[c.Index] {
		for _, d := range w.steps[i].DependsOn {
			dep := w.changes[w.steps[d].Change]
			switch {
			case dep == c || dep.State == v1alpha1.ChangeDone:
			case blocker == nil || dep.State != v1alpha1.ChangeSkipped && dep.State != v1alpha1.ChangePending:
				blocker = dep
			}
		}
	}
	return blocker
}

// skip records that a change was not tried, or not tried to its end.
func (a *Activities) skip(ctx context.Context, po *v1alpha1.Plan, c *ledger.Change, w *work, cancelled bool) error {
	c.State, c.FinishedAt = v1alpha1.ChangeSkipped, now()
	reason := v1alpha1.ReasonSkipped
	blocker := w.blocker(c)
	switch {
	case cancelled:
		reason, c.Message = v1alpha1.ReasonCancelled, "the plan was cancelled before it was tried"
	case blocker != nil && slices.Contains(blocker.Requires, c.Address):
		c.Message = fmt.Sprintf("%s refers to it and must go first, and was not done", blocker.Address)
	case blocker != nil:
		c.Message = fmt.Sprintf("it has to wait for %s, which was not done", blocker.Address)
	case po.Status.Progress == nil:
		c.Message = "nothing of the plan was applied"
	default:
		c.Message = "something that it depends on was not done"
	}
	text := "Not tried: " + c.Message + "."
	if c.HalfDone {
		if cancelled {
			c.Message = "the plan was cancelled"
		}
		c.State, reason, text = v1alpha1.ChangeFailed, v1alpha1.ReasonReplaceIncomplete, halfText(c, c.Message+".")
	}
	if err := a.Ledger.SaveChange(ctx, po.UID, c); err != nil {
		return err
	}
	return a.writeStatus(ctx, c.Object, func(s *status) {
		if !s.good() {
			s.stall(c.Object.Generation, reason, text)
		}
	})
}

// halfText describes a replacement of which only the first half was made.
func halfText(c *ledger.Change, why string) string {
	if c.CreateBeforeDestroy {
		return fmt.Sprintf("The new instance was created, and the old one (deposed %s) is still there; the next plan destroys it. %s", c.DeposedKey, why)
	}
	return "The old instance was destroyed, and the new one was not created; the next plan creates it. " + why
}
