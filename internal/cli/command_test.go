package cli_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

func TestVersionAndHelp(t *testing.T) {
	f := clitest.New(t, cli.Command)
	if out, _, code := f.Run("version"); code != 0 || !strings.Contains(out, "Client: dev") || !strings.Contains(out, "Server: v0.1.0") {
		t.Errorf("code %d: %s", code, out)
	}
	if _, errOut, code := f.Run("aply"); code != exit.Failed || !strings.Contains(errOut, `did you mean "apply"?`) {
		t.Errorf("code %d: %s", code, errOut)
	}
	if _, errOut, _ := f.Run("get", "pods"); !strings.Contains(errOut, "use kubectl: kubectl get pods") {
		t.Error(errOut)
	}
	if out, _, _ := f.Run("completion", "kubectl"); !strings.Contains(out, "exec kubectl-hykube __complete") {
		t.Error(out)
	}
	if out, _, _ := f.Run("__complete", "show", ""); !strings.Contains(out, ":4") {
		t.Error(out)
	}
}

// Every verb has a line, a text and an example that names itself, and no flag hides one of kubectl's own.
func TestEveryVerbIsDocumented(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	root := cli.NewCommand(streams)
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

func TestCompletion(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Creates
	f.Run("plan", "--record", "-f", clitest.Write(t, clitest.FirstFiles))
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
		if out, errOut, _ := f.Run(append([]string{"__complete"}, tc.args...)...); !strings.Contains(out, tc.want) {
			t.Errorf("%s: missing %q in:\n%s%s", tc.reason, tc.want, out, errOut)
		}
	}
	f.Run("approve", "plan-x7k2d", "--digest", "sha256:abc")
	if out, _, _ := f.Run("__complete", "approve", ""); strings.Contains(out, "plan-x7k2d") {
		t.Errorf("a plan that is over is offered for approval:\n%s", out)
	}
	if out, _, _ := f.Run("__complete", "show", ""); !strings.Contains(out, "plan-x7k2d\tapplied") {
		t.Error(out)
	}
}

const otherModes = clitest.FirstFiles + `---
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
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Creates
	file := clitest.Write(t, otherModes)
	f.Run("plan", "--record", "-f", file)
	if d := cmp.Diff([]string{"sim_subnet.a", "sim_network.main", "data.sim_image.base", "action.sim_reboot.now"}, f.Plans["default/plan-x7k2d"].Spec.Targets); d != "" {
		t.Errorf("targets (-want +got):\n%s", d)
	}
	f.Run("destroy", "-f", file, "--auto-approve")
	if d := cmp.Diff([]string{"sim_subnet.a", "sim_network.main"}, f.Plans["default/destroy-x7k2d"].Spec.Targets); d != "" {
		t.Errorf("targets of the destroy (-want +got):\n%s", d)
	}
	if _, errOut, code := f.Run("destroy", "data.sim_image.base", "--auto-approve"); code != exit.Failed || !strings.Contains(errOut, "kubectl delete removes other objects") {
		t.Errorf("code %d: %s", code, errOut)
	}
	out, _, _ := f.Run("status")
	if !strings.Contains(out, "Namespace default: 2 resources, 1 data source, 1 ephemeral resource, 1 action\n") {
		t.Error(out)
	}
	for _, args := range [][]string{{"graph", "-f", file}, {"graph"}} {
		out, _, _ = f.Run(args...)
		for _, want := range []string{
			`"data.sim_image.base" -> "sim_network.main"`, `"ephemeral.sim_token.t" -> "data.sim_image.base"`,
			`"action.sim_reboot.now" -> "data.sim_image.base"`, `"sim_subnet.a" -> "sim_network.main"`,
		} {
			if !strings.Contains(out, want) {
				t.Errorf("%v: missing %s in:\n%s", args, want, out)
			}
		}
	}
	only := clitest.Write(t, "apiVersion: sim.hykube.io/v1\nkind: ephemeral-sim-token\nmetadata: {name: t}\n")
	if out, _, code := f.Run("apply", "-f", only, "--auto-approve"); code != 0 || !strings.Contains(out, "nothing to plan") {
		t.Errorf("code %d: %s", code, out)
	}
}
