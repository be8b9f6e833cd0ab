package activities

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
)

// TestTakingUpAStep looks at what an attempt finds in the ledger, and wants it to know what an earlier one did.
func TestTakingUpAStep(t *testing.T) {
	const before, after = `{"size":1}`, `{"size":2}`
	record := func(attributes string, by types.UID, generation int64) *ledger.Instance {
		return &ledger.Instance{State: ledger.State{Attributes: []byte(attributes)}, Plan: by, Object: v1alpha1.ObjectReference{Generation: generation}}
	}
	made := func(rec *ledger.Instance, destroy bool) *ledger.Instance {
		rec.LastOutcome = &ledger.Outcome{Plan: "this", Destroy: destroy}
		return rec
	}
	tainted := made(record(after, "this", 0), false)
	tainted.Tainted, tainted.LastOutcome.Failed = true, true
	marked := made(record(after, "this", 2), false)
	marked.Tainted = true
	asked := record(before, "older", 1)
	asked.Intent = &ledger.Intent{Plan: "this", Action: v1alpha1.ActionUpdate}
	for name, test := range map[string]struct {
		action  v1alpha1.Action
		destroy bool
		begun   bool
		record  *ledger.Instance
		made    bool
		stale   bool
	}{
		"nothing was tried":                                    {v1alpha1.ActionUpdate, false, false, record(before, "older", 1), false, false},
		"another plan changed it":                              {v1alpha1.ActionUpdate, false, false, record(after, "other", 2), false, true},
		"the intent alone does not move the state":             {v1alpha1.ActionUpdate, false, true, asked, false, false},
		"an update was made":                                   {v1alpha1.ActionUpdate, false, true, made(record(after, "this", 2), false), true, true},
		"an update was made that shows nowhere":                {v1alpha1.ActionUpdate, false, true, made(record(before, "this", 2), false), true, false},
		"an update was made, and a postcondition doesn't hold": {v1alpha1.ActionUpdate, false, true, made(record(after, "this", 0), false), true, false},
		"an update was made, and somebody tainted it":          {v1alpha1.ActionUpdate, false, true, marked, true, true},
		"an update failed and left half of it":                 {v1alpha1.ActionUpdate, false, true, record(after, "this", 0), false, false},
		"an update failed and left nothing":                    {v1alpha1.ActionUpdate, false, true, record(before, "this", 0), false, false},
		"a create left something broken":                       {v1alpha1.ActionReplace, false, true, tainted, false, false},
		"a delete was made":                                    {v1alpha1.ActionDelete, true, true, record("", "", 0), true, true},
		"another plan deleted it":                              {v1alpha1.ActionDelete, true, false, record("", "", 0), false, true},
		"a delete failed and moved the state":                  {v1alpha1.ActionDelete, true, true, record(after, "this", 0), false, false},
		"the first half of a replace was made":                 {v1alpha1.ActionReplace, true, true, made(record("", "this", 2), true), true, true},
		"the second half of a replace is to be made":           {v1alpha1.ActionReplace, false, true, made(record("", "this", 2), true), false, false},
		"drift was accepted":                                   {v1alpha1.ActionRead, false, true, record(after, "this", 0), false, false},
		"a removal was accepted":                               {v1alpha1.ActionRead, false, true, record("", "this", 0), false, false},
	} {
		c := &ledger.Change{Preconditions: ledger.Preconditions{State: record(before, "", 0).Digest()}}
		c.Action, c.Object.Generation = test.action, 2
		s := &stepRun{plan: &v1alpha1.Plan{}, change: c, destroy: test.destroy, begun: test.begun}
		s.plan.UID = "this"
		if made := s.outcomeRecorded(test.record); made != test.made {
			t.Errorf("%s: made before: %t, want %t", name, made, test.made)
		}
		if broken := s.failureRecorded(test.record); broken != (test.record == tainted) {
			t.Errorf("%s: broke before: %t", name, broken)
		}
		r := &resource{ref: c.Object, entry: catalog.Entry{}}
		err := s.checkStale(r, test.record)
		if _, stale := errors.AsType[*staleError](err); stale != test.stale {
			t.Errorf("%s: %v, want stale %t", name, err, test.stale)
		}
	}
}

// TestBlocker wants the change that was tried, not one that only waited.
func TestBlocker(t *testing.T) {
	change := func(i int32, state v1alpha1.ChangeState) *ledger.Change {
		c := &ledger.Change{}
		c.Index, c.State, c.Action = i, state, v1alpha1.ActionCreate
		return c
	}
	w := &work{
		changes: []*ledger.Change{change(0, v1alpha1.ChangeDone), change(1, v1alpha1.ChangeSkipped), change(2, v1alpha1.ChangeFailed), change(3, v1alpha1.ChangePending)},
		steps:   []plan.Step{{Change: 0}, {Change: 1}, {Change: 2}, {Change: 3, DependsOn: []int{0, 1, 2}}},
		stepsOf: [][]int{{0}, {1}, {2}, {3}},
	}
	if got := w.blocker(w.changes[3]); got != w.changes[2] {
		t.Errorf("blocked by %+v, want change 2", got)
	}
	if got := w.blocker(w.changes[0]); got != nil {
		t.Errorf("change 0 is blocked by %d", got.Index)
	}
}
