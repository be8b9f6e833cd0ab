package cli

import (
	"strings"
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

// Each pause of a rollout has one line, and none when it ends.
func TestFollowPrintsThePausesOfARollout(t *testing.T) {
	pauses := []string{
		`The rollout of the ResourceSet "fleet" pauses until 08:00:00Z, after wave 1 of 3.`,
		`The rollout of the ResourceSet "fleet" pauses until 08:05:00Z, after wave 2 of 3.`,
	}
	f := newFakeServer(t)
	f.planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
		return []v1alpha1.PlanChange{{Address: "sim_network.main", Type: "sim_network", Action: v1alpha1.ActionCreate}}
	}
	if _, errOut, code := f.run("plan"); code != ExitDone {
		t.Fatal(errOut)
	}
	f.watches = nil
	f.applying = func(f *fakeServer, p *v1alpha1.Plan) {
		for end, followed := time.Now().Add(10*time.Second), false; !followed; time.Sleep(time.Millisecond) {
			f.mu.Lock()
			followed = len(f.watches) > 0
			f.mu.Unlock()
			if time.Now().After(end) {
				t.Error("the command does not watch the plan")
				break
			}
		}
		f.mu.Lock()
		for _, text := range pauses {
			f.set(p, v1alpha1.ConditionReady, false, v1alpha1.ReasonRolloutPaused, text)
			f.touch(p) // another write in the pause
			f.set(p, v1alpha1.ConditionReady, false, v1alpha1.ReasonApplying, "the apply is in progress")
		}
		f.applying = nil
		f.mu.Unlock()
		f.apply(p)
	}
	out, errOut, code := f.run("approve", "plan-x7k2d")
	if code != ExitDone || strings.Count(out, "The rollout") != 2 || !strings.Contains(out, "\n"+strings.Join(pauses, "\n")+"\n") {
		t.Errorf("code %d, stderr %q:\n%s", code, errOut, out)
	}
}
