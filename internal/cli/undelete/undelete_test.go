package undelete_test

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

// The undelete of a namespace fails when a resource in it stays deleted, and counts those alone that were marked with the namespace.
func TestUndeleteNamespaceCountsWhatStaysDeleted(t *testing.T) {
	early, late := "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
	for _, tc := range []struct {
		reason string
		back   []string
		gone   string
		code   int
		want   string
	}{
		{"all are taken back", []string{"a", "b"}, "", 0, ""},
		{"one stays", []string{"a"}, "", exit.Failed, `the namespace "default" stays, but 1 resource of it stays deleted, because an approved plan destroys their infrastructure: sim-network/b`},
		{"none is taken back, and one is gone already", nil, "a", exit.Failed, "2 resources of it stay deleted, because an approved plan destroys their infrastructure: sim-network/a, sim-network/b"},
	} {
		f := clitest.New(t, cli.Command)
		f.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "default", "deletionTimestamp": late}}}, "namespaces")
		for name, at := range map[string]string{"a": late, "b": late, "before": early} {
			clitest.Network(f, name, func(o map[string]any) { o["metadata"].(map[string]any)["deletionTimestamp"] = at })
		}
		f.Refuse = func(r *http.Request) *metav1.Status {
			if strings.HasSuffix(r.URL.Path, "/undelete") {
				for _, name := range tc.back {
					delete(f.Object(name)["metadata"].(map[string]any), "deletionTimestamp")
				}
				delete(f.Objects, "sim.hykube.io/v1/sim-networks/default/"+tc.gone)
			}
			return nil
		}
		out, errOut, code := f.Run("undelete", "namespace/default")
		if code != tc.code || !strings.Contains(errOut, tc.want) || tc.want == "" && errOut != "" || out != "namespace/default undeleted\n" {
			t.Errorf("%s: code %d: %s\n%s", tc.reason, code, errOut, out)
		}
	}
}

// TestUndeleteOfWhatIsGone says what to do instead.
func TestUndeleteOfWhatIsGone(t *testing.T) {
	for _, object := range []string{"sim-network/gone", "secret/gone", "resourceset/gone"} {
		f := clitest.New(t, cli.Command)
		f.Refuse = func(r *http.Request) *metav1.Status {
			if !strings.HasSuffix(r.URL.Path, "/undelete") {
				return nil
			}
			status := apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, "gone").ErrStatus
			status.Kind, status.APIVersion = "Status", "v1"
			return &status
		}
		_, errOut, code := f.Run("undelete", object)
		if code != exit.Failed || !strings.Contains(errOut, "not found. What is gone cannot be taken back: apply the file of the object again. To see whether a plan destroyed it: kubectl hykube history -n default") {
			t.Errorf("%s: code %d: %s", object, code, errOut)
		}
	}
}

// undelete takes back what state rm set, and leaves what a person wrote.
func TestUndeleteAfterStateRm(t *testing.T) {
	f := clitest.New(t, cli.Command)
	clitest.Network(f, "main", nil)
	clitest.Network(f, "left", func(o map[string]any) { o["lifecycle"] = map[string]any{"destroy": false} })
	f.Run("state", "rm", "sim_network.main")
	out, errOut, code := f.Run("undelete", "sim-network/main")
	u := &unstructured.Unstructured{Object: f.Object("main")}
	if _, found, _ := unstructured.NestedBool(u.Object, "lifecycle", "destroy"); found || u.GetDeletionTimestamp() != nil || code != 0 || !strings.Contains(errOut, "lifecycle.destroy is no longer false") {
		t.Errorf("code %d: %s\n%s\n%v", code, errOut, out, u.Object)
	}
	if _, errOut, code = f.Run("undelete", "sim-network/left"); code != 0 || errOut != "" {
		t.Errorf("code %d: %s", code, errOut)
	}
	if destroy, found, _ := unstructured.NestedBool(f.Object("left"), "lifecycle", "destroy"); !found || destroy {
		t.Error("what a person wrote is taken back")
	}
}
