package record_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/tests/clitest"
)

// Of many unchanged objects, only the first ones have a line.
func TestManyUnchangedObjects(t *testing.T) {
	f := clitest.New(t, cli.Command)
	text := ""
	for i := range 30 {
		name := fmt.Sprintf("n%d", i)
		f.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network",
			"metadata": map[string]any{"name": name, "namespace": "default", "uid": "u-" + name}, "spec": map[string]any{"zone": "a"}}}, "sim-networks")
		text += "apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: " + name + "}\nspec: {zone: a}\n---\n"
	}
	out, errOut, code := f.Run("plan", "--record", "-f", clitest.Write(t, text))
	if code != exit.Done || strings.Count(out, " unchanged\n") != printer.ListedChanges+1 || !strings.Contains(out, "\n20 more objects unchanged\n") {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
}

// A long list may outlive the revision of its first page. The plugin then lists the rest at the current revision.
func TestALongListOutlivesItsRevision(t *testing.T) {
	f := clitest.New(t, cli.Command)
	text := ""
	for i := range 50 {
		name := fmt.Sprintf("n%d", i)
		f.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network",
			"metadata": map[string]any{"name": name, "namespace": "default", "uid": "u-" + name}, "spec": map[string]any{"zone": "a"}}}, "sim-networks")
		text += "apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: " + name + "}\nspec: {zone: a}\n---\n"
	}
	var pages atomic.Int64
	f.Refuse = func(r *http.Request) *metav1.Status {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/sim-networks") {
			return nil
		}
		if n := pages.Add(1); n > 1 {
			if got := r.URL.Query().Get("continue"); got != "rest" {
				t.Errorf("list %d continues with %q", n, got)
			}
			return nil
		}
		expired := clitest.Status(http.StatusGone, metav1.StatusReasonExpired, "the continue parameter is too old")
		expired.Continue = "rest"
		return expired
	}
	out, errOut, code := f.Run("plan", "--record", "-f", clitest.Write(t, text))
	if code != exit.Done || pages.Load() != 2 || !strings.Contains(out, "\n40 more objects unchanged\n") {
		t.Errorf("code %d after %d lists: %s\n%s", code, pages.Load(), errOut, out)
	}
}
