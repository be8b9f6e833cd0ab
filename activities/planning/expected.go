package planning

import (
	"sync"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
)

// expected holds the action and the values of a resource before and after the plan.
type expected struct {
	action v1alpha1.Action
	// recorded is the value in the ledger, and prior the one that the plan starts from. They differ if the resource
	// drifted.
	recorded, prior, planned cty.Value
	// all is true if each value counts as changed, as for a resource that is created or replaced.
	all bool

	// mu guards differs, the cache of the method differenceOf.
	mu      sync.Mutex
	differs map[string]difference
}

// difference is the effect of a plan on a value.
type difference struct {
	// recorded is true if the planned value is not the recorded one, or is unknown. prior is true if it is not the one
	// that the plan starts from.
	recorded, prior bool
}

// changes reports whether the apply of the plan will record another value of an attribute, or of any attribute if it is
// empty.
func (e *expected) changes(attribute string) bool {
	return e.all || attribute == "" && e.action != v1alpha1.ActionNoOp || e.differenceOf(attribute).recorded
}

// affectsReferrers reports whether the plan must visit a resource that refers to an attribute; an empty attribute means
// the whole resource. For lifecycle.replaceTriggeredBy, a difference from the value that the plan starts from also
// counts.
func (e *expected) affectsReferrers(attribute string) bool {
	return e.changes(attribute) || e.differenceOf(attribute).prior
}

func (e *expected) differenceOf(attribute string) difference {
	e.mu.Lock()
	defer e.mu.Unlock()
	d, ok := e.differs[attribute]
	if !ok {
		planned := attributeOf(e.planned, attribute)
		d = difference{!same(attributeOf(e.recorded, attribute), planned),
			!same(attributeOf(e.prior, attribute), planned)}
		if e.differs == nil {
			e.differs = map[string]difference{}
		}
		e.differs[attribute] = d
	}
	return d
}

func attributeOf(v cty.Value, name string) cty.Value {
	if name == "" {
		return v
	}
	return attribute(v, name)
}

// same reports whether two values are known and equal, and equally sensitive, from whichever objects their secrets
// come.
func same(a, b cty.Value) bool {
	if a == cty.NilVal || b == cty.NilVal || !lang.WithoutOrigins(a).RawEquals(lang.WithoutOrigins(b)) {
		return false
	}
	a, _ = a.UnmarkDeep()
	return a.IsWhollyKnown()
}

// releasing returns the changes of a plan in dependency order. It drops the result of each change after all changes
// that depend on it were planned.
type releasing struct {
	*graph.Tracker
	pr *proposal
	// users counts the changes that depend on a change and are not planned.
	users []int32
}

func newReleasing(pr *proposal) *releasing {
	r := &releasing{pr: pr, users: make([]int32, len(pr.all))}
	r.Tracker = graph.NewTracker(len(pr.all), func(i int) []int { return changes.Indexes(pr.all[i].DependsOn) })
	for _, c := range pr.all {
		for _, d := range c.DependsOn {
			r.users[d]++
		}
	}
	return r
}

// Done implements graph.Source.
func (r *releasing) Done(i int) {
	r.Tracker.Done(i)
	c := r.pr.briefOf(int32(i))
	r.release(int32(i))
	for _, d := range c.DependsOn {
		r.users[d]--
		r.release(d)
	}
}

// release drops the result of a change if no further change reads it.
func (r *releasing) release(i int32) {
	if r.users[i] > 0 {
		return
	}
	c := r.pr.briefOf(i)
	if addr, err := lang.ParseAddress(c.Address); err == nil && c.Deposed == "" {
		r.pr.release(addr)
	}
}

// recordedValue returns the value of a record, or a null value if it has none. If the schema version has changed, the
// value is unknown, so that it counts as changed.
func recordedValue(state *ledger.State, s *schema.Schema) cty.Value {
	if !state.Exists() {
		return cty.NullVal(s.Block.ImpliedType())
	}
	v, err := instance.Recorded(state, s)
	if err != nil {
		return cty.UnknownVal(s.Block.ImpliedType())
	}
	return lang.MarkSensitive(s.Block, v)
}
