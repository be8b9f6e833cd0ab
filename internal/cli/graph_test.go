package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestGraphOfFiles(t *testing.T) {
	f := newFakeServer(t)
	file := write(t, firstFiles+`---
apiVersion: sim.hykube.io/v1
kind: sim-subnet
metadata: {name: b}
spec:
  network_id: '${upper("sim_subnet.quoted")}-${sim_network.other.id}-$${sim_subnet.a.id}'
lifecycle: {dependsOn: [sim-subnet/a, sim_disk.gone]}
`)
	out, errOut, code := f.run("graph", "-f", file, "-o", "mermaid")
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
	out, _, _ = f.run("graph", "-f", file)
	if !strings.Contains(out, `"sim_subnet.a" -> "sim_network.main"`) {
		t.Error(out)
	}
	if len(f.calls) > 0 {
		t.Errorf("drawing files asked the server: %v", f.calls)
	}
}

func TestGraphFromOneResource(t *testing.T) {
	f := newFakeServer(t)
	file := write(t, `
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
		out, errOut, code := f.run(append([]string{"graph", "-f", file}, test.args...)...)
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
		if _, errOut, code := f.run(append([]string{"graph", "-f", file}, args...)...); code != 1 || !strings.Contains(errOut, "--from") {
			t.Errorf("%v: code %d %s", args, code, errOut)
		}
	}
}

func TestGraphShowsCircles(t *testing.T) {
	f := newFakeServer(t)
	file := write(t, `
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
	out, errOut, code := f.run("graph", "-f", file)
	if code != 0 || !strings.Contains(errOut, "cycle, so no plan can order them: sim_network.a, sim_network.b\n") {
		t.Errorf("code %d: %s", code, errOut)
	}
	if n := strings.Count(out, `color = "#8250df"`); n != 2 {
		t.Errorf("%d nodes are drawn as part of a circle, want 2:\n%s", n, out)
	}
}

func TestGraphOfNamespaceAndPlan(t *testing.T) {
	f := newFakeServer(t)
	f.planning = creates
	f.run("plan", "--record", "-f", write(t, firstFiles))
	f.changes["default/plan-x7k2d"][1].DependsOn = []int32{0}
	for _, args := range [][]string{{"graph"}, {"graph", "plan-x7k2d"}} {
		out, errOut, code := f.run(args...)
		if code != 0 || strings.Count(out, "->") != 1 {
			t.Errorf("%v: %s %s", args, out, errOut)
		}
	}
}

// TestGraphOfModules wants the references within a module to be to what is beside them, and not to objects of the same name. What a
// variable refers to comes from the server.
func TestGraphOfModules(t *testing.T) {
	object := func(kind, name, of string, through ...any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": kind, "spec": map[string]any{"name": of}}}
		u.SetName(name)
		if through != nil {
			u.Object["instance"] = map[string]any{"through": through}
		}
		return u
	}
	address := func(module, mode, typ, name string) any {
		return map[string]any{"namespace": "", "module": module, "mode": mode, "type": typ, "name": name}
	}
	var out bytes.Buffer
	g := ofObjects([]*unstructured.Unstructured{
		object("sim-network", "main", "a"), object("sim-network", "module.shop:main", "${var.name}", address("", "", "sim_network", "main"), address("", "", "secret", "db")),
		object("sim-disk", "module.shop:disk", "${sim_network.main.id}-${local.x}"),
		object("sim-subnet", `module.shop.module.net["eu"]:a[0]`, "${var.network_id}", address("module.shop", "", "sim_network", "main"), address("module.other", "output", "", "url")),
	})
	g.Mermaid(&out)
	want := `flowchart RL
  n0["module.shop.module.net[#quot;eu#quot;].sim_subnet.a[0]"]
  style n0 stroke:#57606a
  n1["module.shop.sim_disk.disk"]
  style n1 stroke:#57606a
  n2["module.shop.sim_network.main"]
  style n2 stroke:#57606a
  n3["sim_network.main"]
  style n3 stroke:#57606a
  n0 --> n2
  n1 --> n2
  n2 --> n3
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}
