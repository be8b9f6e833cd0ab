package graph_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/tests/clitest"
)

func TestGraphOfFiles(t *testing.T) {
	f := clitest.New(t, cli.Command)
	file := clitest.Write(t, clitest.FirstFiles+`---
apiVersion: sim.hykube.io/v1
kind: sim-subnet
metadata: {name: b}
spec:
  network_id: '${upper("sim_subnet.quoted")}-${sim_network.other.id}-$${sim_subnet.a.id}'
lifecycle: {dependsOn: [sim-subnet/a, sim_disk.gone]}
`)
	out, errOut, code := f.Run("graph", "-f", file, "-o", "mermaid")
	want := `flowchart RL
  n0["sim_network.main"]
  style n0 stroke:#57606a
  n1["sim_subnet.a"]
  style n1 stroke:#57606a
  n2["sim_subnet.b"]
  style n2 stroke:#57606a
  n3["sim_disk.gone"]
  style n3 stroke:#57606a,stroke-dasharray: 4
  n1 --> n0
  n2 --> n1
  n2 --> n3
`
	if d := cmp.Diff(want, out); d != "" || code != 0 {
		t.Errorf("code %d %s (-want +got):\n%s", code, errOut, d)
	}
	out, _, _ = f.Run("graph", "-f", file)
	if !strings.Contains(out, `"sim_subnet.a" -> "sim_network.main"`) {
		t.Error(out)
	}
	if len(f.Calls) > 0 {
		t.Errorf("drawing files asked the server: %v", f.Calls)
	}
}

func TestGraphFromOneResource(t *testing.T) {
	f := clitest.New(t, cli.Command)
	file := clitest.Write(t, `
apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: main}
spec: {name: main}
---
apiVersion: sim.hykube.io/v1
kind: sim-subnet
metadata: {name: a}
spec: {network_id: "${sim_network.main.id}"}
---
apiVersion: sim.hykube.io/v1
kind: sim-instance
metadata: {name: web}
spec: {subnet_id: "${sim_subnet.a.id}"}
lifecycle: {dependsOn: [sim_disk.gone]}
---
apiVersion: sim.hykube.io/v1
kind: sim-bucket
metadata: {name: logs}
spec: {name: "${sim_network.main.id}"}
`)
	for _, test := range []struct {
		args, edges []string
	}{
		{[]string{"--from", "sim_subnet.a"}, []string{`"sim_subnet.a" -> "sim_network.main"`}},
		{[]string{"--from", "sim-subnet/a", "--affected"}, []string{`"sim_instance.web" -> "sim_subnet.a"`}},
		{[]string{"--from", "sim_disk.gone", "--affected"}, []string{`"sim_instance.web" -> "sim_disk.gone"`}},
		{[]string{"--from", "sim_network.main", "--affected"}, []string{
			`"sim_bucket.logs" -> "sim_network.main"`, `"sim_instance.web" -> "sim_subnet.a"`, `"sim_subnet.a" -> "sim_network.main"`}},
		{[]string{"--from", "sim_network.main"}, nil},
	} {
		out, errOut, code := f.Run(append([]string{"graph", "-f", file}, test.args...)...)
		var edges []string
		for line := range strings.Lines(out) {
			if strings.Contains(line, "->") {
				edges = append(edges, strings.TrimSpace(line))
			}
		}
		slices.Sort(edges)
		if d := cmp.Diff(test.edges, edges); d != "" || code != 0 {
			t.Errorf("%v: code %d %s (-want +got):\n%s", test.args, code, errOut, d)
		}
	}
	for _, args := range [][]string{{"--from", "sim_network.none"}, {"--from", "main"}, {"--affected"}} {
		if _, errOut, code := f.Run(append([]string{"graph", "-f", file}, args...)...); code != 1 || !strings.Contains(errOut, "--from") {
			t.Errorf("%v: code %d %s", args, code, errOut)
		}
	}
}

func TestGraphShowsCircles(t *testing.T) {
	f := clitest.New(t, cli.Command)
	file := clitest.Write(t, `
apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: a}
spec: {name: "${sim_network.b.id}"}
---
apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: b}
spec: {name: "${sim_network.a.id}"}
---
apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: c}
spec: {name: "${sim_network.a.id}"}
`)
	out, errOut, code := f.Run("graph", "-f", file)
	if code != 0 || !strings.Contains(errOut, "cycle, so no plan can order them: sim_network.a, sim_network.b\n") {
		t.Errorf("code %d: %s", code, errOut)
	}
	if n := strings.Count(out, `color = "#8250df"`); n != 2 {
		t.Errorf("%d nodes are drawn as part of a circle, want 2:\n%s", n, out)
	}
}

func TestGraphOfNamespaceAndPlan(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Creates
	f.Run("plan", "--record", "-f", clitest.Write(t, clitest.FirstFiles))
	f.Changes["default/plan-x7k2d"][1].DependsOn = []int32{0}
	for _, args := range [][]string{{"graph"}, {"graph", "plan-x7k2d"}} {
		out, errOut, code := f.Run(args...)
		if code != 0 || strings.Count(out, "->") != 1 {
			t.Errorf("%v: %s %s", args, out, errOut)
		}
	}
}
