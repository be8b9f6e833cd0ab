package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/workflows"
)

func TestCountPlans(t *testing.T) {
	now := time.Now()
	plans := cache.NewStore(cache.MetaNamespaceKeyFunc)
	add := func(name, reason string, waited time.Duration) {
		p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name}}
		if reason != "" {
			condition.Waiting(&p.Status.Conditions, 1, reason, "")
		}
		if waited > 0 {
			condition.Set(&p.Status.Conditions, 1, v1alpha1.ConditionPlanned, true, v1alpha1.ReasonPlanned, "")
			p.Status.PlannedAt = &metav1.Time{Time: now.Add(-waited)}
		}
		if err := plans.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	add("new", "", 0)
	add("young", v1alpha1.ReasonAwaitingApproval, time.Minute)
	add("old", v1alpha1.ReasonAwaitingApproval, time.Hour)
	add("forged", "a reason of some client", 0)
	done := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "done"}}
	condition.Ready(&done.Status.Conditions, 1, v1alpha1.ReasonApplied, "")
	condition.Set(&done.Status.Conditions, 1, v1alpha1.ConditionPlanned, true, v1alpha1.ReasonPlanned, "")
	done.Status.PlannedAt = &metav1.Time{Time: now.Add(-24 * time.Hour)}
	if err := plans.Add(done); err != nil {
		t.Fatal(err)
	}
	byState, oldest := countPlans(plans, now)
	want := map[string]int{"Planning": 1, "AwaitingApproval": 2, "Applied": 1, "Other": 1}
	if diff := cmp.Diff(want, byState); diff != "" || oldest != time.Hour {
		t.Errorf("states (-want +got):\n%s\noldest %s, want 1h", diff, oldest)
	}
}

func TestOverdueRuns(t *testing.T) {
	start := time.Date(2026, 11, 24, 12, 0, 30, 0, time.UTC)
	stack := func(change func(*v1alpha1.Stack)) *v1alpha1.Stack {
		s := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{UID: "u", Generation: 1}}
		s.Spec.Drift = &v1alpha1.StackDrift{Schedule: "0 * * * *"}
		if change != nil {
			change(s)
		}
		return s
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Stack)
		want   time.Duration
	}{
		"the server has just started":     {nil, 29*time.Minute + 30*time.Second},
		"it ran":                          {func(s *v1alpha1.Stack) { ran(s, start.Add(time.Hour)) }, 0},
		"suspended":                       {func(s *v1alpha1.Stack) { s.Spec.Suspend = true }, 0},
		"a check runs":                    {func(s *v1alpha1.Stack) { ran(s, start); s.Status.Drift.Last = nil }, 0},
		"an edit sets another schedule":   {func(s *v1alpha1.Stack) { s.Generation = 2 }, 0},
		"no schedule, but checks by hand": {func(s *v1alpha1.Stack) { s.Spec.Drift.Schedule = "" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var o overdue
			o.find([]*v1alpha1.Stack{stack(nil)}, start)
			got := o.find([]*v1alpha1.Stack{stack(tc.change)}, start.Add(89*time.Minute))[workflows.DriftCheckName]
			if got = max(got, 0); got != tc.want {
				t.Errorf("overdue for %s, want %s", got, tc.want)
			}
		})
	}
}

// ran notes a check that was requested at a time and has ended.
func ran(s *v1alpha1.Stack, at time.Time) {
	s.Status.Drift = &v1alpha1.StackDriftStatus{
		Requested: &v1alpha1.StackRequest{ID: "1", At: metav1.NewTime(at)}, Last: &v1alpha1.DriftCheck{ID: "1"},
	}
}
