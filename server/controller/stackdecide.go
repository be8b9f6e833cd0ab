package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/activities/planning"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/store"
)

// This file decides the next step of a stack. The decision does no I/O.

// stackState is the input of the decision about a stack.
type stackState struct {
	stack *v1alpha1.Stack
	// last is the last plan that the stack made; nil if it made none. plan is that plan, or nil if it was removed.
	last *v1alpha1.StackPlan
	plan *v1alpha1.Plan
	// allowed is true if a policy refused the plan when it was made, and none refuses it now.
	allowed bool
	// selected has the selected resources, and changedAt is the time at which the server first saw their current
	// contents. spec is the spec of the plan that the stack needs now.
	// changedFrom is the time at which the contents changed to them from others; zero if the server saw no others.
	selected               *planning.Selection
	changedAt, changedFrom time.Time
	// changedSince is true if the server saw them change to the current ones after the end of the last plan.
	changedSince bool
	spec         v1alpha1.PlanSpec
	// notBefore is the time before which the stack makes no plan that may follow from applies of stacks; see
	// Stacks.notBefore.
	notBefore time.Time
	// others are the plans of the namespace that the stack did not make, or made earlier, and that have not ended.
	others []*v1alpha1.Plan
	// covering is a plan of a user that awaits approval, or is being applied, and has each change that the stack needs;
	// nil if there is none.
	covering *v1alpha1.Plan
	// overlaps is the name of an older stack that selects some of the same resources; empty if there is none.
	overlaps string
	// waits is the message about the stack that this one waits for; empty if it waits for none.
	waits string
	// missing is the right that the author lacks to make plans, or to start the workflow; empty if there is none.
	missing string
	// unknown is true if the author lacks that right because the token file names the author no more.
	unknown bool
	// run is the last run of the stack's workflow; nil if there is none.
	run *stackRun
	now time.Time
}

// stackStep is the decision about a stack.
type stackStep struct {
	// set sets the conditions.
	set             func(conditions *[]metav1.Condition, generation int64, reason, message string)
	reason, message string
	// make is true if the server must make a plan or start the workflow. attempt is the number of the plan among those
	// of the same contents. trigger is the reason, and request is the ID of the scheduled time or the drift check that
	// caused it.
	make    bool
	attempt int32
	trigger v1alpha1.PlanTrigger
	request string
	// discard is the reason why the open plan must end; empty if it stays.
	discard string
	// after is the time after which the server decides again, even if nothing happens; 0 means never.
	after time.Duration
	// good is true if the infrastructure of all resources matches the specs.
	good bool
}

func (n *stackStep) stall(reason, message string) {
	n.set, n.reason, n.message, n.make = condition.Stalled, reason, message, false
}

func wait(reason, format string, args ...any) stackStep {
	return stackStep{set: condition.Waiting, reason: reason, message: fmt.Sprintf(format, args...)}
}

func work(reason, format string, args ...any) stackStep {
	return stackStep{set: condition.Reconciling, reason: reason, message: fmt.Sprintf(format, args...)}
}

func stall(reason, format string, args ...any) stackStep {
	return stackStep{set: condition.Stalled, reason: reason, message: fmt.Sprintf(format, args...)}
}

// busy reports whether the last plan is being made or applied.
func (s *stackState) busy() bool { return s.plan != nil && !s.plan.Ended() && !waits(s.plan) }

// covers reports whether the last plan was made for the current contents of the stack.
func (s *stackState) covers() bool { return s.last != nil && s.last.Contents == s.selected.Contents }

// stale reports whether the plan that waits cannot be approved as a whole any more, because of a write after planning.
func (s *stackState) stale() bool {
	reason, _ := readyOf(s.plan)
	return reason == v1alpha1.ReasonStale
}

