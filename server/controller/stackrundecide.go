package controller

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/sdk/steps"
)

// This file decides about a stack with a workflow. The decision does no I/O.

// stackRun is the last run of the workflow of a stack, with its plans.
type stackRun struct {
	v1alpha1.StackRun
	// plans are the plans of the run, the latest first. applied is true if another plan of the stack's resources
	// succeeded after the run.
	plans   []*v1alpha1.Plan
	applied bool
	// queue is the task queue, and idle is true if the run waits for a worker, and none polls the queue.
	queue string
	idle  bool
	// attempt is the number of the attempt of a worker to continue the workflow.
	attempt int32
	// again is the time after which the server looks for a worker again; 0 means never.
	again time.Duration
}

// running reports whether the run has not ended.
func (r *stackRun) running() bool { return r != nil && r.EndedAt == nil }

// made reports whether a plan of the stack's workflow is one of the run. known is false if that depends on first: the
// ID of the first run of the workflow that made the plan, or "" if Temporal does not know it. A run that continued as
// new made plans with the IDs of its earlier runs.
func (r *stackRun) made(p *v1alpha1.Plan, first string) (made, known bool) {
	// created is in whole seconds
	created, by := p.CreationTimestamp.Time, p.Annotations[v1alpha1.AnnotationWorkflowRunID]
	switch {
	case by != "" && (by == r.RunID || by == r.FirstRunID):
		return true, true
	case created.Before(r.StartedAt.Truncate(time.Second)):
		return false, true
	case first != "":
		return first == cmp.Or(r.FirstRunID, r.RunID), true
	}
	// The activity of an earlier run may make a plan after the start of this run. A cache may still have an ended run
	// as the last one when its successor has made a plan.
	return created.After(r.StartedAt.Time) && (r.running() || created.Before(r.EndedAt.Truncate(time.Second))), false
}

// failing reports whether workers repeatedly failed to continue the workflow, or did not answer.
func (r *stackRun) failing() bool { return r.attempt >= 3 }

// String names the run.
func (r *stackRun) String() string { return fmt.Sprintf("Workflow %s, run %s,", r.WorkflowID, r.RunID) }

// planned returns the reason with which the run's last plan of all resources of the stack ended; "" if there is none
// for the current contents.
func (r *stackRun) planned(s *stackState) string {
	if r == nil || r.Contents != s.selected.Contents {
		return ""
	}
	for _, p := range r.plans {
		if sameResources(p.Spec, s.spec) {
			if !p.Ended() {
				return ""
			}
			reason, _ := readyOf(p)
			return reason
		}
	}
	return ""
}

// discarded returns the latest plan that a person discarded before the run ended; nil if there is none. A workflow that
// gives up discards its plan itself, as the user who requested the plan.
func (r *stackRun) discarded() *v1alpha1.Plan {
	for _, p := range r.plans {
		a, requester := p.Status.Approval, p.Status.RequestedBy
		if a == nil || a.Decision != v1alpha1.DecisionDiscarded || a.By == nil || a.At == nil || r.EndedAt == nil ||
			a.At.After(r.EndedAt.Time) {
			continue
		}
		// The workflow of the author makes and discards plans through its worker.
		if requester == nil || requester.Username != a.By.Username || len(requester.Through) != len(a.By.Through) {
			return p
		}
	}
	return nil
}

// sameResources reports whether two plans select the same resources in the same way. It ignores refresh, approval,
// timestamp and shown.
func sameResources(a, b v1alpha1.PlanSpec) bool {
	a.Refresh, a.Approval, a.Timestamp, a.Shown = b.Refresh, b.Approval, b.Timestamp, b.Shown
	return (len(a.Targets) > 0) == (len(b.Targets) > 0) && sameStackPlan(a, b)
}

// runFailed reports whether a run ended without completing, except after a cancel.
func runFailed(o v1alpha1.RunOutcome) bool {
	return o == v1alpha1.RunFailed || o == v1alpha1.RunTimedOut || o == v1alpha1.RunTerminated || o == v1alpha1.RunLost
}

// covered reports whether the last run was started for the current contents and spec of the stack.
func (s *stackState) covered() bool {
	return s.run != nil && s.run.Contents == s.selected.Contents && s.run.StackGeneration == s.stack.Generation
}

// unsettled reports whether the last run ended without completing, and no later plan applied the stack's resources.
func (s *stackState) unsettled() bool {
	return s.run != nil && s.run.Contents == s.selected.Contents && s.run.Outcome != v1alpha1.RunCompleted &&
		!s.run.applied
}

// decideRun returns the next step of a stack whose workflow does not run.
func (s *stackState) decideRun() stackStep {
	step := s.afterRun()
	if s.plan != nil && !s.plan.Ended() {
		step.discard = "Discarded, because the stack starts a workflow instead of making plans."
	}
	return step
}

func (s *stackState) afterRun() stackStep {
	switch {
	case s.covered() && s.unsettled():
		return s.runEnded()
	case s.matchesSpecs() && !s.unsettled():
		return s.ready()
	case s.onlyDrifted():
		return s.drifted()
	case s.covered() && s.run.Outcome != v1alpha1.RunCompleted:
		return s.runEnded()
	case s.covered():
		return stall(v1alpha1.ReasonWorkflowIncomplete, "%s completed, and %s: kubectl get resources shows why. %s",
			s.run, s.need(), s.untilNext())
	}
	return s.next(stackPlan{settle: true, trigger: v1alpha1.TriggerChange})
}

