package scope

import (
	"cmp"
	"context"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/store"
)

// This file finds who caused a value that expressions refer to.

// WritersOf returns the users who caused the recorded value of an attribute: of a resource, a data source, or each
// instance of a ResourceSet. It returns those of all attributes for an empty one. An attribute of a ConfigMap or Secret
// is a key, and the result has those who wrote it. An ephemeral resource has no record, so the result has those who
// wrote its object, its ProviderConfig, and what these refer to. What the users wrote is the attribute, or nothing.
func (s *Scope) WritersOf(ctx context.Context, addr lang.Address, attribute string) ([]v1alpha1.Contributor, error) {
	return s.writersAt(ctx, addr, attribute, maxEphemeralDepth)
}

// maxEphemeralDepth is the maximum number of ephemeral resources behind a value. The writers behind further ones are
// unknown.
const maxEphemeralDepth = 8

func (s *Scope) writersAt(ctx context.Context, addr lang.Address, attribute string,
	depth int) ([]v1alpha1.Contributor, error) {
	addr = s.relative(addr)
	if addr.Stored() {
		return s.writersOfKey(ctx, addr, attribute)
	}
	if addr.IsModuleOutput() {
		return s.writersOfOutput(ctx, addr, depth)
	}
	for r, err := range s.Resources(ctx, addr) {
		if err != nil {
			return nil, err
		}
		if writers, ok, err := s.writersOf(ctx, r, attribute, depth); ok || err != nil {
			return writers, err
		}
	}
	set, err := s.setAt(ctx, addr)
	if err != nil || set == nil || set.Problem != "" {
		return nil, err
	}
	lists, err := s.writersOfSet(ctx, set)
	if err != nil {
		return nil, err
	}
	for i := range set.Len() {
		list, err := s.writersAt(ctx, addr.Instance(set.Key(i)), "", depth)
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	return contributor.Merge(lists...), nil
}

// writersOfSet returns the users who wrote the keys of a ResourceSet: its spec, and the ConfigMap that it takes them
// from. For a block of a Module, these are the Module and the ConfigMap with its files. No plan need have applied that.
func (s *Scope) writersOfSet(ctx context.Context, set *resourceset.Set) (lists [][]v1alpha1.Contributor, err error) {
	kind := "ResourceSet"
	if set.InModule() {
		kind = "Module"
	}
	return s.writersOfOwner(ctx, store.Written{Kind: kind, Namespace: set.Namespace, Name: set.Name})
}

// writersOfOwner is writersOfSet for a ResourceSet or a Module.
func (s *Scope) writersOfOwner(ctx context.Context, of store.Written) (lists [][]v1alpha1.Contributor, err error) {
	w, found, err := s.Configs.Writers(ctx, of)
	if err != nil || !found {
		return [][]v1alpha1.Contributor{{{More: true}}}, err
	}
	lists = append(lists, w.List)
	if w.Files != "" {
		list, err := s.writersOfKey(ctx, lang.Address{Type: lang.TypeConfigMap, Namespace: of.Namespace, Name: w.Files},
			"")
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	if from := w.Keys; from != nil {
		list, err := s.writersOfKey(ctx,
			lang.Address{Type: lang.TypeConfigMap, Namespace: of.Namespace, Name: from.Name}, from.Key)
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	return lists, nil
}

// writersOfKey returns the users who wrote a key of a ConfigMap or Secret. They are unknown if it is gone.
func (s *Scope) writersOfKey(ctx context.Context, addr lang.Address, key string) ([]v1alpha1.Contributor, error) {
	of := store.Written{Kind: addr.Kind(), Namespace: cmp.Or(addr.Namespace, s.namespace), Name: addr.Name}
	w, found, err := s.Configs.Writers(ctx, of)
	if err != nil || !found {
		return []v1alpha1.Contributor{{More: true}}, err
	}
	return contributor.WritersOf(w.List, key), nil
}

// writersOf returns the users who caused the value of a resource. ok is false if it has none.
func (s *Scope) writersOf(ctx context.Context, r *resource.Resource, attribute string,
	depth int) (list []v1alpha1.Contributor, ok bool, err error) {
	if r.Mode == v1alpha1.ModeEphemeral {
		list, err = s.ephemeralWriters(ctx, r, depth-1)
		return list, true, err
	}
	rec, err := s.Ledger.Instance(ctx, r.Ref)
	if err != nil || !rec.Exists() {
		return nil, false, err
	}
	if list = contributor.WritersOf(rec.Writers, attribute); len(list) == 0 {
		list = []v1alpha1.Contributor{{More: true}} // the record does not say who caused it
	}
	return list, true, nil
}

// ephemeralWriters returns the users who wrote what an ephemeral resource follows from.
func (s *Scope) ephemeralWriters(ctx context.Context, r *resource.Resource, depth int) ([]v1alpha1.Contributor, error) {
	lists := [][]v1alpha1.Contributor{contributor.Of(r.Object.Object["status"])}
	if depth == 0 {
		return append(lists[0], v1alpha1.Contributor{More: true}), nil
	}
	refs := r.Parse().References
	cfg, err := s.configFor(ctx, r)
	if err != nil {
		return nil, err
	}
	if cfg != nil {
		refs, lists = append(slices.Clone(refs), catalog.References(cfg)...), append(lists, cfg.Status.Contributors)
		for _, key := range cfg.Spec.SecretRefs {
			list, err := s.writersOfKey(ctx,
				lang.Address{Type: lang.TypeSecret, Namespace: cfg.Namespace, Name: key.Name}, key.Key)
			if err != nil {
				return nil, err
			}
			lists = append(lists, list)
		}
	}
	for _, ref := range refs {
		addr := ref.Address
		addr.Namespace = cmp.Or(addr.Namespace, r.Ref.Namespace)
		list, err := s.writersAt(ctx, addr, ref.Attribute, depth)
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	list := contributor.Merge(lists...)
	for i := range list {
		list[i].Wrote = nil // an attribute of the ephemeral resource follows from all of it
	}
	return list, nil
}
