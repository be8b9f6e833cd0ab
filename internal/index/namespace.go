package index

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"

	"k8s.io/apimachinery/pkg/types"
)

// slotter assigns slots to addresses.
type slotter interface {
	slot(mode v1alpha1.Mode, terraformType, name string) int32
}

// typeKey is a mode and a Terraform type. The mode of managed resources is empty.
type typeKey struct {
	mode v1alpha1.Mode
	name string
}

func keyOf(mode v1alpha1.Mode, terraformType string) typeKey {
	if mode == v1alpha1.ModeManaged {
		mode = ""
	}
	return typeKey{mode, terraformType}
}

// Node is the object with an address and its record. Both are nil if no object has the address, and the record is nil
// if the object has none.
type Node struct {
	Object *Object
	Record *Record
	// Version is the sum of the record's version, for the dependants to compare.
	Version Sum
}

// namespace holds the entries of a namespace. Each address that an object has, or refers to, has a slot.
type namespace struct {
	name string
	// feed receives the changes of instances.
	feed *feed
	// slotsMu guards slots, which views read.
	slotsMu *sync.RWMutex
	slots   map[typeKey]map[string]int32
	nodes   []Node
	// uids holds the slots of the objects. lost holds the records without an object.
	uids map[types.UID]int32
	lost map[types.UID]*Record
	// duplicates holds the objects of further providers with the address of another object.
	duplicates map[*Kind]map[string]*Object
	// objects is the number of objects without duplicates.
	objects int

	// sets holds the ResourceSets and modules the Modules, both by name, and statuses the statuses of instances without
	// an object. records counts the records of the instances of a set or Module, without those of data sources and
	// actions.
	sets     map[string]*set
	modules  map[string]*moduleEntry
	statuses map[types.UID]instanceStatus
	records  map[types.UID]int
	// leaving holds the instances that left their set and still have an entry. unsettled is true if lost may have
	// records of further ones. collisions counts those whose address another object has.
	leaving    map[types.UID]bool
	unsettled  bool
	collisions int
}

func newNamespace(name string, f *feed) *namespace {
	return &namespace{name: name, feed: f, slotsMu: new(sync.RWMutex), slots: map[typeKey]map[string]int32{},
		uids: map[types.UID]int32{}, lost: map[types.UID]*Record{}, duplicates: map[*Kind]map[string]*Object{},
		sets: map[string]*set{}, modules: map[string]*moduleEntry{}, statuses: map[types.UID]instanceStatus{},
		records: map[types.UID]int{}, leaving: map[types.UID]bool{}}
}

// countRecords counts the records of the sets' instances that keep their set. Both are nil if there is no record.
func (ns *namespace) countRecords(old, next *Record) {
	if old != nil && old.keepsOwner() {
		set := old.of.Value().SetUID
		if ns.records[set]--; ns.records[set] <= 0 {
			delete(ns.records, set)
		}
	}
	if next != nil && next.keepsOwner() {
		ns.records[next.of.Value().SetUID]++
	}
}

func (ns *namespace) slot(mode v1alpha1.Mode, terraformType, name string) int32 {
	key := keyOf(mode, terraformType)
	i, ok := ns.slots[key][name] // only this goroutine writes
	if ok {
		return i
	}
	i = int32(len(ns.nodes))
	ns.nodes = append(ns.nodes, Node{})
	ns.slotsMu.Lock()
	defer ns.slotsMu.Unlock()
	if ns.slots[key] == nil {
		ns.slots[key] = map[string]int32{}
	}
	ns.slots[key][name] = i
	return i
}

// find returns the object of a kind, or nil.
func (ns *namespace) find(kind *Kind, name string) *Object {
	if o := ns.duplicates[kind][name]; o != nil {
		return o
	}
	i, ok := ns.slots[keyOf(kind.Mode, kind.Type)][name]
	if !ok || ns.nodes[i].Object == nil || ns.nodes[i].Object.Kind != kind {
		return nil
	}
	return ns.nodes[i].Object
}

// put adds or replaces an object.
func (ns *namespace) put(o *Object) {
	i := ns.slot(o.Mode, o.Type, o.Name)
	old := ns.nodes[i].Object
	if old != nil && old.Kind != o.Kind {
		ns.addDuplicate(o)
		return
	}
	ns.putAt(i, o)
}

// addDuplicate adds or replaces an object whose address another object has.
func (ns *namespace) addDuplicate(o *Object) {
	if ns.duplicates[o.Kind] == nil {
		ns.duplicates[o.Kind] = map[string]*Object{}
	}
	ns.duplicates[o.Kind][o.Name] = o
}

// putAt puts an object into its slot.
func (ns *namespace) putAt(i int32, o *Object) {
	before := ns.nodes[i]
	if old := before.Object; old == nil || old.UID != o.UID {
		ns.clear(i)
		before = Node{}
		ns.objects++
		ns.uids[o.UID] = i
		ns.nodes[i].Record = ns.lost[o.UID]
		delete(ns.lost, o.UID)
	}
	if o.Instance != nil && !o.Instance.Leaving {
		delete(ns.leaving, o.UID)
	}
	if o.Instance != nil {
		delete(ns.statuses, o.UID) // the object has it
	}
	ns.nodes[i].Object = o
	ns.setVersion(i)
	if o.Instance != nil {
		ns.feed.note(ns.name, before, ns.nodes[i])
	}
}

// clear removes the object of a slot and keeps its record as lost.
func (ns *namespace) clear(i int32) {
	n := ns.nodes[i]
	if n.Object == nil {
		return
	}
	ns.objects--
	delete(ns.uids, n.Object.UID)
	delete(ns.leaving, n.Object.UID)
	if n.Record != nil {
		ns.lost[n.Object.UID] = n.Record
		ns.unsettled = ns.unsettled || n.Record.instance()
	}
	if o := n.Object; o.Instance != nil && o.Instance.status != (instanceStatus{}) {
		ns.statuses[o.UID] = o.Instance.status
	}
	ns.nodes[i] = Node{}
	if n.Object.Instance != nil {
		ns.feed.note(ns.name, n, Node{})
	}
}

