package controller

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/activities/planning"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/stack"
)

var stackNow = time.Unix(1_000_000, 0)

// stackWith returns the state of a stack one of whose two resources was edited a minute ago, after changes.
func stackWith(changes ...func(*stackState)) *stackState {
	s := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "prod", UID: "u", Generation: 1}}
	s.Spec.Plan.Settle = &metav1.Duration{Duration: 5 * time.Second}
	s.Spec.Plan.Triggers = []v1alpha1.PlanTrigger{v1alpha1.TriggerChange}
	s.Spec.OnError = v1alpha1.OnErrorHalt
	s.Status.Author = &v1alpha1.Identity{Username: "ann"}
	state := &stackState{
		stack: s, now: stackNow, changedAt: stackNow.Add(-time.Minute),
		selected: &planning.Selection{Resources: 2, Contents: "new", Edited: []lang.Address{{Type: "sim_network", Name: "main"}}},
		spec:     v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshChanged, Approval: v1alpha1.ApprovalManual},
	}
	for _, change := range changes {
		change(state)
	}
	return state
}

// covered gives the stack a plan of a user that waits and has its changes.
func covered(s *stackState) {
	p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: "prod"}}
	p.Status.Digest = "sha256:d"
	condition.Waiting(&p.Status.Conditions, 1, v1alpha1.ReasonAwaitingApproval, "1 to update.")
	s.covering = p
}

// planned gives the stack a plan of some contents, with conditions.
func planned(contents string, set func(*v1alpha1.PlanStatus)) func(*stackState) {
	return func(s *stackState) {
		p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "prod", UID: "p"}, Spec: s.spec}
		p.Status.Stack = &v1alpha1.PlanStack{Stack: "web", StackUID: "u", StackGeneration: 1, Number: 1, Contents: contents}
		condition.Set(&p.Status.Conditions, 1, v1alpha1.ConditionPlanned, true, v1alpha1.ReasonPlanned, "")
		set(&p.Status)
		s.plan, s.last = p, snapshot(p)
	}
}

func ended(reason string, succeeded bool) func(*v1alpha1.PlanStatus) {
	return func(s *v1alpha1.PlanStatus) {
		s.FinishedAt = new(metav1.NewTime(stackNow.Add(-10 * time.Second)))
		if succeeded {
			condition.Ready(&s.Conditions, 1, reason, "done")
		} else {
			condition.Stalled(&s.Conditions, 1, reason, "no")
		}
	}
}

// discardedByUser is the status of a plan that a user discarded.
func discardedByUser(s *v1alpha1.PlanStatus) {
	ended(v1alpha1.ReasonDiscarded, false)(s)
	s.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionDiscarded}
}

func awaits(s *v1alpha1.PlanStatus) {
	condition.Waiting(&s.Conditions, 1, v1alpha1.ReasonAwaitingApproval, "1 to create.")
}

func asWritten(s *stackState) { s.selected.Edited = nil }

// checked gives the stack a drift check that ended 10 s ago and found drift in its only unwritten resource.
func checked(action v1alpha1.DriftAction) func(*stackState) {
	return func(s *stackState) {
		asWritten(s)
		s.selected.Drifted = []lang.Address{{Type: "sim_disk", Name: "d"}}
		s.stack.Spec.Drift = &v1alpha1.StackDrift{Action: action}
		s.stack.Status.Drift = &v1alpha1.StackDriftStatus{Last: &v1alpha1.DriftCheck{
			ID: "c", Outcome: v1alpha1.DriftFound, Drifted: 1, EndedAt: new(metav1.NewTime(stackNow.Add(-10 * time.Second)))}}
	}
}

// onSchedule gives the stack a schedule whose time came 10 s ago.
func onSchedule(triggers ...v1alpha1.PlanTrigger) func(*stackState) {
	return func(s *stackState) {
		s.stack.Spec.Plan.Triggers, s.stack.Spec.Plan.Schedule = triggers, "@hourly"
		s.stack.Status.Scheduled = &v1alpha1.StackRequest{ID: "t", At: metav1.NewTime(stackNow.Add(-10 * time.Second))}
	}
}

// asked says for which request the last plan was made.
func asked(trigger v1alpha1.PlanTrigger, id string) func(*stackState) {
	return func(s *stackState) {
		s.plan.Status.Stack.Trigger, s.plan.Status.Stack.Request = trigger, id
		s.last = snapshot(s.plan)
	}
}

func retrying(s *stackState) {
	s.stack.Spec.OnError, s.stack.Spec.Retry = v1alpha1.OnErrorRetry, &v1alpha1.StackRetry{Times: 2, Backoff: &metav1.Duration{Duration: 30 * time.Second}}
}

