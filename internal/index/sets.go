package index

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/resourceset"
)

// This file expands ResourceSets: each instance has an entry like that of an object.

// Stored names of the objects that determine the instances of ResourceSets and Modules, and that no provider has.
const (
	StoredSets       = "resourcesets"
	StoredModules    = "modules"
	StoredConfigMaps = "configmaps"
)

// Instance identifies the instance of a ResourceSet, or the instance of a block in a Module, that an object is.
type Instance struct {
	Key v1alpha1.InstanceKey
	// Set is the name of the ResourceSet or of the Module.
	Set    string
	SetUID types.UID
	// Leaving is true if the set no longer has the instance. The entry remains as long as its record.
	Leaving bool
	// Stalled is true if the status of the instance has a failure, and Applying if a plan changes it. An instance that
	// a cancelled plan did not try has no failure.
	Stalled, Applying bool
	status            instanceStatus
}

// set is a ResourceSet of a namespace, or a block of a Module.
type set struct {
	*resourceset.Set
	// object is nil for a block.
	object   *v1alpha1.ResourceSet
	revision int64 // of the object itself
	kind     *Kind
	// slots are those of the instances, in the order of the keys. It is replaced and never changed.
	slots []int32
}

// applySet applies a change of a ResourceSet. If reparse is true, it expands a set of the same revision again.
func (x *Index) applySet(ctx context.Context, c Change, reparse bool) error {
	ns := x.namespace(c.Namespace)
	old := ns.sets[c.Name]
	x.touch(c.Namespace, c.Name, false)
	if c.Object == nil {
		if old != nil && old.revision <= c.Revision {
			delete(ns.sets, c.Name)
			ns.dropInstances(old.UID, old.slots, nil)
			ns.unsettle(old.UID)
			x.touched[touchedOwner{types.NamespacedName{Namespace: c.Namespace, Name: c.Name}, false}] = old.UID
			return x.expandOthers(ctx, ns, old)
		}
		return nil
	}
	if old != nil && (old.revision > c.Revision || old.revision == c.Revision && !reparse) {
		return nil
	}
	obj := &v1alpha1.ResourceSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.Object.Object, obj); err != nil {
		return fmt.Errorf("decode ResourceSet %q: %w", c.Name, err)
	}
	return x.expand(ctx, ns, obj, c.Revision, reparse, reparse)
}

// expandOthers expands the sets with the address of a removed set again, because its instances had their slots.
func (x *Index) expandOthers(ctx context.Context, ns *namespace, removed *set) error {
	for _, s := range ns.sets {
		if s.Address() != removed.Address() {
			continue
		}
		if err := x.expand(ctx, ns, s.object, s.revision, true, false); err != nil {
			return err
		}
	}
	return nil
}

// applyConfigMap expands the sets again whose keys come from a ConfigMap, and the Modules whose files it has.
func (x *Index) applyConfigMap(ctx context.Context, c Change) error {
	ns := x.namespaces[c.Namespace]
	if ns == nil {
		return nil
	}
	for _, s := range ns.sets {
		if s.Source != c.Name {
			continue
		}
		x.touch(c.Namespace, s.Name, false)
		if err := x.expand(ctx, ns, s.object, s.revision, false, false); err != nil {
			return err
		}
	}
	for name, m := range ns.modules {
		if m.object.Spec.Source.ConfigMap == c.Name {
			x.outdate(c.Namespace, name)
		}
	}
	return nil
}

// keysOf returns the content of the ConfigMap with the keys of a set, and its revision; nil without one.
func (x *Index) keysOf(ctx context.Context,
	obj *v1alpha1.ResourceSet) (data map[string][]byte, revision int64, err error) {
	if from := obj.Spec.ForEachFrom; from != nil {
		return x.objects.ConfigMap(ctx, obj.Namespace, from.ConfigMap.Name)
	}
	return nil, 0, nil
}

