package graph

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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
