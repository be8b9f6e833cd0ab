package operation

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hykube/hykube/internal/cli/printer"
)

// Many changes that were skipped for the same reason share a line. Others have one each.
func TestSkippedChangesShareALine(t *testing.T) {
	var all []Skipped
	for i := range 30 {
		all = append(all, Skipped{fmt.Sprintf("sim_network.n%d", i), "the rollout stopped"})
	}
	all = append(all, Skipped{"sim_subnet.a", "it depends on sim_network.n1"})
	want := []string{"30 resources, such as sim_network.n0: the rollout stopped", "sim_subnet.a: it depends on sim_network.n1"}
	if got := SkippedLines(all); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := SkippedLines(all[:printer.MaxSkipped]); len(got) != printer.MaxSkipped || got[0] != "sim_network.n0: the rollout stopped" {
		t.Errorf("%q", got)
	}
}
