package namespace_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

func TestStatusOfNamespacesWithoutResources(t *testing.T) {
	for _, tc := range []struct {
		reason, namespace string
		code              int
		want              string
	}{
		{"empty", "default", exit.Done, `Namespace "default" has no resources; did you mean -n prod, -n sets?`},
		{"a typo", "porduction", exit.Failed, `namespace "porduction" not found: did you mean -n production?`},
		{"unlike any", "zz", exit.Failed, `namespace "zz" not found`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.HasNamespace("default")
			f.HasNamespace("prod", "main")
			f.HasNamespace("production")
			f.HasNamespace("sets")
			set := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "hykube.io/v1alpha1", "kind": "ResourceSet"}}
			set.SetName("fleet")
			set.SetNamespace("sets")
			f.Put(set, "resourcesets")
			out, errOut, code := f.Run("status", "-n", tc.namespace)
			if code != tc.code || !strings.Contains(out+errOut, tc.want) || code != exit.Done && strings.Contains(out+errOut, "has no resources") {
				t.Errorf("code %d:\n%s\n%s", code, out, errOut)
			}
		})
	}
	f := clitest.New(t, cli.Command)
	f.HasNamespace("production")
	for _, args := range [][]string{{"state", "list"}, {"show", "--failed"}} {
		const want = `namespace "porduction" not found: did you mean -n production?`
		_, errOut, code := f.Run(append(args, "-n", "porduction")...)
		if code != exit.Failed || !strings.Contains(errOut, want) {
			t.Errorf("%v: code %d: %s", args, code, errOut)
		}
	}
	// A user who may not read namespaces gets an answer nevertheless.
	f = clitest.New(t, cli.Command)
	f.Refuse = func(r *http.Request) *metav1.Status {
		if strings.Contains(r.URL.Path, "/namespaces/zz") && !strings.Contains(r.URL.Path, "/namespaces/zz/") {
			return clitest.Status(403, metav1.StatusReasonForbidden, `cannot get resource "namespaces"`)
		}
		return nil
	}
	if out, errOut, code := f.Run("status", "-n", "zz"); code != exit.Done || !strings.Contains(out, `Namespace "zz" has no resources.`) {
		t.Errorf("code %d: %s\n%s", code, out, errOut)
	}
}

// TestLinesNameTheNamespace applies files of two namespaces. Each line, and the progress of each plan, names its namespace.
func TestLinesNameTheNamespace(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Creates
	other := "---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: main, namespace: r1}\nspec: {cidr: 10.1.0.0/16}\n"
	out, errOut, code := f.Run("apply", "-f", clitest.Write(t, clitest.TwoFiles+other), "--auto-approve")
	for _, want := range []string{"sim-network.sim.hykube.io/main created in namespace default\n", "sim-network.sim.hykube.io/main created in namespace r1\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("missing %q in:\n%s", want, out)
		}
	}
	if code != exit.Done || strings.Count(out, "Namespace r1\n") != 2 || strings.Count(out, "Namespace default\n") != 2 {
		t.Errorf("code %d: %s\n%s", code, out, errOut)
	}
}
