package planning

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/shell"

	"k8s.io/apimachinery/pkg/types"
)

// moves pairs the slots of moved objects with those of their former objects, in both directions.
type moves struct {
	from, to map[int]int
	// failed has the errors in lifecycle.moved, by slot.
	failed map[int]diag.Diagnostics
}

// findMoves finds the moves that the plan makes, and those that were interrupted between their two writes. The records
// determine the latter, regardless of the current lifecycle: both records describe the same infrastructure, so a
// destroy of the former object would destroy that of the other one.
func (o *outline) findMoves() {
	if o.spec.RefreshOnly {
		return // a refresh-only plan moves nothing
	}
	o.moves = moves{from: map[int]int{}, to: map[int]int{}, failed: map[int]diag.Diagnostics{}}
	var interrupted, written []int
	for i, n := range o.Nodes {
		if n.Object == nil {
			continue
		}
		if o.record(i).MovedFrom != "" && o.record(i).Living {
			interrupted = append(interrupted, i)
		}
		if n.Object.Moved != "" && o.wanted(i) && n.Object.Mode == v1alpha1.ModeManaged {
			written = append(written, i)
		}
	}
	slices.SortFunc(interrupted, o.before)
	slices.SortFunc(written, o.before)
	o.pairInterrupted(interrupted)
	for _, i := range written {
		o.pairWritten(i)
	}
}

func (o *outline) pairInterrupted(slots []int) {
	if len(slots) == 0 {
		return
	}
	living := map[types.UID]int{}
	for i, n := range o.Nodes {
		if n.Object != nil && o.record(i).Living {
			living[n.Object.UID] = i
		}
	}
	for _, i := range slots {
		from, ok := living[o.record(i).MovedFrom]
		if _, moved := o.moves.to[from]; ok && from != i && !moved {
			o.moves.from[i], o.moves.to[from] = from, i
		}
	}
}

// pairWritten pairs an object with the one that its lifecycle.moved names.
func (o *outline) pairWritten(i int) {
	object := o.Nodes[i].Object
	addr := object.Address()
	fail := func(summary, format string, args ...any) {
		d := lang.Problem(addr, "lifecycle.moved.from", summary, fmt.Sprintf(format, args...))
		o.moves.failed[i] = diag.Diagnostics{d}
	}
	former, err := lang.ParseAddress(object.Moved)
	if err != nil {
		fail("Invalid address", "%v", err)
		return
	}
	from, ok := o.Slot(former)
	paired, moved := o.moves.from[i]
	switch {
	case !ok || !o.record(from).Living || from == i || moved && paired == from:
		// The move is already done, or there was nothing to move.
	case o.record(i).Living && o.record(i).MovedFrom != o.Nodes[from].Object.UID:
		// The object has its own infrastructure, so that of the other object stays with it.
	case !o.Nodes[from].Object.Has(index.Deleting):
		old := o.Nodes[from].Object
		remedy := "Delete the old object"
		if o.spec.Speculative { // a plan in between would destroy the infrastructure of the old object
			remedy = fmt.Sprintf("First record %s with lifecycle.moved (kubectl apply -f FILE), then delete the old object", addr)
		}
		fail("Moved object still exists",
			"lifecycle.moved of %s names %s, which is not marked for deletion. Two objects cannot manage one resource. %s (kubectl delete %s -n %s --wait=false), and run this same command again.",
			addr, former, remedy, shell.Word(old.Kind.Kind+"/"+old.Name), o.namespace)
	default:
		if _, taken := o.moves.to[from]; taken {
			fail("Ambiguous move", "Another object also names %s in lifecycle.moved. Remove lifecycle.moved from one of the two.", former)
			return
		}
		o.moves.from[i], o.moves.to[from] = from, i
	}
}

// movesFrom returns the address in lifecycle.moved of a wanted resource, or "".
func (n *node) movesFrom() string {
	if n.Lifecycle.Moved == nil || !n.wanted || n.Mode != v1alpha1.ModeManaged {
		return ""
	}
	return n.Lifecycle.Moved.From
}

// nothingToMoveWarning returns a warning for the create of an object whose lifecycle.moved names no existing record. If
// the name is misspelled, the create makes a second resource.
func nothingToMoveWarning(r *resource.Resource) v1alpha1.Diagnostic {
	d := lang.Problem(r.Address, "lifecycle.moved.from", "No resource to move",
		fmt.Sprintf("This namespace has no record of %s, so the plan creates a new resource. To move an existing one, correct the name.", r.Lifecycle.Moved.From))
	d.Severity = v1alpha1.SeverityWarning
	return d
}

// moveApplied reports whether an earlier plan applied lifecycle.moved.
func moveApplied(r *resource.Resource) bool {
	from, err := lang.ParseAddress(r.Lifecycle.Moved.From)
	return err == nil && resource.StatusOf(r.Object).MovedFrom == from.String()
}

// renames finds objects without infrastructure whose type and spec equal those of exactly one object that is marked for
// deletion. Its key is a hash of both, so that it needs little memory.
type renames map[[sha256.Size]byte]alike

// alike counts the visited nodes with a type and spec, and has the index of the last one of each sort.
type alike struct{ goneCount, madeCount, gone, made int }

// noteGone notes a node, with its index, if the plan destroys its infrastructure.
func (r renames) noteGone(k int, n *node) {
	if n.Deleting && n.record.Exists() && !n.Lifecycle.Forgets() {
		r.note(n, func(a *alike) { a.gone, a.goneCount = k, a.goneCount+1 })
	}
}

// noteMade notes a node, with its index, if the plan may create it.
func (r renames) noteMade(k int, n *node) {
	if n.wanted && n.Mode == v1alpha1.ModeManaged && !n.record.Living() && n.record.Intent == nil &&
		n.Lifecycle.Moved == nil && n.Lifecycle.Import == nil {
		r.note(n, func(a *alike) { a.made, a.madeCount = k, a.madeCount+1 })
	}
}

func (r renames) note(n *node, count func(*alike)) {
	spec, err := json.Marshal(n.Spec())
	if err != nil {
		return // it is only used for a hint
	}
	key := sha256.Sum256([]byte(n.Address.Type + " " + string(spec)))
	a := r[key]
	count(&a)
	r[key] = a
}

// pairs maps the index of a created node to that of the destroyed one.
func (r renames) pairs() map[int]int {
	out := map[int]int{}
	for _, a := range r {
		if a.goneCount == 1 && a.madeCount == 1 {
			out[a.made] = a.gone
		}
	}
	return out
}

// renameWarning returns a warning for the create of an object with the spec of a resource that the plan destroys. The
// object may have been renamed.
func renameWarning(r *resource.Resource, from string) v1alpha1.Diagnostic {
	d := lang.Problem(r.Address, "lifecycle.moved.from", "Looks like a rename",
		fmt.Sprintf("%s has the type and the spec of %s, which the plan destroys. If you renamed the object, add lifecycle: {moved: {from: %s}} to %s: its infrastructure then stays, and nothing is created.",
			r.Address, from, from, r.Address))
	d.Severity = v1alpha1.SeverityWarning
	return d
}