// remove removes an object that was deleted at a revision.
func (ns *namespace) remove(kind *Kind, name string, revision int64) {
	o := ns.find(kind, name)
	if o == nil || o.Revision > revision {
		return
	}
	if ns.duplicates[kind][name] == o {
		ns.removeDuplicate(o)
		return
	}
	ns.clear(ns.slot(kind.Mode, kind.Type, name))
	for other, names := range ns.duplicates {
		if duplicate := names[name]; duplicate != nil && other.Mode == kind.Mode && other.Type == kind.Type {
			ns.removeDuplicate(duplicate)
			ns.put(duplicate)
			return
		}
	}
}

// sortedDuplicates returns the duplicates, sorted by provider and name.
func (ns *namespace) sortedDuplicates() (out []*Object) {
	for _, objects := range ns.duplicates {
		out = slices.AppendSeq(out, maps.Values(objects))
	}
	slices.SortFunc(out, func(a, b *Object) int {
		return cmp.Or(strings.Compare(a.Provider, b.Provider), strings.Compare(a.Stored, b.Stored),
			strings.Compare(a.Name, b.Name))
	})
	return out
}

func (ns *namespace) removeDuplicate(o *Object) {
	delete(ns.duplicates[o.Kind], o.Name)
	if len(ns.duplicates[o.Kind]) == 0 {
		delete(ns.duplicates, o.Kind)
	}
}

// recordAt returns the record of an object, which need not exist; nil if there is none.
func (ns *namespace) recordAt(uid types.UID) *Record {
	if i, ok := ns.uids[uid]; ok {
		return ns.nodes[i].Record
	}
	return ns.lost[uid]
}

// record sets the record of an object; nil removes the one that was deleted at the revision. It returns the previous
// record, or nil. ok is false, and nothing changes, if a later change was applied before.
func (ns *namespace) record(uid types.UID, revision int64, r *Record) (old *Record, ok bool) {
	i, has := ns.uids[uid]
	old = ns.recordAt(uid)
	switch {
	case old != nil && old.Revision > revision:
		return old, false
	case has && ns.leaving[uid] && (r == nil || !r.Living && !r.Intent):
		ns.nodes[i].Record = nil
		ns.clear(i)
		if r != nil {
			ns.lost[uid] = r
		}
	case has:
		before := ns.nodes[i]
		ns.nodes[i].Record = r
		ns.setVersion(i)
		if before.Object.Instance != nil {
			ns.feed.note(ns.name, before, ns.nodes[i])
		}
	case r == nil:
		delete(ns.lost, uid)
	default:
		ns.lost[uid] = r
		ns.unsettled = ns.unsettled || r.instance()
	}
	return old, true
}

func (ns *namespace) setVersion(i int32) {
	n := &ns.nodes[i]
	n.Version = Sum{}
	if n.Record != nil && n.Record.Version != "" {
		n.Version = SumOf(n.Object.Address().String(), n.Record.Version)
	}
}

func (ns *namespace) dropObjects() {
	for i := range ns.nodes {
		ns.clear(int32(i))
	}
	clear(ns.duplicates)
}

func (ns *namespace) dropRecords() {
	for i := range ns.nodes {
		ns.nodes[i].Record, ns.nodes[i].Version = nil, Sum{}
	}
	clear(ns.lost)
	clear(ns.records)
	for uid := range ns.leaving {
		ns.clear(ns.uids[uid])
	}
}

// minUnused is the number of slots without an object that compact never removes.
const minUnused = 1000

// compact assigns new slots if most of them have no object, as when objects with generated names come and go.
func (ns *namespace) compact() {
	if unused := len(ns.nodes) - ns.objects; unused <= minUnused || unused <= 2*ns.objects {
		return
	}
	addresses := make([]slotAddress, len(ns.nodes))
	for key, names := range ns.slots {
		for name, i := range names {
			addresses[i] = slotAddress{key, name}
		}
	}
	old := ns.nodes
	ns.slots, ns.nodes = map[typeKey]map[string]int32{}, nil
	move := func(i int32) int32 { return ns.slot(addresses[i].mode, addresses[i].typeKey.name, addresses[i].name) }
	moveAll := func(slots []int32) []int32 {
		out := make([]int32, len(slots))
		for k, i := range slots {
			out[k] = move(i)
		}
		return out
	}
	moveObject := func(o *Object) *Object {
		moved := *o
		moved.DependsOn, moved.References = moveAll(o.DependsOn), append([]Reference(nil), o.References...)
		for k := range moved.References {
			moved.References[k].Slot = move(moved.References[k].Slot)
		}
		return &moved
	}
	for i, n := range old {
		if n.Object == nil {
			continue
		}
		n.Object = moveObject(n.Object)
		if n.Record != nil {
			record := *n.Record
			record.Requires = moveAll(record.Requires)
			n.Record = &record
		}
		at := move(int32(i))
		ns.nodes[at] = n
		ns.uids[n.Object.UID] = at
	}
	for s := range ns.allSets() {
		s.slots = moveAll(s.slots)
	}
	for _, m := range ns.modules {
		m.slots = moveAll(m.slots)
	}
	for uid, r := range ns.lost {
		record := *r
		record.Requires = moveAll(r.Requires)
		ns.lost[uid] = &record
	}
	for _, names := range ns.duplicates {
		for name, o := range names {
			names[name] = moveObject(o)
		}
	}
}
