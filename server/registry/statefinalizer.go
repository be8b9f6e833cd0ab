package registry

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
)

// This file guards the finalizer of a ResourceSet or a Module with infrastructure. Only the server adds and removes it.

func holdsState(obj metav1.Object) bool {
	return slices.Contains(obj.GetFinalizers(), v1alpha1.FinalizerState)
}

// beginWithoutState removes the finalizer from a new object, which has no infrastructure. A manifest from a backup may
// have it.
func beginWithoutState(obj metav1.Object) {
	obj.SetFinalizers(slices.DeleteFunc(obj.GetFinalizers(),
		func(f string) bool { return f == v1alpha1.FinalizerState }))
}

// keepStateOnReplace keeps the finalizer in a client's update without finalizers: a manifest for kubectl replace has
// none.
func keepStateOnReplace(ctx context.Context, obj, old metav1.Object) {
	info, ok := request.RequestInfoFrom(ctx)
	if ok && info.Verb == "update" && !byServer(ctx) && obj.GetFinalizers() == nil && holdsState(old) {
		obj.SetFinalizers([]string{v1alpha1.FinalizerState})
	}
}

// keepStateFinalizer returns an error if somebody else than the server removes the finalizer. members and kind are the
// words for the error, such as "instances" and "set".
func keepStateFinalizer(ctx context.Context, obj, old metav1.Object, members, kind string) field.ErrorList {
	if byServer(ctx) || !holdsState(old) || holdsState(obj) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "finalizers"), fmt.Sprintf(
		"%s stays until the infrastructure of all %s is destroyed: delete the %s and apply a Plan, and the server removes the finalizer",
		v1alpha1.FinalizerState, members, kind))}
}