// decide returns the next step.
func (s *stackState) decide() stackStep {
	switch {
	case s.busy():
		reason, message := readyOf(s.plan)
		if reason == v1alpha1.ReasonRolloutPaused && !s.covers() {
			message += fmt.Sprintf(" The stack has changed since, and makes its next plan after this one. To end this one now: kubectl hykube cancel %s -n %s.", s.plan.Name, s.plan.Namespace)
		}
		return work(reason, "Plan %s: %s", s.plan.Name, message)
	case s.run.running():
		return s.running()
	}
	open := s.plan != nil && !s.plan.Ended()
	if s.overlaps != "" {
		return stall(v1alpha1.ReasonSelectorOverlaps,
			"The stack %s, which is older, selects some of the same resources. "+
				"Change a selector or labels, so that each resource is in one stack.", s.overlaps)
	}
	if id := s.scheduled(); id != "" {
		return s.next(stackPlan{trigger: v1alpha1.TriggerSchedule, request: id})
	}
	if s.stack.Spec.Workflow != nil {
		return s.decideRun()
	}
	if open && s.covers() && (s.allowed || s.stale()) && !s.stack.Spec.Suspend {
		return s.next(stackPlan{trigger: s.last.Trigger, request: s.last.Request})
	}
	// it may correct drift that no other plan has read
	if open && s.last.Trigger == v1alpha1.TriggerSchedule && s.covers() {
		return s.awaiting()
	}
	if s.matchesSpecs() {
		step := s.ready()
		if open {
			step.discard = "Discarded, because the infrastructure of the stack's resources now matches their specs."
		}
		return step
	}
	correction := s.correction()
	switch {
	case correction != "":
		return s.next(stackPlan{trigger: v1alpha1.TriggerDrift, request: correction})
	case open && s.stack.Spec.Suspend:
		return s.awaiting()
	case open && s.covers() && sameStackPlan(s.plan.Spec, s.specFor(s.last.Trigger)):
		if s.driftedSince() {
			return s.next(stackPlan{trigger: s.last.Trigger, request: s.last.Request})
		}
		return s.awaiting()
	case s.onlyDrifted() && !(s.covers() && failed(s.last.Reason)):
		return s.drifted()
	case !open && s.covers():
		return s.decideAgain()
	}
	return s.next(stackPlan{settle: true})
}

// ready returns the step for a stack whose infrastructure matches the specs.
func (s *stackState) ready() stackStep {
	step := stackStep{set: condition.Ready, reason: v1alpha1.ReasonApplied, good: true,
		message: fmt.Sprintf("The infrastructure of %s matches the spec.", counted(s.selected.Resources))}
	if s.selected.Resources == 0 {
		step.message = "The stack selects no resource."
	}
	step.message += s.checkProblem()
	return step
}

// specFor returns the spec of a plan that the stack makes for a reason.
func (s *stackState) specFor(trigger v1alpha1.PlanTrigger) v1alpha1.PlanSpec {
	spec := s.spec
	// A plan after an edit corrects recorded drift, too.
	if d := s.stack.Spec.Drift; d != nil && d.Action == v1alpha1.DriftPlan &&
		(trigger == v1alpha1.TriggerDrift || len(s.selected.Drifted) > 0) {
		spec.Approval = v1alpha1.ApprovalManual
	}
	return spec
}

// scheduled returns the ID of the scheduled time for which the stack has not made a plan; "" if there is none.
func (s *stackState) scheduled() string {
	due := s.stack.Status.Scheduled
	if s.selected.Resources == 0 { // a plan whose selector selects nothing fails
		return ""
	}
	if due == nil || due.Skipped || s.last != nil && s.last.Request == due.ID || s.stack.Spec.Suspend ||
		!s.triggeredBy(v1alpha1.TriggerSchedule) {
		return ""
	}
	if s.run != nil && (s.run.Request == due.ID || s.run.StartedAt.After(due.At.Time)) {
		return ""
	}
	if s.last != nil && s.plan != nil && s.plan.CreationTimestamp.After(due.At.Time) {
		return "" // a later plan read the same resources
	}
	if s.stillWaits() || s.covers() && s.plan != nil && s.plan.Status.StalledFor() == v1alpha1.ReasonDiscarded &&
		s.plan.Status.FinishedAt.After(due.At.Time) {
		return "" // a person reads, or read at that time, a plan with the same changes
	}
	return due.ID
}

// stillWaits reports whether the last plan waits for a person, and a plan of now would have the same changes. A plan
// that reads all resources may have others.
func (s *stackState) stillWaits() bool {
	return s.plan != nil && waits(s.plan) && s.covers() && !s.stale() && !s.allowed &&
		s.spec.Refresh != v1alpha1.RefreshAll &&
		sameStackPlan(s.plan.Spec, s.specFor(s.last.Trigger))
}

