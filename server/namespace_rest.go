package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	namespacestore "k8s.io/kubernetes/pkg/registry/core/namespace/storage"
)

// countLimit is the maximum time that the delete of a namespace spends on counting its resources for the warning.
const countLimit = time.Second

const (
	warningNamespace = "namespace %q and its resources with infrastructure are marked for deletion. %s, and the namespace stays until you approve a plan that destroys the infrastructure: " +
		"kubectl hykube destroy --all -n %s"
	warningNamespaceBack  = "Until a destroy is approved, kubectl hykube undelete namespace/%s takes the deletion back. When nothing in it has infrastructure any more, the server removes the namespace and all objects in it. That cannot be reverted."
	refusalFinalize       = "%s, and without the namespace nothing would manage the infrastructure. Approve a plan that destroys it: kubectl hykube destroy --all -n %s. To keep the namespace: kubectl hykube undelete namespace/%s"
	warningNamespaceWaits = "kubectl delete waits until the namespace is removed. Ctrl-C ends only the waiting; with --wait=false it does not wait."
)

// namespaceREST serves namespaces and adds each deleted one to the server's deletions.
type namespaceREST struct {
	*namespacestore.REST
	server *Server
}

var _ rest.GracefulDeleter = (*namespaceREST)(nil)

// Delete marks a namespace for deletion. If it contains resources with infrastructure, Delete adds warnings about the
// consequences.
func (r *namespaceREST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc,
	opts *metav1.DeleteOptions) (runtime.Object, bool, error) {
	obj, gone, err := r.REST.Delete(ctx, name, validate, opts)
	if err != nil || gone || opts != nil && len(opts.DryRun) > 0 {
		return obj, gone, err
	}
	r.server.warnNamespace(ctx, name)
	if r.server.deletions.isUndeleting(name) {
		err = r.server.namespaceUndelete.drop(ctx, name)
	}
	r.server.deletions.add(namespaces, "", name)
	return obj, gone, err
}

func (s *Server) warnNamespace(ctx context.Context, name string) {
	counting, cancel := context.WithTimeout(ctx, countLimit)
	defer cancel()
	count, example, err := s.wiring.InUse(counting, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	holds := resources(count, example)
	switch {
	case err != nil: // counting would take too long
		holds = "Resources in it have infrastructure"
	case count == 0:
		return
	}
	warning.AddWarning(ctx, "", fmt.Sprintf(warningNamespace, name, holds, name))
	warning.AddWarning(ctx, "", fmt.Sprintf(warningNamespaceBack, name))
	warning.AddWarning(ctx, "", warningNamespaceWaits)
}

// finalizeNamespaceREST serves the subresource "finalize" of namespaces.
type finalizeNamespaceREST struct {
	*namespacestore.FinalizeREST
	server *Server
}

// Update rejects the removal of a deleted namespace's finalizers while the namespace contains resources with
// infrastructure. Otherwise no object would manage that infrastructure.
func (r *finalizeNamespaceREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool,
	opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	info = rest.WrapUpdatedObjectInfo(info, func(ctx context.Context, obj, old runtime.Object) (runtime.Object, error) {
		if len(obj.(*core.Namespace).Spec.Finalizers) >= len(old.(*core.Namespace).Spec.Finalizers) {
			return obj, nil
		}
		count, example, err := r.server.wiring.InUse(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil || count == 0 {
			return obj, err
		}
		return nil, apierrors.NewForbidden(corev1.Resource(namespaces), name,
			fmt.Errorf(refusalFinalize, resources(count, example), name, name))
	})
	return r.FinalizeREST.Update(ctx, name, info, create, update, false, opts)
}

// undeleteNamespaceREST serves the subresource "undelete" of namespaces: a POST reverts the deletion. It ignores the
// request body.
type undeleteNamespaceREST struct {
	store  *genericregistry.Store
	server *Server
}

var _ rest.NamedCreater = (*undeleteNamespaceREST)(nil)

// resources returns the sentence with the number of a namespace's resources with infrastructure.
func resources(count int, example string) string {
	if count == 1 {
		return "A resource in it has infrastructure, " + example
	}
	return fmt.Sprintf("%d resources in it have infrastructure, such as %s", count, example)
}

// undeleteResolver adds the subresource "undelete" of namespaces. Kubernetes' resolver takes the part after a namespace
// in a path as a resource in that namespace, except for subresources that it knows.
type undeleteResolver struct{ request.RequestInfoResolver }

// NewRequestInfo implements request.RequestInfoResolver.
func (r undeleteResolver) NewRequestInfo(req *http.Request) (*request.RequestInfo, error) {
	info, err := r.RequestInfoResolver.NewRequestInfo(req)
	if err == nil && info.IsResourceRequest && info.APIGroup == "" && info.Resource == undeleteSubresource &&
		info.Name == "" && info.Namespace != "" {
		info.Resource, info.Subresource, info.Name = namespaces, undeleteSubresource, info.Namespace
		info.Parts = []string{namespaces, info.Name, undeleteSubresource}
	}
	return info, err
}

// newUndeleteNamespace creates a separate store without a cache, because Kubernetes' store cannot write a whole
// namespace.
func newUndeleteNamespace(opts generic.RESTOptionsGetter, s *Server) (*undeleteNamespaceREST, error) {
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &corev1.Namespace{} },
		NewListFunc:               func() runtime.Object { return &corev1.NamespaceList{} },
		DefaultQualifiedResource:  corev1.Resource(namespaces),
		SingularQualifiedResource: corev1.Resource("namespace"),
		CreateStrategy:            namespace.Strategy,
		UpdateStrategy:            namespace.Strategy,
		DeleteStrategy:            namespace.Strategy,
		TableConvertor:            rest.NewDefaultTableConvertor(corev1.Resource(namespaces)),
	}
	err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: opts, AttrFunc: namespace.GetAttrs})
	return &undeleteNamespaceREST{store, s}, err
}

// New implements rest.Storage.
func (r *undeleteNamespaceREST) New() runtime.Object { return &corev1.Namespace{} }

// Destroy implements rest.Storage.
func (r *undeleteNamespaceREST) Destroy() { r.store.Destroy() }

// Create implements rest.NamedCreater.
func (r *undeleteNamespaceREST) Create(ctx context.Context, name string, obj runtime.Object,
	validate rest.ValidateObjectFunc, opts *metav1.CreateOptions) (runtime.Object, error) {
	if validate != nil {
		if err := validate(ctx, obj); err != nil {
			return nil, err
		}
	}
	return r.undelete(ctx, name, len(opts.DryRun) > 0)
}