// expand puts the instances of a set into their slots, and removes the others that it had. If anew is false and only
// the status of the set has changed, the instances stay. If reparse is true, it parses their expressions again.
func (x *Index) expand(ctx context.Context, ns *namespace, obj *v1alpha1.ResourceSet, revision int64, anew,
	reparse bool) error {
	data, at, err := x.keysOf(ctx, obj)
	if err != nil {
		return err
	}
	expanded, err := resourceset.New(obj, at, data)
	if err != nil {
		return fmt.Errorf("expand ResourceSet %q: %w", obj.Name, err)
	}
	next := &set{Set: expanded, object: obj, revision: revision}
	old := ns.sets[obj.Name]
	if old != nil && old.UID == next.UID && old.Revision == next.Revision && !anew {
		next.kind, next.slots = old.kind, old.slots
		ns.sets[obj.Name] = next
		return nil
	}
	x.unsaved += expanded.Len()
	x.fill(ns, next, ns.statusOf, func(i int32) *Object {
		if reparse {
			return nil
		}
		return ns.nodes[i].Object
	}, func(i int32, o *Object) { ns.putAt(i, o) })
	ns.sets[obj.Name] = next
	if old != nil {
		var kept []int32
		if next.UID == old.UID {
			kept = next.slots
		}
		ns.dropInstances(old.UID, old.slots, kept)
		ns.unsettle(old.UID)
	}
	ns.unsettle(next.UID)
	return nil
}

// unsettle removes the entries of the instances that left a set. settleLeaving adds them again, with the labels and the
// lifecycle that the template has now.
func (ns *namespace) unsettle(set types.UID) {
	for uid := range ns.leaving {
		if o := ns.objectOf(uid); o != nil && o.Instance.SetUID == set {
			ns.clear(ns.uids[uid])
		}
	}
}

// fill makes the entries of a set's instances. old returns the previous entry of a slot, or nil.
func (x *Index) fill(ns slotter, s *set, statusOf func(types.UID) instanceStatus, old func(int32) *Object,
	put func(int32, *Object)) {
	group := kschema.FromAPIVersionAndKind(s.APIVersion, s.Kind).Group
	provider, _ := v1alpha1.ProviderOfGroup(group)
	x.noteProvider(provider)
	address := s.Address()
	sample := &unstructured.Unstructured{Object: map[string]any{"apiVersion": s.APIVersion, "kind": s.Kind}}
	s.kind = x.kind(Change{Provider: provider, Stored: storedAs(address.Mode, address.Type), Object: sample})
	s.slots = make([]int32, s.Len())
	for k := range s.slots {
		key, name := s.Key(k), s.InstanceName(k)
		i := ns.slot(s.kind.Mode, s.kind.Type, name)
		s.slots[k] = i
		put(i, x.instanceOf(ns, s, key, name, statusOf, old(i)))
	}
}

// instanceOf returns the entry of an instance. It parses the template's expressions for it, unless old has the same.
func (x *Index) instanceOf(ns slotter, s *set, key v1alpha1.InstanceKey, name string,
	statusOf func(types.UID) instanceStatus, old *Object) *Object {
	uid, generation := s.UIDOf(key), s.GenerationOf(key)
	o := &Object{Kind: s.kind, Name: name, UID: uid, Generation: generation, Revision: s.Revision,
		Instance: &Instance{Key: key, Set: s.Name, SetUID: s.UID}}
	if old != nil && old.UID == uid && old.Generation == generation && old.Flags&Unready == 0 && old.Instance != nil &&
		!old.Instance.Leaving {
		o.Name, o.UID, o.Labels = old.Name, old.UID, old.Labels
		o.inherit(old)
		o.Moved = s.MovedFrom(key) // the generation of a block's instance does not include it
	} else {
		x.parse(ns, o, s.Object(key))
	}
	if set := s.Labels(); !maps.Equal(o.Labels, set) {
		o.Labels = set
	}
	if s.Deleting != nil {
		o.Flags |= Deleting
	}
	o.setInstanceFacts(statusOf(uid))
	return o
}

// objectOf returns the entry with a UID, or nil.
func (ns *namespace) objectOf(uid types.UID) *Object {
	i, ok := ns.uids[uid]
	if !ok {
		return nil
	}
	return ns.nodes[i].Object
}

// ownUID returns a UID as a text of its own, or as that of the object with the UID. The UID of a change is a part of a
// longer text.
func (ns *namespace) ownUID(uid types.UID) types.UID {
	if o := ns.objectOf(uid); o != nil {
		return o.UID
	}
	return types.UID(strings.Clone(string(uid)))
}

