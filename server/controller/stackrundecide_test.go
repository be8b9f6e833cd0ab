package controller

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/activities/planning"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/sdk/steps"
)

// withWorkflow gives the stack a workflow.
func withWorkflow(s *stackState) {
	s.stack.Spec.Workflow = &v1alpha1.StackWorkflow{Type: "Release", TaskQueue: "release"}
}

// hasRun gives the stack a workflow, and a run of it that was started for some contents. An empty outcome means that it goes on.
func hasRun(contents string, outcome v1alpha1.RunOutcome, changes ...func(*stackRun)) func(*stackState) {
	return func(s *stackState) {
		withWorkflow(s)
		r := &stackRun{queue: "release", again: runPoll}
		r.WorkflowID, r.RunID, r.Number, r.StackGeneration, r.Contents = "stack.web", "r", 1, 1, contents
		r.StartedAt, r.Outcome = metav1.NewTime(stackNow.Add(-time.Minute)), outcome
		if outcome != "" {
			r.EndedAt = new(metav1.NewTime(stackNow.Add(-20 * time.Second)))
		}
		for _, change := range changes {
			change(r)
		}
		s.run = r
	}
}

// withPlan gives a run a plan of all that the stack selects.
func withPlan(set func(*v1alpha1.PlanStatus)) func(*stackRun) {
	return func(r *stackRun) {
		p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "stack-web-1", Namespace: "prod"}, Spec: v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshAll}}
		condition.Set(&p.Status.Conditions, 1, v1alpha1.ConditionPlanned, true, v1alpha1.ReasonPlanned, "")
		set(&p.Status)
		r.plans = append(r.plans, p)
	}
}

// discardedBy makes a plan of the worker's user flow that a user discarded.
func discardedBy(user string, at time.Time) func(*v1alpha1.PlanStatus) {
	return func(s *v1alpha1.PlanStatus) {
		s.RequestedBy = &v1alpha1.Identity{Username: "flow"}
		s.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionDiscarded, By: &v1alpha1.Identity{Username: user}, At: &metav1.Time{Time: at}}
		condition.Stalled(&s.Conditions, 1, v1alpha1.ReasonDiscarded, "Discarded by "+user+".")
	}
}

func because(message string) func(*stackRun) {
	return func(r *stackRun) { r.Message = message }
}

func ofTargets(r *stackRun) { r.plans[0].Spec.Targets = []string{"sim_disk.d"} }

// with gives a stack a schedule whose time has not come.
func with(schedule string, triggers ...v1alpha1.PlanTrigger) func(*stackState) {
	return func(s *stackState) { s.stack.Spec.Plan.Schedule, s.stack.Spec.Plan.Triggers = schedule, triggers }
}

