package status_test

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

func TestStatusOfNamespace(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Creates
	f.Run("plan", "--record", "-f", clitest.Write(t, clitest.FirstFiles))
	f.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network",
		"metadata": map[string]any{"name": "bad", "namespace": "default"},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "ApplyFailed", "message": "Quota exceeded"}}}}}, "sim-networks")
	out, errOut, code := f.Run("status")
	for _, want := range []string{"Namespace default: 3 resources", "2  AwaitingPlan", "sim-network/bad: ApplyFailed: Quota exceeded", "plan-x7k2d", "waits for approval"} {
		if !strings.Contains(out, want) {
			t.Errorf("missing %q in (%d, %s):\n%s", want, code, errOut, out)
		}
	}
}

func TestStatusOfAllNamespaces(t *testing.T) {
	f := clitest.New(t, cli.Command)
	if out, _, code := f.Run("status", "-A"); code != exit.Done || out != "No namespace has resources or plans.\n" {
		t.Errorf("code %d: %s", code, out)
	}
	f.Run("plan", "--record", "-f", clitest.Write(t, clitest.FirstFiles))
	out, errOut, code := f.Run("status", "-A")
	for _, want := range []string{"Namespace default: 2 resources", "2  AwaitingPlan", "plan-x7k2d"} {
		if code != exit.Done || !strings.Contains(out, want) {
			t.Errorf("missing %q in (%d, %s):\n%s", want, code, errOut, out)
		}
	}
	for _, args := range [][]string{{"status", "-A", "plan-x7k2d"}, {"status", "-A", "--watch"}} {
		if _, errOut, code := f.Run(args...); code != exit.Failed || !strings.Contains(errOut, "namespace") {
			t.Errorf("%v: code %d: %s", args, code, errOut)
		}
	}
}

// A user who may not list a kind still sees the others.
func TestStatusWithoutRights(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Creates
	f.Run("plan", "--record", "-f", clitest.Write(t, clitest.FirstFiles))
	f.Refuse = func(r *http.Request) *metav1.Status {
		if strings.HasSuffix(r.URL.Path, "/sim-subnets") {
			return clitest.Status(403, metav1.StatusReasonForbidden, "you may not")
		}
		return nil
	}
	out, errOut, code := f.Run("status")
	for _, want := range []string{"Namespace default: 1 resource\n", "you may not list sim-subnets.sim.hykube.io in namespace default, so they are not counted."} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("missing %q in (%d, %s):\n%s", want, code, errOut, out)
		}
	}
	if out, errOut, code = f.Run("graph"); code != 0 || !strings.Contains(errOut, "so they are not drawn") || !strings.Contains(out, "sim_network.main") {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
}
