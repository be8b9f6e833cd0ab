package plan_test

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

func TestShowSomeChanges(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
		one := func(typ, name string, a v1alpha1.Action) v1alpha1.PlanChange {
			return v1alpha1.PlanChange{Address: typ + "." + name, Type: typ, Object: v1alpha1.ObjectReference{Name: name}, Action: a}
		}
		return []v1alpha1.PlanChange{one("sim_network", "main", v1alpha1.ActionCreate), one("sim_subnet", "a", v1alpha1.ActionCreate), one("sim_subnet", "b", v1alpha1.ActionNoOp)}
	}
	f.Run("plan")
	out, errOut, code := f.Run("show", "plan-x7k2d", "sim-subnet/a", "sim_subnet.b")
	if code != exit.Done || !strings.Contains(out, "# sim_subnet.a will be created") || !strings.Contains(out, "sim_subnet.b: no change.") || strings.Contains(out, "sim_network") {
		t.Errorf("code %d: %s\n%s", code, out, errOut)
	}
	out, _, _ = f.Run("show", "plan-x7k2d", "sim_subnet.a", "-o", "json")
	if !strings.Contains(out, `"address": "sim_subnet.a"`) || strings.Contains(out, "sim_network.main") {
		t.Errorf("not one change: %s", out)
	}
	for _, tc := range []struct{ args, want string }{
		{"sim_subnet.a sim_netwrok.main", `plan "plan-x7k2d" has no change of sim_netwrok.main; did you mean "sim_network.main"?`},
		{"nonsense", `"nonsense" is not the address of a resource`},
		{"sim_subnet.a -o terraform-json", "is about a whole plan"},
	} {
		out, errOut, code := f.Run(append([]string{"show", "plan-x7k2d"}, strings.Fields(tc.args)...)...)
		if code != exit.Failed || !strings.Contains(errOut, tc.want) || out != "" {
			t.Errorf("%s: code %d: %s%s", tc.args, code, out, errOut)
		}
	}
}

// TestShowMatchingChanges restricts the changes of a plan by their outcome and by a text.
func TestShowMatchingChanges(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
		one := func(name string, state v1alpha1.ChangeState, message string) v1alpha1.PlanChange {
			return v1alpha1.PlanChange{Address: "sim_network." + name, Type: "sim_network", Object: v1alpha1.ObjectReference{Name: name},
				Action: v1alpha1.ActionCreate, State: state, Message: message}
		}
		return []v1alpha1.PlanChange{one("good", v1alpha1.ChangeDone, ""), one("full", v1alpha1.ChangeFailed, "Quota exceeded"),
			one("busy", v1alpha1.ChangeFailed, "Conflict"), one("lost", v1alpha1.ChangeUnknown, "no answer")}
	}
	f.Run("plan")
	for _, tc := range []struct {
		args string
		want []string
	}{
		{"--failed", []string{"full", "busy", "lost"}},
		{"--match QUOTA", []string{"full"}},
		{"--match sim_network.GOOD", []string{"good"}},
		{"--failed --match good", nil},
		{"--failed -o json", []string{"full", "busy", "lost"}},
	} {
		out, errOut, code := f.Run(append([]string{"show", "plan-x7k2d"}, strings.Fields(tc.args)...)...)
		for _, name := range []string{"good", "full", "busy", "lost"} {
			if strings.Contains(out, "sim_network."+name) != slices.Contains(tc.want, name) || code != exit.Done {
				t.Errorf("%s: code %d, about %s: %s%s", tc.args, code, name, out, errOut)
			}
		}
		if !strings.Contains(tc.args, "json") && !strings.Contains(out, fmt.Sprint(len(tc.want), " of the 4 changes of plan plan-x7k2d.")) {
			t.Errorf("%s: no count in %s", tc.args, out)
		}
	}
	f.HasNamespace("default")
	// Without a plan, it is the last one that failed.
	if _, errOut, code := f.Run("show", "--failed"); code != exit.Failed ||
		!strings.Contains(errOut, `no plan of namespace "default" has failed changes`) {
		t.Errorf("code %d: %s", code, errOut)
	}
	failed := f.Plans["default/plan-x7k2d"]
	failed.Status.Progress = &v1alpha1.PlanProgress{Total: 4, Done: 1, Failed: 3}
	older, later := failed.DeepCopy(), failed.DeepCopy()
	older.Name, older.CreationTimestamp.Time = "plan-older", older.CreationTimestamp.Add(-time.Hour)
	later.Name, later.CreationTimestamp.Time = "plan-later", later.CreationTimestamp.Add(time.Hour)
	later.Status.Progress.Failed = 0
	f.Plans["default/plan-older"], f.Plans["default/plan-later"] = older, later
	out, errOut, code := f.Run("show", "--failed")
	if code != exit.Done || !strings.Contains(out, "3 of the 4 changes of plan plan-x7k2d.") {
		t.Errorf("code %d: %s%s", code, out, errOut)
	}
	if _, errOut, code := f.Run("show", "plan-x7k2d", "--failed", "-o", "terraform-json"); code != exit.Failed || !strings.Contains(errOut, "leave --failed and --match out") {
		t.Errorf("code %d: %s", code, errOut)
	}
}