func TestDecisionsAboutAStack(t *testing.T) {
	for why, tc := range map[string]struct {
		state  *stackState
		reason string
		// ready is the status of Ready, with the other conditions that are True.
		ready   string
		make    bool
		attempt int32
		after   time.Duration
		discard bool
		message string
		// trigger is that of the plan to make.
		trigger v1alpha1.PlanTrigger
	}{
		"drift, and Report": {state: stackWith(checked(v1alpha1.DriftReport)), reason: v1alpha1.ReasonDrifted, ready: "False Stalled", message: "Changed outside of Hykube: sim_disk.d."},
		"drift, and a new spec": {state: stackWith(planned("new", ended(v1alpha1.ReasonApplied, true)), checked(v1alpha1.DriftReport), func(s *stackState) { s.stack.Generation = 2 }),
			reason: v1alpha1.ReasonDrifted, ready: "False Stalled"},
		"drift, and Plan": {state: stackWith(checked(v1alpha1.DriftPlan)), reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true, trigger: v1alpha1.TriggerDrift},
		"drift, and a plan of an earlier state": {state: stackWith(planned("new", ended(v1alpha1.ReasonApplied, true)), checked(v1alpha1.DriftPlan)),
			reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true, trigger: v1alpha1.TriggerDrift},
		"drift, and its plan waits": {state: stackWith(planned("new", awaits), asked(v1alpha1.TriggerDrift, "c"), checked(v1alpha1.DriftPlan), func(s *stackState) { s.plan.CreationTimestamp = metav1.NewTime(s.now) }),
			reason: v1alpha1.ReasonAwaitingApproval, ready: "False"},
		"drift, and its plan waits in an Automatic stack": {state: stackWith(planned("new", awaits), asked(v1alpha1.TriggerDrift, "c"), checked(v1alpha1.DriftPlan), func(s *stackState) {
			s.plan.CreationTimestamp, s.stack.Spec.Approval = metav1.NewTime(s.now), v1alpha1.ApprovalAutomatic
		}), reason: v1alpha1.ReasonAwaitingApproval, ready: "False", message: "although spec.approval of the stack is Automatic: it corrects drift, and spec.drift.action is Plan"},
		"drift, and its plan waits since an earlier check": {state: stackWith(planned("new", awaits), asked(v1alpha1.TriggerDrift, "earlier"), checked(v1alpha1.DriftPlan), func(s *stackState) { s.stack.Status.Drift.Last.Drifted = 0 }),
			reason: v1alpha1.ReasonAwaitingApproval, ready: "False"},
		"drift, and its plan was discarded": {state: stackWith(planned("new", discardedByUser), asked(v1alpha1.TriggerDrift, "c"), checked(v1alpha1.DriftPlan)),
			reason: v1alpha1.ReasonDrifted, ready: "False Stalled"},
		"drift, and its plan failed": {state: stackWith(planned("new", ended(v1alpha1.ReasonApplyFailed, false)), asked(v1alpha1.TriggerDrift, "c"), checked(v1alpha1.DriftPlan)),
			reason: v1alpha1.ReasonApplyFailed, ready: "False Stalled"},
		"drift, and the check failed": {state: stackWith(checked(v1alpha1.DriftPlan), func(s *stackState) { s.stack.Status.Drift.Last.Outcome = v1alpha1.DriftFailed }),
			reason: v1alpha1.ReasonDrifted, ready: "False Stalled"},
		"drift, and the check goes on": {state: stackWith(checked(v1alpha1.DriftPlan), func(s *stackState) { s.stack.Status.Drift.Running = &v1alpha1.DriftCheck{ID: "d"} }),
			reason: v1alpha1.ReasonDrifted, ready: "False Stalled"},
		"drift, and an earlier correction failed": {state: stackWith(planned("new", ended(v1alpha1.ReasonApplyFailed, false)), asked(v1alpha1.TriggerDrift, "earlier"), checked(v1alpha1.DriftCorrect)),
			reason: v1alpha1.ReasonApplyFailed, ready: "False Stalled"},
		"drift, and the correction that failed is retried": {state: stackWith(planned("new", ended(v1alpha1.ReasonApplyFailed, false)), asked(v1alpha1.TriggerDrift, "earlier"), checked(v1alpha1.DriftCorrect), retrying, func(s *stackState) { s.now = s.now.Add(time.Minute) }),
			reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true, attempt: 1, trigger: v1alpha1.TriggerDrift},
		"drift, and an earlier correction failed before an edit": {state: stackWith(planned("old", ended(v1alpha1.ReasonApplyFailed, false)), asked(v1alpha1.TriggerDrift, "earlier"), checked(v1alpha1.DriftCorrect)),
			reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true, trigger: v1alpha1.TriggerDrift},
		"a drift check that waits": {state: stackWith(asWritten, func(s *stackState) {
			s.stack.Spec.Drift = &v1alpha1.StackDrift{}
			s.stack.Status.Drift = &v1alpha1.StackDriftStatus{Running: &v1alpha1.DriftCheck{Message: "The drift check waits."}}
		}), reason: v1alpha1.ReasonApplied, ready: "True", message: "matches the spec. The drift check waits."},
		"a drift check that failed": {state: stackWith(asWritten, func(s *stackState) {
			s.stack.Spec.Drift = &v1alpha1.StackDrift{}
			s.stack.Status.Drift = &v1alpha1.StackDriftStatus{Last: &v1alpha1.DriftCheck{Outcome: v1alpha1.DriftFailed, Message: "Why."}}
		}), reason: v1alpha1.ReasonApplied, ready: "True", message: "the last drift check failed: Why."},
		"drift, and suspended": {state: stackWith(checked(v1alpha1.DriftPlan), func(s *stackState) { s.stack.Spec.Suspend = true }), reason: v1alpha1.ReasonDrifted, ready: "False Stalled"},
		"drift, and a plan waits that is older": {state: stackWith(planned("new", awaits), checked(v1alpha1.DriftReport), func(s *stackState) { s.selected.Edited = []lang.Address{{Name: "n"}} }),
			reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true},
		"the schedule": {state: stackWith(asWritten, onSchedule(v1alpha1.TriggerSchedule)), reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true, trigger: v1alpha1.TriggerSchedule, message: "@hourly"},
		"the schedule, planned for": {state: stackWith(planned("new", ended(v1alpha1.ReasonNoChanges, true)), asked(v1alpha1.TriggerSchedule, "t"), asWritten, onSchedule(v1alpha1.TriggerSchedule)),
			reason: v1alpha1.ReasonApplied, ready: "True"},
		"the schedule, and no resource": {state: stackWith(asWritten, onSchedule(v1alpha1.TriggerSchedule), func(s *stackState) { s.selected.Resources = 0 }), reason: v1alpha1.ReasonApplied, ready: "True", message: "selects no resource"},
		"the schedule, and suspended":   {state: stackWith(asWritten, onSchedule(v1alpha1.TriggerSchedule), func(s *stackState) { s.stack.Spec.Suspend = true }), reason: v1alpha1.ReasonApplied, ready: "True"},
		"the plan of the schedule waits": {state: stackWith(planned("new", awaits), asked(v1alpha1.TriggerSchedule, "t"), asWritten, onSchedule(v1alpha1.TriggerSchedule)),
			reason: v1alpha1.ReasonAwaitingApproval, ready: "False"},
		"an earlier plan of the schedule waits": {state: stackWith(planned("new", awaits), asked(v1alpha1.TriggerSchedule, "s"), asWritten, onSchedule(v1alpha1.TriggerSchedule)),
			reason: v1alpha1.ReasonAwaitingApproval, ready: "False"},
		"an earlier plan of the schedule waits, and drift may have come": {state: stackWith(planned("new", awaits), asked(v1alpha1.TriggerSchedule, "s"), asWritten, onSchedule(v1alpha1.TriggerSchedule),
			func(s *stackState) { s.spec.Refresh, s.plan.Spec.Refresh = v1alpha1.RefreshAll, v1alpha1.RefreshAll }),
			reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true, trigger: v1alpha1.TriggerSchedule},
		"a plan that waited at the time of the schedule, and was discarded": {state: stackWith(planned("new", discardedByUser), asked(v1alpha1.TriggerSchedule, "s"), onSchedule(v1alpha1.TriggerSchedule),
			func(s *stackState) { s.plan.Status.FinishedAt = new(metav1.NewTime(stackNow)) }), reason: v1alpha1.ReasonDiscarded, ready: "False Stalled"},
		"an edit before the time of the schedule": {state: stackWith(onSchedule(v1alpha1.TriggerSchedule), func(s *stackState) { s.stack.Status.Scheduled = nil }),
			reason: v1alpha1.ReasonAwaitingSchedule, ready: "False", message: "@hourly"},
		"an edit, and both triggers": {state: stackWith(onSchedule(v1alpha1.TriggerChange, v1alpha1.TriggerSchedule), func(s *stackState) { s.stack.Status.Scheduled = nil }),
			reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true},
		"an edit that has settled": {state: stackWith(), reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true},
		"an edit of this moment": {
			state:  stackWith(func(s *stackState) { s.changedAt = s.now.Add(-2 * time.Second) }),
			reason: v1alpha1.ReasonSettling, ready: "False Reconciling", after: 3 * time.Second, message: "sim_network.main does not match its spec",
		},
		"nothing to do":                   {state: stackWith(asWritten), reason: v1alpha1.ReasonApplied, ready: "True", message: "2 resources"},
		"no resources":                    {state: stackWith(asWritten, func(s *stackState) { s.selected.Resources = 0 }), reason: v1alpha1.ReasonApplied, ready: "True", message: "selects no resource"},
		"a data source to read":           {state: stackWith(asWritten, func(s *stackState) { s.selected.Unread = []lang.Address{{Name: "i"}} }), reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true},
		"an older stack selects the same": {state: stackWith(asWritten, func(s *stackState) { s.overlaps = "old" }), reason: v1alpha1.ReasonSelectorOverlaps, ready: "False Stalled", message: "The stack old"},
		"suspended":                       {state: stackWith(func(s *stackState) { s.stack.Spec.Suspend = true }), reason: v1alpha1.ReasonSuspended, ready: "False"},
		"suspended, and nothing to do": {
			state: stackWith(asWritten, func(s *stackState) { s.stack.Spec.Suspend = true }), reason: v1alpha1.ReasonApplied, ready: "True"},
		"the author may not plan": {state: stackWith(func(s *stackState) { s.missing = "create plans.hykube.io" }), reason: v1alpha1.ReasonMissingRights, ready: "False Stalled"},
		"the author of an Automatic stack may not plan": {state: stackWith(func(s *stackState) {
			s.missing, s.stack.Spec.Approval = "create plans.hykube.io", v1alpha1.ApprovalAutomatic
		}), reason: v1alpha1.ReasonMissingRights, ready: "False Stalled", message: "let a user with the right to create plans.hykube.io and to approve plans.hykube.io become the author"},
		"another stack is not ready": {state: stackWith(func(s *stackState) { s.waits = "Waiting for the stack db." }), reason: v1alpha1.ReasonAwaitingStack, ready: "False", message: "stack db"},
		"it would change something else": {
			state: stackWith(func(s *stackState) {
				s.selected.Beyond, s.selected.For = &lang.Address{Type: "sim_subnet", Name: "x"}, &lang.Address{Type: "sim_network", Name: "main"}
			}),
			reason: v1alpha1.ReasonAwaitingDependency, ready: "False", message: "sim_network.main needs sim_subnet.x",
		},
		"it would destroy something else, too": {
			state: stackWith(func(s *stackState) {
				s.selected.Beyond, s.selected.Destroys, s.selected.For = &lang.Address{Type: "sim_subnet", Name: "x"}, true, &lang.Address{Type: "sim_network", Name: "main"}
			}),
			reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true},
		"its plan waits for a person": {
			state: stackWith(planned("new", awaits)), reason: v1alpha1.ReasonAwaitingApproval, ready: "False",
			message: "kubectl hykube approve web-1 -n prod"},
		"the waiting plan is outdated":            {state: stackWith(planned("old", awaits)), reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true},
		"the stack wants another approval now":    {state: stackWith(planned("new", awaits), func(s *stackState) { s.spec.Approval = v1alpha1.ApprovalAutomatic }), reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true},
		"outdated, and suspended":                 {state: stackWith(planned("old", awaits), func(s *stackState) { s.stack.Spec.Suspend = true }), reason: v1alpha1.ReasonAwaitingApproval, ready: "False"},
		"the waiting plan is not needed any more": {state: stackWith(planned("old", awaits), asWritten), reason: v1alpha1.ReasonApplied, ready: "True", discard: true},
		"a policy denies its plan": {
			state: stackWith(planned("new", func(s *v1alpha1.PlanStatus) {
				condition.Stalled(&s.Conditions, 1, v1alpha1.ReasonPolicyDenied, "A policy refuses the plan.")
			})),
			reason: v1alpha1.ReasonPolicyDenied, ready: "False Stalled", message: "Plan web-1: A policy refuses the plan. When no policy refuses it any more, it waits for an approval."},
		"a policy denies the plan of an Automatic stack": {
			state: stackWith(func(s *stackState) { s.spec.Approval = v1alpha1.ApprovalAutomatic }, planned("new", func(s *v1alpha1.PlanStatus) {
				condition.Stalled(&s.Conditions, 1, v1alpha1.ReasonPolicyDenied, "A policy refuses the plan.")
			})),
			reason: v1alpha1.ReasonPolicyDenied, ready: "False Stalled", message: "the stack makes the plan again, and that one approves itself."},
		"a policy denies the plan of a suspended Automatic stack": {
			state: stackWith(func(s *stackState) { s.spec.Approval, s.stack.Spec.Suspend = v1alpha1.ApprovalAutomatic, true }, planned("new", func(s *v1alpha1.PlanStatus) {
				condition.Stalled(&s.Conditions, 1, v1alpha1.ReasonPolicyDenied, "A policy refuses the plan.")
			})),
			reason: v1alpha1.ReasonPolicyDenied, ready: "False Stalled", message: "The stack is suspended, so it makes no other plan"},
		"no policy denies its plan any more": {
			state: stackWith(planned("new", func(s *v1alpha1.PlanStatus) {
				condition.Stalled(&s.Conditions, 1, v1alpha1.ReasonPolicyDenied, "A policy refuses the plan.")
			}), func(s *stackState) { s.allowed = true }),
			reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true},
		"its plan is stale": {
			state: stackWith(planned("new", func(s *v1alpha1.PlanStatus) {
				condition.Waiting(&s.Conditions, 1, v1alpha1.ReasonStale, "A Secret was changed.")
			})),
			reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true},
		"its plan is being applied": {
			state: stackWith(planned("old", func(s *v1alpha1.PlanStatus) {
				s.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved}
				condition.Reconciling(&s.Conditions, 1, v1alpha1.ReasonApplying, "1 of 2")
			})),
			reason: v1alpha1.ReasonApplying, ready: "False Reconciling", message: "Plan web-1: 1 of 2"},
		"a plan of the same contents is applied": {state: stackWith(planned("new", ended(v1alpha1.ReasonApplied, true))), reason: v1alpha1.ReasonApplied, ready: "True"},
		"a plan of older contents is applied":    {state: stackWith(planned("old", ended(v1alpha1.ReasonApplied, true))), reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true},
		"drift that a later plan found": {
			state:  stackWith(planned("new", ended(v1alpha1.ReasonApplied, true)), asWritten, func(s *stackState) { s.selected.Drifted = []lang.Address{{Type: "sim_disk", Name: "d"}} }),
			reason: v1alpha1.ReasonDrifted, ready: "False Stalled", message: "sim_disk.d"},
		"destroyed by hand": {
			state:  stackWith(planned("new", ended(v1alpha1.ReasonApplied, true)), asWritten, func(s *stackState) { s.selected.Missing = []lang.Address{{Type: "sim_disk", Name: "d"}} }),
			reason: v1alpha1.ReasonDrifted, ready: "False Stalled", message: "sim_disk.d"},
		"a failed apply": {
			state: stackWith(planned("new", ended(v1alpha1.ReasonApplyFailed, false))), reason: v1alpha1.ReasonApplyFailed, ready: "False Stalled",
			message: "Plan web-1: no. The stack makes its next plan when"},
		"a failed apply, and a new edit": {state: stackWith(planned("old", ended(v1alpha1.ReasonApplyFailed, false))), reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true},
		"a failed apply, and a new spec": {state: stackWith(planned("new", ended(v1alpha1.ReasonApplyFailed, false)), func(s *stackState) { s.stack.Generation = 2 }), reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true},
		"a failed apply, and Continue":   {state: stackWith(planned("new", ended(v1alpha1.ReasonApplyFailed, false)), func(s *stackState) { s.stack.Spec.OnError = v1alpha1.OnErrorContinue }), reason: v1alpha1.ReasonApplyFailed, ready: "False Stalled"},
		"a plan that could not be made": {state: stackWith(planned("new", ended(v1alpha1.ReasonPlanFailed, false))), reason: v1alpha1.ReasonPlanFailed, ready: "False Stalled",
			message: "kubectl hykube status web-1 -n prod"},
		"a plan that could not be made because of one resource": {state: stackWith(func(s *stackState) {
			s.stack.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"stack": "web"}}
		}, planned("new", func(s *v1alpha1.PlanStatus) {
			ended(v1alpha1.ReasonPlanFailed, false)(s)
			s.Diagnostics = []v1alpha1.Diagnostic{{Severity: v1alpha1.SeverityWarning, Address: "sim_disk.x"}, {Severity: v1alpha1.SeverityError, Address: "sim_disk.a"}, {Severity: v1alpha1.SeverityError, Address: "sim_disk.a"}}
		})), reason: v1alpha1.ReasonPlanFailed, ready: "False Stalled",
			message: "To plan the others meanwhile: kubectl hykube plan -l 'stack=web' --exclude sim_disk.a -n prod."},
		"a plan that could not be made because of the ProviderConfig": {state: stackWith(planned("new", func(s *v1alpha1.PlanStatus) {
			ended(v1alpha1.ReasonPlanFailed, false)(s)
			s.Diagnostics = []v1alpha1.Diagnostic{{Severity: v1alpha1.SeverityError, Address: "sim_disk.a"}, {Severity: v1alpha1.SeverityError}}
		})), reason: v1alpha1.ReasonPlanFailed, ready: "False Stalled", message: "kubectl hykube status web-1 -n prod. The stack makes"},
		"a plan that could not be made, to be retried": {state: stackWith(planned("new", ended(v1alpha1.ReasonPlanFailed, false)), retrying), reason: v1alpha1.ReasonRetrying, ready: "False Reconciling", after: 20 * time.Second,
			message: "kubectl hykube status web-1 -n prod"},
		"a plan that could not be made, and a create of unknown outcome": {state: stackWith(planned("new", ended(v1alpha1.ReasonPlanFailed, false)), func(s *stackState) {
			s.selected.Lost = []lang.Address{{Type: "sim_disk", Name: "data"}}
		}), reason: v1alpha1.ReasonPlanFailed, ready: "False Stalled", message: "kubectl hykube resolve sim-disk/data (--adopt ID | --retry | --forget) -n prod"},
		"a failed apply, to be retried":   {state: stackWith(planned("new", ended(v1alpha1.ReasonApplyFailed, false)), retrying), reason: v1alpha1.ReasonRetrying, ready: "False Reconciling", after: 20 * time.Second},
		"a failed apply, retried now":     {state: stackWith(planned("new", ended(v1alpha1.ReasonApplyFailed, false)), retrying, func(s *stackState) { s.now = s.now.Add(20 * time.Second) }), reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true, attempt: 1},
		"the second pause is longer":      {state: stackWith(planned("new", ended(v1alpha1.ReasonApplyFailed, false)), retrying, func(s *stackState) { s.last.Attempt = 1 }), reason: v1alpha1.ReasonRetrying, ready: "False Reconciling", after: 50 * time.Second},
		"a failed apply, and no attempts": {state: stackWith(planned("new", ended(v1alpha1.ReasonApplyFailed, false)), retrying, func(s *stackState) { s.last.Attempt = 2 }), reason: v1alpha1.ReasonApplyFailed, ready: "False Stalled"},
		"a discarded plan":                {state: stackWith(planned("new", discardedByUser), retrying), reason: v1alpha1.ReasonDiscarded, ready: "False Stalled"},
		"a discarded change, taken back, made again": {
			state:  stackWith(planned("new", discardedByUser), func(s *stackState) { s.changedFrom = stackNow.Add(-5 * time.Second) }),
			reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true},
		"a discarded change, made again in the same second": {
			state: stackWith(planned("new", discardedByUser), func(s *stackState) {
				s.changedFrom, s.changedSince = stackNow.Add(-10*time.Second), true
			}),
			reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true},
		"a change that was made before its plan was discarded": {
			state:  stackWith(planned("new", discardedByUser), func(s *stackState) { s.changedFrom = stackNow.Add(-11 * time.Second) }),
			reason: v1alpha1.ReasonDiscarded, ready: "False Stalled"},
		"an edit, taken back, made again": {state: stackWith(planned("new", ended(v1alpha1.ReasonDiscarded, false))), reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true},
		"superseded by an applied plan":   {state: stackWith(planned("new", ended(v1alpha1.ReasonSuperseded, false))), reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true},
		"superseded by a plan that waits": {
			state: stackWith(planned("new", ended(v1alpha1.ReasonSuperseded, false)), func(s *stackState) {
				s.others = []*v1alpha1.Plan{{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: s.spec}}
			}),
			reason: v1alpha1.ReasonSuperseded, ready: "False", message: "Plan x of the same resources"},
		"a plan of a user has its changes": {state: stackWith(covered), reason: v1alpha1.ReasonAwaitingApproval, ready: "False",
			message: "Plan mine waits for approval: 1 to update. To approve it: kubectl hykube approve mine -n prod --digest sha256:d. The plan is not one of the stack, which makes its own if that one ends or becomes stale."},
		"a plan of a user applies its changes": {state: stackWith(covered, func(s *stackState) {
			s.covering.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved}
		}), reason: v1alpha1.ReasonDeferred, ready: "False Reconciling", message: "Waiting for the end of plan mine"},
		"a plan of a user has its changes, and the stack is suspended": {state: stackWith(covered, func(s *stackState) { s.stack.Spec.Suspend = true }),
			reason: v1alpha1.ReasonSuspended, ready: "False"},
		"a plan of a user has its changes at a time of the schedule": {state: stackWith(covered, func(s *stackState) {
			s.stack.Spec.Plan.Triggers = []v1alpha1.PlanTrigger{v1alpha1.TriggerSchedule}
			s.stack.Status.Scheduled = &v1alpha1.StackRequest{ID: "s1", At: metav1.NewTime(stackNow)}
		}), reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true, trigger: v1alpha1.TriggerSchedule},
		"deferred by a provider": {state: stackWith(planned("new", ended(v1alpha1.ReasonDeferred, true))), reason: v1alpha1.ReasonDeferred, ready: "False Stalled"},
		"deferred by a plan that runs": {
			state: stackWith(planned("new", func(s *v1alpha1.PlanStatus) {
				ended(v1alpha1.ReasonDeferred, true)(s)
				s.WaitsFor = []v1alpha1.PlanReference{{UID: "x"}}
			}), func(s *stackState) { s.others = []*v1alpha1.Plan{{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "x"}}} }),
			reason: v1alpha1.ReasonDeferred, ready: "False Reconciling", message: "plan x"},
		"deferred by a plan that ended": {
			state: stackWith(planned("new", func(s *v1alpha1.PlanStatus) {
				ended(v1alpha1.ReasonDeferred, true)(s)
				s.WaitsFor = []v1alpha1.PlanReference{{UID: "x"}}
			})), reason: v1alpha1.ReasonPlanning, ready: "False Reconciling", make: true},
		"the waiting plan is deleted": {
			state:  stackWith(planned("new", awaits), func(s *stackState) { s.plan = nil }),
			reason: v1alpha1.ReasonDiscarded, ready: "False Stalled", message: "Plan web-1 was deleted"},
		"the last plan is removed": {
			state:  stackWith(planned("new", ended(v1alpha1.ReasonApplyFailed, false)), func(s *stackState) { s.plan = nil }),
			reason: v1alpha1.ReasonApplyFailed, ready: "False Stalled", message: "Plan web-1, which no longer exists"},
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
				if c.ObservedGeneration != tc.state.stack.Generation || c.Reason != tc.reason || !strings.Contains(c.Message, tc.message) {
					t.Errorf("%+v, want the reason %s and %q", c, tc.reason, tc.message)
				}
			}
			if got != tc.ready {
				t.Errorf("conditions %q, want %q", got, tc.ready)
			}
			if step.make && step.trigger != tc.trigger {
				t.Errorf("a plan with the trigger %q, want %q", step.trigger, tc.trigger)
			}
			if step.make != tc.make || step.attempt != tc.attempt || step.after != tc.after || (step.discard != "") != tc.discard {
				t.Errorf("%+v, want make %t, attempt %d, after %s, discard %t", step, tc.make, tc.attempt, tc.after, tc.discard)
			}
		})
	}
}

