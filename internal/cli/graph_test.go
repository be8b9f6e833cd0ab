package cli

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	if code != 0 || !strings.Contains(errOut, "circle, and no plan can be made of them: sim_network.a, sim_network.b\n") {
		t.Errorf("code %d: %s", code, errOut)
	}
	if n := strings.Count(out, node{circle: true}.colour()); n != 2 {
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

// Every layout is well-formed SVG with each node once, cycles and large graphs included.
func TestSVG(t *testing.T) {
	for _, tc := range []struct {
		reason string
		nodes  int
		edges  [][2]int
		layers int
	}{
		{"nothing", 0, nil, 0},
		{"a chain", 3, [][2]int{{2, 1}, {1, 0}}, 3},
		{"a diamond", 4, [][2]int{{3, 1}, {3, 2}, {1, 0}, {2, 0}}, 3},
		{"a cycle", 3, [][2]int{{0, 1}, {1, 2}, {2, 0}}, 3},
		{"a node that waits for a cycle", 4, [][2]int{{0, 1}, {1, 0}, {2, 1}, {3, 2}}, 4},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			g := &graph{title: "a <b>"}
			for i := range tc.nodes {
				g.add(node{address: fmt.Sprintf("sim_network.n%d<&>", i), symbol: "+"})
			}
			for _, e := range tc.edges {
				g.edge(e[0], e[1])
			}
			if got := len(g.layers()); got != tc.layers {
				t.Errorf("%d layers, want %d", got, tc.layers)
			}
			var b bytes.Buffer
			if err := g.svg(&b); err != nil {
				t.Fatal(err)
			}
			texts := 0
			for d := xml.NewDecoder(&b); ; {
				tok, err := d.Token()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if s, ok := tok.(xml.StartElement); ok && s.Name.Local == "text" {
					texts++
				}
			}
			if texts != tc.nodes {
				t.Errorf("%d labels for %d nodes", texts, tc.nodes)
			}
		})
	}
}