func (s *stackState) triggeredBy(trigger v1alpha1.PlanTrigger) bool {
	return slices.Contains(s.stack.Spec.Plan.Triggers, trigger)
}

// correction returns the ID of the drift check for whose drift the stack must make a plan; "" if there is none.
func (s *stackState) correction() string {
	drift, status := s.stack.Spec.Drift, s.stack.Status.Drift
	if drift == nil || drift.Action == v1alpha1.DriftReport || status == nil || status.Last == nil ||
		len(s.selected.Drifted) == 0 {
		return ""
	}
	switch last := status.Last; {
	case last.Outcome == v1alpha1.DriftFailed, s.stack.Spec.Suspend, s.last != nil && s.last.Request == last.ID:
		return ""
	case status.Running != nil:
		return "" // one plan corrects all drift that the check finds
	case s.halted():
		return ""
	case s.plan != nil && last.EndedAt != nil && s.plan.CreationTimestamp.After(last.EndedAt.Time):
		return "" // it was made with the drift
	case s.plan != nil && !s.plan.Ended() && s.last.Trigger == v1alpha1.TriggerDrift && last.Drifted == 0:
		return "" // the plan that waits corrects all drift
	default:
		return last.ID
	}
}

// halted reports whether the last plan of the same contents and spec failed, so that spec.onError determines the next
// step.
func (s *stackState) halted() bool {
	return s.last != nil && s.covers() && s.last.StackGeneration == s.stack.Generation &&
		(s.last.Reason == v1alpha1.ReasonPlanFailed || s.last.Reason == v1alpha1.ReasonApplyFailed)
}

// onlyDrifted reports whether drift is the only reason why infrastructure does not match its spec.
func (s *stackState) onlyDrifted() bool {
	selected := s.selected
	return len(selected.Drifted) > 0 && len(selected.Missing)+len(selected.Edited)+len(selected.Unread)+
		len(selected.Faulty)+len(selected.Failed) == 0
}

// matchesSpecs reports whether the infrastructure of all selected resources matches the specs. A successful plan of the
// same contents proves that, even for objects that it did not need to change.
func (s *stackState) matchesSpecs() bool {
	selected, ended := s.selected, ""
	switch {
	case s.stack.Spec.Workflow != nil:
		ended = s.run.planned(s)
	case s.covers() && s.last.Ended:
		ended = s.last.Reason
	}
	switch {
	case len(selected.Missing)+len(selected.Faulty)+len(selected.Drifted) > 0:
		return false
	case ended == v1alpha1.ReasonNoChanges:
		return true
	case ended == v1alpha1.ReasonApplied:
		return len(selected.Failed) == 0
	}
	return len(selected.Edited)+len(selected.Unread)+len(selected.Failed) == 0
}

// sameStackPlan reports whether two plans of a stack have the same spec, apart from its defaults. It ignores the
// targets, because the contents determine them.
func sameStackPlan(a, b v1alpha1.PlanSpec) bool {
	a.Targets, b.Targets = nil, nil
	return equality.Semantic.DeepEqual(a, b)
}

// awaiting returns the step for a plan that waits for a decision.
func awaiting(p *v1alpha1.Plan) stackStep {
	reason, message := readyOf(p)
	if reason == v1alpha1.ReasonAwaitingApproval {
		return wait(reason, "Plan %s waits for approval: %s To approve it: %s.", p.Name, diag.Sentence(message),
			v1alpha1.ApproveCommand(p.Name, p.Namespace, p.Status.Digest))
	}
	return stall(reason, "Plan %s: %s", p.Name, message)
}

// awaiting returns the step for the stack's own plan that waits for a decision. If the stack is Automatic and made the
// plan without automatic approval, the message says why; see specFor and planSpec.
func (s *stackState) awaiting() stackStep {
	step := awaiting(s.plan)
	if step.reason == v1alpha1.ReasonPolicyDenied {
		step.message = diag.Sentence(step.message) + s.whenAllowed()
		return step
	}
	if step.reason != v1alpha1.ReasonAwaitingApproval || s.stack.Spec.Approval != v1alpha1.ApprovalAutomatic ||
		s.plan.Spec.Approval != v1alpha1.ApprovalManual {
		return step
	}
	switch d := s.stack.Spec.Drift; {
	case s.selected.Destroys:
		step.message += " It waits although spec.approval of the stack is Automatic: it destroys a resource outside of the stack."
	case d != nil && d.Action == v1alpha1.DriftPlan:
		step.message += " It waits although spec.approval of the stack is Automatic: it corrects drift, and spec.drift.action is Plan."
	}
	return step
}