func TestDecisionsAboutAWorkflow(t *testing.T) {
	rewritten := func(s *stackState) { s.stack.Generation = 2 }
	suspended := func(s *stackState) { s.stack.Spec.Suspend = true }
	missing := func(s *stackState) { s.selected.Missing = []lang.Address{{Type: "sim_disk", Name: "d"}} }
	for why, tc := range map[string]struct {
		state         *stackState
		reason, ready string
		message       string
		make, discard bool
		trigger       v1alpha1.PlanTrigger
		after         time.Duration
	}{
		"an edit":            {state: stackWith(withWorkflow), reason: v1alpha1.ReasonWorkflowRunning, ready: "False Reconciling", make: true, trigger: v1alpha1.TriggerChange, message: "starts its workflow: sim_network.main does not match its spec"},
		"nothing to do":      {state: stackWith(withWorkflow, asWritten), reason: v1alpha1.ReasonApplied, ready: "True"},
		"suspended":          {state: stackWith(withWorkflow, suspended), reason: v1alpha1.ReasonSuspended, ready: "False", message: "starts no workflow"},
		"the author may not": {state: stackWith(withWorkflow, func(s *stackState) { s.missing = "create workflows.hykube.io" }), reason: v1alpha1.ReasonMissingRights, ready: "False Stalled", message: "create workflows.hykube.io"},
		"its schedule":       {state: stackWith(withWorkflow, asWritten, onSchedule(v1alpha1.TriggerSchedule)), reason: v1alpha1.ReasonWorkflowRunning, ready: "False Reconciling", make: true, trigger: v1alpha1.TriggerSchedule},
		"its schedule, once": {state: stackWith(hasRun("new", v1alpha1.RunCompleted, func(r *stackRun) { r.Request = "t" }), asWritten, onSchedule(v1alpha1.TriggerSchedule)), reason: v1alpha1.ReasonApplied, ready: "True"},
		"its schedule, and a later run": {state: stackWith(hasRun("new", v1alpha1.RunCompleted, func(r *stackRun) { r.StartedAt = metav1.NewTime(stackNow) }), asWritten, onSchedule(v1alpha1.TriggerSchedule)),
			reason: v1alpha1.ReasonApplied, ready: "True"},
		"a run goes on": {state: stackWith(hasRun("old", "")), reason: v1alpha1.ReasonWorkflowRunning, ready: "False Reconciling", after: runPoll, message: "Workflow stack.web, run r, is running."},
		"a run goes on, and the stack is suspended": {state: stackWith(hasRun("old", ""), suspended), reason: v1alpha1.ReasonWorkflowRunning, ready: "False Reconciling", after: runPoll,
			message: "Workflow stack.web, run r, is running. The stack is suspended, but spec.suspend does not stop this run. After it, the stack starts no workflow."},
		"a run goes on without a spec, and the stack is suspended": {state: stackWith(hasRun("old", ""), suspended, func(s *stackState) { s.stack.Spec.Workflow = nil }), reason: v1alpha1.ReasonWorkflowRunning, ready: "False Reconciling", after: runPoll,
			message: "After it, the stack makes no plan."},
		"a run without a worker, and the stack is suspended": {state: stackWith(hasRun("new", "", func(r *stackRun) { r.idle = true }), suspended), reason: v1alpha1.ReasonAwaitingWorker, ready: "False Reconciling", after: runPoll,
			message: "Start a worker. The stack is suspended, but"},
		"its plan waits, and the stack is suspended": {state: stackWith(hasRun("new", "", withPlan(awaits)), suspended), reason: v1alpha1.ReasonAwaitingApproval, ready: "False", after: runPoll,
			message: "A user requested the plan. Workflow stack.web, run r, has not ended. The stack is suspended, but"},
		"a run goes on, and the spec is new": {state: stackWith(hasRun("old", ""), rewritten), reason: v1alpha1.ReasonWorkflowRunning, ready: "False Reconciling", after: runPoll, message: "counts for the next run"},
		"a run goes on without a spec": {state: stackWith(hasRun("old", ""), func(s *stackState) { s.stack.Spec.Workflow = nil }), reason: v1alpha1.ReasonWorkflowRunning, ready: "False Reconciling", after: runPoll,
			message: "makes its next plan when the run has ended"},
		"a run without a worker": {state: stackWith(hasRun("new", "", func(r *stackRun) { r.idle = true })), reason: v1alpha1.ReasonAwaitingWorker, ready: "False Reconciling", after: runPoll,
			message: `no worker polls the task queue "release" of the Temporal namespace hykube.prod`},
		"its plan waits": {state: stackWith(hasRun("new", "", withPlan(awaits))), reason: v1alpha1.ReasonAwaitingApproval, ready: "False", after: runPoll, message: "kubectl hykube approve stack-web-1 -n prod"},
		"its plan is denied": {state: stackWith(hasRun("new", "", withPlan(func(s *v1alpha1.PlanStatus) {
			condition.Stalled(&s.Conditions, 1, v1alpha1.ReasonPolicyDenied, "A policy refuses the plan.")
		}))), reason: v1alpha1.ReasonWorkflowRunning, ready: "False Reconciling", after: runPoll, message: "A policy refuses"},
		"a run completed":                  {state: stackWith(hasRun("new", v1alpha1.RunCompleted), asWritten), reason: v1alpha1.ReasonApplied, ready: "True"},
		"a run completed and left an edit": {state: stackWith(hasRun("new", v1alpha1.RunCompleted)), reason: v1alpha1.ReasonWorkflowIncomplete, ready: "False Stalled", message: "completed, and sim_network.main does not match its spec"},
		"a run whose plan had no changes":  {state: stackWith(hasRun("new", v1alpha1.RunCompleted, withPlan(ended(v1alpha1.ReasonNoChanges, true)))), reason: v1alpha1.ReasonApplied, ready: "True"},
		"a run whose plan of one resource had no changes": {state: stackWith(hasRun("new", v1alpha1.RunCompleted, withPlan(ended(v1alpha1.ReasonNoChanges, true)), ofTargets)),
			reason: v1alpha1.ReasonWorkflowIncomplete, ready: "False Stalled"},
		"a run whose plan was of earlier contents": {state: stackWith(hasRun("old", v1alpha1.RunCompleted, withPlan(ended(v1alpha1.ReasonNoChanges, true)))),
			reason: v1alpha1.ReasonWorkflowRunning, ready: "False Reconciling", make: true, trigger: v1alpha1.TriggerChange},
		"a run that left a resource out": {state: stackWith(hasRun("new", v1alpha1.RunCompleted, withPlan(ended(v1alpha1.ReasonApplied, true))), missing),
			reason: v1alpha1.ReasonWorkflowIncomplete, ready: "False Stalled"},
		"an edit during the run": {state: stackWith(hasRun("old", v1alpha1.RunCompleted)), reason: v1alpha1.ReasonWorkflowRunning, ready: "False Reconciling", make: true, trigger: v1alpha1.TriggerChange},
		"a new spec":             {state: stackWith(hasRun("new", v1alpha1.RunCompleted), rewritten), reason: v1alpha1.ReasonWorkflowRunning, ready: "False Reconciling", make: true, trigger: v1alpha1.TriggerChange},
		"a failure after a person discarded the plan": {state: stackWith(hasRun("new", v1alpha1.RunFailed, because("gave up."), withPlan(discardedBy("alice", stackNow.Add(-time.Minute))))), reason: v1alpha1.ReasonWorkflowFailed, ready: "False Stalled",
			message: "run r, failed after alice discarded its plan stack-web-1: gave up. The stack starts its workflow again when a selected resource or its spec changes. To start it without a change, set spec.suspend to true and then to false."},
		"a failure of a step after a person discarded the plan": {state: stackWith(hasRun("new", v1alpha1.RunFailed, because("plan p: Discarded by alice."), withPlan(discardedBy("alice", stackNow.Add(-time.Minute))), func(r *stackRun) { r.FailureType = steps.Discarded })),
			reason: v1alpha1.ReasonWorkflowFailed, ready: "False Stalled", message: "run r, failed: plan p: Discarded by alice. The stack starts its workflow again when a selected resource or its spec changes. To start it without"},
		"a failure after which the workflow discarded its plan": {state: stackWith(hasRun("new", v1alpha1.RunFailed, because("gave up."), withPlan(discardedBy("flow", stackNow.Add(-time.Minute))))), reason: v1alpha1.ReasonWorkflowFailed, ready: "False Stalled",
			message: "run r, failed: gave up. The stack"},
		"a failure after which a person discarded the plan": {state: stackWith(hasRun("new", v1alpha1.RunFailed, because("gave up."), withPlan(discardedBy("alice", stackNow)))), reason: v1alpha1.ReasonWorkflowFailed, ready: "False Stalled",
			message: "run r, failed: gave up. The stack"},
		"a failure": {state: stackWith(hasRun("new", v1alpha1.RunFailed, because("no money."))), reason: v1alpha1.ReasonWorkflowFailed, ready: "False Stalled", message: "run r, failed: no money. The stack starts its workflow again when"},
		"a failure, and a schedule": {state: stackWith(hasRun("new", v1alpha1.RunFailed), with("@every 6h", v1alpha1.TriggerSchedule)), reason: v1alpha1.ReasonWorkflowFailed, ready: "False Stalled",
			message: "The stack starts its workflow again at the next time of its schedule: @every 6h."},
		"a failure, and a schedule beside changes": {state: stackWith(hasRun("new", v1alpha1.RunFailed), with("@every 6h", v1alpha1.TriggerChange, v1alpha1.TriggerSchedule)), reason: v1alpha1.ReasonWorkflowFailed, ready: "False Stalled",
			message: "when a selected resource or its spec changes, or at the next time of its schedule: @every 6h."},
		"a failure before the time of the schedule":             {state: stackWith(hasRun("new", v1alpha1.RunFailed), asWritten, onSchedule(v1alpha1.TriggerSchedule)), reason: v1alpha1.ReasonWorkflowRunning, ready: "False Reconciling", make: true, trigger: v1alpha1.TriggerSchedule},
		"a failure of a stack that matches its specs":           {state: stackWith(hasRun("new", v1alpha1.RunFailed), asWritten), reason: v1alpha1.ReasonWorkflowFailed, ready: "False Stalled"},
		"a failure, and a plan of a person":                     {state: stackWith(hasRun("new", v1alpha1.RunFailed, func(r *stackRun) { r.applied = true }), asWritten), reason: v1alpha1.ReasonApplied, ready: "True"},
		"a failure, and a plan of a person that left something": {state: stackWith(hasRun("new", v1alpha1.RunFailed, func(r *stackRun) { r.applied = true })), reason: v1alpha1.ReasonWorkflowFailed, ready: "False Stalled"},
		"a failure, and an edit":                                {state: stackWith(hasRun("old", v1alpha1.RunFailed)), reason: v1alpha1.ReasonWorkflowRunning, ready: "False Reconciling", make: true, trigger: v1alpha1.TriggerChange},
		"a failure of a stack that matches its specs, and a new spec": {state: stackWith(hasRun("new", v1alpha1.RunFailed), asWritten, rewritten), reason: v1alpha1.ReasonWorkflowRunning, ready: "False Reconciling", make: true, trigger: v1alpha1.TriggerChange,
			message: "The last run of the workflow did not complete"},
		"a timeout":                       {state: stackWith(hasRun("new", v1alpha1.RunTimedOut)), reason: v1alpha1.ReasonWorkflowFailed, ready: "False Stalled", message: "timed out"},
		"a termination":                   {state: stackWith(hasRun("new", v1alpha1.RunTerminated)), reason: v1alpha1.ReasonWorkflowFailed, ready: "False Stalled", message: "was terminated"},
		"a cancellation":                  {state: stackWith(hasRun("new", v1alpha1.RunCancelled)), reason: v1alpha1.ReasonCancelled, ready: "False Stalled", message: "was cancelled"},
		"a lost run":                      {state: stackWith(hasRun("new", v1alpha1.RunLost)), reason: v1alpha1.ReasonWorkflowFailed, ready: "False Stalled", message: "no longer exists in Temporal"},
		"drift, and Report":               {state: stackWith(withWorkflow, checked(v1alpha1.DriftReport)), reason: v1alpha1.ReasonDrifted, ready: "False Stalled"},
		"a plan from before the workflow": {state: stackWith(planned("new", awaits), withWorkflow), reason: v1alpha1.ReasonWorkflowRunning, ready: "False Reconciling", make: true, trigger: v1alpha1.TriggerChange, discard: true},
		"a plan from before the workflow is applied": {state: stackWith(planned("new", func(s *v1alpha1.PlanStatus) {
			s.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved}
			condition.Reconciling(&s.Conditions, 1, v1alpha1.ReasonApplying, "1 of 2")
		}), withWorkflow), reason: v1alpha1.ReasonApplying, ready: "False Reconciling"},
	} {
		t.Run(why, func(t *testing.T) {
			step := tc.state.decide()
			status := v1alpha1.StackStatus{}
			tc.state.write(&status, step)
			got := ""
			for _, c := range status.Conditions {
				if c.Type == v1alpha1.ConditionReady {
					got = string(c.Status) + got
				} else if c.Status == metav1.ConditionTrue {
					got += " " + c.Type
				}
				if c.Reason != tc.reason || !strings.Contains(c.Message, tc.message) {
					t.Errorf("%+v, want the reason %s and %q", c, tc.reason, tc.message)
				}
			}
			if got != tc.ready || step.make != tc.make || step.trigger != tc.trigger || step.after != tc.after || (step.discard != "") != tc.discard {
				t.Errorf("conditions %q, %+v, want %q, make %t, trigger %s, after %s, discard %t", got, step, tc.ready, tc.make, tc.trigger, tc.after, tc.discard)
			}
		})
	}
}

