package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/rights"
	hykubestorage "github.com/hykube/hykube/server/storage"
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
	return &instancesREST{paged{subresource{empty}, "instances of ResourceSet"}, sets, c.Backend, c.Kinds,
		rights.Access{Authorizer: c.Authorizer}}
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
		return nil, apierrors.NewForbidden(v1alpha1.Resource("resourcesets/instances"), name,
			fmt.Errorf("user %q has no right to %s in the namespace %q", who.Username, right, set.Namespace))
	}
	list, err := r.backend.Instances(ctx, set, limit, cont)
	return list, apiError(err)
}

// moduleInstancesREST serves the subresource "instances" of Modules: their resources, in pages.
type moduleInstancesREST struct {
	paged
	modules   *genericregistry.Store
	resources resourcesREST
}

var _ rest.GetterWithOptions = (*moduleInstancesREST)(nil)

func newModuleInstances(c Config, modules *genericregistry.Store) rest.Storage {
	empty := func() runtime.Object { return new(v1alpha1.ResourceSetInstanceList) }
	return &moduleInstancesREST{paged{subresource{empty}, "instances of Module"}, modules, newResources(c)}
}

// Get returns a page of the resources of a Module, by their addresses. Those that left the Module come last. It leaves
// out the kinds that the user has no right to list.
func (r *moduleInstancesREST) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	limit, cont, err := r.page(name, options)
	if err != nil {
		return nil, err
	}
	var after index.Place
	if cont != "" {
		if err := decodeToken(instanceToken, cont, &after); err != nil {
			return nil, err
		}
	}
	obj, err := r.modules.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	who, err := requireUser(ctx, "list instances")
	if err != nil {
		return nil, err
	}
	list := &v1alpha1.ResourceSetInstanceList{Items: []runtime.RawExtension{}}
	if r.resources.backend.Index == nil {
		return list, nil
	}
	asker := &store.Asker{Access: r.resources.access, Who: who}
	view := r.resources.view(ctx, "list",
		storage.SelectionPredicate{Label: labels.Everything(), Field: fields.Everything()}, asker.May)
	return list, apiError(r.read(ctx, view, obj.(*v1alpha1.Module).UID, after, limit, list))
}

// read adds at most limit resources of the Module with a UID to a page: those after a place that the view shows.
func (r *moduleInstancesREST) read(ctx context.Context, view hykubestorage.View, uid types.UID, after index.Place,
	limit int,
	list *v1alpha1.ResourceSetInstanceList) error {
	var failed error
	visible := kindsOf(view, &failed)
	page, err := r.resources.backend.Index.InstancesAfter(ctx, view.Namespace, after, limit,
		func(namespace string, n index.Node) bool {
			return failed == nil && n.Object.Instance != nil && n.Object.Instance.SetUID == uid && visible(namespace,
				n.Object.Kind)
		})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	for _, found := range page.Items {
		u, err := r.resources.backend.Instance(ctx, found)
		if err != nil {
			return err
		}
		raw, err := u.MarshalJSON()
		if err != nil {
			return fmt.Errorf("encode instance: %w", err)
		}
		list.Items = append(list.Items, runtime.RawExtension{Raw: raw})
	}
	if page.More {
		list.Continue = encodeToken(instanceToken, page.Last)
	}
	return nil
}
