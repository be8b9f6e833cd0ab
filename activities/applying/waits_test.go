package applying

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
)

// TestASkippedChangeNamesItsBlockers wants all of them, as far as a person reads.
func TestASkippedChangeNamesItsBlockers(t *testing.T) {
	change := func(address string, requires ...string) *ledger.Change {
		return &ledger.Change{PlanChange: v1alpha1.PlanChange{Address: address}, Requires: requires}
	}
	c := change("n.main")
	for want, blockers := range map[string][]*ledger.Change{
		"it has to wait for a.a, which was not done":           {change("a.a")},
		"it has to wait for a.a and a.b, which were not done":  {change("a.a"), change("a.b"), change("s.s", "n.main")},
		"s.a refers to it and must go first, and was not done": {change("s.a", "n.main"), change("s.a", "n.main"), change("a.b")},
		"s.a, s.b, s.c and 1 more refer to it and must go first, and were not done": {
			change("s.a", "n.main"), change("s.b", "n.main"), change("s.c", "n.main"), change("s.d", "n.main")},
	} {
		if got := waitsFor(c, blockers); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
