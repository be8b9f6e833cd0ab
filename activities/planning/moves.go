package planning

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/shell"

	"k8s.io/apimachinery/pkg/types"
)

// This file pairs moved objects with their former objects.

// findMoves pairs each node whose lifecycle.moved names another node with that node.
func (s *survey) findMoves() {
	if s.spec.RefreshOnly {
		return // a refresh-only plan moves nothing
	}
	s.findInterruptedMoves()
	for _, n := range s.nodes {
		written := n.movesFrom()
		if written == "" {
			continue
		}
		fail := func(summary, format string, args ...any) {
			n.Invalid = append(n.Invalid, lang.Problem(n.Address, "lifecycle.moved.from", summary, fmt.Sprintf(format, args...)))
		}
		from, err := lang.ParseAddress(written)
		if err != nil {
			fail("Invalid address", "%v", err)
			continue
		}
		i, ok := s.byAddr[from]
		switch {
		case !ok || !s.nodes[i].record.Living() || s.nodes[i] == n || n.movedFrom == s.nodes[i]:
			// The move is already done, or there was nothing to move.
		case n.record.Living() && n.record.MovedFrom != s.nodes[i].Ref.UID:
			// The object has its own infrastructure, so that of the other object stays with it.
		case !s.nodes[i].Deleting:
			old := s.nodes[i].Ref
			remedy := "Delete the old object"
			if s.spec.Speculative { // a plan in between would destroy the infrastructure of the old object
				remedy = fmt.Sprintf("First record %s with lifecycle.moved (kubectl apply -f FILE), then delete the old object", n.Address)
			}
			fail("Moved object still exists", "lifecycle.moved of %s names %s, which is not marked for deletion. Two objects cannot manage one resource. %s (kubectl delete %s -n %s --wait=false), and run this same command again.",
				n.Address, from, remedy, shell.Word(old.Kind+"/"+old.Name), old.Namespace)
		case s.nodes[i].movedTo != nil:
			fail("Ambiguous move", "Another object also names %s in lifecycle.moved. Remove lifecycle.moved from one of the two.", from)
		default:
			n.takesOver(s.nodes[i])
		}
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

// renamed maps the address of an object that may have been renamed to its former address; see renames.
func renamed(visited []*node) map[lang.Address]string {
	r := renames{}
	for k, n := range visited {
		r.noteGone(k, n)
	}
	if len(r) == 0 {
		return nil
	}
	for k, n := range visited {
		r.noteMade(k, n)
	}
	out := map[lang.Address]string{}
	for made, gone := range r.pairs() {
		out[visited[made].Address] = visited[gone].Address.String()
	}
	return out
}

// renames finds objects without infrastructure whose type and spec equal those of exactly one object that is marked for
// deletion. Its key is a hash of both, so that it needs little memory.
type renames map[[sha256.Size]byte]alike

// alike counts the visited nodes with a type and spec, and has the index of the last one of each sort.
type alike struct{ goneCount, madeCount, gone, made int }

// noteGone notes a node, with its index, if the plan destroys its infrastructure.
func (r renames) noteGone(k int, n *node) {
	if n.Deleting && n.record.Exists() && n.movedTo == nil && !n.Lifecycle.Forgets() {
		r.note(n, func(a *alike) { a.gone, a.goneCount = k, a.goneCount+1 })
	}
}

// noteMade notes a node, with its index, if the plan may create it.
func (r renames) noteMade(k int, n *node) {
	if n.wanted && n.Mode == v1alpha1.ModeManaged && !n.record.Living() && n.record.Intent == nil && n.Lifecycle.Moved == nil && n.Lifecycle.Import == nil {
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

// findInterruptedMoves pairs the nodes whose move was interrupted between its two writes. Both records describe the
// same infrastructure, so a destroy of the old node would destroy that of the new one. The records determine the pairs,
// regardless of the current lifecycle.
func (s *survey) findInterruptedMoves() {
	var byUID map[types.UID]*node
	for _, n := range s.nodes {
		if n.record.MovedFrom == "" || !n.record.Living() {
			continue
		}
		if byUID == nil {
			byUID = make(map[types.UID]*node, len(s.nodes))
			for _, other := range s.nodes {
				byUID[other.Ref.UID] = other
			}
		}
		if from := byUID[n.record.MovedFrom]; from != nil && from != n && from.movedTo == nil && from.record.Living() {
			n.takesOver(from)
		}
	}
}

// takesOver makes the record of another node move to this one.
func (n *node) takesOver(from *node) {
	n.movedFrom, from.movedTo = from, n
	n.requires = from.requires
}
