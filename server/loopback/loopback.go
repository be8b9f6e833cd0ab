// Package loopback reads and writes the server's objects for its own workers, as system:apiserver. It reads and writes
// objects of the dynamic kinds and Plans in this process, with all rules of their kinds. Requests to the API do the
// rest, such as approvals and reads of Secrets, which the audit log records. The package implements the interfaces of
// internal/store.
package loopback

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/direct"
	"github.com/hykube/hykube/server/events"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/storage"
)

// Objects accesses the objects of the dynamic kinds. It implements store.Objects.
type Objects struct {
	Stored *storage.Objects
	Kinds  *kinds.Kinds
	// Index, Ledger and Client are for the instances of ResourceSets. Without an index there are none.
	Index  *index.Index
	Ledger *ledger.Ledger
	// Client writes the finalizers of ResourceSets.
	Client rest.Interface
	// Events records what happens to resources; nil records nothing.
	Events *events.Recorder
}

// Get implements store.Objects.
func (o *Objects) Get(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	if v1alpha1.IsVirtualName(ref.Name) {
		u, status, err := o.instance(ctx, ref)
		if err == nil {
			resourceset.SetStatusRevision(u, status.Revision)
		}
		return u, err
	}
	return o.getStored(ctx, ref)
}

// GetSpec implements store.Objects.
func (o *Objects) GetSpec(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	if !v1alpha1.IsVirtualName(ref.Name) {
		return o.getStored(ctx, ref)
	}
	found, err := o.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	return found.Unstructured(ref.Namespace), nil
}

func (o *Objects) getStored(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
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

// UpdateStatus implements store.Objects.
func (o *Objects) UpdateStatus(ctx context.Context, ref v1alpha1.ObjectReference, known *unstructured.Unstructured,
	change func(*unstructured.Unstructured) map[string]any) error {
	var before, now map[string]any
	noting := func(obj *unstructured.Unstructured) map[string]any {
		before, _ = obj.Object["status"].(map[string]any)
		ref.UID = obj.GetUID()
		now = change(obj)
		return now
	}
	if v1alpha1.IsVirtualName(ref.Name) {
		err := o.updateInstanceStatus(ctx, ref, noting)
		o.recordEvent(ref, before, now, err)
		return err
	}
	_, err := o.writeStored(ctx, ref, "status", known, func(obj *unstructured.Unstructured) error {
		obj.Object["status"] = noting(obj)
		return nil
	})
	o.recordEvent(ref, before, now, err)
	return err
}

// UpdateInstanceStatus is UpdateStatus for an instance of a ResourceSet.
func (o *Objects) UpdateInstanceStatus(ctx context.Context, ref v1alpha1.ObjectReference,
	change func(*unstructured.Unstructured) map[string]any) error {
	return o.UpdateStatus(ctx, ref, nil, change)
}

// recordEvent records the Event for the transition between two statuses of a resource. err is the error of the write.
func (o *Objects) recordEvent(ref v1alpha1.ObjectReference, before, now map[string]any, err error) {
	if o.Events == nil || err != nil {
		return
	}
	if e, ok := events.OfResource(condition.Of(before), condition.Of(now)); ok {
		o.Events.Record(corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace,
			Name: ref.Name, UID: ref.UID}, e)
	}
}

// writeStored changes the status or the finalizers of an object. It returns the object as it is now; nil if it wrote
// nothing. known is the object as the caller knows it, or nil.
func (o *Objects) writeStored(ctx context.Context, ref v1alpha1.ObjectReference, what string,
	known *unstructured.Unstructured,
	change func(*unstructured.Unstructured) error) (*unstructured.Unstructured, error) {
	kind, err := o.kind(ref)
	if err != nil {
		return nil, err
	}
	written, err := o.Kinds.UpdateStored(ctx, kind, ref.Namespace, ref.Name, known, ofUID(ref.UID, change))
	return written, failedWrite(what, ref, err)
}

// ofUID returns a change that fails with store.ErrGone for an object with another UID than a non-empty one.
func ofUID(uid types.UID, change func(*unstructured.Unstructured) error) func(*unstructured.Unstructured) error {
	return func(obj *unstructured.Unstructured) error {
		if uid != "" && obj.GetUID() != uid {
			return store.ErrGone
		}
		return change(obj)
	}
}

// failedWrite returns the error of a write: store.ErrGone if the object does not exist, and nil for nil.
func failedWrite(what string, ref v1alpha1.ObjectReference, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrGone), apierrors.IsNotFound(err):
		return store.ErrGone
	}
	return failedRequest(fmt.Errorf("write %s of %s %q: %w", what, ref.Kind, ref.Name, err))
}

// AddFinalizer implements store.Objects. The object must still have the generation that was read.
func (o *Objects) AddFinalizer(ctx context.Context,
	read *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if v1alpha1.IsVirtualName(read.GetName()) {
		return read, o.addInstanceFinalizer(ctx, read)
	}
	now := read
	written, err := o.writeStored(ctx, refOf(read), "finalizers", read, func(obj *unstructured.Unstructured) error {
		now = obj
		if obj.GetGeneration() != read.GetGeneration() || obj.GetDeletionTimestamp() != nil {
			return store.ErrGone
		}
		if slices.Contains(obj.GetFinalizers(), v1alpha1.FinalizerState) {
			return direct.ErrUnchanged
		}
		obj.SetFinalizers(append(slices.Clip(obj.GetFinalizers()), v1alpha1.FinalizerState))
		return nil
	})
	if written != nil {
		now = written
	}
	return now, err
}

// RemoveFinalizer implements store.Objects.
func (o *Objects) RemoveFinalizer(ctx context.Context, ref v1alpha1.ObjectReference) error {
	if v1alpha1.IsVirtualName(ref.Name) {
		return o.removeInstanceFinalizer(ctx, ref)
	}
	kind, err := o.kind(ref)
	if err != nil {
		return err
	}
	err = o.Kinds.UpdateObject(ctx, kind, ref.Namespace, ref.Name,
		ofUID(ref.UID, func(obj *unstructured.Unstructured) error {
			if !slices.Contains(obj.GetFinalizers(), v1alpha1.FinalizerState) {
				return direct.ErrUnchanged
			}
			rest := slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool { return f == v1alpha1.FinalizerState })
			if len(rest) == 0 {
				rest = nil // no field instead of an empty list
			}
			obj.SetFinalizers(rest)
			return nil
		}))
	return store.IgnoreGone(failedWrite("finalizers", ref, err))
}
