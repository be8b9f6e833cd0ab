// Package deletion clears the deletion mark of an object, and restores it, directly in the store, because the API
// machinery cannot do that. docs/decisions/0006-undelete.md has the reasons. It imports only k8s.io/apiserver.
package deletion

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"
)

// WarningWaits is the warning for an object that a delete only marks. It is for interactive users: other clients do not
// wait.
const WarningWaits = "kubectl delete waits until the object is removed. Ctrl-C ends only the waiting; with --wait=false it does not wait."

// Undo clears the deletion mark of an object and applies change in the same write. Watchers receive a MODIFIED event
// with a new generation, so that a plan of the marked object becomes stale. A non-empty UID must match. Undo returns a
// conflict if the object is not marked.
func Undo(ctx context.Context, store *genericregistry.Store, name string, uid types.UID, dry bool,
	change func(runtime.Object)) (runtime.Object, error) {
	return write(ctx, store, name, uid, dry, func(obj runtime.Object, m metav1.Object) error {
		if m.GetDeletionTimestamp() == nil {
			return apierrors.NewConflict(store.DefaultQualifiedResource, name, errors.New("it is not being deleted"))
		}
		m.SetDeletionTimestamp(nil)
		m.SetDeletionGracePeriodSeconds(nil)
		change(obj)
		return nil
	})
}

// Redo restores a deletion mark that was cleared too late.
func Redo(ctx context.Context, store *genericregistry.Store, name string, uid types.UID,
	change func(runtime.Object)) error {
	_, err := write(ctx, store, name, uid, false, func(obj runtime.Object, m metav1.Object) error {
		m.SetDeletionTimestamp(new(metav1.Now()))
		m.SetDeletionGracePeriodSeconds(new(int64(0)))
		change(obj)
		return nil
	})
	return err
}

func write(ctx context.Context, store *genericregistry.Store, name string, uid types.UID, dry bool,
	change func(runtime.Object, metav1.Object) error) (runtime.Object, error) {
	key, err := store.KeyFunc(ctx, name)
	if err != nil {
		return nil, err
	}
	var preconditions *storage.Preconditions
	if uid != "" {
		preconditions = &storage.Preconditions{UID: &uid}
	}
	out := store.NewFunc()
	err = store.Storage.GuaranteedUpdate(ctx, key, out, false, preconditions,
		storage.SimpleUpdate(func(existing runtime.Object) (runtime.Object, error) {
			m, err := meta.Accessor(existing)
			if err == nil {
				err = change(existing, m)
			}
			if g := m.GetGeneration(); err == nil && g > 0 {
				m.SetGeneration(g + 1)
			}
			return existing, err
		}), dry, nil)
	switch {
	case storage.IsNotFound(err):
		return nil, apierrors.NewNotFound(store.DefaultQualifiedResource, name)
	case storage.IsInvalidObj(err):
		return nil, apierrors.NewConflict(store.DefaultQualifiedResource, name,
			errors.New("it was deleted and created again meanwhile"))
	case err != nil:
		return nil, err
	}
	if store.AfterUpdate != nil && !dry {
		store.AfterUpdate(out, &metav1.UpdateOptions{})
	}
	return out, nil
}
