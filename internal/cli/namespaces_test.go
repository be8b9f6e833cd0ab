package cli

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hasNamespace makes a namespace, and in it a network for each name.
func (f *fakeServer) hasNamespace(name string, networks ...string) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	u.SetName(name)
	f.put(u, "namespaces")
	for _, n := range networks {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network"}}
		u.SetName(n)
		u.SetNamespace(name)
		f.put(u, "sim-networks")
	}
}

func TestStatusOfNamespacesWithoutResources(t *testing.T) {
	for _, tc := range []struct {
		reason, namespace string
		code              int
		want              string
	}{
		{"empty", "default", ExitDone, `Namespace "default" has no resources; did you mean -n prod, -n sets?`},
		{"a typo", "porduction", ExitError, `namespace "porduction" not found: did you mean -n production?`},
		{"unlike any", "zz", ExitError, `namespace "zz" not found`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := newFakeServer(t)
			f.hasNamespace("default")
			f.hasNamespace("prod", "main")
			f.hasNamespace("production")
			f.hasNamespace("sets")
			set := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "hykube.io/v1alpha1", "kind": "ResourceSet"}}
			set.SetName("fleet")
			set.SetNamespace("sets")
			f.put(set, setsResource)
			out, errOut, code := f.run("status", "-n", tc.namespace)
			if code != tc.code || !strings.Contains(out+errOut, tc.want) || code != ExitDone && strings.Contains(out+errOut, "has no resources") {
				t.Errorf("code %d:\n%s\n%s", code, out, errOut)
			}
		})
	}
	// A user who may not read namespaces gets an answer nevertheless.
	f := newFakeServer(t)
	f.refuse = func(r *http.Request) *metav1.Status {
		if strings.Contains(r.URL.Path, "/namespaces/zz") && !strings.Contains(r.URL.Path, "/namespaces/zz/") {
			return status(403, metav1.StatusReasonForbidden, `cannot get resource "namespaces"`)
		}
		return nil
	}
	if out, errOut, code := f.run("status", "-n", "zz"); code != ExitDone || !strings.Contains(out, `Namespace "zz" has no resources.`) {
		t.Errorf("code %d: %s\n%s", code, out, errOut)
	}
}

// TestLinesNameTheNamespace applies files of two namespaces. Each line, and the progress of each plan, names its namespace.
func TestLinesNameTheNamespace(t *testing.T) {
	f := newFakeServer(t)
	f.planning = creates
	other := "---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: main, namespace: r1}\nspec: {cidr: 10.1.0.0/16}\n"
	out, errOut, code := f.run("apply", "-f", write(t, twoFiles+other), "--auto-approve")
	for _, want := range []string{"sim-network.sim.hykube.io/main created in namespace default\n", "sim-network.sim.hykube.io/main created in namespace r1\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("missing %q in:\n%s", want, out)
		}
	}
	if code != ExitDone || strings.Count(out, "Namespace r1\n") != 2 || strings.Count(out, "Namespace default\n") != 2 {
		t.Errorf("code %d: %s\n%s", code, out, errOut)
	}
}
