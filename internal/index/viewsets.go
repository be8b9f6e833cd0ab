package index

import (
	"maps"
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resourceset"
)

// This file has the ResourceSets of a view.

// SetOf returns the set whose template has an address; nil if there is none.
func (v *View) SetOf(a lang.Address) *ViewSet {
	if a.Namespace != "" {
		return nil
	}
	return v.sets[a]
}

// Hiding returns the addresses of sets that an object has, too, unless it is marked for deletion.
func (v *View) Hiding() (out []lang.Address) {
	for addr := range v.sets {
		if i, ok := v.Slot(addr); ok && !v.Nodes[i].Object.Has(Deleting) {
			out = append(out, addr)
		}
	}
	slices.SortFunc(out, lang.Address.Compare)
	return out
}

// ViewSet is a ResourceSet in a view.
type ViewSet struct {
	*resourceset.Set
	// Slots are those of the instances. Leaving are those of the instances that leave the set; ExpandReferences finds
	// them.
	Slots, Leaving []int32
}

// add adds a set.
func (v *View) add(s *set) {
	if s.Problem != "" {
		v.Problems[s.Name] = s.Problem
	}
	if other := v.sets[s.Address()]; other != nil {
		if v.Shared == nil {
			v.Shared = map[lang.Address][]string{}
		}
		v.Shared[s.Address()] = []string{other.Name, s.Name}
	}
	v.sets[s.Address()] = &ViewSet{Set: s.Set, Slots: s.slots}
	v.contents[s.UID] = s.Revision
}

// addModule adds a Module with its blocks.
func (v *View) addModule(name string, m *moduleEntry) {
	v.contents[m.UID], v.modules[name] = m.Revision, m.Module
	if m.Problem != "" {
		v.ModuleProblems[name] = m.Problem
	}
	for _, s := range m.sets {
		if s.Repeats != "" {
			v.sets[s.Address()] = &ViewSet{Set: s.Set, Slots: s.slots}
		}
	}
}

// MaxWhole is the maximum number of dependencies that ExpandReferences adds.
const MaxWhole = 200_000

// ExpandReferences replaces each reference to a whole set by references to its instances, and each to an output of a
// Module by references to what is behind the output. A data source also depends on the instances that leave the set: it
// must not read before they are destroyed. ExpandReferences must be called once, after all overlays. It stops after
// MaxWhole dependencies, and sets TooManyWhole.
func (v *View) ExpandReferences() {
	v.findLeaving()
	members, leaving := map[int32][]int32{}, map[int32][]int32{}
	for addr, s := range v.sets {
		if i, ok := v.find(addr); ok {
			members[i], leaving[i] = s.Slots, s.Leaving
		}
	}
	waits := v.addOutputs(members)
	v.findWaiting(waits)
	if len(members) == 0 {
		return
	}
	whole, added := unique.Make(""), 0
	for i, n := range v.Nodes {
		if n.Object == nil || !slices.ContainsFunc(n.Object.DependsOn,
			func(d int32) bool { _, is := members[d]; return is }) {
			continue
		}
		object := *n.Object
		object.DependsOn, object.References = nil, nil
		for _, d := range n.Object.DependsOn {
			if slots, is := members[d]; is {
				if object.Mode == v1alpha1.ModeData {
					slots = slices.Concat(slots, leaving[d])
				}
				if added += len(slots); added > MaxWhole {
					v.TooManyWhole = true
					return
				}
				object.DependsOn = append(object.DependsOn, slots...)
			} else {
				object.DependsOn = append(object.DependsOn, d)
			}
		}
		for _, r := range n.Object.References {
			slots, is := members[r.Slot]
			if !is {
				object.References = append(object.References, r)
			}
			for _, slot := range slots {
				object.References = append(object.References, Reference{slot, whole})
			}
		}
		slices.Sort(object.DependsOn)
		object.DependsOn = slices.Compact(object.DependsOn)
		v.Nodes[i].Object = &object
	}
}

// addOutputs adds the slots of what is behind the outputs to which an object refers. It returns the reasons why outputs
// are not known yet, by their slots.
func (v *View) addOutputs(members map[int32][]int32) (waits map[int32]string) {
	waits = map[int32]string{}
	for name, m := range v.modules {
		for output := range m.Outputs {
			addr := lang.OutputOf("", name, output)
			i, ok := v.find(addr)
			if !ok {
				continue
			}
			if why := resourceset.WaitsFor(addr, v.module); why != "" {
				waits[i] = why
			}
			members[i] = []int32{}
			for _, a := range v.Behind(addr) {
				if s := v.SetOf(a); s != nil {
					members[i] = append(members[i], s.Slots...)
				} else if slot, ok := v.find(a); ok {
					members[i] = append(members[i], slot)
				}
			}
		}
	}
	return waits
}

