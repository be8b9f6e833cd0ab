// Package loopback reads and writes the server's objects for its own workers. Reads go directly to the store. Writes
// go through the API as system:apiserver, so all of its rules apply. The package implements the interfaces of
// internal/store.
package loopback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/storage"
)

// Objects accesses the objects of the dynamic kinds. It implements store.Objects.
type Objects struct {
	Stored *storage.Objects
	Client dynamic.Interface
	Kinds  *kinds.Kinds
}

// List implements store.Objects. It also returns objects of providers that are not ready, so that a plan fails because
// of them instead of ignoring them.
func (o *Objects) List(ctx context.Context, namespace string) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for _, name := range o.Kinds.Providers() {
			for obj, err := range o.Stored.List(ctx, v1alpha1.ProviderGroup(name), namespace) {
				if !yield(obj, err) || err != nil {
					return
				}
			}
		}
	}
}

// Get implements store.Objects.
func (o *Objects) Get(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	kind, err := o.kind(ref)
	if err != nil {
		return nil, err
	}
	obj, err := o.Stored.Get(ctx, kind.Stored(), ref.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	if obj == nil || ref.UID != "" && obj.GetUID() != ref.UID {
		return nil, store.ErrGone
	}
	return obj, nil
}

func (o *Objects) kind(ref v1alpha1.ObjectReference) (kinds.Kind, error) {
	gvk := kschema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	kind, ok := o.Kinds.Kind(gvk)
	if !ok {
		return kinds.Kind{}, fmt.Errorf("find kind %q of %q: its provider is not ready", ref.Kind, ref.APIVersion)
	}
	return kind, nil
}

// Plural implements store.Objects.
func (o *Objects) Plural(ref v1alpha1.ObjectReference) (string, error) {
	kind, err := o.kind(ref)
	if err != nil {
		return "", err
	}
	return kind.GVR.Resource, nil
}

// patchOp is one operation of a JSON patch.
type patchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func (o *Objects) patch(ctx context.Context, ref v1alpha1.ObjectReference, ops []patchOp, subresources ...string) error {
	kind, err := o.kind(ref)
	if err != nil {
		return err
	}
	data, err := json.Marshal(append([]patchOp{{"test", "/metadata/uid", ref.UID}}, ops...))
	if err != nil {
		return fmt.Errorf("encode patch of %s %q: %w", ref.Kind, ref.Name, err)
	}
	_, err = o.Client.Resource(kind.GVR).Namespace(ref.Namespace).Patch(ctx, ref.Name, types.JSONPatchType, data, metav1.PatchOptions{}, subresources...)
	return err
}

// writeTries is the maximum number of attempts of a write after conflicts.
const writeTries = 10

// rewrite patches an object with the operation that want returns; nil means no write. It calls want again if another
// writer changed the object.
func (o *Objects) rewrite(ctx context.Context, ref v1alpha1.ObjectReference, what string, want func(*unstructured.Unstructured) (*patchOp, error), subresources ...string) error {
	for try := 1; ; try++ {
		obj, err := o.Get(ctx, ref)
		if err != nil {
			return err
		}
		op, err := want(obj)
		if err != nil || op == nil {
			return err
		}
		ref.UID = obj.GetUID()
		err = o.patch(ctx, ref, []patchOp{{"replace", "/metadata/resourceVersion", obj.GetResourceVersion()}, *op}, subresources...)
		switch {
		case err == nil:
			return nil
		case apierrors.IsNotFound(err):
			return store.ErrGone
		case apierrors.IsConflict(err) && try < writeTries:
			continue
		}
		// The server rejects a patch as invalid if its UID test fails for a new object of the same name.
		if _, gerr := o.Get(ctx, ref); errors.Is(gerr, store.ErrGone) {
			return store.ErrGone
		}
		return fmt.Errorf("write %s of %s %q: %w", what, ref.Kind, ref.Name, err)
	}
}

// UpdateStatus implements store.Objects.
func (o *Objects) UpdateStatus(ctx context.Context, ref v1alpha1.ObjectReference, change func(*unstructured.Unstructured) map[string]any) error {
	return o.rewrite(ctx, ref, "status", func(obj *unstructured.Unstructured) (*patchOp, error) {
		status := change(obj.DeepCopy())
		if equality.Semantic.DeepEqual(obj.Object["status"], any(status)) {
			return nil, nil
		}
		return &patchOp{"add", "/status", status}, nil
	}, "status")
}

// Hold implements store.Objects. The object must still have the generation that was read.
func (o *Objects) Hold(ctx context.Context, read *unstructured.Unstructured) error {
	ref := v1alpha1.ObjectReference{APIVersion: read.GetAPIVersion(), Kind: read.GetKind(), Namespace: read.GetNamespace(), Name: read.GetName(), UID: read.GetUID()}
	return o.setFinalizers(ctx, ref, func(obj *unstructured.Unstructured) ([]string, error) {
		if obj.GetGeneration() != read.GetGeneration() || obj.GetDeletionTimestamp() != nil {
			return nil, store.ErrGone
		}
		if slices.Contains(obj.GetFinalizers(), v1alpha1.FinalizerState) {
			return nil, nil
		}
		return append(obj.GetFinalizers(), v1alpha1.FinalizerState), nil
	})
}

// Release implements store.Objects.
func (o *Objects) Release(ctx context.Context, ref v1alpha1.ObjectReference) error {
	err := o.setFinalizers(ctx, ref, func(obj *unstructured.Unstructured) ([]string, error) {
		if !slices.Contains(obj.GetFinalizers(), v1alpha1.FinalizerState) {
			return nil, nil
		}
		rest := slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool { return f == v1alpha1.FinalizerState })
		return append([]string{}, rest...), nil
	})
	return store.IgnoreGone(err)
}

// setFinalizers writes the finalizers that want returns, unless they are nil.
func (o *Objects) setFinalizers(ctx context.Context, ref v1alpha1.ObjectReference, want func(*unstructured.Unstructured) ([]string, error)) error {
	return o.rewrite(ctx, ref, "finalizers", func(obj *unstructured.Unstructured) (*patchOp, error) {
		finalizers, err := want(obj)
		if err != nil || finalizers == nil {
			return nil, err
		}
		return &patchOp{"add", "/metadata/finalizers", finalizers}, nil
	})
}
