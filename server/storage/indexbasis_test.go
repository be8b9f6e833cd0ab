package storage

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
)

// TestInstancesOfASetHaveOneBasis writes the status of one instance, as each apply does. Plans compare the instances by their
// basis, so it must stay the same for all, until the set itself changes.
func TestInstancesOfASetHaveOneBasis(t *testing.T) {
	x := newIndexed(t)
	s := set("team", "n", "a")
	s.Spec.Count = new(int32(3))
	x.write(resourceSets, "team", "n", s)
	followed, l := x.newIndex(), ledger.New(x.s.KV())
	instance := func(name string) (*index.View, v1alpha1.ObjectReference, ledger.Basis) {
		t.Helper()
		v, err := followed.View(t.Context(), "team")
		if err != nil {
			t.Fatal(err)
		}
		slot, ok := v.Slot(lang.Address{Type: "sim_a", Name: name})
		if !ok {
			t.Fatalf("%s has no slot", name)
		}
		return v, v.Nodes[slot].Object.Ref("team"), v.Basis(slot)
	}
	_, first, basis := instance("n[1]")
	status := ledger.Status{StatusKey: ledger.StatusKey{Namespace: "team", Set: s.UID, UID: first.UID}, Value: []byte(`{"conditions":[]}`)}
	if err := l.SaveStatus(t.Context(), status); err != nil {
		t.Fatal(err)
	}
	_, _, other := instance("n[2]")
	if v, _, now := instance("n[1]"); now.Set != basis.Set || now != other || basis.Set == 0 {
		t.Errorf("after a status: %+v, before %+v, of another instance %+v", now, basis, other)
	} else if _, ok := v.Unmoved(first, basis, false); !ok {
		t.Error("a status moves an instance")
	}
	s.Labels = map[string]string{"a": "b"}
	x.write(resourceSets, "team", "n", s)
	if v, _, now := instance("n[1]"); now.Set == basis.Set {
		t.Error("an edit of the set does not change the basis")
	} else if _, ok := v.Unmoved(first, basis, false); ok {
		t.Error("an edit of the set moves no instance")
	}
}
