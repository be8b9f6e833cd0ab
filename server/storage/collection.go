package storage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/k3s-io/kine/pkg/server"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/hykube/hykube/api/v1alpha1"
)

// collectionPage is the maximum number of objects that one read of a Collection loads: a page of a client, and the
// first object after it.
const collectionPage = scanPage + 1

// Collection reads the objects of all providers' kinds as one collection, in the order of their keys. It stores
// nothing.
type Collection struct {
	// store has the watches. Its objects are those that convert returns.
	store *uncached
	// stored decodes an object as it is stored.
	stored func(ctx context.Context, kv *server.KeyValue) (*unstructured.Unstructured, error)
}

// Collection returns the objects of all providers' kinds. convert makes an object of the collection from a stored
// object; newFunc makes an empty one.
func (s *Store) Collection(convert func(*unstructured.Unstructured) runtime.Object,
	newFunc func() runtime.Object) *Collection {
	objects := s.Objects()
	stored := func(ctx context.Context, kv *server.KeyValue) (*unstructured.Unstructured, error) {
		at, _ := locationOf(kv.Key)
		return objects.decode(ctx, at.resource, kv.Key, kv.Value, kv.ModRevision)
	}
	decode := func(ctx context.Context, key string, data []byte, revision int64) (runtime.Object, error) {
		u, err := stored(ctx, &server.KeyValue{Key: key, Value: data, ModRevision: revision})
		if err != nil {
			return nil, err
		}
		return convert(u), nil
	}
	return &Collection{stored: stored, store: &uncached{
		client: s.client.Client, backend: s.backend, decode: decode, versioner: storage.APIObjectVersioner{},
		newFunc: newFunc, objects: s.objects,
	}}
}

// View is the part of a collection that a request may read.
type View struct {
	// Namespace restricts the view to a namespace, unless it is empty.
	Namespace string
	// Visible reports whether the view has the objects of a resource in a namespace; an empty namespace means all. The
	// resource is the stored one.
	Visible func(resource kschema.GroupResource, namespace string) (bool, error)
	// Convert makes the object of the collection from a stored one for a list, or returns nil for an object that the
	// list omits. Nil converts each object as Store.Collection says. A page with it ends after MaxRead objects that it
	// read.
	Convert func(*unstructured.Unstructured) runtime.Object
	MaxRead int
}

// location is the resource and the namespace in the key of an object.
type location struct {
	resource  kschema.GroupResource
	namespace string
}

// locationOf parses the key of an object. It returns false for an object that is not of a provider's kind.
func locationOf(key string) (location, bool) {
	rest, ok := strings.CutPrefix(key, objectPrefix+"/")
	part := strings.SplitN(rest, "/", 4)
	if !ok || len(part) != 4 {
		return location{}, false
	}
	_, provided := v1alpha1.ProviderOfGroup(part[0])
	return location{kschema.GroupResource{Group: part[0], Resource: part[1]}, part[2]}, provided
}

// includes reports whether the view has the object of a key.
func (v View) includes(key string) (bool, error) {
	at, ok := locationOf(key)
	if !ok || v.Namespace != "" && v.Namespace != at.namespace {
		return false, nil
	}
	return v.Visible(at.resource, at.namespace)
}

// span returns the end of a range of keys, from a key on, whose objects the view either all has or all lacks.
func (v View) span(key string) (end string, visible bool, err error) {
	at, ok := locationOf(key)
	if !ok {
		group, _, _ := strings.Cut(strings.TrimPrefix(key, objectPrefix+"/"), "/")
		return clientv3.GetPrefixRangeEnd(objectPrefix + "/" + group + "/"), false, nil
	}
	resource := groupPrefix(at.resource.Group) + at.resource.Resource + "/"
	namespace := resource + at.namespace + "/"
	if v.Namespace != "" && v.Namespace != at.namespace {
		// Compare keys and not namespaces: in a key, "a-b/" precedes "a/".
		if wanted := resource + v.Namespace + "/"; key < wanted {
			return wanted, false, nil
		}
		return clientv3.GetPrefixRangeEnd(resource), false, nil
	}
	if v.Namespace != "" {
		visible, err = v.Visible(at.resource, v.Namespace)
		return clientv3.GetPrefixRangeEnd(namespace), visible, err
	}
	if visible, err = v.Visible(at.resource, ""); visible || err != nil {
		return clientv3.GetPrefixRangeEnd(resource), visible, err
	}
	visible, err = v.Visible(at.resource, at.namespace)
	return clientv3.GetPrefixRangeEnd(namespace), visible, err
}

