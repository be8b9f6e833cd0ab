package planning

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"

	"k8s.io/apimachinery/pkg/types"
)

// This file finds the contributors of a change: the users who wrote what it follows from, since the resource was last
// applied.

// writers reads who wrote what no plan of the namespace changes: ResourceSets, ConfigMaps and Secrets, and the values
// of other namespaces. It reads each object that is no resource once.
type writers struct {
	ctx     context.Context //nolint:containedctx // the survey has no other
	configs store.Configs
	// values reads the values of other namespaces.
	values    *scope.Scope
	logger    *slog.Logger
	namespace string

	mu    sync.Mutex
	known map[store.Written]store.Writers
	// siblings caches the results of appliedSibling.
	siblings map[setTemplate]map[string]string
}

// setTemplate identifies the template of a set. The blocks of a Module have its UID.
type setTemplate struct {
	set     types.UID
	address lang.Address
}

func newWriters(ctx context.Context, values *scope.Scope, logger *slog.Logger, namespace string) *writers {
	return &writers{ctx: ctx, configs: values.Configs, values: values, logger: logger, namespace: namespace,
		known: map[store.Written]store.Writers{}, siblings: map[setTemplate]map[string]string{}}
}

// read returns the writers of an object. If the object is gone, or cannot be read, its writers are unknown.
func (w *writers) read(of store.Written) store.Writers {
	of.Namespace = cmp.Or(of.Namespace, w.namespace)
	fair.Lock(w.ctx, &w.mu)
	defer w.mu.Unlock()
	if known, ok := w.known[of]; ok {
		return known
	}
	read, found, err := w.configs.Writers(w.ctx, of)
	if err != nil {
		w.logger.Warn("read who wrote an object", "kind", of.Kind, "namespace", of.Namespace, "name", of.Name, "error",
			err)
	}
	if err != nil || !found {
		read = store.Writers{List: []v1alpha1.Contributor{{More: true}}}
		if of.Kind == "ResourceSet" || of.Kind == kindModule {
			read.List[0].Wrote = []string{v1alpha1.WroteDeletion}
		}
	}
	w.known[of] = read
	return read
}

// ofKey returns the writers of a key of a ConfigMap or Secret, or of all its keys for an empty key.
func (w *writers) ofKey(of store.Written, key string) []v1alpha1.Contributor {
	return contributor.Named(contributor.WritersOf(w.read(of).List, key), of.String())
}

// ofInstance returns the writers of an instance: of the ResourceSet, and of the key in the ConfigMap that it comes
// from; or of the Module, and of the ConfigMap with its files. The text does not name that key, so that instances with
// the same writers share them.
func (w *writers) ofInstance(ref v1alpha1.ObjectReference) []v1alpha1.Contributor {
	set := ownerOf(ref)
	read := w.read(set)
	list := read.List
	if read.Files != "" {
		source := store.Written{Kind: "ConfigMap", Namespace: ref.Namespace, Name: read.Files}
		list = contributor.Merge(list, contributor.Named(w.read(source).List, source.String()))
	}
	if from := read.Keys; from != nil {
		source := store.Written{Kind: "ConfigMap", Namespace: ref.Namespace, Name: from.Name}
		_, key, _ := v1alpha1.ParseInstanceName(ref.Name)
		writers := contributor.WritersOf(w.read(source).List, cmp.Or(from.Key, key.Name))
		for i := range writers {
			writers[i].Wrote = []string{strings.TrimSuffix(source.String()+" "+from.Key, " ")}
		}
		list = contributor.Merge(list, writers)
	}
	return contributor.Named(list, set.String())
}

// ownerOf returns the ResourceSet or the Module of an instance.
func ownerOf(ref v1alpha1.ObjectReference) store.Written {
	return store.Written{Kind: v1alpha1.OwnerKind(ref.Name), Namespace: ref.Namespace, Name: ref.Set}
}

// ofLabels returns the users who wrote the labels of an instance's ResourceSet. A stack or a plan may select the
// instance because of them.
func (w *writers) ofLabels(ref v1alpha1.ObjectReference) []v1alpha1.Contributor {
	set := ownerOf(ref)
	return contributor.Named(contributor.WritersOf(w.read(set).List, v1alpha1.WroteLabels), set.String())
}