// TestResolvedCreatesGetAPlan resolves the creates of unknown outcome that the last plan of a stack left, one after the other. After
// the last one, the stack makes a plan, whether or not the first plan of these contents could be made. A plan that fails after
// that gets no further one.
func TestResolvedCreatesGetAPlan(t *testing.T) {
	a, b := lang.Address{Type: "sim_disk", Name: "a"}, lang.Address{Type: "sim_disk", Name: "b"}
	for reason, left := range map[string]string{
		v1alpha1.ReasonApplyFailed: "Resolved since then: 1 of 2 unknown outcomes. Still unknown: sim_disk.b.",
		v1alpha1.ReasonPlanFailed:  "The outcome of the create of sim_disk.b is unknown.",
		v1alpha1.ReasonCancelled:   "Resolved since then: 1 of 2 unknown outcomes. Still unknown: sim_disk.b.",
	} {
		s := stackWith(planned("new", ended(reason, false)))
		next := func(lost ...lang.Address) stackStep {
			s.selected.Lost = lost
			s.last = snapshot(s.plan)
			if old := s.stack.Status.Plan; old != nil {
				s.last.UnknownCreates = old.UnknownCreates
			}
			step := s.decide()
			s.write(&s.stack.Status, step)
			return step
		}
		if step := next(a, b); step.make || step.reason != reason || !strings.Contains(step.message, "when no create has an unknown outcome any more") {
			t.Errorf("%s, both are unknown: %+v", reason, step)
		}
		if step := next(b); step.make || !strings.Contains(step.message, left) {
			t.Errorf("%s, one is unknown: %+v", reason, step)
		}
		if step := next(); !step.make {
			t.Errorf("%s, none is unknown: %+v", reason, step)
		}
		planned("new", ended(v1alpha1.ReasonApplyFailed, false))(s)
		s.plan.UID, s.stack.Status.Plan = "later", nil
		if step := next(); step.make {
			t.Errorf("%s, the next plan failed: %+v", reason, step)
		}
		s.others = []*v1alpha1.Plan{{Status: v1alpha1.PlanStatus{Approval: &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved}}}}
		next(a) // which the other plan is creating
		s.others = nil
		if step := next(); step.make {
			t.Errorf("%s, another plan made a resource: %+v", reason, step)
		}
	}
}

