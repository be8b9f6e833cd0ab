package cli

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

// The server records times without fractions of a second.
func TestNoChangeRunsLongerThanItsApply(t *testing.T) {
	now := time.Date(2026, 11, 22, 8, 0, 1, 400e6, time.UTC)
	second := new(metav1.NewTime(now.Truncate(time.Second)))
	minute := new(metav1.NewTime(second.Add(-time.Minute)))
	for name, tc := range map[string]struct {
		approved, started *metav1.Time
		apply, change     time.Duration
	}{
		"followed from its start":    {second, second, 300 * time.Millisecond, 300 * time.Millisecond},
		"followed a minute later":    {minute, second, time.Minute + 400*time.Millisecond, 400 * time.Millisecond},
		"a clock of the future":      {second, new(metav1.NewTime(now.Add(time.Hour))), 300 * time.Millisecond, 0},
		"an approval without a time": {nil, second, 300 * time.Millisecond, 300 * time.Millisecond},
	} {
		f := &follower{plan: &v1alpha1.Plan{Status: v1alpha1.PlanStatus{Approval: &v1alpha1.PlanApproval{At: tc.approved}}}, began: now.Add(-300 * time.Millisecond)}
		if apply, change := f.applying(now), f.runningFor(now, &v1alpha1.PlanChange{StartedAt: tc.started}); apply != tc.apply || change != tc.change {
			t.Errorf("%s: the apply runs for %s, the change for %s; want %s and %s", name, apply, change, tc.apply, tc.change)
		}
	}
}
