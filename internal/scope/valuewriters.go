package scope

import (
	"cmp"
	"context"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/store"
)

// This file finds who caused a value that expressions refer to.

// WritersOf returns the users who caused the recorded value of an attribute: of a resource, a data source, or each instance of a
// ResourceSet. It returns those of all attributes for an empty one. An attribute of a ConfigMap or Secret is a key, and the result
// has those who wrote it. An ephemeral resource has no record, so the result has those who wrote its object. What the users wrote
// is the attribute, or nothing.
func (s *Scope) WritersOf(ctx context.Context, addr lang.Address, attribute string) ([]v1alpha1.Contributor, error) {
	addr = s.relative(addr)
	if addr.Stored() {
		return s.writersOfKey(ctx, addr, attribute)
	}
	for r, err := range s.Resources(ctx, addr) {
		if err != nil {
			return nil, err
		}
		if writers, ok, err := s.writersOf(ctx, r, attribute); ok || err != nil {
			return writers, err
		}
	}
	set, err := s.setAt(ctx, addr)
	if err != nil || set == nil || set.Problem != "" {
		return nil, err
	}
	var lists [][]v1alpha1.Contributor
	for i := range set.Len() {
		list, err := s.WritersOf(ctx, addr.Instance(set.Key(i)), "")
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	return contributor.Merge(lists...), nil
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
func (s *Scope) writersOf(ctx context.Context, r *resource.Resource, attribute string) (list []v1alpha1.Contributor, ok bool, err error) {
	if r.Mode == v1alpha1.ModeEphemeral {
		return contributor.Of(r.Object.Object["status"]), true, nil
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