func TestStacksPassed(t *testing.T) {
	ready := func(s *v1alpha1.Stack) { condition.Ready(&s.Status.Conditions, 1, v1alpha1.ReasonApplied, "") }
	failedWith := func(policy v1alpha1.ErrorPolicy) func(*v1alpha1.Stack) {
		return func(s *v1alpha1.Stack) {
			s.Spec.OnError = policy
			condition.Stalled(&s.Status.Conditions, 1, v1alpha1.ReasonApplyFailed, "")
			s.Status.Plan = &v1alpha1.StackPlan{Ended: true, Reason: v1alpha1.ReasonApplyFailed, PlanStack: v1alpha1.PlanStack{Contents: "c"}}
		}
	}
	for why, tc := range map[string]struct {
		stack    func(*v1alpha1.Stack)
		contents string
		want     bool
	}{
		"ready":                                   {ready, "c", true},
		"ready, and something was edited since":   {ready, "d", false},
		"ready for an older spec":                 {func(s *v1alpha1.Stack) { ready(s); s.Generation = 2 }, "c", false},
		"failed":                                  {failedWith(v1alpha1.OnErrorHalt), "c", false},
		"failed, with Continue":                   {failedWith(v1alpha1.OnErrorContinue), "c", true},
		"failed, with Continue, and edited since": {failedWith(v1alpha1.OnErrorContinue), "d", false},
		"not failed but waiting, with Continue":   {func(s *v1alpha1.Stack) { failedWith(v1alpha1.OnErrorContinue)(s); s.Status.Plan.Ended = false }, "c", false},
		"discarded by a person, even if Continue": {func(s *v1alpha1.Stack) {
			failedWith(v1alpha1.OnErrorContinue)(s)
			s.Status.Plan.Reason = v1alpha1.ReasonDiscarded
		}, "c", false},
		"a stack that the server has not seen yet": {func(*v1alpha1.Stack) {}, "c", false},
	} {
		s := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Status: v1alpha1.StackStatus{ObservedGeneration: 1, Contents: "c"}}
		tc.stack(s)
		if got := passed(s, &planning.Selection{Contents: tc.contents}); got != tc.want {
			t.Errorf("%s: %t", why, got)
		}
	}
}

