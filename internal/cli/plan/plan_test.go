package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

func TestPlanObject(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Creates
	out, errOut, code := f.Run("plan", "--record", "-f", clitest.Write(t, clitest.FirstFiles), "-o", "name", "--detailed-exitcode")
	if out != "plan.hykube.io/plan-x7k2d\n" || code != exit.Changes || !strings.Contains(errOut, "sim-subnet.sim.hykube.io/a created") {
		t.Errorf("code %d, out %q, err %q", code, out, errOut)
	}
	out, _, _ = f.Run("plan", "--target", "sim-network/main", "--replace", "sim_network.main", "--refresh=none", "-l", "team=infra", "--invoke", "action.sim_reboot.now", "-o", "yaml")
	for _, want := range []string{"- sim_network.main", "refresh: None", "- action.sim_reboot.now", "team: infra", "replace:"} {
		if !strings.Contains(out, want) {
			t.Errorf("missing %q in:\n%s", want, out)
		}
	}
	if out, _, _ = f.Run("plan", "-l", "team=infra", "--exclude", "sim-subnet/a", "-o", "yaml"); !strings.Contains(out, "exclude:\n  - sim_subnet.a") {
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
		if _, errOut, code := f.Run(append([]string{"plan"}, tc.args...)...); code != exit.Failed || !strings.Contains(errOut, tc.want) {
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
		{[]string{"--record", "-f", clitest.Write(t, clitest.FirstFiles), "--invoke", "action-sim-reboot/now"}, []string{"sim_subnet.a", "sim_network.main", "action.sim_reboot.now"}},
	} {
		f.Run(append([]string{"plan"}, tc.args...)...)
		if got := f.Plans["default/plan-x7k2d"].Spec.Targets; !cmp.Equal(got, tc.want) {
			t.Errorf("%v: targets %v", tc.args, got)
		}
	}
}

// The output has a diagnostic once if the plan repeats it from its changes.
func TestDiagnosticsOnce(t *testing.T) {
	f := clitest.New(t, cli.Command)
	d := v1alpha1.Diagnostic{Severity: v1alpha1.SeverityWarning, Summary: "Deprecated", Address: "sim_network.main"}
	f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		p.Spec.Targets = []string{"sim_network.main"}
		out := clitest.Creates(p)
		out[0].Diagnostics = []v1alpha1.Diagnostic{d}
		p.Status.Diagnostics = out[0].Diagnostics
		return out
	}
	if _, errOut, _ := f.Run("plan"); strings.Count(errOut, "Deprecated") != 1 {
		t.Error(errOut)
	}
}
