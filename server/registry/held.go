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

// Held keeps the deleted objects of one store as long as living resources need them. A delete of what something names marks the object and
// adds the finalizer hykube.io/in-use, and only then looks for users: who begins to use the object writes that down first, and looks for the
// mark then, so that one of the two sees the other. What nothing names goes at once.
type Held struct {
	*genericregistry.Store
	config HeldConfig
}

// HeldConfig is what a Held needs. Every field but Refused is required.
type HeldConfig struct {
	// As returns an object in the form that InUse knows.
	As func(runtime.Object) metav1.Object
	// InUse says how many living resources need an object, and names one.
	InUse InUseFunc
	// Named says whether anything names an object, and so may need it, or be about to.
	Named NamedFunc
	// Note writes into an object what it waits for.
	Note func(obj runtime.Object, message string)
	// Clear removes what Note wrote.
	Clear func(obj runtime.Object)
	// Refused says which requests are refused until the deletion is taken back, as a format of the name; empty means none.
	Refused string
	// Deleting is called before an object of the store is marked, and after it: whoever settles deletions has to look at it until it is gone.
	Deleting func(resource, namespace, name string)
}

// NewHeld changes the strategies of a store, and returns what serves its deletes.
func NewHeld(store *genericregistry.Store, c HeldConfig) *Held {
	store.DeleteStrategy = heldDelete{store.DeleteStrategy, c}
	store.UpdateStrategy = heldUpdate{store.UpdateStrategy}
	return &Held{Store: store, config: c}
}

// heldDelete adds the finalizer in the write that marks an object as deleted.
type heldDelete struct {
	rest.RESTDeleteStrategy
	config HeldConfig
}

var _ rest.RESTGracefulDeleteStrategy = heldDelete{}

// CheckGracefulDelete is asked with the object that is about to be marked and stored. No object lingers for grace.
func (s heldDelete) CheckGracefulDelete(ctx context.Context, obj runtime.Object, _ *metav1.DeleteOptions) bool {
	m, err := meta.Accessor(obj)
	if err != nil || slices.Contains(m.GetFinalizers(), v1alpha1.FinalizerInUse) {
		return false
	}
	if named, err := s.config.Named(ctx, s.config.As(obj)); named || err != nil { // who cannot tell keeps it, and looks again
		m.SetFinalizers(append(m.GetFinalizers(), v1alpha1.FinalizerInUse))
	}
	return false
}

// heldUpdate keeps the finalizer of a marked object from everybody but the server.
type heldUpdate struct{ rest.RESTUpdateStrategy }

// PrepareForUpdate puts the finalizer back into an object that is replaced as a whole by a manifest without finalizers.
func (s heldUpdate) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	s.RESTUpdateStrategy.PrepareForUpdate(ctx, obj, old)
	info, ok := request.RequestInfoFrom(ctx)
	n, nerr := meta.Accessor(obj)
	o, oerr := meta.Accessor(old)
	if ok && info.Verb == "update" && nerr == nil && oerr == nil && n.GetFinalizers() == nil && slices.Contains(o.GetFinalizers(), v1alpha1.FinalizerInUse) {
		n.SetFinalizers([]string{v1alpha1.FinalizerInUse})
	}
}

// ValidateUpdate refuses to take the finalizer away.
func (s heldUpdate) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	errs := s.RESTUpdateStrategy.ValidateUpdate(ctx, obj, old)
	n, nerr := meta.Accessor(obj)
	o, oerr := meta.Accessor(old)
	if nerr == nil && oerr == nil && o.GetDeletionTimestamp() != nil && slices.Contains(o.GetFinalizers(), v1alpha1.FinalizerInUse) &&
		!slices.Contains(n.GetFinalizers(), v1alpha1.FinalizerInUse) {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "finalizers"),
			v1alpha1.FinalizerInUse+" stays until no living resource needs the object; the server removes it then"))
	}
	return errs
}

