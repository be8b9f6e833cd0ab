package cli

import (
	"fmt"
	"slices"
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
	out, errOut, code := f.run("approve", "plan-x7k2d", "--digest", "sha256:abc")
	if code != ExitDone || strings.Count(out, "The rollout") != 2 || !strings.Contains(out, "\n"+strings.Join(pauses, "\n")+"\n") {
		t.Errorf("code %d, stderr %q:\n%s", code, errOut, out)
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

// The apply of a large plan, of which only the counts are read, names the first failure while it runs.
func TestFirstFailureOfALargePlan(t *testing.T) {
	f := newFakeServer(t)
	f.planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
		out := make([]v1alpha1.PlanChange, eachChange+50)
		for i := range out {
			out[i] = v1alpha1.PlanChange{Index: int32(i), Address: fmt.Sprintf("sim_network.n%d", i), Type: "sim_network", Action: v1alpha1.ActionCreate, State: v1alpha1.ChangePending}
		}
		return out
	}
	if _, errOut, code := f.run("plan"); code != ExitDone {
		t.Fatal(errOut)
	}
	f.applying = func(f *fakeServer, p *v1alpha1.Plan) {
		f.mu.Lock()
		changes := f.changes["default/plan-x7k2d"]
		changes[7].State, changes[7].Message = v1alpha1.ChangeFailed, "Can't create"
		changes[7].Diagnostics = []v1alpha1.Diagnostic{{Severity: v1alpha1.SeverityError, Summary: "Can't create", Detail: "quota exceeded"}}
		p.Status.Progress = &v1alpha1.PlanProgress{Total: int32(len(changes)), Done: 20, Failed: 1}
		f.touch(p)
		f.calls = nil
		f.mu.Unlock()
		for end, read := time.Now().Add(10*time.Second), false; !read; time.Sleep(time.Millisecond) {
			f.mu.Lock()
			read = slices.ContainsFunc(f.calls, func(call string) bool { return strings.HasSuffix(call, "/changes") })
			f.mu.Unlock()
			if time.Now().After(end) {
				t.Error("the command does not read the failure while the plan is applied")
				break
			}
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonApplyFailed, "1 change failed")
	}
	out, errOut, code := f.run("approve", "plan-x7k2d", "--digest", "sha256:abc")
	if code != ExitError || !strings.Contains(out, "sim_network.n7: Creation failed: Can't create: quota exceeded\n") {
		t.Errorf("code %d, stderr %q:\n%s", code, errOut, out)
	}
}
