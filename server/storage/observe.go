package storage

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// Observe calls changed after each create and delete of an object in a namespace, and after each attempt of a create.
// For the resources in updates, it also calls changed after each update. Call it once, before the first request.
func (s *Store) Observe(changed func(namespace string), updates ...schema.GroupResource) {
	s.changed, s.observedUpdates = changed, updates
}

// observed is a store that reports its writes.
type observed struct {
	storage.Interface
	prefix  string
	updates bool
	store   *Store
}

func (s *Store) observe(store storage.Interface, cfg *storagebackend.ConfigForResource,
	prefix string) storage.Interface {
	return observed{store, prefix, slices.Contains(s.observedUpdates, cfg.GroupResource), s}
}

func (o observed) report(key string) {
	namespace, _, namespaced := strings.Cut(strings.TrimPrefix(key, o.prefix+"/"), "/")
	if namespaced && o.store.changed != nil {
		o.store.changed(namespace)
	}
}

func (o observed) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	defer o.report(key)
	return o.Interface.Create(ctx, key, obj, out, ttl)
}

func (o observed) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions) error {
	defer o.report(key)
	return o.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts)
}

// GuaranteedUpdate implements storage.Interface. It also creates objects that do not exist.
func (o observed) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object) error {
	report := o.updates
	defer func() {
		if report {
			o.report(key)
		}
	}()
	return o.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions,
		func(input runtime.Object, meta storage.ResponseMeta) (runtime.Object, *uint64, error) {
			report = report || meta.ResourceVersion == 0
			return update(input, meta)
		}, cached)
}
