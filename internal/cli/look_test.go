package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestStatusOfNamespace(t *testing.T) {
	f := newFakeServer(t)
	f.planning = creates
	f.run("plan", "-f", write(t, firstFiles))
	f.put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network",
		"metadata": map[string]any{"name": "bad", "namespace": "default"},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "ApplyFailed", "message": "Quota exceeded"}}}}}, "sim-networks")
	out, errOut, code := f.run("status")
	for _, want := range []string{"Namespace default: 3 resources", "2  AwaitingPlan", "sim-network/bad: ApplyFailed: Quota exceeded", "plan-x7k2d", "waits for approval"} {
		if !strings.Contains(out, want) {
			t.Errorf("missing %q in (%d, %s):\n%s", want, code, errOut, out)
		}
	}
}

func TestPlanObject(t *testing.T) {
	f := newFakeServer(t)
	f.planning = creates
	out, errOut, code := f.run("plan", "-f", write(t, firstFiles), "-o", "name", "--detailed-exitcode")
	if out != "plan.hykube.io/plan-x7k2d\n" || code != ExitChanges || !strings.Contains(errOut, "sim-subnet.sim.hykube.io/a created") {
		t.Errorf("code %d, out %q, err %q", code, out, errOut)
	}
	out, _, _ = f.run("plan", "--target", "sim-network/main", "--replace", "sim_network.main", "--refresh=none", "-l", "team=infra", "--destroy", "-o", "yaml")
	for _, want := range []string{"- sim_network.main", "refresh: None", "destroy: true", "team: infra", "replace:"} {
		if !strings.Contains(out, want) {
			t.Errorf("missing %q in:\n%s", want, out)
		}
	}
}

func TestProviderList(t *testing.T) {
	f := newFakeServer(t)
	if _, errOut, code := f.run("provider", "list"); code != 0 || !strings.Contains(errOut, "No providers") {
		t.Errorf("code %d: %s", code, errOut)
	}
	f.planning = creates
	f.run("plan", "-f", write(t, firstFiles))
	out, _, code := f.run("provider", "list")
	if code != 0 || !strings.Contains(out, "sim    hykube/sim   1.0.0") {
		t.Errorf("code %d: %q", code, out)
	}
}

func TestVersionAndHelp(t *testing.T) {
	f := newFakeServer(t)
	if out, _, code := f.run("version"); code != 0 || !strings.Contains(out, "Client: dev") || !strings.Contains(out, "Server: v0.1.0") {
		t.Errorf("code %d: %s", code, out)
	}
	if _, errOut, code := f.run("aply"); code != ExitError || !strings.Contains(errOut, `did you mean "apply"?`) {
		t.Errorf("code %d: %s", code, errOut)
	}
	if _, errOut, _ := f.run("get"); !strings.Contains(errOut, "kubectl does that itself") {
		t.Error(errOut)
	}
	if out, _, _ := f.run("completion", "kubectl"); !strings.Contains(out, "exec kubectl-hykube __complete") {
		t.Error(out)
	}
	if out, _, _ := f.run("__complete", "show", ""); !strings.Contains(out, ":4") {
		t.Error(out)
	}
}

// Every verb has a line, a text and an example that names itself, and no flag hides one of kubectl's own.
func TestEveryVerbIsDocumented(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	root := NewCommand(streams)
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.Name() == "help" {
				continue
			}
			if sub.Short == "" || !strings.Contains(sub.Example, "kubectl hykube "+strings.TrimPrefix(sub.CommandPath(), "kubectl hykube ")) {
				t.Errorf("%s: no runnable example", sub.CommandPath())
			}
			walk(sub)
		}
	}
	walk(root)
}

func TestPlanState(t *testing.T) {
	f := newFakeServer(t)
	p := &v1alpha1.Plan{}
	step := func(want string) {
		t.Helper()
		if got := planState(p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	step("planning")
	f.set(p, v1alpha1.ConditionReady, false, v1alpha1.ReasonPlanning, "")
	step("planning")
	f.set(p, v1alpha1.ConditionPlanned, true, v1alpha1.ReasonPlanned, "")
	step("waits for approval")
	p.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved}
	step("applying")
	f.set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonApplyFailed, "")
	step("failed")
	f.set(p, v1alpha1.ConditionStale, true, v1alpha1.ReasonStale, "")
	step("stale")
}