// contributors returns the contributors of a node's change.
func (s *survey) contributors(n *node) []v1alpha1.Contributor {
	if s.writers == nil {
		return nil
	}
	own := contributor.Of(n.Object.Object["status"])
	if n.record != nil {
		own = contributor.Merge(own, n.record.Contributors)
	}
	if n.record.Exists() && n.Mode == v1alpha1.ModeManaged && n.Ref.Set == "" {
		equal := n.record.Inputs.Equal(ledger.InputsOf(n.Object))
		n.takenBack, own = contributor.Only(own, equal...), contributor.Remove(own, equal...)
	}
	lists := [][]v1alpha1.Contributor{own}
	switch {
	case n.Ref.Set == "":
	case n.Deleting || n.Impure || !n.record.Exists() || n.record.Object.Generation != n.Ref.Generation:
		// The generation of an instance is a hash of what the set and its ConfigMap say about it.
		list := s.writers.ofInstance(n.Ref)
		// an import that the instance had was applied, or has no effect any more
		if n.record.Exists() && n.Lifecycle.Import == nil {
			set := store.Written{Kind: "ResourceSet", Namespace: n.Ref.Namespace, Name: n.Ref.Set}
			list = contributor.Remove(list, set.String()+": "+contributor.WroteImports)
		}
		lists = append(lists, list)
	default:
		lists = append(lists, s.writers.ofLabels(n.Ref))
	}
	if from := n.movedFrom; from != nil {
		lists = append(lists, contributor.Named(contributor.Of(from.Object.Object["status"]), from.Address.String()))
		if from.record != nil {
			lists = append(lists, from.record.Contributors)
		}
	}
	lists = append(lists, s.externalContributors(n)...)
	// What a change keeps of a user's writes is bounded, and the arguments of the provider may be taken back; so they
	// come last.
	return contributor.Merge(append(lists, s.configWriters(n))...)
}

// configWriters returns the writers of the arguments of a node's provider, and sets the node's account. There are none
// if a plan applied the resource with these arguments, or if a person who is none of the writers approved them for the
// type. Other arguments than those of the record may reach another resource, so their writers always contribute.
func (s *survey) configWriters(n *node) []v1alpha1.Contributor {
	if n.config == nil {
		return nil
	}
	account, changed := s.accounts.of(n)
	if n.account = nil; len(account.Writers) == 0 {
		return nil
	}
	if n.record.Exists() && n.config.VersionKnown && n.appliedVersion() == n.config.Version && !changed {
		return nil
	}
	account.Approved = account.Approved && !changed
	if n.account = &account; account.Approved {
		return nil
	}
	return account.Writers
}

// appliedVersion returns the version of the ProviderConfig with which a plan last applied a node; "" if none did.
func (n *node) appliedVersion() string {
	return cmp.Or(n.record.Applied.Version, n.record.DependencyVersions[changes.VersionOfConfig(n.config.Cfg.Name)])
}

// appliedVersions returns the versions of the dependencies with which a plan applied a node or, for an instance of a
// set without infrastructure, another instance of the set, perhaps a destroyed one: they have the same template. It
// returns nil if no plan did.
func (s *survey) appliedVersions(n *node) map[string]string {
	if n.record.Living() {
		return n.record.DependencyVersions
	}
	addr, _, ok := n.Address.Set()
	if !ok || n.Ref.Set == "" {
		return nil
	}
	if set := s.setAt(addr); set != nil && set.UID == n.Ref.SetUID {
		return s.writers.appliedSibling(set, n.Ref)
	}
	return nil
}

// maxSiblings is the maximum number of instances of a set among which appliedSibling looks for an applied one.
const maxSiblings = 16

