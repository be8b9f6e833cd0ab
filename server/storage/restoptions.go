package storage

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	etcdfeature "k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// objectPrefix is the prefix of the keys of objects, as in Kubernetes.
const objectPrefix = "/registry"

// RESTOptions defines the storage of each resource for the generic registry. It implements generic.RESTOptionsGetter.
type RESTOptions struct {
	store  *Store
	codec  func(schema.GroupResource) runtime.Codec
	cached bool
}

// RESTOptions returns the options for resources that codec can encode. A nil codec stores unstructured objects as JSON.
// The watch cache needs about 13 KB for each object and 17 goroutines for each resource. So use it only for resources
// with few objects.
func (s *Store) RESTOptions(codec func(schema.GroupResource) runtime.Codec, watchCache bool) *RESTOptions {
	if codec == nil {
		codec = func(schema.GroupResource) runtime.Codec { return unstructured.UnstructuredJSONScheme }
	}
	return &RESTOptions{store: s, codec: codec, cached: watchCache}
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (o *RESTOptions) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	cfg := storagebackend.NewDefaultConfig(objectPrefix, o.codec(resource))
	cfg.Transformer = o.store.encryption.transformer(resource)
	// Zero disables the metric: its COUNT per resource and minute would be an idle server's main load.
	cfg.CountMetricPollPeriod = 0
	return generic.RESTOptions{
		StorageConfig:           cfg.ForResource(resource),
		Decorator:               o.decorate,
		DeleteCollectionWorkers: 1,
		ResourcePrefix:          strings.TrimPrefix(groupPrefix(resource.Group), objectPrefix) + resource.Resource,
		// There is no garbage collector that would remove these finalizers.
		EnableGarbageCollection: false,
	}, nil
}

// decorate creates the store of one resource on the shared client. Upstream's decorator opens a gRPC client for each
// resource.
func (o *RESTOptions) decorate(
	cfg *storagebackend.ConfigForResource, resourcePrefix string, keyFunc func(runtime.Object) (string, error),
	newFunc, newListFunc func() runtime.Object, attrs storage.AttrFunc, triggers storage.IndexerFuncs,
	indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	versioner := storage.APIObjectVersioner{}
	transformer := cfg.Transformer
	raw, err := etcd3.New(o.store.client, nil, cfg.Codec, newFunc, newListFunc, cfg.Prefix, resourcePrefix,
		cfg.GroupResource,
		transformer, cfg.LeaseManagerConfig, etcd3.NewDefaultDecoder(cfg.Codec, versioner), versioner)
	if err != nil {
		return nil, nil, fmt.Errorf("make store of %q: %w", cfg.GroupResource, err)
	}
	if !o.cached {
		store := &uncached{
			Interface: raw, client: o.store.client.Client, backend: o.store.backend,
			decode:    decoder(cfg.Codec, transformer, versioner),
			versioner: versioner, newFunc: newFunc, resourcePrefix: resourcePrefix, objects: o.store.objects,
		}
		return o.store.observe(store, cfg, resourcePrefix), sync.OnceFunc(raw.Close), nil
	}
	store := progressing{raw}
	c, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage:             store,
		Versioner:           versioner,
		GroupResource:       cfg.GroupResource,
		EventsHistoryWindow: cfg.EventsHistoryWindow,
		ResourcePrefix:      resourcePrefix,
		KeyFunc:             keyFunc,
		GetAttrsFunc:        attrs,
		IndexerFuncs:        triggers,
		Indexers:            indexers,
		NewFunc:             newFunc,
		NewListFunc:         newListFunc,
		Codec:               cfg.Codec,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("make watch cache of %q: %w", cfg.GroupResource, err)
	}
	delegator := cacher.NewCacheDelegator(c, store)
	return o.store.observe(delegator, cfg, resourcePrefix), sync.OnceFunc(func() {
		delegator.Stop()
		c.Stop()
		raw.Close()
	}), nil
}

// progressing requests bookmarks for the watch cache, and for clients that allow them when the cache passes their watch
// on. A client that watches an idle kind can then resume from a recent revision after a compaction, instead of listing
// again.
type progressing struct{ storage.Interface }

func (p progressing) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	if opts.ProgressNotify = opts.ProgressNotify || opts.Predicate.AllowWatchBookmarks; opts.ProgressNotify {
		ctx = withProgress(ctx)
	}
	return p.Interface.Watch(ctx, key, opts)
}

// featureChecker reports the features of the embedded kine. Upstream's checker asks the client's endpoints for their
// version, but this client has none. Consistent reads from the watch cache would silently be disabled.
type featureChecker struct {
	etcdfeature.FeatureSupportChecker
}

func (featureChecker) Supports(f storage.Feature) bool { return f == storage.RequestWatchProgress }

// replaceFeatureChecker runs once, because the checker is a global variable.
var replaceFeatureChecker = sync.OnceFunc(func() {
	etcdfeature.DefaultFeatureSupportChecker = featureChecker{etcdfeature.DefaultFeatureSupportChecker}
})
