package registry

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/deletion"
)

// Held keeps the deleted objects of one store while existing resources need them. If another object names the deleted
// one, a delete marks it, adds the finalizer hykube.io/in-use, and only then searches for users. A new user records its
// use first and only then checks the mark. So at least one of the two notices the other. An object that is not named is
// removed at once.
type Held struct {
	*genericregistry.Store
	config HeldConfig
}

// HeldConfig configures a Held. Every field except Refused and Needed is required.
type HeldConfig struct {
	// As converts an object to the type that Backend.InUse and Backend.Named expect.
	As func(runtime.Object) metav1.Object
	// Backend finds the resources that need an object.
	Backend *Backend
	// Note records in an object what its deletion waits for.
	Note func(obj runtime.Object, message string)
	// Clear removes the message that Note recorded.
	Clear func(obj runtime.Object)
	// Refused is a sentence about requests that are rejected until the deletion is reverted; empty means none.
	Refused string
	// Needed returns the end of the message about a deleted object: its users, and when the server removes it. The
	// default, for nil, is neededByResources.
	Needed func(count int, example string) string
	// Deleting is called before and after an object of the store is marked. The callee must then check the object until
	// it no longer exists.
	Deleting func(resource, namespace, name string)
}

// NewHeld sets the strategies of a store and returns the handler of its deletes.
func NewHeld(store *genericregistry.Store, c HeldConfig) *Held {
	store.DeleteStrategy = heldDelete{store.DeleteStrategy, c}
	store.UpdateStrategy = heldUpdate{store.UpdateStrategy}
	return &Held{Store: store, config: c}
}

// heldDelete adds the finalizer in the write that marks an object for deletion.
type heldDelete struct {
	rest.RESTDeleteStrategy
	config HeldConfig
}

var _ rest.RESTGracefulDeleteStrategy = heldDelete{}

// CheckGracefulDelete adds the finalizer to an object that is being marked. It always returns false, because no object
// has a grace period.
func (s heldDelete) CheckGracefulDelete(ctx context.Context, obj runtime.Object, _ *metav1.DeleteOptions) bool {
	m, err := meta.Accessor(obj)
	if err != nil || slices.Contains(m.GetFinalizers(), v1alpha1.FinalizerInUse) {
		return false
	}
	// after an error, keep the object and check again later
	if named, err := s.config.Backend.Named(ctx, s.config.As(obj)); named || err != nil {
		m.SetFinalizers(append(m.GetFinalizers(), v1alpha1.FinalizerInUse))
	}
	return false
}

// heldUpdate lets only the server remove the finalizer of a marked object.
type heldUpdate struct{ rest.RESTUpdateStrategy }

// PrepareForUpdate restores the finalizer if a manifest without finalizers replaces the object.
func (s heldUpdate) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	s.RESTUpdateStrategy.PrepareForUpdate(ctx, obj, old)
	info, ok := request.RequestInfoFrom(ctx)
	n, nerr := meta.Accessor(obj)
	o, oerr := meta.Accessor(old)
	if ok && info.Verb == "update" && nerr == nil && oerr == nil && n.GetFinalizers() == nil &&
		slices.Contains(o.GetFinalizers(), v1alpha1.FinalizerInUse) {
		n.SetFinalizers([]string{v1alpha1.FinalizerInUse})
	}
}

// ValidateUpdate rejects the removal of the finalizer.
func (s heldUpdate) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	errs := s.RESTUpdateStrategy.ValidateUpdate(ctx, obj, old)
	n, nerr := meta.Accessor(obj)
	o, oerr := meta.Accessor(old)
	if nerr == nil && oerr == nil && o.GetDeletionTimestamp() != nil && slices.Contains(o.GetFinalizers(),
		v1alpha1.FinalizerInUse) &&
		!slices.Contains(n.GetFinalizers(), v1alpha1.FinalizerInUse) {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "finalizers"),
			v1alpha1.FinalizerInUse+" stays until no resource needs the object; then the server removes it"))
	}
	return errs
}

