package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples applies each folder of examples, plans again, and destroys it. hack/demo.sh does so with examples/first.
func TestExamples(t *testing.T) {
	for _, tt := range []struct {
		reason string
		// folders are applied in this order; before is what simcloud makes first.
		folders []string
		before  []string
		// kept is what is left in the cloud, on purpose.
		kept string
	}{
		{"replacements and conditions", []string{"replace"}, nil, "disk replace-archive"},
		{"secrets", []string{"secrets"}, nil, ""},
		{"data sources, functions and actions", []string{"lookup"}, nil, ""},
		{"imports", []string{"import"}, []string{"bucket name=import-logs", "network name=import-main cidr=10.60.0.0/16"}, ""},
		{"two namespaces", []string{"shared", "tenant"}, nil, ""},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			for _, object := range tt.before {
				shared.simcloud(t, append([]string{"create"}, strings.Fields(object)...)...)
			}
			for _, folder := range tt.folders {
				shared.must(t, "hykube", "apply", "-f", filepath.Join("..", "..", "examples", folder), "--auto-approve")
				shared.must(t, "hykube", "plan", "-n", folder, "--refresh=All", "--detailed-exitcode")
			}
			for i := len(tt.folders) - 1; i >= 0; i-- {
				folder := tt.folders[i]
				if folder == "replace" { // its network is not to be destroyed
					shared.must(t, "patch", "sim-network", "main", "-n", folder, "--type=merge", "-p", `{"lifecycle":{"preventDestroy":false}}`)
				}
				shared.must(t, "hykube", "destroy", "--all", "-n", folder, "--auto-approve")
			}
			for _, folder := range tt.folders {
				left := shared.simcloud(t, "calls", "--effect", "--name", folder+"-*")
				if creates, deletes := strings.Count(left, "  create  "), strings.Count(left, "  delete  "); creates-deletes != strings.Count(tt.kept, " "+folder+"-") {
					t.Errorf("of examples/%s there is left in the cloud more or less than %q:\n%s", folder, tt.kept, left)
				}
			}
		})
	}
}

// must runs kubectl as the administrator.
func (h *harness) must(t *testing.T, args ...string) {
	t.Helper()
	if err := h.kubectl("", args...); err != nil {
		t.Fatal(err)
	}
}

// simcloud returns what the cloud's own command prints.
func (h *harness) simcloud(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(h.bin, "simcloud"), args...)
	cmd.Env = append(os.Environ(), "SIMCLOUD_ADDRESS="+h.cloudAddress)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("simcloud %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
