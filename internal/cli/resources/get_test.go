package resources_test

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

func TestGetAll(t *testing.T) {
	f := clitest.New(t, cli.Command)
	clitest.Network(f, "main", nil)
	f.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-subnet", "metadata": map[string]any{"name": "a", "namespace": "default"},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "ApplyFailed", "message": "Quota\nexceeded"}}}}}, "sim-subnets")
	out, errOut, code := f.Run("get", "all", "-o", "wide")
	for _, want := range []string{"NAME ", "sim-network/main   True    Applied       net-1", "sim-subnet/a       False   ApplyFailed   -", "Quota exceeded"} {
		if !strings.Contains(out, want) {
			t.Errorf("missing %q in (%d, %s):\n%s", want, code, errOut, out)
		}
	}
	if out, _, _ = f.Run("get", "all", "-o", "name"); out != "sim-network.sim.hykube.io/main\nsim-subnet.sim.hykube.io/a\n" {
		t.Errorf("names: %s", out)
	}
	if out, _, _ = f.Run("get", "all", "-o", "json"); !strings.Contains(out, `"kind": "List"`) || !strings.Contains(out, `"mtu": 1500`) {
		t.Errorf("JSON: %s", out)
	}
	f.Refuse = func(r *http.Request) *metav1.Status {
		if strings.HasSuffix(r.URL.Path, "/sim-subnets") {
			return clitest.Status(403, metav1.StatusReasonForbidden, "no")
		}
		return nil
	}
	out, errOut, code = f.Run("get", "all")
	if code != exit.Done || !strings.Contains(out, "sim-network/main") || !strings.Contains(errOut, "you may not list sim-subnets.sim.hykube.io in namespace default") {
		t.Errorf("code %d: %s%s", code, out, errOut)
	}
	if _, errOut, code = f.Run("get", "all", "-n", "default", "-A"); code != exit.Failed || !strings.Contains(errOut, "exclude each other") {
		t.Errorf("code %d: %s", code, errOut)
	}
}