// appliedSibling returns the versions of the dependencies with which a plan applied one of the first instances of a
// set, or else the one that was destroyed last; nil if it finds none. ref is any instance of the set. What a plan found
// to need no change was not applied.
func (w *writers) appliedSibling(set *resourceset.Set, ref v1alpha1.ObjectReference) map[string]string {
	fair.Lock(w.ctx, &w.mu)
	defer w.mu.Unlock()
	of := setTemplate{set.UID, set.Address()}
	if known, ok := w.siblings[of]; ok {
		return known
	}
	w.siblings[of] = nil
	for i := range min(set.Len(), maxSiblings) {
		ref.Name, ref.UID = v1alpha1.InstanceName(set.Template, set.Key(i)), set.UIDOf(set.Key(i))
		rec, err := w.values.Ledger.Instance(w.ctx, ref)
		if err != nil {
			w.logger.Warn("read the record of an instance", "namespace", ref.Namespace, "name", ref.Name, "error", err)
			return nil
		}
		if rec.Exists() && rec.AppliedLast() {
			w.siblings[of] = rec.DependencyVersions
			return rec.DependencyVersions
		}
	}
	kept, err := w.values.Ledger.AppliedVersions(w.ctx, ref)
	if err != nil {
		w.logger.Warn("read with what a destroyed instance was applied", "namespace", ref.Namespace, "name", ref.Name,
			"error", err)
		return nil
	}
	w.siblings[of] = kept
	return kept
}

// externalContributors returns the writers of what a node depends on and no plan changes, apart from its
// ProviderConfig: ConfigMaps and Secrets, and the objects and ProviderConfigs of data sources and ephemeral resources.
// It omits what has the version that a plan has applied to the node, or to another instance of its set.
func (s *survey) externalContributors(n *node) (lists [][]v1alpha1.Contributor) {
	if !n.wanted {
		return nil
	}
	applied := s.appliedVersions(n)
	differs := func(name, version string) bool { return version == "" || applied[name] != version }
	lists = append(lists, s.keyWriters(n, applied)...)
	lists = append(lists, s.valueWriters(n, differs)...)
	if outside := n.externalVersions[changes.VersionOutside]; differs(changes.VersionOutside, outside) {
		lists = append(lists, s.writers.ofReferences(n.References)...)
		lists = append(lists, s.writers.ofValues(n.References, n.begins())...)
	}
	for _, i := range s.nodesAt(s.transitiveDependencies(n.DependsOn, v1alpha1.ModeEphemeral, v1alpha1.ModeData)) {
		d := s.nodes[i]
		name, version := objectVersion(d.Address), ""
		switch d.Mode {
		case v1alpha1.ModeData:
			version = d.externalVersions[name]
		case v1alpha1.ModeEphemeral:
			name = d.Address.String()
			version = d.externalVersions[name]
		default:
			continue
		}
		if differs(name, version) {
			lists = append(lists, contributor.Named(contributor.Of(d.Object.Object["status"]), d.Address.String()))
			lists = append(lists, s.writers.ofReferences(d.References)...)
			lists = append(lists, s.writers.ofValues(d.References, time.Time{})...)
		}
		if c := d.config; c != nil && c != n.config && (differs(changes.VersionOfConfig(c.Cfg.Name), c.Version) ||
			!c.VersionKnown) {
			lists = append(lists, s.writers.ofConfig(c.Cfg, c.References)...)
		}
	}
	return lists
}

// keyWriters returns the users who wrote that the sets to which a node refers as a whole have other keys than in
// applied, the result of appliedVersions. A plan reads the keys as they are written, also if it does not change the
// instances.
func (s *survey) keyWriters(n *node, applied map[string]string) (lists [][]v1alpha1.Contributor) {
	for _, addr := range n.wholeSets {
		set := s.setAt(addr)
		if set == nil {
			continue
		}
		changed := map[string]bool{} // the names of the instances whose key came or went
		for name := range applied {
			if a, err := lang.ParseAddress(name); err == nil {
				if of, key, ok := a.Set(); ok && of == addr && !set.Has(key) {
					changed[a.ObjectName()] = true
				}
			}
		}
		for _, a := range instanceAddresses(addr, set) {
			if _, ok := applied[valueVersion(a, "")]; !ok {
				changed[a.ObjectName()] = true
			}
		}
		for name := range changed {
			ref := v1alpha1.ObjectReference{Namespace: set.Namespace, Name: name, Set: set.Name}
			lists = append(lists, since(s.writers.ofInstance(ref), n.begins()))
		}
	}
	return lists
}

