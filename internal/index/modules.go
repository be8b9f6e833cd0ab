package index

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/module"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/resourceset"
)

// This file expands Modules: each block of each module instance is a set, like a ResourceSet.

// moduleEntry is a Module of a namespace.
type moduleEntry struct {
	// Module is nil until the first expansion.
	*resourceset.Module
	object   *v1alpha1.Module
	revision int64
	// needs are the addresses whose recorded values determine the instances.
	needs map[lang.Address]bool
	sets  []*set
	// slots are those of the instances. After a restore, they are known before the sets.
	slots []int32
}

// applyModule applies a change of a Module. The refresh expands it when it has read all changes.
func (x *Index) applyModule(c Change, reparse bool) error {
	ns := x.namespace(c.Namespace)
	old := ns.modules[c.Name]
	x.touch(c.Namespace, c.Name, true)
	if c.Object == nil {
		if old != nil && old.revision <= c.Revision {
			delete(ns.modules, c.Name)
			x.removeModule(ns, old)
		}
		return nil
	}
	if old != nil && (old.revision > c.Revision || old.revision == c.Revision && !reparse) {
		return nil
	}
	obj := &v1alpha1.Module{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.Object.Object, obj); err != nil {
		return fmt.Errorf("decode Module %q: %w", c.Name, err)
	}
	next := &moduleEntry{object: obj, revision: c.Revision}
	if old != nil && old.object.UID != obj.UID {
		x.removeModule(ns, old)
		old = nil
	}
	if old != nil {
		next.Module, next.sets, next.slots, next.needs = old.Module, old.sets, old.slots, old.needs
	}
	ns.modules[c.Name] = next
	x.outdate(c.Namespace, c.Name)
	return nil
}

func (x *Index) removeModule(ns *namespace, m *moduleEntry) {
	ns.dropInstances(m.object.UID, m.slots, nil)
	ns.unsettle(m.object.UID)
	x.touched[touchedOwner{types.NamespacedName{Namespace: ns.name, Name: m.object.Name}, true}] = m.object.UID
}

// outdate makes the refresh expand a Module again.
func (x *Index) outdate(namespace, name string) {
	x.touch(namespace, name, true)
	if at := (types.NamespacedName{Namespace: namespace, Name: name}); !x.outdated[at] {
		x.outdated[at] = false
	}
}

// outdateAll makes the refresh expand all Modules again, also those that nobody has written since.
func (x *Index) outdateAll() {
	for namespace, ns := range x.namespaces {
		for name := range ns.modules {
			x.touch(namespace, name, true)
			x.outdated[types.NamespacedName{Namespace: namespace, Name: name}] = true
		}
	}
}

// noteMoves makes the refresh expand a Module again if a record appears or goes that may move to another of its
// instances, or if an instance gets infrastructure to which one would have moved.
func (x *Index) noteMoves(ns *namespace, uid types.UID, old, now *Record) {
	living := func(r *Record) bool { return r != nil && r.Living }
	if living(old) == living(now) {
		return
	}
	of := now
	if of == nil {
		of = old
	}
	if o := ns.objectOf(uid); !of.instance() || !v1alpha1.InModule(of.name) ||
		o != nil && !o.Instance.Leaving && o.Moved == "" {
		return
	}
	if name := of.of.Value().Set; ns.modules[name] != nil {
		x.outdated[types.NamespacedName{Namespace: ns.name, Name: name}] = true
	}
}

// expandModules expands the outdated Modules.
func (x *Index) expandModules(ctx context.Context) error {
	for name, anew := range x.outdated {
		if ns := x.namespaces[name.Namespace]; ns != nil && ns.modules[name.Name] != nil {
			if err := x.expandModule(ctx, ns, ns.modules[name.Name], anew); err != nil {
				return err
			}
		}
		delete(x.outdated, name)
	}
	return nil
}

// expandModule puts the instances of a Module into their slots, and removes the others that it had. If anew is false
// and only the status of the Module has changed, the instances stay.
func (x *Index) expandModule(ctx context.Context, ns *namespace, m *moduleEntry, anew bool) error {
	data, at, err := x.objects.ConfigMap(ctx, m.object.Namespace, m.object.Spec.Source.ConfigMap)
	if err != nil {
		return err
	}
	old := m.Module
	if same := old.Written(m.object, at); same != nil && !anew { // only the status or the finalizers changed
		m.Module = same
		for k := range m.sets {
			m.sets[k] = &set{same.Sets[k], nil, m.revision, m.sets[k].kind, m.sets[k].slots}
		}
		return nil
	}
	if m.Module, err = x.newModule(ctx, ns, m, at, data); err != nil {
		return err
	}
	before := m.slots
	m.sets, m.slots = nil, nil
	for _, block := range m.Sets {
		s := &set{Set: block, revision: m.revision}
		x.fill(ns, s, ns.statusOf, func(i int32) *Object {
			if x.reparsing {
				return nil
			}
			return ns.nodes[i].Object
		}, func(i int32, o *Object) { ns.putAt(i, o) })
		m.sets, m.slots = append(m.sets, s), append(m.slots, s.slots...)
	}
	x.unsaved += len(m.slots)
	ns.dropInstances(m.UID, before, m.slots)
	ns.unsettle(m.UID)
	ns.unsettled = true
	return nil
}

