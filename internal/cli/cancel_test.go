package cli

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
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
			if got := waitsFor(p, tc.running); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	p := &v1alpha1.Plan{Status: v1alpha1.PlanStatus{Approval: &v1alpha1.PlanApproval{}, Cancel: &v1alpha1.PlanCancel{}}}
	condition.Reconciling(&p.Status.Conditions, 1, v1alpha1.ReasonCancelling, "waiting")
	if !cancelling(p) || planState(p) != "cancelling" || whyCancelling(p) != "waiting" {
		t.Errorf("under way: %t, %q, %q", cancelling(p), planState(p), whyCancelling(p))
	}
	condition.Stalled(&p.Status.Conditions, 1, v1alpha1.ReasonCancelled, "over")
	if cancelling(p) || planState(p) != "cancelled" || whyCancelling(p) != "" {
		t.Errorf("over: %t, %q, %q", cancelling(p), planState(p), whyCancelling(p))
	}
}
