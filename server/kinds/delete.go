package kinds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/deletion"
)

// Deletion describes the infrastructure of an object to the user who deletes the object.
type Deletion struct {
	// CreateUnknown is true if a create was begun and its outcome is unknown.
	CreateUnknown bool
	// Referrers lists objects that refer to it, as KIND/NAME. More is the number of further ones.
	Referrers []string
	More      int
	// MovedTo is the address of the object whose lifecycle.moved names it; empty without one.
	MovedTo string
}

// deletionKey is the context key of the Deletion of a request's object.
type deletionKey struct{}

const (
	warningMarked = "%s %q is marked for deletion. Its infrastructure stays until a plan that destroys it is approved. " +
		"Until then kubectl hykube undelete %s/%s -n %s takes the deletion back."
	warningForgets = "%s %q is marked for deletion. Its lifecycle.destroy is false: the next approved plan forgets it, and its infrastructure stays. " +
		"Until then kubectl hykube undelete %s/%s -n %s takes the deletion back."
	warningMoves = "%s %q is marked for deletion. %s names it in lifecycle.moved: the next approved plan moves its infrastructure there. " +
		"Until then kubectl hykube undelete %s/%s -n %s takes the deletion back."
	warningUnknown = "%s %q is marked for deletion. A create of it started, and its outcome is unknown, so the resource may exist. " +
		"The next approved plan removes its record and destroys nothing: check first whether the resource exists. Until then kubectl hykube undelete %s/%s -n %s takes the deletion back."
	warningFailed    = "A create of %s %q failed %s. It may have made the resource, which nothing manages any more. Search for it by name or tags."
	warningReferrers = "These objects refer to it: %s. Plans fail until each of them is deleted, too, or no longer refers to it."
)

// Delete deletes an object. If the object has infrastructure, it adds warnings about the consequences.
func (r *objectREST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	var d Deletion
	var before *unstructured.Unstructured
	if !byServer(ctx) {
		if obj, err := r.Store.Get(ctx, name, &metav1.GetOptions{}); err == nil {
			before, _ = obj.(*unstructured.Unstructured)
		}
		if before != nil && hasStateFinalizer(before) {
			d = r.deletion(ctx, before)
			ctx = context.WithValue(ctx, deletionKey{}, d)
		}
	}
	obj, gone, err := r.Store.Delete(ctx, name, validate, options)
	if before != nil && err == nil {
		r.kind.kinds.noteDeleted(before, options.DryRun)
	}
	if u, ok := obj.(*unstructured.Unstructured); ok && err == nil && !gone && hasStateFinalizer(u) && !byServer(ctx) {
		warnMarked(ctx, u, d)
	}
	if before != nil && err == nil && gone {
		warnFailed(ctx, before)
	}
	return obj, gone, err
}

// warnFailed adds a warning if a create of a deleted object failed and may nevertheless have made the resource.
func warnFailed(ctx context.Context, u *unstructured.Unstructured) {
	if failed, _, _ := unstructured.NestedString(u.Object, "status", "failedCreate"); failed != "" {
		warning.AddWarning(ctx, "", fmt.Sprintf(warningFailed, u.GetKind(), u.GetName(), failed))
	}
}

// DeleteCollection deletes the objects of a list. It adds the warnings once.
func (r *objectREST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions, list *metainternalversion.ListOptions) (runtime.Object, error) {
	out, err := r.Store.DeleteCollection(ctx, validate, options, list)
	if l, ok := out.(*unstructured.UnstructuredList); ok && err == nil && !byServer(ctx) {
		for i := range l.Items {
			r.kind.kinds.noteDeleted(&l.Items[i], options.DryRun)
		}
		for i := range l.Items {
			if u := &l.Items[i]; hasStateFinalizer(u) {
				warnMarked(ctx, u, r.deletion(ctx, u))
				break
			}
		}
	}
	return out, err
}

// hasStateFinalizer reports whether the object has the finalizer that keeps it until its infrastructure is destroyed.
func hasStateFinalizer(u *unstructured.Unstructured) bool {
	return slices.Contains(u.GetFinalizers(), v1alpha1.FinalizerState)
}

// deletion returns the consequences of an object's deletion.
func (r *objectREST) deletion(ctx context.Context, u *unstructured.Unstructured) (d Deletion) {
	ask := r.kind.kinds.config.Infrastructure.Deletion
	if ask == nil {
		return d
	}
	d, err := ask(ctx, u, r.kind.Kind)
	if err != nil { // an error does not prevent the deletion
		r.kind.kinds.log.WarnContext(ctx, "find the consequences of a deletion", "kind", u.GetKind(), "namespace",
			u.GetNamespace(), "name", u.GetName(), "error", err)
	}
	return d
}

func warnMarked(ctx context.Context, u *unstructured.Unstructured, d Deletion) {
	text := warningMarked
	destroy, set, _ := unstructured.NestedBool(u.Object, "lifecycle", "destroy")
	switch {
	case d.CreateUnknown:
		text = warningUnknown
	case set && !destroy:
		text = warningForgets
	}
	if d.MovedTo != "" && !d.CreateUnknown {
		warning.AddWarning(ctx, "", fmt.Sprintf(warningMoves, u.GetKind(), u.GetName(), d.MovedTo, u.GetKind(),
			u.GetName(), u.GetNamespace()))
	} else {
		warning.AddWarning(ctx, "", fmt.Sprintf(text, u.GetKind(), u.GetName(), u.GetKind(), u.GetName(),
			u.GetNamespace()))
	}
	d.WarnReferrers(ctx)
	warning.AddWarning(ctx, "", deletion.WarningWaits)
}

// WarnReferrers adds a warning about the objects that refer to the deleted one, if there are any.
func (d Deletion) WarnReferrers(ctx context.Context) {
	if len(d.Referrers) == 0 {
		return
	}
	names := strings.Join(d.Referrers, ", ")
	if d.More > 0 {
		names += fmt.Sprintf(" and %d more", d.More)
	}
	warning.AddWarning(ctx, "", fmt.Sprintf(warningReferrers, names))
}
