package changes

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/plan"
)

// TestBlockers expects all changes that were not done, and first the one that was tried.
func TestBlockers(t *testing.T) {
	change := func(i int32, state v1alpha1.ChangeState) StoredChange {
		return StoredChange{Brief: Brief{State: state, Action: v1alpha1.ActionCreate}, Index: i}
	}
	w := &Stored{
		Changes: []StoredChange{change(0, v1alpha1.ChangeDone), change(1, v1alpha1.ChangeSkipped), change(2, v1alpha1.ChangeFailed), change(3, v1alpha1.ChangePending)},
		Steps:   []plan.Step{{Change: 0}, {Change: 1}, {Change: 2}, {Change: 3, DependsOn: []int{0, 1, 2}}},
		stepsOf: [][2]int32{{0, -1}, {1, -1}, {2, -1}, {3, -1}},
	}
	if got := w.Blockers(&w.Changes[3]); len(got) != 2 || got[0] != &w.Changes[2] || got[1] != &w.Changes[1] {
		t.Errorf("blocked by %+v, want the changes 2 and 1", got)
	}
	if got := w.Blockers(&w.Changes[0]); len(got) > 0 {
		t.Errorf("change 0 is blocked by %+v", got)
	}
}
