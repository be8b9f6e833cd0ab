package index

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/resourceset"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// View is the content of a namespace at one time. Later changes do not affect it.
type View struct {
	// Nodes are the entries by slot. Most slots have an object.
	Nodes []Node
	// Duplicates are the objects of further providers with the address of an object in Nodes.
	Duplicates []*Object
	// Hidden are the instances that left their set and still have infrastructure, but whose address another object has.
	Hidden []v1alpha1.ObjectReference
	// Shared has the names of the ResourceSets whose templates have one address.
	Shared map[lang.Address][]string
	// Added holds the positions of the documents of a speculative plan without a stored object, by slot.
	Added map[int]int
	// Lost lists the UIDs of the records of data sources and actions without an object.
	Lost []types.UID
	// Problems holds the reason why the instances of a ResourceSet are not known, by the name of the set, and
	// ModuleProblems those of Modules.
	Problems, ModuleProblems map[string]string
	// Records is the revision of the last write of a record that the view has.
	Records int64
	// Waiting has the reasons why a plan leaves out blocks of Modules, and objects that refer to outputs which are not
	// known yet, by their addresses. Waits has the slots of these objects, in ascending order; ExpandReferences finds
	// them.
	Waiting map[string]string
	Waits   []int
	// TooManyWhole is true if references to whole ResourceSets would add more dependencies than MaxWhole.
	TooManyWhole bool

	// modules holds the Modules by their names.
	modules map[string]*resourceset.Module
	// sets holds the ResourceSets by the address of their template.
	sets map[lang.Address]*ViewSet
	// contents has the Revision of each ResourceSet, by its UID. That of an instance also depends on its status.
	contents map[types.UID]int64

	index   *Index
	slotsMu *sync.RWMutex
	slots   map[typeKey]map[string]int32
	// known is the number of slots when the view was taken. added holds the further slots of an overlay.
	known int
	added map[lang.Address]int32
}

// viewOf returns the view of a namespace. It requires x.mu.
func (x *Index) viewOf(name string) *View {
	ns := x.namespaces[name]
	if ns == nil {
		ns = newNamespace(name, x.feed)
	}
	v := &View{
		Nodes: slices.Clone(ns.nodes), Duplicates: ns.sortedDuplicates(), index: x, slotsMu: ns.slotsMu,
		slots: ns.slots,
		known: len(ns.nodes), added: map[lang.Address]int32{}, Added: map[int]int{}, Records: x.recordsAt,
	}
	for uid, r := range ns.lost {
		switch {
		case !r.Mode.HasInfrastructure():
			v.Lost = append(v.Lost, uid)
		case ns.collisions > 0 && r.leaves():
			v.Hidden = append(v.Hidden, r.ref(uid))
		}
	}
	slices.Sort(v.Lost)
	slices.SortFunc(v.Hidden, func(a, b v1alpha1.ObjectReference) int {
		return strings.Compare(string(a.UID), string(b.UID))
	})
	v.modules, v.Waiting = map[string]*resourceset.Module{}, map[string]string{}
	v.Problems, v.ModuleProblems, v.sets, v.contents = map[string]string{}, map[string]string{},
		map[lang.Address]*ViewSet{}, map[types.UID]int64{}
	for _, name := range slices.Sorted(maps.Keys(ns.sets)) {
		v.add(ns.sets[name])
	}
	for name, m := range ns.modules {
		v.addModule(name, m)
	}
	return v
}

// Ambiguous reports whether two objects, or two ResourceSets, have the same address. Nodes has only one of each two.
func (v *View) Ambiguous() bool { return len(v.Duplicates)+len(v.Hidden)+len(v.Shared) > 0 }

// Slot returns the slot of an address. ok is false if no object has the address.
func (v *View) Slot(addr lang.Address) (slot int, ok bool) {
	if addr.Namespace != "" {
		return 0, false
	}
	i, ok := v.find(addr)
	return int(i), ok && v.Nodes[i].Object != nil
}

func (v *View) find(addr lang.Address) (int32, bool) {
	if i, ok := v.added[addr]; ok {
		return i, true
	}
	v.slotsMu.RLock()
	defer v.slotsMu.RUnlock()
	i, ok := v.slots[keyOf(addr.Mode, addr.Type)][addr.ObjectName()]
	return i, ok && int(i) < v.known
}

// slot implements slotter.
func (v *View) slot(mode v1alpha1.Mode, terraformType, name string) int32 {
	addr := addressOf(mode, terraformType, name)
	if i, ok := v.find(addr); ok {
		return i
	}
	i := int32(len(v.Nodes))
	v.added[addr] = i
	v.Nodes = append(v.Nodes, Node{})
	return i
}

// Names returns the names of the objects of a mode and type, sorted.
func (v *View) Names(mode v1alpha1.Mode, terraformType string) []string {
	v.slotsMu.RLock()
	all := maps.Clone(v.slots[keyOf(mode, terraformType)])
	v.slotsMu.RUnlock()
	for addr, i := range v.added {
		if keyOf(addr.Mode, addr.Type) == keyOf(mode, terraformType) {
			if all == nil {
				all = map[string]int32{}
			}
			all[addr.Name] = i
		}
	}
	maps.DeleteFunc(all, func(_ string, i int32) bool { return int(i) >= len(v.Nodes) || v.Nodes[i].Object == nil })
	return slices.Sorted(maps.Keys(all))
}

// Overlay puts a document of a speculative plan in the place of the stored object, or adds it. It returns an error if
// the document cannot be decoded, because its provider is not ready or lacks its type.
func (v *View) Overlay(u *unstructured.Unstructured) error {
	r, err := resource.Of(u, v.index.catalog)
	if err != nil {
		return err
	}
	c := Change{Provider: r.Entry.Name, Stored: r.Address.Type, Namespace: u.GetNamespace(), Name: u.GetName(),
		Object: u}
	if r.Address.Mode != "" {
		c.Stored = storedAs(r.Address.Mode, r.Address.Type)
	}
	v.index.mu.Lock()
	kind := v.index.kind(c)
	v.index.mu.Unlock()
	i := v.slot(kind.Mode, kind.Type, c.Name)
	o := v.index.objectOf(v, kind, c, nil)
	if stored := v.Nodes[i].Object; stored != nil && stored.Kind != kind {
		v.Duplicates = append(v.Duplicates, o)
		return nil
	}
	v.putOverlaid(i, o)
	return nil
}

// putOverlaid puts an object of a speculative plan into a slot.
func (v *View) putOverlaid(i int32, o *Object) {
	o.Flags |= Overlaid
	n := &v.Nodes[i]
	if n.Object == nil || n.Object.UID != o.UID {
		n.Record, n.Version = nil, Sum{}
	}
	if n.Object == nil {
		v.Added[int(i)] = len(v.Added)
	}
	n.Object = o
}

// Remove removes the object that would not exist after the documents of a speculative plan are recorded.
func (v *View) Remove(u *unstructured.Unstructured) {
	r, err := resource.Of(u, v.index.catalog)
	if err != nil {
		return // the object is not in the view either
	}
	if i, ok := v.Slot(r.Address); ok && v.Nodes[i].Object.Provider == r.Entry.Name {
		v.Nodes[i] = Node{}
	}
}