// read yields the key-value pairs that a view has, from a key on. It reads all of them at *revision, and sets that to
// the current one if it is 0. It reads no value that the view lacks.
func (c *Collection) read(ctx context.Context, v View, from string, revision *int64,
	page int64) iter.Seq2[*server.KeyValue, error] {
	last := clientv3.GetPrefixRangeEnd(objectPrefix + "/")
	list := func(from, end string, limit int64, keysOnly bool) ([]*server.KeyValue, error) {
		at, kvs, err := c.store.backend.List(ctx, from, end, limit, *revision, keysOnly)
		if err == nil && *revision == 0 {
			*revision = at
		}
		return kvs, err
	}
	return func(yield func(*server.KeyValue, error) bool) {
		for {
			next, err := list(from, last, 1, true)
			if err != nil || len(next) == 0 {
				if err != nil {
					yield(nil, err)
				}
				return
			}
			start := next[0].Key
			end, visible, err := v.span(start)
			if err != nil {
				yield(nil, err)
				return
			}
			for more := visible; more; {
				kvs, err := list(start, end, page, false)
				if err != nil {
					yield(nil, err)
					return
				}
				for _, kv := range kvs {
					if !yield(kv, nil) {
						return
					}
					start = kv.Key + "\x00"
				}
				more = int64(len(kvs)) == page
			}
			from = end
		}
	}
}

// Page is a page of a collection.
type Page struct {
	Objects []runtime.Object
	// Revision is that of all pages of the list.
	Revision int64
	// Continue is the token of the next page; empty for the last.
	Continue string
}

// List returns the objects of a view that the predicate selects. As for other kinds, all pages have the objects of one
// revision. The error is an API error if the revision is compacted or in the future.
func (c *Collection) List(ctx context.Context, v View, opts storage.ListOptions) (*Page, error) {
	opts.Recursive = true
	prefix := objectPrefix + "/"
	revision, from, err := storage.ValidateListOptions(prefix, c.store.versioner, opts)
	if err != nil {
		return nil, err
	}
	if from == "" {
		from = prefix
	}
	limit := opts.Predicate.Limit
	size := int64(collectionPage)
	if limit > 0 && limit < size && opts.Predicate.Empty() {
		size = limit + 1
	}
	page, read := &Page{}, 0
	for kv, err := range c.read(ctx, v, from, &revision, size) {
		if err != nil {
			return nil, listError(err, opts.Predicate.Continue, from, revision)
		}
		if full := int64(len(page.Objects)) == limit || v.Convert != nil && read == v.MaxRead; limit > 0 && full {
			if page.Continue, err = storage.EncodeContinue(kv.Key, prefix, revision); err != nil {
				return nil, fmt.Errorf("list providers' objects: %w", err)
			}
			break
		}
		read++
		object, err := c.object(ctx, v, kv)
		if err != nil {
			return nil, err
		}
		if object == nil {
			continue
		}
		if matches, err := opts.Predicate.Matches(object); err != nil {
			return nil, err
		} else if matches {
			page.Objects = append(page.Objects, object)
		}
	}
	if from, err := c.store.versioner.ParseResourceVersion(opts.ResourceVersion); err == nil && int64(from) > revision {
		return nil, storage.NewTooLargeResourceVersionError(from, uint64(revision), 0)
	}
	page.Revision = revision
	return page, nil
}

// object returns the object of a key in a view; nil if the view omits it.
func (c *Collection) object(ctx context.Context, v View, kv *server.KeyValue) (runtime.Object, error) {
	if v.Convert == nil {
		return c.store.decode(ctx, kv.Key, kv.Value, kv.ModRevision)
	}
	u, err := c.stored(ctx, kv)
	if err != nil {
		return nil, err
	}
	return v.Convert(u), nil
}

// listError converts an error of kine to that of other kinds. After a compaction, the client may continue at the
// current revision.
func listError(err error, token, from string, revision int64) error {
	switch {
	case errors.Is(err, server.ErrCompacted) && token == "":
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	case errors.Is(err, server.ErrCompacted):
		expired := apierrors.NewResourceExpired(
			"The provided continue parameter is too old to display a consistent list result. " +
				"Continue with the token of this response to get the rest of the list at the current revision.")
		expired.ErrStatus.Continue, _ = storage.EncodeContinue(from, objectPrefix+"/", -1)
		return expired
	case errors.Is(err, server.ErrFutureRev):
		return storage.NewTooLargeResourceVersionError(uint64(revision), 0, 1)
	}
	return err
}

// Watch sends the changes of the objects of a view that the predicate selects. It asks the view about each change, so
// that a user who loses a right gets no more of them.
func (c *Collection) Watch(ctx context.Context, v View, opts storage.ListOptions) (watch.Interface, error) {
	w := &objectWatch{store: c.store, key: objectPrefix + "/", recursive: true, includes: v.includes}
	w.initial = func(revision *int64) iter.Seq2[*server.KeyValue, error] {
		return c.read(w.ctx, v, w.key, revision, collectionPage)
	}
	return c.store.watch(ctx, w, opts)
}
