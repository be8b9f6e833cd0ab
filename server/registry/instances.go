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
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/rights"
)

// instancesREST serves the subresource "instances": the instances of a ResourceSet, in pages.
type instancesREST struct {
	paged
	sets    *genericregistry.Store
	backend *Backend
	kinds   *kinds.Kinds
	access  rights.Access
}

var _ rest.GetterWithOptions = (*instancesREST)(nil)

func newInstances(c Config, sets *genericregistry.Store) rest.Storage {
	empty := func() runtime.Object { return new(v1alpha1.ResourceSetInstanceList) }
	return &instancesREST{paged{subresource{empty}, "instances of ResourceSet"}, sets, c.Backend, c.Kinds, rights.Access{Authorizer: c.Authorizer}}
}

// Get returns a page of instances. It needs the right to list the kind of the template, as for single objects.
func (r *instancesREST) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	limit, cont, err := r.page(name, options)
	if err != nil {
		return nil, err
	}
	obj, err := r.sets.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	set := obj.(*v1alpha1.ResourceSet)
	kind, err := r.kinds.TemplateKind(kinds.TemplateOf(set))
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	who, err := requireUser(ctx, "list instances")
	if err != nil {
		return nil, err
	}
	right := store.Right{Verb: "list", Namespace: set.Namespace, Group: kind.GVR.Group, Resource: kind.GVR.Resource}
	if may, err := r.access.May(ctx, who, right); err != nil {
		return nil, apierrors.NewInternalError(err)
	} else if !may {
		return nil, apierrors.NewForbidden(v1alpha1.Resource("resourcesets/instances"), name, fmt.Errorf("user %q has no right to %s in the namespace %q", who.Username, right, set.Namespace))
	}
	list, err := r.backend.Instances(ctx, set, limit, cont)
	return list, apiError(err)
}