// TestStacksPassedWithWorkflows says which stacks hold those up that depend on them.
func TestStacksPassedWithWorkflows(t *testing.T) {
	for outcome, want := range map[v1alpha1.RunOutcome]bool{v1alpha1.RunFailed: true, v1alpha1.RunTerminated: true, v1alpha1.RunCancelled: false, "": false} {
		s := &v1alpha1.Stack{Status: v1alpha1.StackStatus{Contents: "c"}}
		s.Spec.Workflow, s.Spec.OnError = &v1alpha1.StackWorkflow{}, v1alpha1.OnErrorContinue
		s.Status.Run = &v1alpha1.StackRun{Outcome: outcome, RunOrigin: v1alpha1.RunOrigin{Contents: "c"}}
		if got := passed(s, &planning.Selection{Contents: "c"}); got != want {
			t.Errorf("the outcome %q and Continue: %t, want %t", outcome, got, want)
		}
		s.Spec.OnError = v1alpha1.OnErrorHalt
		if passed(s, &planning.Selection{Contents: "c"}) {
			t.Errorf("the outcome %q and Halt: others go on", outcome)
		}
	}
}

// TestPlansOfARun has the plans of a run that continued as new twice, and of the runs before and after it.
func TestPlansOfARun(t *testing.T) {
	started, second := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), time.Second
	run := func(ended time.Duration) *stackRun {
		r := &stackRun{}
		r.RunID, r.FirstRunID, r.StartedAt = "third", "first", metav1.NewTime(started)
		if ended > 0 {
			r.EndedAt = &metav1.Time{Time: started.Add(ended)}
		}
		return r
	}
	for why, tc := range map[string]struct {
		run     *stackRun
		by      string
		created time.Duration
		first   string // the first run, as Temporal has it
		made    bool
		asks    bool
	}{
		"its last run": {run: run(0), by: "third", made: true},
		"its first run, in the second of the end":      {run: run(second), by: "first", created: second, made: true},
		"a run between, in the second of the start":    {run: run(0), by: "second", first: "first", made: true, asks: true},
		"a run between, in the second of the end":      {run: run(second), by: "second", created: second, first: "first", made: true, asks: true},
		"the run before, long before":                  {run: run(0), by: "before", created: -second, first: "before"},
		"the run before, in the second of the start":   {run: run(0), by: "before", first: "before", asks: true},
		"the activity of the run before, later":        {run: run(0), by: "before", created: time.Minute, first: "before", asks: true},
		"the run after, in the second of the end":      {run: run(second), by: "after", created: second, first: "after", asks: true},
		"a run that is gone, in the second of start":   {run: run(0), by: "gone", asks: true},
		"a run that is gone, later":                    {run: run(0), by: "gone", created: second, made: true, asks: true},
		"a run that is gone, after the end":            {run: run(second), by: "gone", created: time.Minute, asks: true},
		"no run, and the ID of the first is not known": {run: &stackRun{}, asks: true, created: time.Minute, made: true},
	} {
		p := &v1alpha1.Plan{}
		p.CreationTimestamp, p.Annotations = metav1.NewTime(started.Add(tc.created)), map[string]string{v1alpha1.AnnotationWorkflowRunID: tc.by}
		made, known := tc.run.made(p, "")
		if !known {
			made, _ = tc.run.made(p, tc.first)
		}
		if made != tc.made || known == tc.asks {
			t.Errorf("%s: made %t, known %t; want %t and %t", why, made, known, tc.made, !tc.asks)
		}
	}
}
