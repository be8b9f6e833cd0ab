package v1alpha1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPlanEnded(t *testing.T) {
	now := metav1.Now()
	condition := func(kind string, status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: status, Reason: reason}}
	}
	for name, tc := range map[string]struct {
		status PlanStatus
		want   bool
	}{
		"is new":                      {PlanStatus{}, false},
		"waits for approval":          {PlanStatus{PlannedAt: &now, Conditions: condition(ConditionReady, metav1.ConditionFalse, ReasonAwaitingApproval)}, false},
		"waits with blocked changes":  {PlanStatus{Conditions: condition(ConditionStalled, metav1.ConditionTrue, ReasonBlocked)}, false},
		"is being applied":            {PlanStatus{Conditions: condition(ConditionApproved, metav1.ConditionTrue, ReasonApproved)}, false},
		"is being cancelled":          {PlanStatus{Cancel: &PlanCancel{}, Conditions: condition(ConditionReconciling, metav1.ConditionTrue, ReasonCancelling)}, false},
		"was stalled once":            {PlanStatus{Conditions: condition(ConditionStalled, metav1.ConditionFalse, ReasonStale)}, false},
		"was discarded":               {PlanStatus{Conditions: condition(ConditionStalled, metav1.ConditionTrue, ReasonDiscarded)}, true},
		"was superseded a moment ago": {PlanStatus{Conditions: condition(ConditionStalled, metav1.ConditionTrue, ReasonSuperseded)}, true},
		"was applied":                 {PlanStatus{FinishedAt: &now, Conditions: condition(ConditionReady, metav1.ConditionTrue, ReasonApplied)}, true},
		"has ended, and was blocked":  {PlanStatus{FinishedAt: &now, Conditions: condition(ConditionStalled, metav1.ConditionTrue, ReasonBlocked)}, true},
	} {
		if got := (&Plan{Status: tc.status}).Ended(); got != tc.want {
			t.Errorf("a plan that %s: ended is %t", name, got)
		}
	}
}
