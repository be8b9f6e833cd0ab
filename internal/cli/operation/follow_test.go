package operation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

// Each pause of a rollout has one line, and none when it ends.
func TestFollowPrintsThePausesOfARollout(t *testing.T) {
	pauses := []string{
		`The rollout of the ResourceSet "fleet" pauses until 08:00:00Z, after wave 1 of 3.`,
		`The rollout of the ResourceSet "fleet" pauses until 08:05:00Z, after wave 2 of 3.`,
	}
	f := clitest.New(t, cli.Command)
	f.Planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
		return []v1alpha1.PlanChange{{Address: "sim_network.main", Type: "sim_network", Action: v1alpha1.ActionCreate}}
	}
	if _, errOut, code := f.Run("plan"); code != exit.Done {
		t.Fatal(errOut)
	}
	f.Watches = nil
	f.Applying = func(f *clitest.Server, p *v1alpha1.Plan) {
		for end, followed := time.Now().Add(10*time.Second), false; !followed; time.Sleep(time.Millisecond) {
			f.Mu.Lock()
			followed = len(f.Watches) > 0
			f.Mu.Unlock()
			if time.Now().After(end) {
				t.Error("the command does not watch the plan")
				break
			}
		}
		f.Mu.Lock()
		for _, text := range pauses {
			f.Set(p, v1alpha1.ConditionReady, false, v1alpha1.ReasonRolloutPaused, text)
			f.Touch(p) // another write in the pause
			f.Set(p, v1alpha1.ConditionReady, false, v1alpha1.ReasonApplying, "the apply is in progress")
		}
		f.Applying = nil
		f.Mu.Unlock()
		f.Apply(p)
	}
	out, errOut, code := f.Run("approve", "plan-x7k2d", "--digest", "sha256:abc")
	if code != exit.Done || strings.Count(out, "The rollout") != 2 || !strings.Contains(out, "\n"+strings.Join(pauses, "\n")+"\n") {
		t.Errorf("code %d, stderr %q:\n%s", code, errOut, out)
	}
}

// The apply of a large plan, of which only the counts are read, names the first failure while it runs.
func TestFirstFailureOfALargePlan(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
		out := make([]v1alpha1.PlanChange, 250)
		for i := range out {
			out[i] = v1alpha1.PlanChange{Index: int32(i), Address: fmt.Sprintf("sim_network.n%d", i), Type: "sim_network", Action: v1alpha1.ActionCreate, State: v1alpha1.ChangePending}
		}
		return out
	}
	if _, errOut, code := f.Run("plan"); code != exit.Done {
		t.Fatal(errOut)
	}
	f.Applying = func(f *clitest.Server, p *v1alpha1.Plan) {
		f.Mu.Lock()
		changes := f.Changes["default/plan-x7k2d"]
		changes[7].State, changes[7].Message = v1alpha1.ChangeFailed, "Can't create"
		changes[7].Diagnostics = []v1alpha1.Diagnostic{{Severity: v1alpha1.SeverityError, Summary: "Can't create", Detail: "quota exceeded"}}
		p.Status.Progress = &v1alpha1.PlanProgress{Total: int32(len(changes)), Done: 20, Failed: 1}
		f.Touch(p)
		f.Calls = nil
		f.Mu.Unlock()
		for end, read := time.Now().Add(10*time.Second), false; !read; time.Sleep(time.Millisecond) {
			f.Mu.Lock()
			read = slices.ContainsFunc(f.Calls, func(call string) bool { return strings.HasSuffix(call, "/changes") })
			f.Mu.Unlock()
			if time.Now().After(end) {
				t.Error("the command does not read the failure while the plan is applied")
				break
			}
		}
		f.Mu.Lock()
		defer f.Mu.Unlock()
		f.Set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonApplyFailed, "1 change failed")
	}
	out, errOut, code := f.Run("approve", "plan-x7k2d", "--digest", "sha256:abc")
	if code != exit.Failed || !strings.Contains(out, "sim_network.n7: Creation failed: Can't create: quota exceeded\n") {
		t.Errorf("code %d, stderr %q:\n%s", code, errOut, out)
	}
}