// TestPlansAreNotWiderThanTheirStack compares, for all labels, what a stack selects with what its plan selects.
func TestPlansAreNotWiderThanTheirStack(t *testing.T) {
	with := func(name string, selector *metav1.LabelSelector) *v1alpha1.Stack {
		return &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1alpha1.StackSpec{Selector: selector}}
	}
	label := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	requires := func(key string, op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	both := label("a", "1")
	both.MatchLabels["b"] = "1"
	for why, stacks := range map[string][]*v1alpha1.Stack{
		"the only one":      {with("rest", nil)},
		"with a selector":   {with("rest", label("a", "1")), with("other", label("b", "1"))},
		"beside labels":     {with("rest", nil), with("x", label("a", "1")), with("y", label("b", "2"))},
		"beside operators":  {with("rest", nil), with("x", requires("a", metav1.LabelSelectorOpIn, "1", "2")), with("y", requires("b", metav1.LabelSelectorOpExists))},
		"beside negations":  {with("rest", nil), with("x", requires("a", metav1.LabelSelectorOpNotIn, "1")), with("y", requires("b", metav1.LabelSelectorOpDoesNotExist))},
		"beside two labels": {with("rest", nil), with("x", both)},
	} {
		selected := &planning.Selection{Edited: []lang.Address{{Type: "sim_disk", Name: "d"}}}
		spec := planSpec(stacks[0], stacks, selected)
		if len(spec.Targets) > 0 { // no selector can say it
			if why != "beside two labels" || spec.Selector != nil || len(spec.Targets) != 1 || spec.Targets[0] != "sim_disk.d" {
				t.Errorf("%s: %+v", why, spec)
			}
			continue
		}
		plans := labels.Everything()
		if spec.Selector != nil {
			var err error
			if plans, err = metav1.LabelSelectorAsSelector(spec.Selector); err != nil {
				t.Fatal(err)
			}
		}
		for _, a := range []string{"", "1", "2", "3"} {
			for _, b := range []string{"", "1", "2"} {
				set := labels.Set{}
				if a != "" {
					set["a"] = a
				}
				if b != "" {
					set["b"] = b
				}
				if got, want := plans.Matches(set), stack.Selects(stacks[0], stacks)(set); got != want {
					t.Errorf("%s: the plan selects %v: %t, and the stack: %t", why, set, got, want)
				}
			}
		}
	}
}