// dropInstances removes the instances of a ResourceSet or a Module in some slots, except those that it keeps. Those
// with infrastructure come back as leaving ones; see settleLeaving.
func (ns *namespace) dropInstances(of types.UID, slots, keep []int32) {
	kept := make(map[int32]bool, len(keep))
	for _, i := range keep {
		kept[i] = true
	}
	for _, i := range slots {
		if o := ns.nodes[i].Object; !kept[i] && o != nil && o.Instance != nil && o.Instance.SetUID == of {
			ns.clear(i)
		}
	}
}

// settleLeaving adds an entry for each recorded instance that its set no longer has. If another object has its address,
// the view is ambiguous.
func (x *Index) settleLeaving(name string, ns *namespace) {
	if !ns.unsettled {
		return
	}
	ns.unsettled, ns.collisions = false, 0
	for uid, r := range ns.lost {
		if !r.leaves() {
			continue
		}
		ref := r.ref(uid)
		gvk := kschema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
		provider, _ := v1alpha1.ProviderOfGroup(gvk.Group)
		x.noteProvider(provider)
		sample := &unstructured.Unstructured{Object: map[string]any{"apiVersion": ref.APIVersion, "kind": ref.Kind}}
		kind := x.kind(Change{Provider: provider, Stored: v1alpha1.TypeOf(ref.Kind), Object: sample})
		i := ns.slot(kind.Mode, kind.Type, ref.Name)
		if ns.nodes[i].Object != nil {
			ns.collisions++
			ns.unsettled = true
			continue
		}
		_, key, _ := v1alpha1.ParseInstanceName(ref.Name)
		o := &Object{Kind: kind, Name: ref.Name, UID: uid, Generation: ref.Generation, Flags: Deleting,
			Instance: &Instance{Key: key, Set: ref.Set, SetUID: ref.SetUID, Leaving: true}}
		s := ns.setOf(ref)
		if s != nil {
			o.Revision = s.Revision
		}
		if s != nil && s.Problem != "" {
			o.Flags |= KeysUnknown
		}
		u := resourceset.Leaving(s, ref)
		if set := u.GetLabels(); len(set) > 0 {
			o.Labels = set
		}
		x.parse(ns, o, u)
		o.setInstanceFacts(ns.statusOf(uid))
		ns.put(o)
		ns.leaving[uid] = true
		x.touch(name, ref.Set, v1alpha1.InModule(ref.Name))
	}
}

// setOf returns the ResourceSet of an instance, or the block of its Module; nil if the set or the Module does not
// exist.
func (ns *namespace) setOf(ref v1alpha1.ObjectReference) *resourceset.Set {
	if v1alpha1.InModule(ref.Name) {
		if m := ns.modules[ref.Set]; m != nil && m.Module != nil && m.UID == ref.SetUID {
			return m.BlockSet(ref)
		}
		return nil
	}
	for _, s := range ns.sets {
		if s.UID == ref.SetUID {
			return s.Set
		}
	}
	return nil
}

// touchedOwner is a ResourceSet or a Module.
type touchedOwner struct {
	types.NamespacedName
	module bool
}

// touch notes that the state of a ResourceSet or of a Module may have changed.
func (x *Index) touch(namespace, owner string, module bool) {
	name := touchedOwner{types.NamespacedName{Namespace: namespace, Name: owner}, module}
	if _, ok := x.touched[name]; !ok {
		x.touched[name] = ""
	}
}

// Touched names a ResourceSet or a Module whose instances may have changed. Removed is the UID of one of the name that
// was removed; empty without one.
type Touched struct {
	types.NamespacedName
	Module  bool
	Removed types.UID
}

// Touched returns the sets whose instances may have changed since the last call.
func (x *Index) Touched() []Touched {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := make([]Touched, 0, len(x.touched))
	for name, removed := range x.touched {
		out = append(out, Touched{name.NamespacedName, name.module, removed})
	}
	clear(x.touched)
	return out
}

