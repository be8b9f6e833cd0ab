package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

// cancelRunREST serves the subresource "cancel" of stacks. A create asks the running workflow of the stack to end.
type cancelRunREST struct {
	subresource
	stacks  *genericregistry.Store
	mayRead ReaderFunc
	backend *Backend
}

var _ rest.NamedCreater = (*cancelRunREST)(nil)

// Create returns the stack. Its status.run shows the end of the workflow later.
func (r *cancelRunREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	opts *metav1.CreateOptions) (runtime.Object, error) {
	if err := validate(ctx, obj); err != nil {
		return nil, err
	}
	stored, err := r.stacks.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	s := stored.(*v1alpha1.Stack)
	if len(opts.DryRun) == 0 {
		found, err := r.backend.CancelRun(ctx, s, nameOf(requester(ctx))+" cancelled the run.")
		switch {
		case err != nil:
			return nil, fmt.Errorf("cancel the workflow of stack %q: %w", name, err)
		case !found:
			return nil, apierrors.NewConflict(v1alpha1.Resource("stacks"), name,
				fmt.Errorf("no workflow of the stack is running. To cancel a plan of the stack: kubectl hykube cancel PLAN -n %s", s.Namespace))
		}
	}
	return r.mayRead.response(ctx, stored, nil)
}