// TestOverlappingStacks finds the older of two stacks that select the same object.
func TestOverlappingStacks(t *testing.T) {
	with := func(name string, age int64, selector map[string]string) *v1alpha1.Stack {
		s := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Unix(1000-age, 0))}}
		if selector != nil {
			s.Spec.Selector = &metav1.LabelSelector{MatchLabels: selector}
		}
		return s
	}
	a, b := map[string]string{"a": "1"}, map[string]string{"b": "1"}
	for why, tc := range map[string]struct {
		stacks []*v1alpha1.Stack // the first one is asked about
		want   string
	}{
		"alone":                              {[]*v1alpha1.Stack{with("x", 1, a)}, ""},
		"an older one with other labels":     {[]*v1alpha1.Stack{with("x", 1, a), with("y", 2, b)}, "y"},
		"a younger one":                      {[]*v1alpha1.Stack{with("x", 2, a), with("y", 1, b)}, ""},
		"one of the same second":             {[]*v1alpha1.Stack{with("y", 1, a), with("x", 1, a)}, "x"},
		"an older one of other objects":      {[]*v1alpha1.Stack{with("x", 1, a), with("y", 2, map[string]string{"b": "2"})}, ""},
		"an older one without a selector":    {[]*v1alpha1.Stack{with("x", 1, a), with("y", 2, nil)}, ""},
		"the two of them without a selector": {[]*v1alpha1.Stack{with("x", 1, nil), with("y", 2, nil)}, "y"},
	} {
		picks, found := watchOverlap(tc.stacks[0], tc.stacks)
		picks(labels.Set{"a": "1", "b": "1"})
		if *found != tc.want {
			t.Errorf("%s: %q, want %q", why, *found, tc.want)
		}
	}
}

