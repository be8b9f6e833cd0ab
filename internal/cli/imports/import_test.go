package imports_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

func TestImportOfARecordedObject(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Imports
	clitest.Network(f, "main", func(o map[string]any) { delete(o, "status") })
	out, errOut, code := f.Run("import", "sim-network/main", "--identity", "id=net-9", "--auto-approve")
	for _, want := range []string{"sim-network.sim.hykube.io/main configured", "# sim_network.main will be imported", "Plan: 1 to import, 0 to add", "sim_network.main: Importing...", "Apply complete! 1 imported, 0 added"} {
		if !strings.Contains(out, want) {
			t.Errorf("missing %q in (%d, %s):\n%s", want, code, errOut, out)
		}
	}
	want := map[string]any{"preventDestroy": true, "import": map[string]any{"identity": map[string]any{"id": "net-9"}}}
	if d := cmp.Diff(want, f.Object("main")["lifecycle"]); d != "" {
		t.Errorf("lifecycle (-want +got):\n%s", d)
	}
	if p := f.Plans["default/import-x7k2d"]; p == nil || !cmp.Equal(p.Spec.Targets, []string{"sim_network.main"}) {
		t.Errorf("plan %+v", p)
	}
	for _, tc := range []struct {
		reason string
		args   []string
		change func(map[string]any)
		want   string
	}{
		{"two ways", []string{"net-1", "--identity", "id=net-1"}, nil, "use exactly one of"},
		{"no way", nil, nil, "use exactly one of"},
		{"it has infrastructure", []string{"net-1", "--auto-approve"}, nil, "already has infrastructure"},
		{"no object is made of one that is there", []string{"net-1", "--generate-only"}, nil, "generates no object"},
		{"no terminal for the question", []string{"net-1"}, nil, "add --auto-approve"},
	} {
		clitest.Network(f, "main", tc.change)
		before := len(f.Plans)
		if _, errOut, code := f.RunIn(clitest.WithoutAnswer, "", append([]string{"import", "sim-network/main"}, tc.args...)...); code != exit.Failed || !strings.Contains(errOut, tc.want) || len(f.Plans) != before {
			t.Errorf("%s: code %d: %s", tc.reason, code, errOut)
		}
	}
}

// The object of a replacement whose create was lost shows the old instance. The new one can be imported all the same.
func TestImportOfALostCreate(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Imports
	clitest.Network(f, "main", func(o map[string]any) {
		o["status"].(map[string]any)["conditions"] = []any{map[string]any{"type": "Ready", "status": "False", "reason": v1alpha1.ReasonCreateUnknown}}
	})
	out, errOut, code := f.Run("import", "sim-network/main", "net-9", "--auto-approve")
	if code != exit.Done || !strings.Contains(out, "Apply complete! 1 imported, 0 added") {
		t.Errorf("code %d: %s %s", code, out, errOut)
	}
}

func TestImportOfAnUnknownObject(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Imports
	var asked v1alpha1.QuerySpec
	f.Querying = func(q *v1alpha1.Query) {
		asked = q.Spec
		q.Status.Results = []v1alpha1.QueryResult{{ID: "net-9", Manifest: &runtime.RawExtension{Raw: []byte(`{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":"net-9"},"spec":{"mtu":1500}}`)}}}
	}
	out, errOut, code := f.Run("import", "sim_network.main", "net-9", "--generate-only")
	want := "---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nlifecycle:\n  import:\n    id: net-9\nmetadata:\n  name: main\n  namespace: default\nspec:\n  mtu: 1500\n"
	if out != want || code != 0 || len(f.Plans) != 0 || f.Object("main") != nil {
		t.Errorf("code %d %s:\n%s", code, errOut, cmp.Diff(want, out))
	}
	if asked.Type != "sim_network" || asked.Provider != "sim" || !asked.Manifests || asked.Import == nil || asked.Import.ID != "net-9" {
		t.Errorf("asked for %+v", asked)
	}
	file := filepath.Join(t.TempDir(), "main.yaml")
	out, errOut, code = f.Run("import", "sim_network.main", "net-9", "--out", file, "--auto-approve")
	if code != 0 || !strings.Contains(out, file+" written\n") || !strings.Contains(out, "sim-network.sim.hykube.io/main created") || !strings.Contains(out, "1 imported") {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
	if text, err := os.ReadFile(file); err != nil || "---\n"+string(text) != want {
		t.Errorf("%v: %s", err, text)
	}
	if _, errOut, code = f.Run("import", "sim_network.other", "net-9", "--out", file, "--auto-approve"); code != exit.Failed || !strings.Contains(errOut, "does not overwrite files") {
		t.Errorf("code %d: %s", code, errOut)
	}
	for _, tc := range []struct {
		reason string
		status v1alpha1.QueryStatus
		want   string
	}{
		{"nothing there", v1alpha1.QueryStatus{}, `provider "sim" finds no sim_network with this ID or identity`},
		{"another object manages it", v1alpha1.QueryStatus{Results: []v1alpha1.QueryResult{{ManagedBy: "sim_network.x", Manifest: &runtime.RawExtension{Raw: []byte("{}")}}}}, "sim_network.x already manages the resource"},
		{"the provider refuses", v1alpha1.QueryStatus{Diagnostics: []v1alpha1.Diagnostic{{Severity: v1alpha1.SeverityError, Summary: "Bad ID"}}}, "could not read the resource"},
	} {
		f.Querying = func(q *v1alpha1.Query) { q.Status = tc.status }
		if _, errOut, code := f.Run("import", "sim_network.other", "net-9", "--auto-approve"); code != exit.Failed || !strings.Contains(errOut, tc.want) || f.Object("other") != nil {
			t.Errorf("%s: code %d: %s", tc.reason, code, errOut)
		}
	}
}
