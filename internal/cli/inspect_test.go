package cli

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestStatusOfNamespace(t *testing.T) {
	f := newFakeServer(t)
	f.planning = creates
	f.run("plan", "--record", "-f", write(t, firstFiles))
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

func TestStatusOfAllNamespaces(t *testing.T) {
	f := newFakeServer(t)
	if out, _, code := f.run("status", "-A"); code != ExitDone || out != "No namespace has resources or plans.\n" {
		t.Errorf("code %d: %s", code, out)
	}
	f.run("plan", "--record", "-f", write(t, firstFiles))
	out, errOut, code := f.run("status", "-A")
	for _, want := range []string{"Namespace default: 2 resources", "2  AwaitingPlan", "plan-x7k2d"} {
		if code != ExitDone || !strings.Contains(out, want) {
			t.Errorf("missing %q in (%d, %s):\n%s", want, code, errOut, out)
		}
	}
	for _, args := range [][]string{{"status", "-A", "plan-x7k2d"}, {"status", "-A", "--watch"}} {
		if _, errOut, code := f.run(args...); code != ExitError || !strings.Contains(errOut, "namespace") {
			t.Errorf("%v: code %d: %s", args, code, errOut)
		}
	}
}

func TestPlanObject(t *testing.T) {
	f := newFakeServer(t)
	f.planning = creates
	out, errOut, code := f.run("plan", "--record", "-f", write(t, firstFiles), "-o", "name", "--detailed-exitcode")
	if out != "plan.hykube.io/plan-x7k2d\n" || code != ExitChanges || !strings.Contains(errOut, "sim-subnet.sim.hykube.io/a created") {
		t.Errorf("code %d, out %q, err %q", code, out, errOut)
	}
	out, _, _ = f.run("plan", "--target", "sim-network/main", "--replace", "sim_network.main", "--refresh=none", "-l", "team=infra", "--invoke", "action.sim_reboot.now", "-o", "yaml")
	for _, want := range []string{"- sim_network.main", "refresh: None", "- action.sim_reboot.now", "team: infra", "replace:"} {
		if !strings.Contains(out, want) {
			t.Errorf("missing %q in:\n%s", want, out)
		}
	}
	if out, _, _ = f.run("plan", "-l", "team=infra", "--exclude", "sim-subnet/a", "-o", "yaml"); !strings.Contains(out, "exclude:\n  - sim_subnet.a") {
		t.Errorf("missing what is excluded in:\n%s", out)
	}
	for _, tc := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"what to plan and what to leave out", []string{"--target", "sim_network.a", "--exclude", "sim_network.b"}, "--target and --exclude exclude each other"},
		{"files say what to plan", []string{"-f", "x.yaml", "--exclude", "sim_network.b"}, "add --all, or leave out the files"},
		{"nothing is replaced where all is destroyed", []string{"--destroy", "--replace", "sim_network.main"}, "--destroy neither replaces"},
		{"a refresh invokes nothing", []string{"--refresh-only", "--invoke", "action.sim_reboot.now"}, "--refresh-only changes nothing"},
		{"only actions are invoked", []string{"--invoke", "sim_network.main"}, "only actions can be named here"},
		{"nothing is asked for and excluded", []string{"--target", "sim_network.main", "--exclude", "sim-network/main"}, "exclude each other"},
	} {
		if _, errOut, code := f.run(append([]string{"plan"}, tc.args...)...); code != ExitError || !strings.Contains(errOut, tc.want) {
			t.Errorf("%s: code %d: %s", tc.reason, code, errOut)
		}
	}
	// An action alone is planned alone; beside other things it is one of them.
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"--invoke", "action-sim-reboot/now"}, []string{"action.sim_reboot.now"}},
		{[]string{"--invoke", "action-sim-reboot/now", "--target", "sim_network.main"}, []string{"sim_network.main", "action.sim_reboot.now"}},
		{[]string{"--invoke", "action-sim-reboot/now", "--all"}, nil},
		{[]string{"--record", "-f", write(t, firstFiles), "--invoke", "action-sim-reboot/now"}, []string{"sim_subnet.a", "sim_network.main", "action.sim_reboot.now"}},
	} {
		f.run(append([]string{"plan"}, tc.args...)...)
		if got := f.plans["default/plan-x7k2d"].Spec.Targets; !cmp.Equal(got, tc.want) {
			t.Errorf("%v: targets %v", tc.args, got)
		}
	}
}

