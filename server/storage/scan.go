package storage

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
)

// scanPage is the maximum number of objects that one read of a scan loads into memory.
const scanPage = 500

// Objects reads stored objects directly, without the API, for the server's own workers. One scan reads all kinds of a
// group, and an unused kind costs nothing.
type Objects struct {
	client     clientv3.KV
	table      *table
	encryption *encryption
	// latest is nil if other servers may write to the database.
	latest *latest
	// upToDate is the state of the database after which Since had nothing to return; nil if there was none.
	upToDate atomic.Pointer[upToDate]
}

// Objects returns the reader of stored objects.
func (s *Store) Objects() *Objects {
	return &Objects{client: s.client.KV, table: s.table, encryption: s.encryption, latest: s.latest}
}

// Get returns one object, or nil if it does not exist. For a cluster-scoped kind, namespace is empty.
func (o *Objects) Get(ctx context.Context, gr kschema.GroupResource, namespace,
	name string) (*unstructured.Unstructured, error) {
	return o.get(ctx, gr, keyOf(gr, namespace, name))
}

// Shared is Get for an object that many callers read, such as a ProviderConfig.
func (o *Objects) Shared(ctx context.Context, gr kschema.GroupResource, namespace, name string) (*SharedObject, error) {
	key := keyOf(gr, namespace, name)
	read := func() (*SharedObject, error) {
		object, err := o.get(ctx, gr, key)
		if err != nil || object == nil {
			return nil, err
		}
		return &SharedObject{Object: object}, nil
	}
	if o.latest == nil {
		return read()
	}
	return o.latest.get(key, read)
}

// keyOf returns the key of an object. For a cluster-scoped kind, namespace is empty.
func keyOf(gr kschema.GroupResource, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return groupPrefix(gr.Group) + gr.Resource + "/" + name
}

func (o *Objects) get(ctx context.Context, gr kschema.GroupResource, key string) (*unstructured.Unstructured, error) {
	resp, err := o.client.Get(ctx, key)
	if err != nil {
		return nil, store.Failed(fmt.Errorf("read %q: %w", key, err))
	}
	if len(resp.Kvs) == 0 {
		return nil, nil
	}
	return o.decode(ctx, gr, key, resp.Kvs[0].Value, resp.Kvs[0].ModRevision)
}

// Count returns the number of objects of a resource in a namespace.
func (o *Objects) Count(ctx context.Context, gr kschema.GroupResource, namespace string) (int64, error) {
	resp, err := o.client.Get(ctx, groupPrefix(gr.Group)+gr.Resource+"/"+namespace+"/", clientv3.WithPrefix(),
		clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", gr, err)
	}
	return resp.Count, nil
}

// List returns the objects of a group in a namespace, or in all namespaces if namespace is empty, sorted by key.
func (o *Objects) List(ctx context.Context, group, namespace string) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		prefix := groupPrefix(group)
		object := func(_ string, obj *unstructured.Unstructured, err error) bool { return yield(obj, err) }
		if namespace == "" {
			o.scan(ctx, group, prefix, prefix, object)
			return
		}
		// In a key, the resource precedes the namespace. So skip from one existing resource to the next.
		for after := prefix; ; {
			key, err := o.next(ctx, prefix, after)
			if err != nil || key == "" {
				if err != nil {
					yield(nil, err)
				}
				return
			}
			resource, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
			own := prefix + resource + "/" + namespace + "/"
			if !o.scan(ctx, group, own, own, object) {
				return
			}
			after = clientv3.GetPrefixRangeEnd(prefix + resource + "/")
		}
	}
}

// OfProviders returns the objects of all providers in a namespace, including providers that are not ready.
func (o *Objects) OfProviders(ctx context.Context, namespace string) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		groups, err := o.groups(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, group := range groups {
			if _, ok := v1alpha1.ProviderOfGroup(group); !ok {
				continue
			}
			for obj, err := range o.List(ctx, group, namespace) {
				if !yield(obj, err) || err != nil {
					return
				}
			}
		}
	}
}

