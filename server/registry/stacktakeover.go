package registry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
)

// takeOverREST serves the subresource "takeover" of stacks. A create makes the user the author of the stack, as a write
// of its spec does, without a change of the spec.
type takeOverREST struct {
	subresource
	stacks *genericregistry.Store
	config Config
}

var _ rest.NamedCreater = (*takeOverREST)(nil)

// Create needs the rights to write the stack. It raises the generation, so that the stack plans as its new author, and
// an approval of what the former author wrote does not count as one of the new author's.
func (r *takeOverREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	opts *metav1.CreateOptions) (runtime.Object, error) {
	if err := validate(ctx, obj); err != nil {
		return nil, err
	}
	info := rest.DefaultUpdatedObjectInfo(nil,
		func(ctx context.Context, _, old runtime.Object) (runtime.Object, error) {
			s := old.(*v1alpha1.Stack).DeepCopy()
			update := store.Right{Verb: "update", Namespace: s.Namespace, Group: groupName, Resource: "stacks"}
			if err := requireRights(ctx, r.config.Authorizer, "stacks", name, []store.Right{update},
				"who takes a stack over writes it"); err != nil {
				return nil, err
			}
			if err := r.config.mayWriteStack(ctx, s, nil); err != nil {
				return nil, err
			}
			return s, nil
		})
	stacks := *r.stacks
	stacks.UpdateStrategy = takeOverStrategy{stacks.UpdateStrategy}
	update := &metav1.UpdateOptions{DryRun: opts.DryRun, FieldManager: opts.FieldManager}
	stored, _, err := stacks.Update(ctx, name, info, nil, rest.ValidateAllObjectUpdateFunc, false, update)
	return r.config.MayRead.response(ctx, stored, err)
}

// takeOverStrategy makes the user of a request the author of a stack, from a new generation on.
type takeOverStrategy struct{ rest.RESTUpdateStrategy }

func (takeOverStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	s := obj.(*v1alpha1.Stack)
	s.Generation = old.(*v1alpha1.Stack).Generation + 1
	s.Status.Author, s.Status.AuthorGeneration = requester(ctx), s.Generation
}
