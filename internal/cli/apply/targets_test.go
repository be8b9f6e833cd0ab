package apply_test

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

// TestApplyRecordsOnlyTargets applies a directory with --target. The other resources of the files stay unrecorded.
func TestApplyRecordsOnlyTargets(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Creates
	other := "---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: other}\nspec: {cidr: 10.1.0.0/16}\n"
	out, errOut, code := f.Run("apply", "-f", clitest.Write(t, clitest.TwoFiles+other), "--target", "sim-network/main", "--auto-approve")
	if code != exit.Done || strings.Contains(out, "other") || !strings.Contains(errOut, "leave out 1 object") || len(f.Objects) != 2 {
		t.Errorf("code %d, %d objects:\n%s\n%s", code, len(f.Objects), out, errOut)
	}
}
