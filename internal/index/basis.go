package index

import (
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
)

// Basis returns the revisions up to which the view knows the object in a slot. A plan stores it with the change.
func (v *View) Basis(slot int) ledger.Basis {
	b := ledger.Basis{Records: v.Records}
	if o := v.Nodes[slot].Object; o != nil && o.Instance != nil {
		b.Set = v.contents[o.Instance.SetUID]
	}
	return b
}

// Unmoved returns the node of an object, and true if the object surely has the UID and the spec of a reference, and its
// record was surely not written after a basis. recorded is true if there was recorded infrastructure then.
func (v *View) Unmoved(ref v1alpha1.ObjectReference, b ledger.Basis, recorded bool) (Node, bool) {
	i, ok := v.find(lang.AddressOf("", v1alpha1.TypeOf(ref.Kind), ref.Name))
	if !ok {
		return Node{}, false
	}
	n := v.Nodes[i]
	switch o := n.Object; {
	case o == nil, o.UID != ref.UID, o.Generation != ref.Generation, o.APIVersion != ref.APIVersion, o.Has(Unready):
		return n, false
	case o.Instance != nil && v.contents[o.Instance.SetUID] != b.Set: // the generation alone is a short hash
		return n, false
	case n.Record == nil:
		return n, !recorded
	}
	return n, n.Record.Revision <= b.Records && !n.Record.Intent
}

// RecordUnmoved reports whether an object has the address, and its record was surely not written after a basis.
func (v *View) RecordUnmoved(addr lang.Address, b ledger.Basis) bool {
	i, ok := v.Slot(addr)
	return ok && v.Nodes[i].Record != nil && v.Nodes[i].Record.Revision <= b.Records
}