// TestPlansThatDestroyMoreWaitForAPerson makes the plan of an automatic stack that would destroy a resource outside of it.
func TestPlansThatDestroyMoreWaitForAPerson(t *testing.T) {
	s := &v1alpha1.Stack{Spec: v1alpha1.StackSpec{Approval: v1alpha1.ApprovalAutomatic}}
	for destroys, want := range map[bool]v1alpha1.ApprovalMode{false: v1alpha1.ApprovalAutomatic, true: v1alpha1.ApprovalManual} {
		if got := planSpec(s, []*v1alpha1.Stack{s}, &planning.Selection{Destroys: destroys}).Approval; got != want {
			t.Errorf("destroys %t: %s, want %s", destroys, got, want)
		}
	}
}

// TestAnEditDuringAPause edits a stack while the rollout of its plan pauses. The message says how to end the plan.
func TestAnEditDuringAPause(t *testing.T) {
	paused := func(s *v1alpha1.PlanStatus) {
		s.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved}
		condition.Reconciling(&s.Conditions, 1, v1alpha1.ReasonRolloutPaused, "It pauses.")
	}
	for contents, edited := range map[string]bool{"new": false, "old": true} {
		step := stackWith(planned(contents, paused)).decide()
		if told := strings.Contains(step.message, "kubectl hykube cancel web-1 -n prod"); told != edited || step.reason != v1alpha1.ReasonRolloutPaused {
			t.Errorf("edited %t: %s: %q", edited, step.reason, step.message)
		}
	}
}

