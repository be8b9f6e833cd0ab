package speculation_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

// Before the question a prune names the objects outside the files that read what it deletes.
func TestPruneNamesReferrers(t *testing.T) {
	f := clitest.New(t, cli.Command)
	hasSet(f, ofWeb)
	reader := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network",
		"spec": map[string]any{"name": "${secret.old.password}"}}}
	reader.SetName("reader")
	reader.SetNamespace("default")
	f.Put(reader, "sim-networks")
	_, errOut, _ := f.RunIn(clitest.OnTerminal, "no\n", "apply", "-f", clitest.Write(t, clitest.TwoFiles), "--prune", "--applyset", "web")
	warning := strings.Index(errOut, `Warning: Secret "old" is no longer in the files and will be deleted, but objects outside the files refer to it: sim-network/reader in namespace default`)
	if asked := strings.Index(errOut, "Do you want"); warning < 0 || asked < warning {
		t.Error(errOut)
	}
	if writes := f.Writes(); len(writes) > 0 {
		t.Error(writes)
	}
	_, errOut, code := f.Run("plan", "-f", clitest.Write(t, clitest.TwoFiles), "--prune", "--applyset", "web")
	if code != exit.Done || !strings.Contains(errOut, `Warning: Secret "old" is no longer in the files and will be deleted, but objects outside the files refer to it: sim-network/reader in namespace default`) {
		t.Errorf("plan: code %d: %s", code, errOut)
	}
}

// Before the question an apply without --prune names what it takes out of an applyset.
func TestApplyNamesWhatLeavesASet(t *testing.T) {
	f := clitest.New(t, cli.Command)
	member := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network", "spec": map[string]any{}}}
	member.SetName("main")
	member.SetNamespace("default")
	member.SetLabels(ofWeb)
	f.Put(member, "sim-networks")
	_, errOut, _ := f.RunIn(clitest.OnTerminal, "no\n", "apply", "-f", clitest.Write(t, clitest.TwoFiles))
	warning := strings.Index(errOut, "Warning: recording the files without --prune takes 1 object, such as sim-network.sim.hykube.io/main, out of an applyset.")
	if asked := strings.Index(errOut, "Do you want"); warning < 0 || asked < warning {
		t.Error(errOut)
	}
}