// Delete marks an object for deletion and removes it if nothing needs it.
func (h *Held) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc,
	opts *metav1.DeleteOptions) (runtime.Object, bool, error) {
	namespace := request.NamespaceValue(ctx)
	if !dryRun(opts) {
		h.config.Deleting(h.DefaultQualifiedResource.Resource, namespace, name)
	}
	obj, gone, err := h.Store.Delete(ctx, name, validate, opts)
	if err != nil || gone || dryRun(opts) {
		return obj, gone, err
	}
	waits, message, err := h.removeUnused(ctx, namespace, name)
	switch {
	case err != nil:
		h.config.Deleting(h.DefaultQualifiedResource.Resource, namespace, name)
		return obj, false, nil // it is marked, and the server tries again
	case waits != nil:
		// The server may have checked before the object was marked.
		h.config.Deleting(h.DefaultQualifiedResource.Resource, namespace, name)
		if message != "" {
			h.warn(ctx, namespace, name, message)
		}
		return waits, false, nil
	}
	details := &metav1.StatusDetails{Name: name, Group: h.DefaultQualifiedResource.Group,
		Kind: h.DefaultQualifiedResource.Resource}
	if m, err := meta.Accessor(obj); err == nil {
		details.UID = m.GetUID()
	}
	return &metav1.Status{Status: metav1.StatusSuccess, Details: details}, true, nil
}

// warn adds the warnings about an object that is marked and still needed.
func (h *Held) warn(ctx context.Context, namespace, name, message string) {
	kind := h.SingularQualifiedResource.Resource
	back := fmt.Sprintf("Until then kubectl hykube undelete %s/%s", kind, name)
	if namespace != "" {
		back += " -n " + namespace
	}
	if h.config.Refused != "" {
		message += " " + h.config.Refused
	}
	warning.AddWarning(ctx, "", fmt.Sprintf("%s %q: %s %s takes the deletion back.", kind, name, message, back))
	warning.AddWarning(ctx, "", deletion.WarningWaits)
}

// DeleteCollection marks the objects of a list for deletion and removes those that nothing needs.
func (h *Held) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, opts *metav1.DeleteOptions,
	list *metainternalversion.ListOptions) (runtime.Object, error) {
	out, err := h.Store.DeleteCollection(ctx, validate, opts, list)
	if err != nil || dryRun(opts) {
		return out, err
	}
	return out, meta.EachListItem(out, func(obj runtime.Object) error {
		m, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		h.config.Deleting(h.DefaultQualifiedResource.Resource, m.GetNamespace(), m.GetName())
		// the server tries again, as in Delete
		_, _, _ = h.removeUnused(request.WithNamespace(ctx, m.GetNamespace()), m.GetNamespace(), m.GetName())
		return nil
	})
}

func dryRun(opts *metav1.DeleteOptions) bool { return opts != nil && len(opts.DryRun) > 0 }

// RemoveUnused removes a marked object that nothing needs. Otherwise it records the users in the object, and returns
// true.
func (h *Held) RemoveUnused(ctx context.Context, namespace, name string) (waits bool, err error) {
	obj, _, err := h.removeUnused(request.WithNamespace(ctx, namespace), namespace, name)
	return obj != nil, err
}