// awaitingUser returns the step for a stack whose changes are in a plan of a user.
func (s *stackState) awaitingUser() stackStep {
	if isApplied(s.covering) {
		return work(v1alpha1.ReasonDeferred, "Waiting for the end of plan %s, which changes the same resources.",
			s.covering.Name)
	}
	step := awaiting(s.covering)
	step.message = fmt.Sprintf("%s The plan is not one of the stack, which makes its own if that one ends or becomes stale.", step.message)
	return step
}

// whenAllowed tells what happens to the plan, which a policy refuses, when none refuses it any more.
func (s *stackState) whenAllowed() string {
	if s.plan.Spec.Approval != v1alpha1.ApprovalAutomatic {
		return " When no policy refuses it any more, it waits for an approval."
	}
	if s.stack.Spec.Suspend {
		return " The stack is suspended, so it makes no other plan when no policy refuses this one any more."
	}
	return " When no policy refuses it any more, the stack makes the plan again, and that one approves itself."
}

// resolved reports whether users resolved all unknown outcomes of creates that the last plan left.
func (s *stackState) resolved() bool { return s.last.UnknownCreates > 0 && len(s.selected.Lost) == 0 }

// unknownCreates returns the number of creates whose outcome was unknown after the last plan. before is the number
// known so far. While another plan is applied, a create without a recorded outcome may be in progress.
func (s *stackState) unknownCreates(before int32) int32 {
	if s.selected == nil || !s.last.Ended || slices.ContainsFunc(s.others,
		func(p *v1alpha1.Plan) bool { return !waits(p) }) {
		return before
	}
	return max(before, int32(len(s.selected.Lost)))
}

// decideAgain decides about a stack whose last plan has ended for the same contents, although some infrastructure does
// not match its spec.
func (s *stackState) decideAgain() stackStep {
	if s.stack.Generation > s.last.StackGeneration {
		return s.next(stackPlan{settle: true})
	}
	if s.resolved() {
		return s.next(stackPlan{settle: true})
	}
	switch s.last.Reason {
	case v1alpha1.ReasonSuperseded:
		if by := s.sameScope(); by != nil {
			return wait(v1alpha1.ReasonSuperseded,
				"Plan %s of the same resources, which the stack did not make, has not ended: decide on it.", by.Name)
		}
		return s.next(stackPlan{})
	case v1alpha1.ReasonDiscarded:
		// A user decided on the plan, or the stack discarded it because the change was reverted. Now the change was
		// made again.
		if s.plan != nil && (s.plan.Status.Approval == nil || s.madeAgain()) {
			return s.next(stackPlan{settle: true})
		}
	case v1alpha1.ReasonCancelled:
		if s.plan != nil && s.madeAgain() {
			return s.next(stackPlan{settle: true})
		}
	case v1alpha1.ReasonDeferred:
		return s.afterDeferral()
	case v1alpha1.ReasonPlanFailed, v1alpha1.ReasonApplyFailed, v1alpha1.ReasonStale:
		if step, ok := s.retry(); ok {
			return step
		}
	case v1alpha1.ReasonApplied, v1alpha1.ReasonNoChanges:
		return stall(v1alpha1.ReasonDrifted,
			"%s was applied, but does not match its spec now: kubectl get resources shows why. %s",
			named(s.selected.Pending()), s.untilNext())
	}
	switch {
	case s.plan == nil && !s.last.Ended:
		return stall(v1alpha1.ReasonDiscarded, "Plan %s was deleted before it ended. %s", s.last.Name, s.untilNext())
	case s.plan == nil:
		return stall(s.last.Reason, "Plan %s, which no longer exists, did not apply %s. %s", s.last.Name,
			named(s.selected.Pending()), s.untilNext())
	}
	if len(s.selected.Lost) > 0 {
		return stall(s.last.Reason, "Plan %s: %s %s", s.plan.Name, s.failure(),
			s.untilNext("when no create has an unknown outcome any more"))
	}
	return stall(s.last.Reason, "Plan %s: %s %s", s.plan.Name, s.failure(), s.untilNext())
}