// Sets returns the ResourceSets of a namespace, or of all namespaces if namespace is empty.
func (o *Objects) Sets(ctx context.Context, namespace string) iter.Seq2[*v1alpha1.ResourceSet, error] {
	return decoded[v1alpha1.ResourceSet](ctx, o, resourceSets, namespace)
}

// Modules returns the Modules of a namespace, or of all namespaces if namespace is empty.
func (o *Objects) Modules(ctx context.Context, namespace string) iter.Seq2[*v1alpha1.Module, error] {
	return decoded[v1alpha1.Module](ctx, o, modules, namespace)
}

// decoded returns the objects of a resource of a namespace, or of all namespaces if namespace is empty.
func decoded[T any](ctx context.Context, o *Objects, of kschema.GroupResource, namespace string) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		prefix := groupPrefix(of.Group) + of.Resource + "/"
		if namespace != "" {
			prefix += namespace + "/"
		}
		o.scan(ctx, of.Group, prefix, prefix, func(key string, u *unstructured.Unstructured, err error) bool {
			obj := new(T)
			if err == nil {
				err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj)
			}
			if err != nil {
				yield(nil, fmt.Errorf("read object %q: %w", key, err))
				return false
			}
			return yield(obj, nil)
		})
	}
}

// groups returns the API groups that have objects.
func (o *Objects) groups(ctx context.Context) (groups []string, err error) {
	prefix := objectPrefix + "/"
	for from := prefix; ; {
		key, err := o.next(ctx, prefix, from)
		if err != nil || key == "" {
			return groups, err
		}
		group, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
		groups = append(groups, group)
		from = clientv3.GetPrefixRangeEnd(prefix + group + "/")
	}
}

// groupPrefix returns the key prefix of a group's objects. The core group, whose name is empty, has the prefix "core".
func groupPrefix(group string) string { return objectPrefix + "/" + cmp.Or(group, "core") + "/" }

// next returns the first key with the prefix that is not before from, or "" if there is none.
func (o *Objects) next(ctx context.Context, prefix, from string) (string, error) {
	resp, err := o.client.Get(ctx, from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)), clientv3.WithLimit(1))
	if err != nil {
		return "", fmt.Errorf("list objects below %q: %w", prefix, err)
	}
	if len(resp.Kvs) == 0 {
		return "", nil
	}
	return string(resp.Kvs[0].Key), nil
}

// scan calls yield with each key with the prefix, from a key on, and its object. It returns false if yield did.
func (o *Objects) scan(ctx context.Context, group, prefix, from string,
	yield func(string, *unstructured.Unstructured, error) bool) bool {
	for {
		resp, err := o.client.Get(ctx, from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)),
			clientv3.WithLimit(scanPage))
		if err != nil {
			yield("", nil, fmt.Errorf("list objects below %q: %w", prefix, err))
			return false
		}
		for _, kv := range resp.Kvs {
			key := string(kv.Key)
			resource, _, _ := strings.Cut(strings.TrimPrefix(key, groupPrefix(group)), "/")
			obj, err := o.decode(ctx, kschema.GroupResource{Group: group, Resource: resource}, key, kv.Value,
				kv.ModRevision)
			if !yield(key, obj, err) || err != nil {
				return false
			}
		}
		if !resp.More || len(resp.Kvs) == 0 {
			return true
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
}

func (o *Objects) decode(ctx context.Context, gr kschema.GroupResource, key string, data []byte,
	revision int64) (*unstructured.Unstructured, error) {
	data, _, err := o.encryption.transformer(gr).TransformFromStorage(ctx, data, value.DefaultContext(key))
	if err != nil {
		return nil, fmt.Errorf("decrypt object %q: %w", key, err)
	}
	obj := &unstructured.Unstructured{}
	// UnmarshalJSON would parse the object twice, to find its kind first.
	if err := utiljson.Unmarshal(data, &obj.Object); err != nil {
		return nil, fmt.Errorf("decode object %q: %w", key, err)
	}
	if err := (storage.APIObjectVersioner{}).UpdateObject(obj, uint64(revision)); err != nil {
		return nil, fmt.Errorf("decode object %q: %w", key, err)
	}
	return obj, nil
}