func TestProviderList(t *testing.T) {
	f := newFakeServer(t)
	if _, errOut, code := f.run("provider", "list"); code != 0 || !strings.Contains(errOut, "No providers") {
		t.Errorf("code %d: %s", code, errOut)
	}
	f.planning = creates
	f.run("plan", "--record", "-f", write(t, firstFiles))
	out, _, code := f.run("provider", "list")
	if code != 0 || !strings.Contains(out, "sim    hykube/sim   1.0.0") {
		t.Errorf("code %d: %q", code, out)
	}
	if out, _, _ = f.run("provider", "list", "-o", "name"); out != "provider.hykube.io/sim\n" {
		t.Error(out)
	}
	if out, _, _ = f.run("show", "plan-x7k2d", "-o", "name"); out != "plan.hykube.io/plan-x7k2d\n" {
		t.Error(out)
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
	if _, errOut, _ := f.run("get", "pods"); !strings.Contains(errOut, "use kubectl: kubectl get pods") {
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

// A user who may not list a kind still sees the others.
func TestStatusWithoutRights(t *testing.T) {
	f := newFakeServer(t)
	f.planning = creates
	f.run("plan", "--record", "-f", write(t, firstFiles))
	f.refuse = func(r *http.Request) *metav1.Status {
		if strings.HasSuffix(r.URL.Path, "/sim-subnets") {
			return status(403, metav1.StatusReasonForbidden, "you may not")
		}
		return nil
	}
	out, errOut, code := f.run("status")
	for _, want := range []string{"Namespace default: 1 resource\n", "you may not list sim-subnets.sim.hykube.io in namespace default, so they are not counted."} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("missing %q in (%d, %s):\n%s", want, code, errOut, out)
		}
	}
	if out, errOut, code = f.run("graph"); code != 0 || !strings.Contains(errOut, "so they are not drawn") || !strings.Contains(out, "sim_network.main") {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
}

func TestCompletion(t *testing.T) {
	f := newFakeServer(t)
	f.planning = creates
	f.run("plan", "--record", "-f", write(t, firstFiles))
	for _, tc := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"a plan that waits can be approved", []string{"approve", ""}, "plan-x7k2d\twaits for approval\n"},
		{"kinds first", []string{"taint", ""}, "sim-network/\nsim-subnet/\n:6\n"},
		{"then the names of one", []string{"taint", "sim-network/"}, "sim-network/main\n:4\n"},
		{"only actions are invoked", []string{"plan", "--invoke", ""}, "action-sim-reboot/\n:6\n"},
		{"anything is targeted", []string{"plan", "--target", "d"}, "data-sim-image/\n"},
		{"types are queried", []string{"query", ""}, "sim_network\nsim_subnet\n:4\n"},
		{"what -o takes", []string{"query", "-o", ""}, "table\nyaml\njson\nname\n:4\n"},
	} {
		if out, errOut, _ := f.run(append([]string{"__complete"}, tc.args...)...); !strings.Contains(out, tc.want) {
			t.Errorf("%s: missing %q in:\n%s%s", tc.reason, tc.want, out, errOut)
		}
	}
	f.run("approve", "plan-x7k2d", "--digest", "sha256:abc")
	if out, _, _ := f.run("__complete", "approve", ""); strings.Contains(out, "plan-x7k2d") {
		t.Errorf("a plan that is over is offered for approval:\n%s", out)
	}
	if out, _, _ := f.run("__complete", "show", ""); !strings.Contains(out, "plan-x7k2d\tapplied") {
		t.Error(out)
	}
}

