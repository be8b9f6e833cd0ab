package changes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
)

// TestALostCreateNamesWhatToLeaveOut expects the command that plans the other resources. A set may have many such instances.
func TestALostCreateNamesWhatToLeaveOut(t *testing.T) {
	for want, ref := range map[string]v1alpha1.ObjectReference{
		"kubectl hykube plan --exclude sim_network.one -n team": {Kind: "sim-network", Namespace: "team", Name: "one"},
		`kubectl hykube plan --exclude 'sim_network.net[3]' -n team, or --exclude sim_network.net for all instances of the ResourceSet "nets"`: {
			Kind: "sim-network", Namespace: "team", Name: "net[3]", Set: "nets",
		},
	} {
		r := &resource.Resource{Address: lang.Address{Type: "sim_network", Name: ref.Name}, Ref: ref}
		err := LostCreate(r, &ledger.Instance{Intent: &ledger.Intent{At: time.Unix(1, 0)}})
		if !strings.HasSuffix(err.Error(), want) {
			t.Errorf("error %q, want the end %q", err, want)
		}
	}
}

// TestObstaclesGiveEachReasonOnce lists changes that are not made.
func TestObstaclesGiveEachReasonOnce(t *testing.T) {
	list := func(n int, why string) (out []Obstacle) {
		for i := range n {
			out = append(out, Obstacle{Address: fmt.Sprintf("t.%c", 'a'+i), Why: why})
		}
		return out
	}
	for want, obstacles := range map[string][]Obstacle{
		"":                                    nil,
		"t.a; t.b":                            list(2, ""),
		"t.a; t.b; t.c; t.d; t.e; and 2 more": list(7, ""),
		"t.a: x":                              list(1, "x"),
		"t.a and 1 other: x":                  list(2, "x"),
		"t.a and 6 others: x; t.a: y; t.a":    slices.Concat(list(7, "x"), list(1, "y"), list(1, "")),
	} {
		if got := ListObstacles(obstacles); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
