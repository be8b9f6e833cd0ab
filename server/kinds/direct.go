package kinds

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"

	"github.com/hykube/hykube/server/direct"
)

// This file has the writes of the server itself, which are no requests.

// UpdateObject changes an object, except its status, by the rules of its kind. change returns direct.ErrUnchanged to
// write nothing. It may be called again after a conflict.
func (k *Kinds) UpdateObject(ctx context.Context, kind Kind, namespace, name string,
	change func(*unstructured.Unstructured) error) error {
	serving, done, err := k.acquireUpdate(kind, namespace, name)
	if err != nil {
		return err
	}
	defer done()
	s := direct.Storage{Updater: serving.object, Scope: serving.objectScope, Admission: k.config.Admission}
	return s.Update(withParsedSpec(ctx), namespace, name,
		func(obj runtime.Object) error { return change(obj.(*unstructured.Unstructured)) })
}

// UpdateStored changes the status or the finalizers of an object in the storage. An apply does that twice for each
// resource, so it omits what requests need: admission, validation, and the owners of fields. Only the server writes a
// status, so managedFields does not list it. change must not change other fields, and must not remove the last
// finalizer. It replaces values instead of changing them in place. It may be called again after a conflict. An object
// that stays the same is not written; change may also return direct.ErrUnchanged.
//
// known is the object as the caller read or wrote it last, so that UpdateStored need not read it; nil if it must. The
// caller must not have changed it. If another writer has changed the object since, UpdateStored reads it. It returns
// the stored object, or nil if it wrote nothing.
func (k *Kinds) UpdateStored(ctx context.Context, kind Kind, namespace, name string, known *unstructured.Unstructured,
	change func(*unstructured.Unstructured) error) (*unstructured.Unstructured, error) {
	serving, done, err := k.acquireUpdate(kind, namespace, name)
	if err != nil {
		return nil, err
	}
	defer done()
	store := serving.object.Store
	key, err := store.KeyFunc(request.WithNamespace(ctx, namespace), name)
	if err != nil {
		return nil, err
	}
	var existing runtime.Object
	if known != nil {
		existing = shallowCopy(known) // the storage changes its resource version for a moment
	}
	var refused error
	stored := store.NewFunc()
	var written *unstructured.Unstructured
	err = store.Storage.Storage.GuaranteedUpdate(ctx, key, stored, false, nil,
		func(old runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
			written = shallowCopy(old.(*unstructured.Unstructured))
			refused = change(written)
			return written, nil, refused
		}, existing)
	switch {
	case refused == direct.ErrUnchanged: //nolint:errorlint // change returns it as it is
		return nil, nil
	case refused != nil:
		return nil, refused
	case err != nil:
		return nil, storeerr.InterpretUpdateError(err, kind.GVR.GroupResource(), name)
	}
	k.config.Changed()
	k.noteWritten(written)
	return stored.(*unstructured.Unstructured), nil
}

// shallowCopy copies an object, but not its values except the metadata.
func shallowCopy(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(u.Object)}
	if metadata, ok := u.Object["metadata"].(map[string]any); ok {
		out.Object["metadata"] = maps.Clone(metadata)
	}
	return out
}

// acquireUpdate returns the handlers of a kind for an update. The caller must call done after it.
func (k *Kinds) acquireUpdate(kind Kind, namespace, name string) (serving *serving, done func(), err error) {
	_, serving, done, err = k.acquire(&request.RequestInfo{
		IsResourceRequest: true, Verb: "update", APIGroup: kind.GVR.Group, APIVersion: kind.GVR.Version,
		Resource:  kind.GVR.Resource,
		Namespace: namespace, Name: name,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("write %s %q: %w", kind.GVK.Kind, name, err)
	}
	return serving, done, nil
}