// madeAgain reports whether the change of the last plan, which has ended, was taken back and made again since. The
// server may see the end later than that. Times of plans have a precision of a second, so the change for which the plan
// was made may be later than both.
func (s *stackState) madeAgain() bool {
	ended := s.plan.Status.FinishedAt
	return s.changedSince || ended != nil && s.changedFrom.After(ended.Time) &&
		s.changedFrom.After(s.plan.CreationTimestamp.Add(time.Second))
}

// sameScope returns a plan of the same resources that the stack did not make and that has not ended; nil if there is
// none.
func (s *stackState) sameScope() *v1alpha1.Plan {
	if s.plan == nil {
		return nil
	}
	at := slices.IndexFunc(s.others,
		func(p *v1alpha1.Plan) bool { return !p.Spec.Speculative && scope(p) == scope(s.plan) })
	if at < 0 {
		return nil
	}
	return s.others[at]
}

// afterDeferral decides about a stack whose last plan found that another plan was changing its resources.
func (s *stackState) afterDeferral() stackStep {
	if s.plan == nil || len(s.plan.Status.WaitsFor) == 0 {
		return stall(v1alpha1.ReasonDeferred, "Plan %s: a provider deferred the changes. %s", s.last.Name,
			s.untilNext())
	}
	for _, p := range s.others {
		if slices.ContainsFunc(s.plan.Status.WaitsFor, func(r v1alpha1.PlanReference) bool { return r.UID == p.UID }) {
			return work(v1alpha1.ReasonDeferred, "Waiting for the end of plan %s, which changes the same resources.",
				p.Name)
		}
	}
	return s.next(stackPlan{})
}

// retry decides about a stack whose last plan failed. ok is false if there is no further attempt.
func (s *stackState) retry() (step stackStep, ok bool) {
	retry := s.stack.Spec.Retry
	if s.stack.Spec.OnError != v1alpha1.OnErrorRetry || retry == nil || s.plan == nil ||
		s.plan.Status.FinishedAt == nil || s.last.Attempt >= retry.Times {
		return step, false
	}
	pause := maxBackoff
	if n := s.last.Attempt; n < 12 {
		pause = min(maxBackoff, retry.Backoff.Duration<<n)
	}
	attempt := s.last.Attempt + 1
	if left := s.plan.Status.FinishedAt.Add(pause).Sub(s.now); left > 0 {
		step = work(v1alpha1.ReasonRetrying,
			"Plan %s failed: %s The stack makes plan %d of %d for it %s after its end.",
			s.plan.Name, s.failure(), attempt, retry.Times, pause)
		step.after = left
		return step, true
	}
	return s.next(stackPlan{attempt: attempt, trigger: s.last.Trigger, request: s.last.Request}), true
}

// maxBackoff is the maximum pause before a plan is tried again.
const maxBackoff = time.Hour

// checkProblem returns the reason why a drift check of a stack waits or failed; "" if there is none.
func (s *stackState) checkProblem() string {
	switch d := s.stack.Status.Drift; {
	case d == nil || s.stack.Spec.Drift == nil:
		return ""
	case d.Running != nil && d.Running.Message != "":
		return " " + d.Running.Message
	case d.Running == nil && d.Last != nil && d.Last.Outcome == v1alpha1.DriftFailed:
		return " But the last drift check failed: " + d.Last.Message
	default:
		return ""
	}
}

// drifted returns the step for a stack whose drift no plan corrects.
func (s *stackState) drifted() stackStep {
	next := s.untilNext()
	if d := s.stack.Spec.Drift; d != nil && d.Action != v1alpha1.DriftReport {
		next = s.untilNext("after the next drift check")
	}
	return stall(v1alpha1.ReasonDrifted,
		"Changed outside of Hykube: %s. To see how: kubectl hykube drift %s -n %s. To correct it: kubectl hykube plan%s -n %s. %s",
		named(s.selected.Drifted), s.stack.Name, s.stack.Namespace, s.selectorFlag(), s.stack.Namespace, next)
}