func (h *Held) removeUnused(ctx context.Context, namespace,
	name string) (waits runtime.Object, message string, err error) {
	obj, err := h.Store.Get(ctx, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, "", err
	}
	if m.GetDeletionTimestamp() == nil {
		return nil, "", nil
	}
	if !slices.Contains(m.GetFinalizers(), v1alpha1.FinalizerInUse) {
		return nil, "", nil // other finalizers keep it
	}
	count, example, err := h.config.Backend.InUse(ctx, h.config.As(obj))
	if err != nil {
		return nil, "", fmt.Errorf("find out what uses %s %q in namespace %q: %w", h.SingularQualifiedResource.Resource,
			name, namespace, err)
	}
	if count > 0 {
		needed := h.config.Needed
		if needed == nil {
			needed = neededByResources
		}
		message = "It is being deleted, but still works while " + needed(count, example)
	}
	out, err := h.write(ctx, m, func(obj runtime.Object, m metav1.Object) {
		if message != "" {
			h.config.Note(obj, message)
			return
		}
		h.config.Clear(obj)
		m.SetFinalizers(slices.DeleteFunc(m.GetFinalizers(),
			func(f string) bool { return f == v1alpha1.FinalizerInUse }))
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil, "", nil
	case err != nil:
		return nil, "", err
	case message == "":
		return nil, "", nil
	}
	return out, message, nil
}

// neededByResources is the Needed of an object without which the infrastructure of resources cannot be destroyed.
func neededByResources(count int, example string) string {
	if count == 1 {
		return "a resource needs it: " + example +
			". The server removes it when the infrastructure of that resource is destroyed or forgotten."
	}
	return fmt.Sprintf("%d resources need it, such as %s. The server removes it when their infrastructure is destroyed or forgotten.", count, example)
}

// write changes a marked object as the server. It fails if the object was replaced or its deletion was reverted.
func (h *Held) write(ctx context.Context, marked metav1.Object,
	change func(runtime.Object, metav1.Object)) (runtime.Object, error) {
	store := *h.Store
	store.UpdateStrategy = serverWrite{h.Store.UpdateStrategy}
	ctx = request.WithUser(ctx, &user.DefaultInfo{Name: user.APIServerUser})
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		obj := old.DeepCopyObject()
		m, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		if m.GetUID() == marked.GetUID() && m.GetDeletionTimestamp() != nil {
			change(obj, m)
		}
		return obj, nil
	})
	out, _, err := store.Update(ctx, marked.GetName(), info, nil, nil, false, &metav1.UpdateOptions{})
	return out, err
}

// serverWrite permits the server's own write, which changes only finalizers and the message.
type serverWrite struct{ rest.RESTUpdateStrategy }

func (serverWrite) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}
func (serverWrite) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// Marked returns the names of the objects that are marked for deletion.
func (h *Held) Marked(ctx context.Context) (names []metav1.ObjectMeta, err error) {
	list, err := h.Store.List(request.WithNamespace(ctx, metav1.NamespaceAll), &metainternalversion.ListOptions{})
	if err != nil {
		return nil, err
	}
	err = meta.EachListItem(list, func(obj runtime.Object) error {
		m, err := meta.Accessor(obj)
		if err == nil && m.GetDeletionTimestamp() != nil {
			names = append(names, metav1.ObjectMeta{Namespace: m.GetNamespace(), Name: m.GetName()})
		}
		return err
	})
	return names, err
}

// Undelete reverts the deletion of an object. It returns a conflict if the object is not being deleted.
func (h *Held) Undelete(ctx context.Context, name string, dry bool) (runtime.Object, error) {
	return deletion.Undo(ctx, h.Store, name, "", dry, func(obj runtime.Object) {
		h.config.Clear(obj)
		if m, err := meta.Accessor(obj); err == nil {
			m.SetFinalizers(slices.DeleteFunc(m.GetFinalizers(),
				func(f string) bool { return f == v1alpha1.FinalizerInUse }))
		}
	})
}

// undeleteREST serves the subresource "undelete" of a held kind: a POST reverts the deletion. It ignores the request
// body.
type undeleteREST struct {
	subresource
	held *Held
}

var _ rest.NamedCreater = (*undeleteREST)(nil)

// NewUndelete returns the storage for the subresource "undelete".
func NewUndelete(held *Held) rest.Storage { return &undeleteREST{subresource{held.New}, held} }

func (r *undeleteREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	opts *metav1.CreateOptions) (runtime.Object, error) {
	if err := validate(ctx, obj); err != nil {
		return nil, err
	}
	return r.held.Undelete(ctx, name, len(opts.DryRun) > 0)
}
