package kinds_test

import (
	"strings"
	"testing"
)

const manifest = `apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: main, labels: {team: infra}}
spec:
  name: net
  mtu: ${sim_network.other.mtu}
  rule: [{port: 80}]
  tags: {a: b}
`

// TestKubectl runs commands of users and their scripts, with the machine's kubectl.
func TestKubectl(t *testing.T) {
	h := newFixture(t, sim())
	for _, step := range []struct {
		name, stdin, args string
		fails             bool
		want              []string
	}{
		{"api-resources", "", "api-resources --api-group=sim.hykube.io -o wide", false, []string{"sim-networks", "sim-network", "sim"}},
		{"explain kind", "", "explain sim-network", false, []string{"A network in the simulated cloud", "lifecycle"}},
		{"explain spec", "", "explain sim-network.spec", false, []string{"mtu\t<number>", "name\t<string> -required-", "Name of the network", "rule\t<[]Object>"}},
		{"explain block", "", "explain sim-network.spec.rule", false, []string{"port\t<number> -required-"}},
		{"explain metadata", "", "explain sim-network.metadata.labels", false, []string{"labels <map[string]string>"}},
		{"explain status", "", "explain sim-network.status.attributes.id", false, []string{"Identifier in the cloud"}},
		{"explain structured lifecycle", "", "explain sim-network.lifecycle.preconditions", false, []string{"condition\t<string> -required-", "errorMessage\t<string> -required-"}},
		{"explain data source", "", "explain data-sim-image.spec", false, []string{"family\t<string> -required-"}},
		{"explain action", "", "explain action-sim-reboot.lifecycle", false, []string{"dependsOn"}},
		{"explain all", "", "explain sim-network --recursive", false, []string{"preventDestroy"}},
		{"dry run", manifest, "apply -f - --dry-run=server", false, []string{"created (server dry run)"}},
		{"diff of nothing", manifest, "diff -f -", true, []string{"+  mtu: ${sim_network.other.mtu}"}},
		{"apply", manifest, "apply -f -", false, []string{"sim-network.sim.hykube.io/main created"}},
		{"apply again", manifest, "apply -f -", false, []string{"unchanged"}},
		{"apply a change", strings.Replace(manifest, "a: b", "c: d", 1), "apply -f -", false, []string{"configured"}},
		{"removed by apply", "", "get sim-network main -o jsonpath={.spec.tags}", false, []string{`{"c":"d"}`}},
		{"server-side conflict", strings.Replace(manifest, "name: net", "name: other", 1), "apply --server-side --field-manager=other -f -", true, []string{"conflict", ".spec.name"}},
		{"server-side by force", manifest, "apply --server-side --force-conflicts -f -", false, []string{"serverside-applied"}},
		{"get", "", "get sim-networks", false, []string{"NAME", "READY", "REASON", "ID", "AGE", "main", "False", "AwaitingPlan"}},
		{"get wide", "", "get sim-network -o wide", false, []string{"MESSAGE", "make a Plan"}},
		{"get by label", "", "get sim-network -l team=infra -o name", false, []string{"sim-network.sim.hykube.io/main"}},
		{"get by category", "", "get sim", false, []string{"main"}},
		{"describe", "", "describe sim-network main", false, []string{"Name:", "AwaitingPlan"}},
		{"patch", "", `patch sim-network main --type=merge -p {"spec":{"cidr":"10.0.0.0/8"}}`, false, []string{"patched"}},
		{"strategic patch", "", `patch sim-network main --type=strategic -p {"spec":{"cidr":"c"}}`, true, nil},
		{"label", "", "label sim-network main x=y", false, []string{"labeled"}},
		{"wait", "", `wait sim-network/main --for=jsonpath={.status.conditions[0].reason}=AwaitingPlan --timeout=5s`, false, []string{"condition met"}},
		{"unknown field", strings.Replace(manifest, "mtu:", "mtux:", 1), "apply -f -", true, []string{`spec.mtux: Forbidden: unknown field "spec.mtux" (did you mean "mtu"?)`}},
		{"wrong type", strings.Replace(manifest, "port: 80", "port: http", 1), "apply -f -", true, []string{"spec.rule[0].port", "number"}},
		{"raw", "", "get --raw /apis/sim.hykube.io/v1/namespaces/default/sim-networks/main/status", false, []string{"AwaitingPlan"}},
		{"unknown field at create", strings.NewReplacer("mtu:", "mtux:", "name: main", "name: fresh").Replace(manifest), "apply -f -", true, []string{`strict decoding error: unknown field "spec.mtux" (did you mean "mtu"?)`}},
		{"delete", "", "delete sim-network main", false, []string{"deleted"}},
		{"gone", "", "get sim-network main", true, []string{"not found"}},
	} {
		out, err := h.kubectl(t, step.stdin, strings.Fields(step.args)...)
		if (err != nil) != step.fails {
			t.Errorf("%s: %v\n%s", step.name, err, out)
		}
		for _, want := range step.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is missing in\n%s", step.name, want, out)
			}
		}
	}
}
