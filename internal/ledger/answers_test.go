package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAnswers stores the answers about changes of a speculative plan, and loads them for another plan.
func TestAnswers(t *testing.T) {
	kv := &memory{entries: map[string]Entry{}}
	l := New(kv)
	l.Limit = 1000
	about := func(index int32, address, deposed string, answers map[string][]byte) *Change {
		c := &Change{Answers: answers}
		c.Index, c.Address, c.Deposed = index, address, deposed
		return c
	}
	small := map[string][]byte{"q": []byte("a"), "empty": {}}
	for _, c := range []*Change{
		about(0, "sim_disk.a", "", map[string][]byte{"q": []byte("an earlier attempt")}), about(0, "sim_disk.a", "", small),
		about(1, "sim_disk.a", "d1", map[string][]byte{"q": []byte("old")}), about(2, "sim_disk.large", "", map[string][]byte{"q": make([]byte, 2000)}), about(3, "sim_disk.none", "", nil),
	} {
		if err := l.Speculative("p").SaveChange(t.Context(), "p", c); err != nil {
			t.Fatal(err)
		}
	}
	load := func(address, deposed string) map[string][]byte {
		c := about(0, address, deposed, nil)
		if err := l.LoadAnswers(t.Context(), "p", c); err != nil {
			t.Fatal(err)
		}
		return c.Answers
	}
	got := []map[string][]byte{load("sim_disk.a", ""), load("sim_disk.a", "d1"), load("sim_disk.large", ""), load("sim_disk.none", ""), load("sim_disk.new", "")}
	if d := cmp.Diff([]map[string][]byte{small, {"q": []byte("old")}, nil, nil, nil}, got); d != "" {
		t.Errorf("answers (-want +got):\n%s", d)
	}
	if err := l.DropPlan(t.Context(), "p"); err != nil || len(kv.entries) != 0 {
		t.Errorf("%d rows stay after the plan: %v", len(kv.entries), err)
	}
}
