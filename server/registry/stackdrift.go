package registry

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

// driftREST serves the subresource "drift" of stacks. A create asks the stack for a drift check now.
type driftREST struct {
	subresource
	stacks  *genericregistry.Store
	mayRead ReaderFunc
}

var _ rest.NamedCreater = (*driftREST)(nil)

// Create sets status.drift.requested, and returns the stack. Its status.drift.requested.id identifies the check for
// which the user may wait.
func (r *driftREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	opts *metav1.CreateOptions) (runtime.Object, error) {
	if err := validate(ctx, obj); err != nil {
		return nil, err
	}
	info := rest.DefaultUpdatedObjectInfo(nil,
		func(ctx context.Context, _, old runtime.Object) (runtime.Object, error) {
			s := old.(*v1alpha1.Stack).DeepCopy()
			return s, requestCheck(s, &v1alpha1.StackRequest{ID: uuid.NewString(), At: metav1.Now(),
				By: requester(ctx)})
		})
	update := &metav1.UpdateOptions{DryRun: opts.DryRun, FieldManager: opts.FieldManager}
	stored, _, err := updateWhole(ctx, r.stacks, name, info, nil, rest.ValidateAllObjectUpdateFunc, update)
	return r.mayRead.response(ctx, stored, err)
}

// requestCheck asks a stack for a drift check. It returns an error if the stack cannot begin one now.
func requestCheck(s *v1alpha1.Stack, request *v1alpha1.StackRequest) error {
	refuse := func(format string, args ...any) error {
		return apierrors.NewConflict(v1alpha1.Resource("stacks"), s.Name, fmt.Errorf(format, args...))
	}
	switch {
	case s.Spec.Drift == nil:
		return refuse("the stack has no spec.drift; add it, for example drift: {action: Report}. kubectl explain stack.spec.drift describes its fields")
	case s.Spec.Suspend:
		return refuse("the stack is suspended; set spec.suspend to false first")
	case s.Status.Drift != nil && !s.Status.Drift.AcceptsRequest():
		return refuse("a drift check of the stack has not ended; kubectl hykube drift %s -n %s shows its progress",
			s.Name, s.Namespace)
	}
	if s.Status.Drift == nil {
		s.Status.Drift = &v1alpha1.StackDriftStatus{}
	}
	s.Status.Drift.Requested = request
	return nil
}