// recordedIn returns a function that gives the recorded value of a resource or data source of a namespace, with unknown
// values in place of sensitive ones. It adds each address to needs, and stores an error of the ledger.
func (x *Index) recordedIn(ctx context.Context, ns *namespace, needs map[lang.Address]bool,
	unread *error) module.Known {
	return func(a lang.Address) (cty.Value, bool) {
		if a.Namespace != "" || a.Stored() || a.Named() {
			return cty.NilVal, false
		}
		needs[a] = true
		of, i := x.catalog.Schema(a.Mode, a.Type), ns.slot(a.Mode, a.Type, a.ObjectName())
		n := ns.nodes[i]
		if of == nil || n.Object == nil || n.Record == nil || !n.Record.Exists {
			return cty.NilVal, false
		}
		rec, err := x.ledger.Instance(ctx, n.Object.Ref(ns.name))
		if err != nil {
			*unread = err
			return cty.NilVal, false
		}
		if !rec.Exists() {
			return cty.NilVal, false
		}
		v, err := instance.Recorded(&rec.State, of)
		if err != nil {
			return cty.NilVal, false // the next plan of the object reads it with the schema of now
		}
		v, err = lang.Withhold(lang.MarkSensitive(of.Block, v))
		return v, err == nil
	}
}

// noteNeeds makes the refresh expand the Modules again whose instances depend on the value of an object.
func (x *Index) noteNeeds(ns *namespace, of *Object) {
	for name, m := range ns.modules {
		if len(m.needs) > 0 && of != nil && m.needs[of.Address()] {
			x.outdated[types.NamespacedName{Namespace: ns.name, Name: name}] = true
		}
	}
}

// newModule expands the object of a Module, given the content and the revision of its ConfigMap.
func (x *Index) newModule(ctx context.Context, ns *namespace, m *moduleEntry, at int64,
	data map[string][]byte) (*resourceset.Module, error) {
	bounded := lang.WithBudget(ctx, nil) // as in the request that wrote the Module
	env := resourceset.Environment{Functions: x.catalog.Signatures(), Provider: x.providerOf,
		Budget: lang.BudgetOf(bounded)}
	if ns.records[m.object.UID] > 0 {
		env.Recorded = func(uid types.UID) bool { r := ns.recordAt(uid); return r != nil && r.Living }
	}
	var unread error
	m.needs = map[lang.Address]bool{}
	env.Known = x.recordedIn(ctx, ns, m.needs, &unread)
	next, err := resourceset.NewModule(m.object, at, data, env, m.Module)
	if err != nil || unread != nil {
		return nil, fmt.Errorf("expand Module %q: %w", m.object.Name, cmp.Or(err, unread))
	}
	if others := ns.instances(m); others+next.Len() > resourceset.MaxTotal {
		next = next.Refuse(fmt.Sprintf(
			"the other sets and Modules of the namespace have %d instances, and all together may have %d: use another namespace", others, resourceset.MaxTotal))
	}
	return next, nil
}

// ExpandModule expands a Module of a speculative plan as if it were recorded. data is the content of its ConfigMap; nil
// without one.
func (x *Index) ExpandModule(ctx context.Context, obj *v1alpha1.Module,
	data map[string][]byte) (*resourceset.Module, error) {
	unlock, err := x.lockFresh(ctx)
	defer unlock()
	if err != nil {
		return nil, err
	}
	ns := x.namespaces[obj.Namespace]
	if ns == nil {
		ns = newNamespace(obj.Namespace, x.feed)
	}
	m := &moduleEntry{object: obj}
	if old := ns.modules[obj.Name]; old != nil && old.object.UID == obj.UID {
		m.Module = old.Module
	}
	return x.newModule(ctx, ns, m, 0, data)
}

// instances returns the number of instances of the namespace without those of a Module.
func (ns *namespace) instances(except *moduleEntry) (n int) {
	for _, s := range ns.sets {
		n += s.Len()
	}
	for _, m := range ns.modules {
		if m.object.UID != except.object.UID && m.Module != nil {
			n += m.Len()
		}
	}
	return n
}

// providerOf returns the provider that has a type. Of several, it is the one with the source address.
func (x *Index) providerOf(mode v1alpha1.Mode, terraformType, source string) (string, error) {
	names := x.catalog.ProvidersOf(mode, terraformType)
	if len(names) > 1 {
		names = slices.DeleteFunc(names, func(name string) bool {
			e, ok := x.catalog.Get(name)
			required, err := provider.ParseSource(source)
			return !ok || err != nil || e.Package.Source != required
		})
	}
	switch len(names) {
	case 0:
		return "", fmt.Errorf("%w %s", resourceset.ErrNoProvider, terraformType)
	case 1:
		return names[0], nil
	}
	return "", fmt.Errorf("the Providers %s have the type %s. Name the source of one in required_providers of the module", strings.Join(names, " and "), terraformType)
}