// valueWriters returns the users who caused the recorded values of the namespace that a node refers to, if their
// versions differ from the applied ones: an earlier plan has changed them, and nobody has approved what follows.
func (s *survey) valueWriters(n *node, differs func(name, version string) bool) (lists [][]v1alpha1.Contributor) {
	for _, ref := range n.values() {
		i, ok := s.byAddr[ref.Address]
		if !ok || !hasRecordedValue(s.nodes[i].Mode) || s.nodes[i].record == nil {
			continue
		}
		rec := s.nodes[i].record
		if version := rec.VersionOf(ref.Attribute); version != "" && differs(valueVersion(ref.Address, ref.Attribute),
			version) {
			list := since(contributor.WritersOf(rec.Writers, ref.Attribute), n.begins())
			lists = append(lists, contributor.Named(list, ref.Address.String()))
		}
	}
	return lists
}

// since returns the contributors who wrote after a time, and those whose time is unknown.
func since(list []v1alpha1.Contributor, at time.Time) []v1alpha1.Contributor {
	return slices.DeleteFunc(slices.Clone(list),
		func(c v1alpha1.Contributor) bool { return !c.At.IsZero() && c.At.Time.Before(at) })
}

// begins returns when the object of a node was made if it has no infrastructure yet; zero otherwise. Who makes an
// object takes the values of other namespaces as they are then.
func (n *node) begins() time.Time {
	if n.record.Living() || n.movedFrom != nil {
		return time.Time{}
	}
	return n.Object.GetCreationTimestamp().Time
}

// ofConfig returns the writers of a ProviderConfig, and of what it reads.
func (w *writers) ofConfig(cfg *v1alpha1.ProviderConfig, refs []lang.Reference) [][]v1alpha1.Contributor {
	lasting, rotating := w.ofArguments(cfg, refs)
	return append(lasting, rotating...)
}

// ofArguments returns the writers of a ProviderConfig, and of what it reads, apart from the values of arguments that
// rotate. Those who wrote these values are in rotating.
func (w *writers) ofArguments(cfg *v1alpha1.ProviderConfig,
	refs []lang.Reference) (lasting, rotating [][]v1alpha1.Contributor) {
	lasting = append(append(w.ofReferences(refs), w.ofValues(refs, time.Time{})...),
		contributor.Named(cfg.Status.Contributors, fmt.Sprintf("ProviderConfig %s", cfg.Name)))
	for _, ref := range cfg.Spec.SecretRefs {
		list := w.ofKey(store.Written{Kind: "Secret", Namespace: cfg.Namespace, Name: ref.Name}, ref.Key)
		if ref.Rotates {
			rotating = append(rotating, list)
		} else {
			lasting = append(lasting, list)
		}
	}
	return lasting, rotating
}

// ofReferences returns the writers of the ConfigMaps and Secrets among references.
func (w *writers) ofReferences(refs []lang.Reference) (lists [][]v1alpha1.Contributor) {
	for _, ref := range refs {
		if !ref.Stored() {
			continue
		}
		kind := "ConfigMap"
		if ref.Stored() && ref.Type == lang.TypeSecret {
			kind = "Secret"
		}
		lists = append(lists, w.ofKey(store.Written{Kind: kind, Namespace: ref.Namespace, Name: ref.Name},
			ref.Attribute))
	}
	return lists
}

// ofValues returns the users who caused the values of other namespaces, and of outputs of Modules, among references
// since a time.
func (w *writers) ofValues(refs []lang.Reference, begins time.Time) (lists [][]v1alpha1.Contributor) {
	for _, ref := range refs {
		if ref.Namespace == "" && !ref.IsModuleOutput() || ref.Stored() {
			continue
		}
		list, err := w.values.WritersOf(w.ctx, ref.Address, ref.Attribute)
		if err != nil {
			w.logger.Warn("read who caused a value", "address", ref.Address.String(), "error", err)
			list = []v1alpha1.Contributor{{More: true}}
		}
		lists = append(lists, contributor.Named(since(list, begins), ref.Address.String()))
	}
	return lists
}