// driftedSince reports whether a check recorded drift after the last plan was made, so that the plan is stale.
func (s *stackState) driftedSince() bool {
	status := s.stack.Status.Drift
	return status != nil && status.Last != nil && status.Last.Drifted > 0 &&
		s.plan.CreationTimestamp.Before(status.Last.EndedAt)
}

// stackPlan is the reason why a stack makes a plan.
type stackPlan struct {
	trigger v1alpha1.PlanTrigger
	request string
	attempt int32
	// settle is true if the plan must wait until the selected resources have stopped changing.
	settle bool
}

// timed reports whether a plan has a time of its own: that of a schedule, a drift check or a retry.
func timed(trigger v1alpha1.PlanTrigger, attempt int32) bool {
	return attempt > 0 || trigger == v1alpha1.TriggerSchedule || trigger == v1alpha1.TriggerDrift
}

// written returns a text that differs after each write of the stack or of its objects by a user, and after another
// version of a provider.
func (s *stackState) written() string { return fmt.Sprint(s.stack.Generation, " ", s.selected.Written) }

// mayLoop reports whether the next plan may follow from applies of stacks, by a new value of an output. before is what
// users had written at the last plan. The workflow of a stack may itself write objects, so each of its runs counts.
func (s *stackState) mayLoop(before string) bool {
	return s.stack.Spec.Workflow != nil || before == s.written()
}

// author returns the name of the author of the stack.
func (s *stackState) author() string {
	if by := s.stack.Status.Author; by != nil {
		return by.String()
	}
	return "an unknown user"
}

// missingRights returns the step for a stack whose author lacks a right.
func (s *stackState) missingRights() stackStep {
	needed := s.missing
	// its plans approve themselves
	if s.stack.Spec.Approval == v1alpha1.ApprovalAutomatic || s.stack.Spec.Drift != nil {
		needed += " and to approve plans.hykube.io"
	}
	if s.unknown {
		return stall(v1alpha1.ReasonMissingRights,
			"The author of the stack, %s, %s. A user with the right to %s in the namespace %q becomes the author with %s",
			s.author(), store.NotInTokenFile(*s.stack.Status.Author), needed, s.stack.Namespace, s.takeOver())
	}
	return stall(v1alpha1.ReasonMissingRights,
		"The author of the stack, %s, has no right to %s in the namespace %q. Give the right back, or let a user with the right to %s become the author: %s",
		s.author(), s.missing, s.stack.Namespace, needed, s.takeOver())
}

// takeOver returns the command that makes its user the author of the stack.
func (s *stackState) takeOver() string {
	return fmt.Sprintf("kubectl hykube stack takeover %s -n %s.", s.stack.Name, s.stack.Namespace)
}

// next returns the step that makes a plan, or the step of the condition that prevents it.
func (s *stackState) next(p stackPlan) stackStep {
	need, act := s.need(), s.act()
	switch left := s.changedAt.Add(s.stack.Spec.Plan.Settle.Duration).Sub(s.now); {
	case s.stack.Spec.Suspend:
		return wait(v1alpha1.ReasonSuspended, "%s, and the stack %s, because spec.suspend is true.", need, act.not)
	case s.missing != "":
		return s.missingRights()
	case s.waits != "":
		return wait(v1alpha1.ReasonAwaitingStack, "%s", s.waits)
	case s.selected.Beyond != nil && !s.selected.Destroys:
		return wait(v1alpha1.ReasonAwaitingDependency,
			"%s needs %s, which the stack does not select and which is not applied: apply that first, or give it the labels of the stack.",
			s.selected.For, s.selected.Beyond)
	case p.settle && !s.triggeredBy(v1alpha1.TriggerChange):
		return wait(v1alpha1.ReasonAwaitingSchedule, "%s. The stack %s at the next time of its schedule: %s.", need,
			act.next, s.stack.Spec.Plan.Schedule)
	case p.settle && s.covering != nil:
		return s.awaitingUser()
	case p.settle && left > 0:
		step := work(v1alpha1.ReasonSettling, "%s. The stack %s %s after the last change.", need, act.now,
			s.stack.Spec.Plan.Settle.Duration)
		step.after = left
		return step
	}
	if left := s.notBefore.Sub(s.now); left > 0 && !timed(p.trigger, p.attempt) {
		step := work(v1alpha1.ReasonSettling, "%s. The stack %s in %s, so it waits %s before the next. "+
			"If its resources refer to outputs that their own apply changes, remove that reference; spec.suspend stops the stack.", need, fmt.Sprintf(act.did, plansAtOnce), countedFor, left.Round(time.Second))
		step.after = left
		return step
	}
	step := work(act.reason, "The stack %s: %s.", act.now, need)
	if p.trigger == v1alpha1.TriggerSchedule {
		step = work(act.reason, "The stack %s at a time of its schedule: %s.", act.now, s.stack.Spec.Plan.Schedule)
	}
	step.make, step.attempt, step.trigger, step.request = true, p.attempt, p.trigger, p.request
	return step
}