// Found is an instance with its set. The set is nil if it was removed, and the instance is leaving.
type Found struct {
	*Object
	// Record is nil if the instance has none.
	Record *Record
	In     *resourceset.Set
}

// Unstructured returns the object of the instance, without its status.
func (f Found) Unstructured(namespace string) *unstructured.Unstructured {
	var u *unstructured.Unstructured
	if f.Instance.Leaving {
		u = resourceset.Leaving(f.In, f.Ref(namespace))
	} else {
		u = f.In.Object(f.Instance.Key)
	}
	u.SetResourceVersion(fmt.Sprint(f.Revision))
	if f.Record != nil && (f.Record.Living || f.Record.Intent) {
		u.SetFinalizers([]string{v1alpha1.FinalizerState}) // as on a single object: the set has it
	}
	return u
}

// Find returns an instance by its kind and name, from the current version of its set. ok is false if there is none. The
// record may be outdated, and so may the mark for deletion of an instance that left its set.
func (x *Index) Find(ctx context.Context, ref v1alpha1.ObjectReference) (f Found, ok bool, err error) {
	if f, ok, err = x.findAfter(ctx, x.lockFreshObjects, ref); err != nil || ok && !f.Instance.Leaving {
		return f, ok, err
	}
	// Whether an instance is leaving depends on its record.
	return x.findAfter(ctx, x.lockFresh, ref)
}

func (x *Index) findAfter(ctx context.Context, lock func(context.Context) (func(), error),
	ref v1alpha1.ObjectReference) (f Found, ok bool, err error) {
	unlock, err := lock(ctx)
	defer unlock()
	if err != nil {
		return f, false, err
	}
	ns := x.namespaces[ref.Namespace]
	if ns == nil {
		return f, false, nil
	}
	provider, _ := v1alpha1.ProviderOfGroup(kschema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group)
	i, ok := ns.slots[keyOf("", v1alpha1.TypeOf(ref.Kind))][ref.Name]
	if !ok {
		mode, terraformType := v1alpha1.ParseKind(ref.Kind)
		i, ok = ns.slots[keyOf(mode, terraformType)][ref.Name]
	}
	if !ok || ns.nodes[i].Object == nil || ns.nodes[i].Object.Instance == nil ||
		ns.nodes[i].Object.Provider != provider {
		return f, false, nil
	}
	n := ns.nodes[i]
	return Found{n.Object, n.Record, ns.setOf(n.Object.Ref(ns.name))}, true, nil
}

// SetAt refreshes the sets of the index and returns the one whose template has the kind and the name of the reference,
// or nil.
func (x *Index) SetAt(ctx context.Context, ref v1alpha1.ObjectReference) (*resourceset.Set, error) {
	unlock, err := x.lockFreshObjects(ctx)
	defer unlock()
	if err != nil {
		return nil, err
	}
	ns := x.namespaces[ref.Namespace]
	if ns == nil {
		return nil, nil
	}
	if path, _ := v1alpha1.SplitModuleObjectName(ref.Name); path != "" {
		return ns.repeatedBlock(v1alpha1.RootModule(path), ref), nil
	}
	for _, s := range ns.sets {
		if s.APIVersion == ref.APIVersion && s.Kind == ref.Kind && s.Template == ref.Name {
			return s.Set, nil
		}
	}
	return nil, nil
}

// KnownSetAt returns the name of the set whose template has the kind and the name of the reference, and that is not
// being deleted; "" if the index knows of none. It neither refreshes the index nor waits for it, so that bulk creates
// stay fast. If it misses a set, the next plan reports the conflict.
func (x *Index) KnownSetAt(ref v1alpha1.ObjectReference) string {
	if !x.mu.TryLock() {
		return ""
	}
	defer x.mu.Unlock()
	ns := x.namespaces[ref.Namespace]
	if ns == nil {
		return ""
	}
	for _, s := range ns.sets {
		if s.APIVersion == ref.APIVersion && s.Kind == ref.Kind && s.Template == ref.Name && s.Deleting == nil {
			return s.Name
		}
	}
	return ""
}

