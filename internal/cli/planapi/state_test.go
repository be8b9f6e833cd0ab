package planapi

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/condition"
)

func TestWhatACancelledPlanWaitsFor(t *testing.T) {
	running := func(addr string, ago time.Duration) *v1alpha1.PlanChange {
		return &v1alpha1.PlanChange{Address: addr, State: v1alpha1.ChangeRunning, StartedAt: new(metav1.NewTime(time.Now().Add(-ago)))}
	}
	for name, tc := range map[string]struct {
		progress *v1alpha1.PlanProgress
		running  []*v1alpha1.PlanChange
		want     string
	}{
		"nothing":  {nil, nil, "cancelling"},
		"one call": {nil, []*v1alpha1.PlanChange{running("sim_instance.web", 40*time.Second)}, "cancelling: waiting for 1 running call (sim_instance.web, 40s)"},
		"two calls": {&v1alpha1.PlanProgress{Running: 2}, []*v1alpha1.PlanChange{running("a.a", 3*time.Second), running("b.b", 2*time.Minute)},
			"cancelling: waiting for 2 running calls (a.a, 3s; b.b, 2m0s)"},
		"many calls": {&v1alpha1.PlanProgress{Running: 5}, []*v1alpha1.PlanChange{running("a.a", 0), running("b.b", 0), running("c.c", 0), running("d.d", 0), running("e.e", 0)},
			"cancelling: waiting for 5 running calls (a.a, 0s; b.b, 0s; c.c, 0s; and 2 more)"},
		"a large plan, of which the counts alone are known": {&v1alpha1.PlanProgress{Running: 7}, nil, "cancelling: waiting for 7 running calls"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.Plan{Status: v1alpha1.PlanStatus{Progress: tc.progress}}
			if got := WaitsFor(p, tc.running); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	p := &v1alpha1.Plan{Status: v1alpha1.PlanStatus{Approval: &v1alpha1.PlanApproval{}, Cancel: &v1alpha1.PlanCancel{}}}
	condition.Reconciling(&p.Status.Conditions, 1, v1alpha1.ReasonCancelling, "waiting")
	if !Cancelling(p) || State(p) != "cancelling" || WhyCancelling(p) != "waiting" {
		t.Errorf("under way: %t, %q, %q", Cancelling(p), State(p), WhyCancelling(p))
	}
	condition.Stalled(&p.Status.Conditions, 1, v1alpha1.ReasonCancelled, "over")
	if Cancelling(p) || State(p) != "cancelled" || WhyCancelling(p) != "" {
		t.Errorf("over: %t, %q, %q", Cancelling(p), State(p), WhyCancelling(p))
	}
}

func TestPlanState(t *testing.T) {
	p := &v1alpha1.Plan{}
	set := func(typ string, ok bool, reason string) {
		status := metav1.ConditionFalse
		if ok {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: typ, Status: status, Reason: reason})
	}
	step := func(want string) {
		t.Helper()
		if got := State(p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	step("planning")
	set(v1alpha1.ConditionReady, false, v1alpha1.ReasonPlanning)
	step("planning")
	set(v1alpha1.ConditionPlanned, true, v1alpha1.ReasonPlanned)
	step("waits for approval")
	p.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved}
	step("applying")
	set(v1alpha1.ConditionStalled, true, v1alpha1.ReasonApplyFailed)
	step("failed")
	set(v1alpha1.ConditionStale, true, v1alpha1.ReasonStale)
	step("stale")
}

// The server removes a speculative plan when the command ends, so the error does not name it.
func TestBlockedSpeculativePlanHasNoName(t *testing.T) {
	p := &v1alpha1.Plan{Spec: v1alpha1.PlanSpec{Speculative: true}}
	p.Name = "apply-fbrbn"
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSpeculative}}
	if err := isBlocked(p); exit.Code(err) != exit.Refused || strings.Contains(err.Error(), p.Name) || !strings.Contains(err.Error(), "preventDestroy") {
		t.Error(err)
	}
}
