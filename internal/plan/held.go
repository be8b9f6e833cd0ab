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
	held := make([]Hold, len(changes))
	refer := graph.Collect(len(changes), func(i int) []int { return changes[i].DependsOn }).Reverse()
	stand := graph.Collect(len(changes), func(i int) []int { return changes[i].Requires }).Reverse()
	// whole[i] is true if the deletes of all dependents of change i are held, even those that the user requested
	// directly.
	whole := make([]bool, len(changes))
	// passed[i] is true for an unchanged instance whose own dependents are in the queue.
	passed := make([]bool, len(changes))
	var queue []int
	hold := func(i int, reason HeldReason, because int, all bool) {
		if held[i].Reason != NotHeld && (whole[i] || !all) {
			return
		}
		if held[i].Reason == NotHeld {
			held[i] = Hold{Reason: reason, By: because}
		}
		whole[i] = all
		queue = append(queue, i)
	}
	for _, i := range stopped {
		hold(i, HeldItself, i, true)
	}
	for ; len(queue) > 0; queue = queue[1:] {
		i := queue[0]
		// As in Steps, a reference through an unchanged instance counts, too.
		for far := slices.Clone(refer.Of(i)); len(far) > 0; far = far[1:] {
			switch d := far[0]; {
			case changes[d].applies():
				hold(d, HeldByReference, i, true)
			case changes[d].Action == v1alpha1.ActionNoOp && !passed[d]:
				passed[d] = true
				far = append(far, refer.Of(d)...)
			}
		}
		for _, d := range changes[i].Requires {
			if d != i && changes[d].destroys() {
				hold(d, HeldUnder, i, false)
			}
		}
		if changes[i].Action != v1alpha1.ActionDelete || changes[i].Deposed {
			continue
		}
		for _, d := range stand.Of(i) {
			if changes[d].Action == v1alpha1.ActionDelete && (whole[i] || !changes[d].Requested) {
				hold(d, HeldWith, i, whole[i])
			}
		}
	}
	for i := range held {
		if held[i].Reason == NotHeld {
			continue
		}
		note := func(reason HeldReason, of []int) {
			for _, d := range of {
				if d != i && held[d].Reason == reason {
					held[d].also(i)
				}
			}
		}
		note(HeldByReference, refer.Of(i))
		note(HeldUnder, changes[i].Requires)
		if changes[i].Action == v1alpha1.ActionDelete && !changes[i].Deposed {
			note(HeldWith, stand.Of(i))
		}
	}
	return held
}