// allSets returns the ResourceSets, and the blocks of the Modules.
func (ns *namespace) allSets() iter.Seq[*set] {
	return func(yield func(*set) bool) {
		for _, s := range ns.sets {
			if !yield(s) {
				return
			}
		}
		for _, m := range ns.modules {
			for _, s := range m.sets {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// repeatedBlock returns the block of a Module with the kind and the name of a reference; nil if there is none, or if it
// is not repeated.
func (ns *namespace) repeatedBlock(module string, ref v1alpha1.ObjectReference) *resourceset.Set {
	m := ns.modules[module]
	if m == nil || m.Module == nil {
		return nil
	}
	if s := m.BlockSet(ref); s.APIVersion == ref.APIVersion && s.Repeats != "" && s.Template == ref.Name {
		return s
	}
	return nil
}

// place returns the name by which a list sorts a set: that of a ResourceSet, or the address of a block.
func (s *set) place() string {
	if s.InModule() {
		return s.Template + "/" + s.Kind
	}
	return s.Name
}

// ModuleInstances is a Module with its instances.
type ModuleInstances struct {
	*resourceset.Module
	// Object is the stored object, which must not change.
	Object *v1alpha1.Module
	// Instances are those that the Module has now, in the order of their modules and blocks. Leaving are the others
	// with infrastructure.
	Instances, Leaving []Node
}

// Modules refreshes the index and returns the Modules of a namespace, or the one with a name, sorted.
func (x *Index) Modules(ctx context.Context, namespace, name string) (out []ModuleInstances, err error) {
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
	for _, found := range slices.Sorted(maps.Keys(ns.modules)) {
		m := ns.modules[found]
		if name == "" || name == found {
			out = append(out, ModuleInstances{m.Module, m.object, ns.nodesOf(m.UID, m.slots), leaving[m.UID]})
		}
	}
	return out, nil
}

// TouchOutputs makes the Modules of a namespace with outputs count as touched: these may depend on what is outside of
// the Module.
func (x *Index) TouchOutputs(namespace string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	ns := x.namespaces[namespace]
	if ns == nil {
		return
	}
	for name, m := range ns.modules {
		if m.Module != nil && len(m.Outputs) > 0 {
			x.touch(namespace, name, true)
		}
	}
}

// Observed is a Module with the mode Observe.
type Observed struct {
	Name string
	// Deleting is true if the Module is marked for deletion.
	Deleting bool
}

// ObservedModules refreshes the Modules and returns those of a namespace with the mode Observe, sorted.
func (x *Index) ObservedModules(ctx context.Context, namespace string) (out []Observed, err error) {
	unlock, err := x.lockFreshObjects(ctx)
	defer unlock()
	if err != nil {
		return nil, err
	}
	ns := x.namespaces[namespace]
	if ns == nil {
		return nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(ns.modules)) {
		if of := ns.modules[name].object; of.Spec.Mode == v1alpha1.ModuleObserve {
			out = append(out, Observed{name, of.DeletionTimestamp != nil})
		}
	}
	return out, nil
}

// CheckedModules refreshes the Modules and returns the names of those of a namespace with check blocks, sorted.
func (x *Index) CheckedModules(ctx context.Context, namespace string) (names []string, err error) {
	unlock, err := x.lockFreshObjects(ctx)
	defer unlock()
	ns := x.namespaces[namespace]
	if err != nil || ns == nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(ns.modules)) {
		if m := ns.modules[name].Module; m != nil && m.Expansion != nil && m.Expansion.HasChecks() {
			names = append(names, name)
		}
	}
	return names, nil
}

// Waiting refreshes the index and returns the reasons why blocks and modules of the Modules of a namespace have no
// instances yet, by their addresses.
func (x *Index) Waiting(ctx context.Context, namespace string) (map[string]string, error) {
	unlock, err := x.lockFresh(ctx)
	defer unlock()
	ns := x.namespaces[namespace]
	if err != nil || ns == nil {
		return nil, err
	}
	out := map[string]string{}
	for _, m := range ns.modules {
		maps.Copy(out, m.Waiting)
	}
	return out, nil
}

// ModuleAt refreshes the Modules and returns the one with a name; nil if there is none.
func (x *Index) ModuleAt(ctx context.Context, namespace, name string) (*resourceset.Module, error) {
	unlock, err := x.lockFreshObjects(ctx)
	defer unlock()
	if err != nil {
		return nil, err
	}
	if ns := x.namespaces[namespace]; ns != nil && ns.modules[name] != nil {
		return ns.modules[name].Module, nil
	}
	return nil, nil
}