// TestAScheduleWithoutResources lets the time of a schedule pass for a stack that selects nothing, and for others. If that
// stack has resources later, they wait for the next time.
func TestAScheduleWithoutResources(t *testing.T) {
	for why, tc := range map[string]struct {
		resources int
		written   string // the time in the status that the server writes
		skips     bool
	}{
		"no resource":                   {0, "t", true},
		"two resources":                 {2, "t", false},
		"no resource, and a later time": {0, "later", false},
	} {
		s := stackWith(asWritten, onSchedule(v1alpha1.TriggerSchedule))
		status := s.stack.Status.DeepCopy()
		status.Scheduled.ID, s.selected.Resources = tc.written, tc.resources
		s.write(status, s.decide())
		s.stack.Status, s.selected.Resources = *status, 2
		if step := s.decide(); step.make == tc.skips {
			t.Errorf("%s: a plan follows: %t", why, step.make)
		}
	}
}

// TestAMissingRightNamesTheAuthor names the author who has lost a right, and the command by which another user takes the stack over.
func TestAMissingRightNamesTheAuthor(t *testing.T) {
	state := stackWith(func(s *stackState) { s.missing = "create plans.hykube.io" })
	state.stack.Name, state.stack.Namespace, state.stack.Status.Author = "web", "prod", &v1alpha1.Identity{Username: "ann"}
	message := state.decide().message
	for _, text := range []string{"The author of the stack, ann, has no right to create plans.hykube.io", "kubectl hykube stack takeover web -n prod."} {
		if !strings.Contains(message, text) {
			t.Errorf("%q lacks %q", message, text)
		}
	}
}

// TestAWaitingPlanOfALostAuthor expects that a stack whose plan waits offers no approval that cannot work: it names the author who
// left, or makes the plan again as the next author.
func TestAWaitingPlanOfALostAuthor(t *testing.T) {
	waiting := func(s *stackState) {
		p := planAt("web-1", 0, nil)
		p.Spec, p.Status.Stack = s.spec, &v1alpha1.PlanStack{Stack: "web", Contents: "new", Number: 1}
		noteStale(p.DeepCopy(), `The user "ann", who made the plan, has no rights.`, &p.Status.Conditions)
		s.plan, s.last = p, snapshot(p)
	}
	gone := stackWith(waiting, func(s *stackState) { s.missing, s.unknown = "create plans.hykube.io", true }).decide()
	for _, text := range []string{"The author of the stack, ann, has no rights: the token file of the server names the user no more.", "kubectl hykube stack takeover web -n prod"} {
		if gone.reason != v1alpha1.ReasonMissingRights || !strings.Contains(gone.message, text) {
			t.Errorf("%s: %q lacks %q", gone.reason, gone.message, text)
		}
	}
	if strings.Contains(gone.message, "approve") || strings.Contains(gone.message, "Give the right back") {
		t.Errorf("it says %q", gone.message)
	}
	if next := stackWith(waiting).decide(); !next.make {
		t.Errorf("with another author: %s %s", next.reason, next.message)
	}
}

// TestContentsThatChangeAgain has the contents of a stack change to others and back, before and after the end of its plan.
func TestContentsThatChangeAgain(t *testing.T) {
	c := &Stacks{seen: map[types.UID]seenContents{}}
	plan := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{UID: "plan"}}
	see := func(contents string) bool {
		s := &stackState{stack: &v1alpha1.Stack{}, plan: plan, selected: &planning.Selection{Contents: contents}, now: stackNow}
		c.noteContents(s)
		return s.changedSince
	}
	for _, contents := range []string{"deleted", "kept", "deleted"} {
		if see(contents) {
			t.Errorf("%s: changed after the end of a plan that waits", contents)
		}
	}
	ended(v1alpha1.ReasonDiscarded, false)(&plan.Status)
	if see("deleted") {
		t.Error("contents that stayed changed after the end of the plan")
	}
	if !see("kept") || !see("deleted") || !see("deleted") {
		t.Error("contents did not change after the end of the plan")
	}
}
