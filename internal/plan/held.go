package plan

import (
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/graph"
)

// HeldReason is the reason why Held leaves a change out of the plan.
type HeldReason int

const (
	// NotHeld means that the change can be made.
	NotHeld HeldReason = iota
	// HeldItself means that the change itself cannot be made.
	HeldItself
	// HeldByReference means that the new configuration refers to a held change.
	HeldByReference
	// HeldUnder means that the change destroys an instance that a held change's recorded state refers to.
	HeldUnder
	// HeldWith means that the change destroys a dependent of an instance whose own destroy is held.
	HeldWith
)

// Hold is the reason why one change is left out, and the held changes that cause it.
type Hold struct {
	Reason HeldReason
	// By is the index of the held change that keeps this one out of the plan.
	By int
	// Also lists further held changes that cause it for the same reason, at most maxAlso. More counts the rest.
	Also []int
	More int
}

// maxAlso is the number of further changes that a Hold lists.
const maxAlso = 3

func (h *Hold) also(i int) {
	switch {
	case i == h.By || slices.Contains(h.Also, i):
	case len(h.Also) < maxAlso:
		h.Also = append(h.Also, i)
	default:
		h.More++
	}
}

// Held decides which changes must not begin, in either half, when the stopped ones cannot be made. A held change leaves
// its instance as it is. Therefore:
//
//   - a change whose configuration refers to the held change's new values is held, too;
//   - an instance that its recorded state refers to must not be destroyed or replaced;
//   - if the held change is a delete, the deletes of its dependents are held. If the delete is held only because
//     another held instance depends on it, a dependent's delete still runs if the user requested it directly.
//
// The result has one element for each change. The work is linear in changes and references.
func Held(changes []Planned, stopped []int) []Hold {
	h := &holding{
		changes:    changes,
		held:       make([]Hold, len(changes)),
		referredBy: graph.Collect(len(changes), func(i int) []int { return changes[i].DependsOn }).Reverse(),
		requiredBy: graph.Collect(len(changes), func(i int) []int { return changes[i].Requires }).Reverse(),
		whole:      make([]bool, len(changes)),
		passed:     make([]bool, len(changes)),
	}
	for _, i := range stopped {
		h.hold(i, HeldItself, i, true)
	}
	for ; len(h.queue) > 0; h.queue = h.queue[1:] {
		h.spread(h.queue[0])
	}
	for i := range h.held {
		if h.held[i].Reason != NotHeld {
			h.note(i)
		}
	}
	return h.held
}

// holding is the state of Held.
type holding struct {
	changes []Planned
	held    []Hold
	// referredBy and requiredBy give the changes whose configuration, and whose recorded state, refers to a change.
	referredBy, requiredBy *graph.Edges
	// whole[i] is true if the deletes of all dependents of change i are held, even those that the user requested
	// directly.
	whole []bool
	// passed[i] is true for an unchanged instance whose own dependents are in the queue.
	passed []bool
	// queue lists the held changes whose consequences are still open.
	queue []int
}

func (h *holding) hold(i int, reason HeldReason, because int, all bool) {
	if h.held[i].Reason != NotHeld && (h.whole[i] || !all) {
		return
	}
	if h.held[i].Reason == NotHeld {
		h.held[i] = Hold{Reason: reason, By: because}
	}
	h.whole[i] = all
	h.queue = append(h.queue, i)
}

// spread holds the changes that cannot run without change i.
func (h *holding) spread(i int) {
	// As in Steps, a reference through an unchanged instance counts, too.
	for far := slices.Clone(h.referredBy.Of(i)); len(far) > 0; far = far[1:] {
		switch d := far[0]; {
		case h.changes[d].applies():
			h.hold(d, HeldByReference, i, true)
		case h.changes[d].Action == v1alpha1.ActionNoOp && !h.passed[d]:
			h.passed[d] = true
			far = append(far, h.referredBy.Of(d)...)
		}
	}
	for _, d := range h.changes[i].Requires {
		if d != i && h.changes[d].destroys() {
			h.hold(d, HeldUnder, i, false)
		}
	}
	if !h.deletes(i) {
		return
	}
	for _, d := range h.requiredBy.Of(i) {
		if h.changes[d].Action == v1alpha1.ActionDelete && (h.whole[i] || !h.changes[d].Requested) {
			h.hold(d, HeldWith, i, h.whole[i])
		}
	}
}

// deletes reports whether change i deletes the instance of an object, and not only a deposed one.
func (h *holding) deletes(i int) bool {
	return h.changes[i].Action == v1alpha1.ActionDelete && !h.changes[i].Deposed
}

// note adds change i to the causes of the changes that are held because of it.
func (h *holding) note(i int) {
	also := func(reason HeldReason, of []int) {
		for _, d := range of {
			if d != i && h.held[d].Reason == reason {
				h.held[d].also(i)
			}
		}
	}
	also(HeldByReference, h.referredBy.Of(i))
	also(HeldUnder, h.changes[i].Requires)
	if h.deletes(i) {
		also(HeldWith, h.requiredBy.Of(i))
	}
}