// findWaiting sets Waiting and Waits. outputs has the reasons why outputs are not known yet, by their slots.
func (v *View) findWaiting(outputs map[int32]string) {
	for _, m := range v.modules {
		if m != nil {
			maps.Copy(v.Waiting, m.Waiting)
		}
	}
	if len(outputs) == 0 {
		return
	}
	for i, n := range v.Nodes {
		if n.Object == nil || n.Object.Has(Deleting) {
			continue
		}
		for _, d := range n.Object.DependsOn {
			if why := outputs[d]; why != "" {
				addr := n.Object.Address()
				if set, _, ok := addr.Set(); ok {
					addr = set
				}
				v.Waiting[addr.String()] = why
				v.Waits = append(v.Waits, i)
				break
			}
		}
	}
}

// Behind returns what an output of a Module of the namespace depends on; see resourceset.Behind.
func (v *View) Behind(output lang.Address) []lang.Address {
	return resourceset.Behind(output, v.module)
}

// module returns the Module with a name; nil if there is none.
func (v *View) module(name string) *resourceset.Module { return v.modules[name] }

// findLeaving finds the instances that leave a set.
func (v *View) findLeaving() {
	for i, n := range v.Nodes {
		if n.Object == nil || n.Object.Instance == nil || !n.Object.Instance.Leaving {
			continue
		}
		if of, _, ok := n.Object.Address().Set(); ok && v.sets[of] != nil {
			v.sets[of].Leaving = append(v.sets[of].Leaving, int32(i))
		}
	}
}

// OverlayModule puts a Module of a speculative plan in the place of the stored one, or adds it.
func (v *View) OverlayModule(m *resourceset.Module) {
	v.index.mu.Lock()
	defer v.index.mu.Unlock()
	next := &moduleEntry{Module: m}
	for _, block := range m.Sets {
		s := &set{Set: block}
		v.overlay(s)
		next.sets, next.slots = append(next.sets, s), append(next.slots, s.slots...)
	}
	v.RemoveModule(m.Name, m.UID, next.slots)
	v.addModule(m.Name, next)
}

// RemoveModule removes a Module, and its resources except those with some slots. Those with infrastructure leave: they
// are marked for deletion.
func (v *View) RemoveModule(name string, uid types.UID, except []int32) {
	delete(v.ModuleProblems, name)
	delete(v.modules, name)
	for addr, s := range v.sets {
		if s.UID == uid {
			delete(v.sets, addr)
		}
	}
	v.removeInstances(uid, except)
}

// overlay puts the instances of a set of a speculative plan into their slots.
func (v *View) overlay(s *set) {
	v.index.fill(v, s, v.index.namespaces[s.Namespace].statusOf, func(int32) *Object { return nil },
		func(i int32, o *Object) {
			n := &v.Nodes[i]
			if n.Record != nil && n.Record.leaves() && n.Object != nil && n.Object.UID != o.UID &&
				n.Object.Instance != nil {
				v.Hidden = append(v.Hidden, n.Object.Ref(s.Namespace)) // an instance left another set
			}
			v.putOverlaid(i, o)
		})
}

// OverlaySet puts a ResourceSet of a speculative plan in the place of the stored one, or adds it.
func (v *View) OverlaySet(s *resourceset.Set) {
	v.index.mu.Lock()
	defer v.index.mu.Unlock()
	next := &set{Set: s}
	v.overlay(next)
	v.RemoveSet(s.UID, next.slots)
	v.add(next)
}

// RemoveSet removes a set, and its instances except those with some slots. Those with infrastructure leave: they are
// marked for deletion.
func (v *View) RemoveSet(uid types.UID, except []int32) {
	for addr, s := range v.sets {
		if s.UID == uid {
			delete(v.sets, addr)
			delete(v.Problems, s.Name)
		}
	}
	v.removeInstances(uid, except)
}

// removeInstances removes the instances of a set or a Module except those with some slots; see RemoveSet.
func (v *View) removeInstances(uid types.UID, except []int32) {
	kept := make(map[int32]bool, len(except))
	for _, i := range except {
		kept[i] = true
	}
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if n.Object == nil || n.Object.Instance == nil || n.Object.Instance.SetUID != uid || kept[int32(i)] {
			continue
		}
		if n.Record == nil || !n.Record.Living && !n.Record.Intent {
			*n = Node{}
			continue
		}
		object, instance := *n.Object, *n.Object.Instance
		instance.Leaving, object.Instance = true, &instance
		object.Flags |= Deleting | Overlaid
		n.Object = &object
	}
}