// KnownSetOf reports whether a set of the reference's namespace, or of any namespace if that is empty, has the kind of
// the reference. Like KnownSetAt, it may miss one.
func (x *Index) KnownSetOf(ref v1alpha1.ObjectReference) bool {
	if !x.mu.TryLock() {
		return false
	}
	defer x.mu.Unlock()
	for name, ns := range x.namespaces {
		if ref.Namespace != "" && ref.Namespace != name {
			continue
		}
		for s := range ns.allSets() {
			if s.APIVersion == ref.APIVersion && s.Kind == ref.Kind && len(s.slots) > 0 {
				return true
			}
		}
	}
	return false
}

// LeftAt refreshes the index and searches for a recorded instance that left its set. The instance has the kind and the
// name of the reference, with a key. LeftAt returns the name of that set, or "". It ignores the instances of the set
// with the UID except.
func (x *Index) LeftAt(ctx context.Context, ref v1alpha1.ObjectReference, except types.UID) (string, error) {
	unlock, err := x.lockFresh(ctx)
	defer unlock()
	if err != nil {
		return "", err
	}
	ns := x.namespaces[ref.Namespace]
	if ns == nil {
		return "", nil
	}
	for uid := range ns.leaving {
		o := ns.objectOf(uid)
		if o == nil || o.Instance.SetUID == except || o.Mode != v1alpha1.ModeManaged ||
			o.Type != v1alpha1.TypeOf(ref.Kind) {
			continue
		}
		if name, _, _ := v1alpha1.ParseInstanceName(o.Name); name == ref.Name {
			return o.Instance.Set, nil
		}
	}
	return "", nil
}

// SetInstances is a ResourceSet with its instances.
type SetInstances struct {
	*resourceset.Set
	// Instances are those that the set has now, in the order of the keys. Leaving are the others with infrastructure.
	Instances, Leaving []Node
	// Contributors are those in the status of the set.
	Contributors []v1alpha1.Contributor
}

// Sets refreshes the index and returns the sets of a namespace, or the one with a name, sorted.
func (x *Index) Sets(ctx context.Context, namespace, name string) ([]SetInstances, error) {
	unlock, err := x.lockFresh(ctx)
	defer unlock()
	if err != nil {
		return nil, err
	}
	ns := x.namespaces[namespace]
	if ns == nil {
		return nil, nil
	}
	leaving := ns.leavingNodes()
	var out []SetInstances
	for _, setName := range slices.Sorted(maps.Keys(ns.sets)) {
		if name != "" && setName != name {
			continue
		}
		s := ns.sets[setName]
		out = append(out, SetInstances{Set: s.Set, Leaving: leaving[s.UID], Instances: ns.nodesOf(s.UID, s.slots),
			Contributors: s.object.Status.Contributors})
	}
	return out, nil
}

// leavingNodes returns the instances that leave, sorted, by the UID of their ResourceSet or Module.
func (ns *namespace) leavingNodes() map[types.UID][]Node {
	out := map[types.UID][]Node{}
	for uid := range ns.leaving {
		if i, ok := ns.uids[uid]; ok {
			n := ns.nodes[i]
			out[n.Object.Instance.SetUID] = append(out[n.Object.Instance.SetUID], n)
		}
	}
	for _, nodes := range out {
		slices.SortFunc(nodes, func(a, b Node) int { return v1alpha1.CompareNames(a.Object.Name, b.Object.Name) })
	}
	return out
}

// nodesOf returns the nodes of slots that are instances of a ResourceSet or Module with a UID.
func (ns *namespace) nodesOf(of types.UID, slots []int32) []Node {
	out := make([]Node, 0, len(slots))
	for _, i := range slots {
		if n := ns.nodes[i]; n.Object != nil && n.Object.Instance != nil && n.Object.Instance.SetUID == of {
			out = append(out, n)
		}
	}
	return out
}

// Records returns the number of the records of a ResourceSet or a Module that keep it, after a refresh. Those of data
// sources and actions do not: they have no infrastructure, and later plans drop them.
func (x *Index) Records(ctx context.Context, namespace string, uid types.UID) (n int, err error) {
	unlock, err := x.lockFresh(ctx)
	defer unlock()
	if err != nil {
		return 0, err
	}
	if ns := x.namespaces[namespace]; ns != nil {
		n = ns.records[uid]
	}
	return n, nil
}
