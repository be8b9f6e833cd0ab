package cli

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestGetAll(t *testing.T) {
	f := newFakeServer(t)
	network(f, "main", nil)
	f.put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-subnet", "metadata": map[string]any{"name": "a", "namespace": "default"},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "ApplyFailed", "message": "Quota\nexceeded"}}}}}, "sim-subnets")
	out, errOut, code := f.run("get", "all", "-o", "wide")
	for _, want := range []string{"NAME ", "sim-network/main   True    Applied       net-1", "sim-subnet/a       False   ApplyFailed   -", "Quota exceeded"} {
		if !strings.Contains(out, want) {
			t.Errorf("missing %q in (%d, %s):\n%s", want, code, errOut, out)
		}
	}
	if out, _, _ = f.run("get", "all", "-o", "name"); out != "sim-network.sim.hykube.io/main\nsim-subnet.sim.hykube.io/a\n" {
		t.Errorf("names: %s", out)
	}
	if out, _, _ = f.run("get", "all", "-o", "json"); !strings.Contains(out, `"kind": "List"`) || !strings.Contains(out, `"mtu": 1500`) {
		t.Errorf("JSON: %s", out)
	}
	f.refuse = func(r *http.Request) *metav1.Status {
		if strings.HasSuffix(r.URL.Path, "/sim-subnets") {
			return status(403, metav1.StatusReasonForbidden, "no")
		}
		return nil
	}
	out, errOut, code = f.run("get", "all")
	if code != ExitDone || !strings.Contains(out, "sim-network/main") || !strings.Contains(errOut, "you may not list sim-subnets.sim.hykube.io in namespace default") {
		t.Errorf("code %d: %s%s", code, out, errOut)
	}
	if _, errOut, code = f.run("get", "all", "-n", "default", "-A"); code != ExitError || !strings.Contains(errOut, "exclude each other") {
		t.Errorf("code %d: %s", code, errOut)
	}
}

// The overview of a namespace names the failed objects first, and counts many skipped ones in one line.
func TestManySkippedObjectsShareALine(t *testing.T) {
	var all []noted
	for i := range 30 {
		all = append(all, noted{"sim-network", fmt.Sprintf("a%d", i), v1alpha1.ReasonSkipped, "Not tried: the rollout stopped."})
	}
	few := attentionLines(all[:maxSkipped])
	if len(few) != maxSkipped || few[0] != "sim-network/a0: Skipped: Not tried: the rollout stopped." {
		t.Errorf("few: %q", few)
	}
	all = append(all, noted{"sim-network", "z", v1alpha1.ReasonApplyFailed, "quota exceeded"})
	want := []string{"sim-network/z: ApplyFailed: quota exceeded", "30 objects: Skipped, such as sim-network/a0: Not tried: the rollout stopped."}
	if got := attentionLines(all); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for i := range 40 {
		all = append(all, noted{"sim-network", fmt.Sprintf("f%d", i), v1alpha1.ReasonApplyFailed, fmt.Sprintf("quota %c%c exceeded", 'a'+i%26, 'a'+i/26)})
	}
	if got := attentionLines(all); len(got) != 42 || !strings.HasPrefix(got[listed-1], "30 objects: Skipped") {
		t.Errorf("%q", got)
	}
}

// Many creates have the same message, but for its time.
func TestManyAlikeObjectsShareALine(t *testing.T) {
	var all []noted
	for i := range 12 {
		name := fmt.Sprintf("net[%d]", i)
		all = append(all, noted{"sim-network", name, v1alpha1.ReasonCreateUnknown, fmt.Sprintf("At 10:00:%02d, the server ended while %s was created.", i, name)})
	}
	all = append(all, noted{"sim-network", "one", v1alpha1.ReasonCreateUnknown, "The provider ended."})
	slices.SortFunc(all, noted.compare)
	want := []string{
		"sim-network/net[0]: CreateUnknown: At 10:00:00, the server ended while net[0] was created. The same holds for 11 other objects, from sim-network/net[1] to sim-network/net[11].",
		"sim-network/one: CreateUnknown: The provider ended.",
	}
	if got := attentionLines(all); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The message of a change may have the detail of its error.
func TestADetailIsPrintedOnce(t *testing.T) {
	c := &v1alpha1.PlanChange{Diagnostics: []v1alpha1.Diagnostic{
		{Severity: v1alpha1.SeverityWarning, Summary: "Old", Detail: "The image is old."},
		{Severity: v1alpha1.SeverityError, Summary: "Refused", Detail: "The quota is\nexhausted."},
	}}
	for line, want := range map[string]string{
		"sim_network.a: failed: Refused":                          "sim_network.a: failed: Refused: The quota is exhausted.",
		"sim_network.a: failed: Refused: The quota is exhausted.": "sim_network.a: failed: Refused: The quota is exhausted.",
	} {
		if got := withDetail(line, c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := withDetail("a", &v1alpha1.PlanChange{}); got != "a" {
		t.Errorf("%q without an error", got)
	}
}
