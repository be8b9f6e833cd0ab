package operation

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

// The rest of an apply is estimated from the part that has ended.
func TestLeftText(t *testing.T) {
	for _, tc := range []struct {
		reason       string
		ended, total int
		since        time.Duration
		want         string
	}{
		{"too early", 10, 100, 5 * time.Second, ""},
		{"nothing has ended", 0, 100, time.Minute, ""},
		{"all has ended", 100, 100, time.Minute, ""},
		{"seconds", 90, 100, time.Minute, "less than 1m left"},
		{"minutes", 25, 100, time.Minute, "about 3m left"},
		{"hours", 1, 100, 2 * time.Minute, "about 3h18m left"},
	} {
		if got := leftText(tc.ended, tc.total, tc.since); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// The line about a plan that is made has the server's words about its progress.
func TestPlanningLine(t *testing.T) {
	p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "plan-x"}}
	if got := planningLine(p, 44*time.Second); got != "Planning plan-x... 44s" {
		t.Error(got)
	}
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Message: "412287 of 1000000 changes are planned, about 4m38s left."}}
	if got := planningLine(p, 44*time.Second); got != "Planning plan-x... 44s: 412287 of 1000000 changes are planned, about 4m38s left." {
		t.Error(got)
	}
}

// The message of a change may have the detail of its error.
func TestADetailIsPrintedOnce(t *testing.T) {
	c := &v1alpha1.PlanChange{Diagnostics: []v1alpha1.Diagnostic{
		{Severity: v1alpha1.SeverityWarning, Summary: "Old", Detail: "The image is old."},
		{Severity: v1alpha1.SeverityError, Summary: "Refused", Detail: "The quota is\nexhausted."},
	}}
	for line, want := range map[string]string{
		"sim_network.a: failed: Refused":                          "sim_network.a: failed: Refused: The quota is exhausted.",
		"sim_network.a: failed: Refused: The quota is exhausted.": "sim_network.a: failed: Refused: The quota is exhausted.",
	} {
		if got := withDetail(line, c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := withDetail("a", &v1alpha1.PlanChange{}); got != "a" {
		t.Errorf("%q without an error", got)
	}
}
