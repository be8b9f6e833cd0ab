package plan

import (
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/graph"
)

// HeldReason is why Held leaves a change out.
type HeldReason int

const (
	// NotHeld changes can be made.
	NotHeld HeldReason = iota
	// HeldItself is a change that cannot be made.
	HeldItself
	// HeldByReference is a change whose configuration refers to what another would have made.
	HeldByReference
	// HeldUnder is the destroy of what another, which stays as it is, stands on.
	HeldUnder
	// HeldWith is the destroy of what stands on another that is not destroyed.
	HeldWith
)

// Hold is why one change is left out: because of another, which is itself left out.
type Hold struct {
	Reason HeldReason
	// By is the index of the change that keeps this one out of the plan.
	By int
	// Also are others that it is left out for with the same reason, at most maxAlso, and More counts the rest.
	Also []int
	More int
}

// maxAlso is how many others a Hold names.
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

// Held says which changes must not be begun, in any half, when some cannot be made. What cannot be made stays as it is, so
//
//   - what refers to its new values cannot be made either;
//   - what it stands on, by the recorded references, must not be destroyed or replaced;
//   - when it was to be destroyed, what stands on it is not destroyed: that would empty what stays. What stands on something that
//     only has to stay for it is destroyed if somebody asked for that by itself, and stays otherwise.
//
// The answer has one element for each change. The work is linear in changes and references.
func Held(changes []Planned, stopped []int) []Hold {
	held := make([]Hold, len(changes))
	refer := graph.Collect(len(changes), func(i int) []int { return changes[i].DependsOn }).Reverse()
	stand := graph.Collect(len(changes), func(i int) []int { return changes[i].Requires }).Reverse()
	// whole are the changes of which nothing that stands on them is destroyed, whoever asked for that.
	whole := make([]bool, len(changes))
	// passed are the unchanged instances that were looked through.
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
		// What refers to it through an unchanged instance is left out, too, as Steps orders it.
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