// write sets the status of a stack.
func (s *stackState) write(status *v1alpha1.StackStatus, step stackStep) {
	status.ObservedGeneration = s.stack.Generation
	if s.last != nil {
		last := *s.last
		if old := status.Plan; old != nil && old.UID == last.UID {
			last.UnknownCreates = max(last.UnknownCreates, old.UnknownCreates)
		}
		last.UnknownCreates = s.unknownCreates(last.UnknownCreates)
		status.Plan = &last
	}
	if s.plan != nil && approvedByAnother(s.plan) {
		status.ApprovedGeneration = max(status.ApprovedGeneration, s.plan.Status.Stack.StackGeneration)
	}
	if s.run != nil && (status.Run == nil || s.run.Number >= status.Run.Number) { // the cache may be old
		status.Run = &s.run.StackRun
	}
	// Resources that are written after a time of the schedule wait for the next one.
	if due := s.stack.Status.Scheduled; s.selected != nil && s.selected.Resources == 0 && due != nil &&
		status.Scheduled != nil && status.Scheduled.ID == due.ID {
		status.Scheduled.Skipped = true
	}
	if s.selected != nil {
		status.Resources, status.Pending = int32(s.selected.Resources), int32(len(s.selected.Pending()))
		if step.good {
			status.Pending = 0
		}
		status.Contents = s.selected.Contents
	}
	step.set(&status.Conditions, s.stack.Generation, step.reason, step.message)
}

// waitsFor returns the message about the stack in spec.dependsOn that a stack waits for; "" if it waits for none.
func (c *Stacks) waitsFor(ctx context.Context, s *v1alpha1.Stack, stacks []*v1alpha1.Stack) (string, error) {
	for _, name := range s.Spec.DependsOn {
		at := slices.IndexFunc(stacks, func(o *v1alpha1.Stack) bool { return o.Name == name })
		if at < 0 {
			return fmt.Sprintf("Waiting for the stack %s, which does not exist: create it, or remove it from spec.dependsOn.", name), nil
		}
		other := stacks[at]
		selected, err := c.selection(ctx, other, stacks)
		if err != nil {
			return "", err
		}
		if !passed(other, selected) {
			reason := "Settling"
			if ready := meta.FindStatusCondition(other.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
				reason = ready.Reason
			}
			return fmt.Sprintf("Waiting for the stack %s, which is not Ready (%s).", name, reason), nil
		}
	}
	return "", nil
}

// passed reports whether stacks that depend on a stack can continue: it is Ready in its newest state, or its last plan
// failed and spec.onError is Continue.
func passed(s *v1alpha1.Stack, selected *planning.Selection) bool {
	if s.Status.ObservedGeneration != s.Generation || s.Status.Contents != selected.Contents {
		return false
	}
	if meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionReady) {
		return len(selected.Missing)+len(selected.Faulty)+len(selected.Failed) == 0
	}
	if r := s.Status.Run; s.Spec.Workflow != nil {
		return s.Spec.OnError == v1alpha1.OnErrorContinue && r != nil && r.Contents == selected.Contents &&
			runFailed(r.Outcome)
	}
	if p := s.Status.Plan; s.Spec.OnError == v1alpha1.OnErrorContinue && p != nil && p.Ended &&
		p.Contents == selected.Contents {
		return failed(p.Reason)
	}
	return false
}

// failed reports whether a reason means that a plan or its apply failed.
func failed(reason string) bool {
	return reason == v1alpha1.ReasonPlanFailed || reason == v1alpha1.ReasonApplyFailed || reason == v1alpha1.ReasonStale
}