const otherModes = firstFiles + `---
apiVersion: sim.hykube.io/v1
kind: data-sim-image
metadata: {name: base}
spec: {name: "${sim_network.main.name}"}
---
apiVersion: sim.hykube.io/v1
kind: ephemeral-sim-token
metadata: {name: t}
spec: {audience: "${data.sim_image.base.id}"}
---
apiVersion: sim.hykube.io/v1
kind: action-sim-reboot
metadata: {name: now}
spec: {instance: "${namespace.default.sim_subnet.a.id}"}
lifecycle: {dependsOn: [data.sim_image.base]}
`

// Data sources, ephemeral resources and actions are recorded like resources; a plan is made of what can be planned, and
// only resources are destroyed.
func TestOtherModes(t *testing.T) {
	f := newFakeServer(t)
	f.planning = creates
	file := write(t, otherModes)
	f.run("plan", "--record", "-f", file)
	if d := cmp.Diff([]string{"sim_subnet.a", "sim_network.main", "data.sim_image.base", "action.sim_reboot.now"}, f.plans["default/plan-x7k2d"].Spec.Targets); d != "" {
		t.Errorf("targets (-want +got):\n%s", d)
	}
	f.run("destroy", "-f", file, "--auto-approve")
	if d := cmp.Diff([]string{"sim_subnet.a", "sim_network.main"}, f.plans["default/destroy-x7k2d"].Spec.Targets); d != "" {
		t.Errorf("targets of the destroy (-want +got):\n%s", d)
	}
	if _, errOut, code := f.run("destroy", "data.sim_image.base", "--auto-approve"); code != ExitError || !strings.Contains(errOut, "kubectl delete removes other objects") {
		t.Errorf("code %d: %s", code, errOut)
	}
	out, _, _ := f.run("status")
	if !strings.Contains(out, "Namespace default: 2 resources, 1 data source, 1 ephemeral resource, 1 action\n") {
		t.Error(out)
	}
	for _, args := range [][]string{{"graph", "-f", file}, {"graph"}} {
		out, _, _ = f.run(args...)
		for _, want := range []string{
			`"data.sim_image.base" -> "sim_network.main"`, `"ephemeral.sim_token.t" -> "data.sim_image.base"`,
			`"action.sim_reboot.now" -> "data.sim_image.base"`, `"sim_subnet.a" -> "sim_network.main"`,
		} {
			if !strings.Contains(out, want) {
				t.Errorf("%v: missing %s in:\n%s", args, want, out)
			}
		}
	}
	only := write(t, "apiVersion: sim.hykube.io/v1\nkind: ephemeral-sim-token\nmetadata: {name: t}\n")
	if out, _, code := f.run("apply", "-f", only, "--auto-approve"); code != 0 || !strings.Contains(out, "nothing to plan") {
		t.Errorf("code %d: %s", code, out)
	}
}

// The output has a diagnostic once if the plan repeats it from its changes.
func TestDiagnosticsOnce(t *testing.T) {
	f := newFakeServer(t)
	d := v1alpha1.Diagnostic{Severity: v1alpha1.SeverityWarning, Summary: "Deprecated", Address: "sim_network.main"}
	f.planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		p.Spec.Targets = []string{"sim_network.main"}
		out := creates(p)
		out[0].Diagnostics = []v1alpha1.Diagnostic{d}
		p.Status.Diagnostics = out[0].Diagnostics
		return out
	}
	if _, errOut, _ := f.run("plan"); strings.Count(errOut, "Deprecated") != 1 {
		t.Error(errOut)
	}
}

// status explains each reason of resources that docs/waiting.md lists.
func TestStatusExplainsEveryReason(t *testing.T) {
	text, err := os.ReadFile("../../docs/waiting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(text), "| resource, data source, action |")
	rows, _, found := strings.Cut(rows, "## ")
	if !found || !strings.Contains(rows, v1alpha1.ReasonUndeleted) {
		t.Fatal("docs/waiting.md has no table of the reasons")
	}
	for _, m := range regexp.MustCompile("`(?:True |False )?([A-Z][A-Za-z]+)`").FindAllStringSubmatch(rows, -1) {
		if reasonWords(m[1]) == m[1] {
			t.Errorf("no words for %s", m[1])
		}
	}
}
