package planning

import (
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"

	"github.com/zclconf/go-cty/cty"
)

// results holds the result of each planned resource, for the resources that refer to it.
type results struct {
	mu      sync.Mutex
	planned map[lang.Address]*expected
}

func newResults() results { return results{planned: map[lang.Address]*expected{}} }

// expect makes the planned value of a resource available to its dependants.
func (r *results) expect(c *ledger.Change, addr lang.Address, e *expected) {
	if c.Deposed != "" {
		return
	}
	e.action = c.Action
	switch c.Action {
	case v1alpha1.ActionNoOp, v1alpha1.ActionUpdate, v1alpha1.ActionRead:
		e.all = c.Importing != nil || c.PreviousAddress != ""
	default:
		e.all = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.planned[addr] = e
}

// expectedOf returns the result of a resource that the plan has planned, or nil.
func (r *results) expectedOf(addr lang.Address) *expected {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.planned[addr]
}

// released takes the place of each result that no other resource of the plan will read. Its value is unknown: a read
// that should not happen must not find the recorded value, which the plan may change.
var released = &expected{all: true, planned: cty.DynamicVal}

// release drops the result of a resource that no other resource of the plan will read.
func (r *results) release(addr lang.Address) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.planned[addr] != nil {
		r.planned[addr] = released
	}
}

// plannedValue returns the planned value of a resource.
func (r *results) plannedValue(addr lang.Address) (cty.Value, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.planned[addr]
	if !ok {
		return cty.NilVal, false
	}
	return e.planned, true
}

// changesInPlace reports whether the plan updates or replaces a resource.
func (r *results) changesInPlace(addr lang.Address) bool {
	e := r.expectedOf(addr)
	return e != nil && (e.action == v1alpha1.ActionUpdate || e.action == v1alpha1.ActionReplace)
}
