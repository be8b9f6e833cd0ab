package repository

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAFlakyTestPassesAndIsListed runs a test that fails once as `make test` does.
func TestAFlakyTestPassesAndIsListed(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "../../hack/test.sh", "./tests/repository/testdata/flaky")
	command.Env = append(os.Environ(), "HYKUBE_TEST_RUNS="+filepath.Join(t.TempDir(), "runs"))
	out, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("the run fails: %v\n%s", err, out)
	}
	if _, list, _ := strings.Cut(string(out), "Flaky tests."); !strings.Contains(list, "TestSecondRun: 2 runs, 1 failures") {
		t.Errorf("the last lines do not list TestSecondRun:\n%s", out)
	}
}
