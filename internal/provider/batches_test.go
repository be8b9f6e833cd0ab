package provider

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hykube/hykube/internal/provider/contain"
)

// TestBatchesDependOnTheEnvironment asks for the schema of a plugin that takes batches if a variable says so.
func TestBatchesDependOnTheEnvironment(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "terraform-provider-sim")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", exe, "github.com/hykube/hykube/tests/cmd/terraform-provider-sim").CombinedOutput(); err != nil {
		t.Fatalf("build sim: %v\n%s", err, out)
	}
	pkg := packageAt(t, Source{"example.com", "hykube", "sim"}, "1.0.0", exe)
	p := newPool(t, PoolConfig{}, "SIM_BATCH=10")
	for _, environment := range [][]string{nil, {"SIM_BATCH"}, nil} {
		pkg.Grants = contain.Grants{Environment: environment}
		s, err := p.Schema(t.Context(), pkg)
		if err != nil {
			t.Fatal(err)
		}
		if batches := s.Batches["sim_network"]; batches != (environment != nil) {
			t.Errorf("with the variables %q, the plugin takes batches: %t", environment, batches)
		}
		if deterministic := s.DeterministicPlans["sim_network"]; deterministic != (environment != nil) {
			t.Errorf("with the variables %q, the plugin's plans are deterministic: %t", environment, deterministic)
		}
	}
}