// Delete marks an object as deleted, and removes it when nothing needs it.
func (h *Held) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, opts *metav1.DeleteOptions) (runtime.Object, bool, error) {
	namespace := request.NamespaceValue(ctx)
	if !dryRun(opts) {
		h.config.Deleting(h.DefaultQualifiedResource.Resource, namespace, name)
	}
	obj, gone, err := h.Store.Delete(ctx, name, validate, opts)
	if err != nil || gone || dryRun(opts) {
		return obj, gone, err
	}
	waits, message, err := h.settle(ctx, namespace, name)
	switch {
	case err != nil:
		h.config.Deleting(h.DefaultQualifiedResource.Resource, namespace, name)
		return obj, false, nil // it is marked; who settles deletions tries again
	case waits != nil:
		// Whoever settles deletions may have looked before the object was marked.
		h.config.Deleting(h.DefaultQualifiedResource.Resource, namespace, name)
		if message != "" {
			if h.config.Refused != "" {
				message += " " + fmt.Sprintf(h.config.Refused, name)
			}
			warning.AddWarning(ctx, "", fmt.Sprintf("%s %q: %s", h.SingularQualifiedResource.Resource, name, message))
		}
		return waits, false, nil
	}
	details := &metav1.StatusDetails{Name: name, Group: h.DefaultQualifiedResource.Group, Kind: h.DefaultQualifiedResource.Resource}
	if m, err := meta.Accessor(obj); err == nil {
		details.UID = m.GetUID()
	}
	return &metav1.Status{Status: metav1.StatusSuccess, Details: details}, true, nil
}

// DeleteCollection marks the objects of a list, and removes those that nothing needs.
func (h *Held) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, opts *metav1.DeleteOptions, list *metainternalversion.ListOptions) (runtime.Object, error) {
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
		_, _, _ = h.settle(request.WithNamespace(ctx, m.GetNamespace()), m.GetNamespace(), m.GetName()) // tried again, as above
		return nil
	})
}

func dryRun(opts *metav1.DeleteOptions) bool { return opts != nil && len(opts.DryRun) > 0 }

// Settle removes a marked object that nothing needs any more; else it writes into the object what it waits for, and returns true.
func (h *Held) Settle(ctx context.Context, namespace, name string) (waits bool, err error) {
	obj, _, err := h.settle(request.WithNamespace(ctx, namespace), namespace, name)
	return obj != nil, err
}

func (h *Held) settle(ctx context.Context, namespace, name string) (waits runtime.Object, message string, err error) {
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
		return nil, "", nil // others keep it
	}
	count, example, err := h.config.InUse(ctx, h.config.As(obj))
	if err != nil {
		return nil, "", fmt.Errorf("find out what uses %s %q in namespace %q: %w", h.SingularQualifiedResource.Resource, name, namespace, err)
	}
	if count > 0 {
		message = waitingFor(count, example)
	}
	out, err := h.write(ctx, m, func(obj runtime.Object, m metav1.Object) {
		if message != "" {
			h.config.Note(obj, message)
			return
		}
		h.config.Clear(obj)
		m.SetFinalizers(slices.DeleteFunc(m.GetFinalizers(), func(f string) bool { return f == v1alpha1.FinalizerInUse }))
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

// waitingFor is what an object says that is deleted and needed.
func waitingFor(count int, example string) string {
	needs := fmt.Sprintf("%d resources need it, such as %s", count, example)
	if count == 1 {
		needs = "a resource needs it: " + example
	}
	return "It is being deleted, but still works while " + needs + ". The server removes it when their infrastructure is destroyed or forgotten."
}

// write changes a marked object in the name of the server, unless it is another one by now, or its deletion was taken back.
func (h *Held) write(ctx context.Context, marked metav1.Object, change func(runtime.Object, metav1.Object)) (runtime.Object, error) {
	store := *h.Store
	store.UpdateStrategy = settledStrategy{h.Store.UpdateStrategy}
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

// settledStrategy lets the server's own write through: finalizers and what the object waits for change, and nothing else.
type settledStrategy struct{ rest.RESTUpdateStrategy }

func (settledStrategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}
func (settledStrategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// Marked lists the names of the objects that are marked as deleted.
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

// Undelete takes the deletion of an object back. It returns a conflict when the object is not being deleted.
func (h *Held) Undelete(ctx context.Context, name string, dry bool) (runtime.Object, error) {
	return deletion.Undo(ctx, h.Store, name, "", dry, func(obj runtime.Object) {
		h.config.Clear(obj)
		if m, err := meta.Accessor(obj); err == nil {
			m.SetFinalizers(slices.DeleteFunc(m.GetFinalizers(), func(f string) bool { return f == v1alpha1.FinalizerInUse }))
		}
	})
}

// undeleteREST serves the subresource "undelete" of a held kind: a POST takes the deletion back. Of what is sent, the name matters.
type undeleteREST struct {
	subresource
	held *Held
}

var _ rest.NamedCreater = (*undeleteREST)(nil)

// NewUndelete returns what serves the subresource "undelete".
func NewUndelete(held *Held) rest.Storage { return &undeleteREST{subresource{held.New}, held} }

func (r *undeleteREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, opts *metav1.CreateOptions) (runtime.Object, error) {
	if err := validate(ctx, obj); err != nil {
		return nil, err
	}
	return r.held.Undelete(ctx, name, len(opts.DryRun) > 0)
}
