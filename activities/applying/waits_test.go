package applying

import (
	"testing"

	"github.com/hykube/hykube/activities/changes"
)

// TestASkippedChangeNamesItsBlockers expects all blockers, up to the limit of a message.
func TestASkippedChangeNamesItsBlockers(t *testing.T) {
	change := func(address string, requires ...string) *changes.StoredChange {
		return &changes.StoredChange{Brief: changes.Brief{Address: address, Requires: requires}}
	}
	c := change("n.main")
	for want, blockers := range map[string][]*changes.StoredChange{
		"it depends on a.a, whose change did not succeed":          {change("a.a")},
		"it depends on a.a and a.b, whose changes did not succeed": {change("a.a"), change("a.b"), change("s.s", "n.main")},
		"s.a depends on it, and its change must succeed first":     {change("s.a", "n.main"), change("s.a", "n.main"), change("a.b")},
		"s.a, s.b, s.c and 1 more depend on it, and their changes must succeed first": {
			change("s.a", "n.main"), change("s.b", "n.main"), change("s.c", "n.main"), change("s.d", "n.main")},
	} {
		if got := blockersText(c, blockers); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
