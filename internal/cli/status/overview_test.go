package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/printer"
)

// The overview of a namespace names the failed objects first, and counts many skipped ones in one line.
func TestManySkippedObjectsShareALine(t *testing.T) {
	var all []noted
	for i := range 30 {
		all = append(all, noted{"sim-network", fmt.Sprintf("a%d", i), v1alpha1.ReasonSkipped, "Not tried: the rollout stopped."})
	}
	few := attentionLines(all[:printer.MaxSkipped])
	if len(few) != printer.MaxSkipped || few[0] != "sim-network/a0: Skipped: Not tried: the rollout stopped." {
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
	if got := attentionLines(all); len(got) != 42 || !strings.HasPrefix(got[printer.Listed-1], "30 objects: Skipped") {
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