// runEnded returns the step for a stack whose workflow did not complete.
func (s *stackState) runEnded() stackStep {
	reason, how := v1alpha1.ReasonWorkflowFailed, "failed"
	switch s.run.Outcome {
	case v1alpha1.RunTimedOut:
		how = "timed out"
	case v1alpha1.RunTerminated:
		how = "was terminated"
	case v1alpha1.RunCancelled:
		reason, how = v1alpha1.ReasonCancelled, "was cancelled"
	case v1alpha1.RunLost:
		how = "no longer exists in Temporal, and the server did not see its end"
	}
	next := s.untilNext()
	if p := s.run.discarded(); p != nil && s.run.Outcome == v1alpha1.RunFailed {
		if s.run.FailureType != steps.Discarded { // whose message names the plan and the user
			how += fmt.Sprintf(" after %s discarded its plan %s", p.Status.Approval.By.Username, p.Name)
		}
		if s.changes() {
			next += " To start it without a change, set spec.suspend to true and then to false."
		}
	}
	if s.run.Message != "" {
		how += ": " + s.run.Message
	}
	return stall(reason, "%s %s. %s", s.run, strings.TrimSuffix(how, "."), next)
}

// running returns the step for a stack whose workflow runs.
func (s *stackState) running() stackStep {
	step := work(v1alpha1.ReasonWorkflowRunning, "%s is running.", s.run)
	if len(s.run.plans) > 0 {
		if p := s.run.plans[0]; !p.Ended() {
			reason, message := readyOf(p)
			step = work(v1alpha1.ReasonWorkflowRunning, "%s is running. Plan %s: %s", s.run, p.Name, message)
			if waits(p) && reason == v1alpha1.ReasonAwaitingApproval {
				step = awaiting(p)
				by := "A user"
				if who := p.Status.RequestedBy; who != nil {
					by = who.Username
				}
				// Any user who may write plans can name the run in the plan, so the message names that user.
				step.message += fmt.Sprintf(" %s requested the plan. %s has not ended.", by, s.run)
			}
		}
	}
	switch {
	case s.run.idle:
		step = work(v1alpha1.ReasonAwaitingWorker,
			"%s waits, because no worker polls the task queue %q of the Temporal namespace %s. Start a worker.",
			s.run, s.run.queue, v1alpha1.TemporalNamespace(s.stack.Namespace))
	case s.run.failing():
		step = work(v1alpha1.ReasonAwaitingWorker,
			"%s cannot go on: the worker on the task queue %q failed %d times, or did not answer. The log of the worker says why, such as an unknown workflow type.",
			s.run, s.run.queue, s.run.attempt-1)
	}
	step.message += s.untilRunEnds()
	step.after = s.run.again
	return step
}

// untilRunEnds returns the effect of the current spec while the workflow runs; "" if the run was started for that spec.
func (s *stackState) untilRunEnds() string {
	switch spec := &s.stack.Spec; {
	case spec.Suspend:
		return fmt.Sprintf(" The stack is suspended, but spec.suspend does not stop this run. After it, the stack %s.",
			s.act().not)
	case spec.Workflow == nil:
		return " The stack makes its next plan when the run has ended."
	case s.run.StackGeneration != s.stack.Generation:
		return " The spec of the stack was changed since, and counts for the next run."
	}
	return ""
}

// need returns the reason why a stack needs a plan, or its workflow.
func (s *stackState) need() string {
	pending := append(s.selected.Pending(), s.selected.Unread...)
	if len(pending) == 0 && s.stack.Spec.Workflow != nil && s.run != nil {
		return "The last run of the workflow did not complete"
	}
	return mismatch(pending)
}

// act has the verbs of a stack's action for messages. did is a format for a number.
type act struct{ now, not, next, did, reason string }

// act returns the verbs of the stack's action: it makes plans, or starts its workflow.
func (s *stackState) act() act {
	if s.stack.Spec.Workflow != nil {
		return act{"starts its workflow", "starts no workflow", "starts its workflow",
			"started its workflow more than %d times", v1alpha1.ReasonWorkflowRunning}
	}
	return act{"makes a plan", "makes no plan", "makes its next plan",
		"made more than %d plans without an edit of its resources", v1alpha1.ReasonPlanning}
}

// untilNext tells the user when a stack that does nothing now makes its next plan, or starts its workflow again. when
// has further times.
func (s *stackState) untilNext(when ...string) string {
	does := "makes its next plan"
	if s.stack.Spec.Workflow != nil {
		does = "starts its workflow again"
	}
	if s.changes() {
		when = append(when, "when a selected resource or its spec changes")
	}
	if s.triggeredBy(v1alpha1.TriggerSchedule) {
		when = append(when, "at the next time of its schedule: "+s.stack.Spec.Plan.Schedule)
	}
	return fmt.Sprintf("The stack %s %s.", does, strings.Join(when, ", or "))
}

// changes reports whether a change triggers the stack. Schedule is then not its only trigger.
func (s *stackState) changes() bool {
	return s.triggeredBy(v1alpha1.TriggerChange) || !s.triggeredBy(v1alpha1.TriggerSchedule)
}
