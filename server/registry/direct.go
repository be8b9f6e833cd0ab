package registry

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/direct"
)

// StoredPlans reads Plans, and changes their status, as the server itself and without a request.
type StoredPlans struct {
	status direct.Storage
	store  *statusREST
}

// NewStoredPlans returns the Plans of an installed group.
func NewStoredPlans(group *genericapiserver.APIGroupInfo, codecs Codecs,
	admit admission.Interface) (*StoredPlans, error) {
	plans, ok := group.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version]["plans/status"].(*planStatusREST)
	if !ok {
		return nil, fmt.Errorf("find the storage of plans: the group %s has none", v1alpha1.GroupName)
	}
	types, err := managedfields.NewTypeConverter(group.StaticOpenAPISpec, false)
	if err != nil {
		return nil, fmt.Errorf("make the types of plans: %w", err)
	}
	scope := &handlers.RequestScope{
		Creater: codecs.Scheme, Convertor: codecs.Scheme, UnsafeConvertor: runtime.UnsafeObjectConvertor(codecs.Scheme),
		Defaulter: codecs.Scheme, Typer: codecs.Scheme,
		EquivalentResourceMapper: runtime.NewEquivalentResourceRegistry(),
		Resource:                 v1alpha1.SchemeGroupVersion.WithResource("plans"),
		Kind:                     v1alpha1.SchemeGroupVersion.WithKind("Plan"),
		Subresource:              "status",
	}
	scope.HubGroupVersion.Group, scope.HubGroupVersion.Version = v1alpha1.GroupName, runtime.APIVersionInternal
	scope.FieldManager, err = managedfields.NewDefaultFieldManager(types, scope.UnsafeConvertor, scope.Defaulter,
		scope.Creater,
		scope.Kind, scope.HubGroupVersion, scope.Subresource, fieldpath.NewExcludeFilterSetMap(plans.GetResetFields()))
	if err != nil {
		return nil, fmt.Errorf("make the field manager of plans: %w", err)
	}
	return &StoredPlans{direct.Storage{Updater: plans, Scope: scope, Admission: admit}, plans.statusREST}, nil
}

// Get returns a plan, or a NotFound error.
func (p *StoredPlans) Get(ctx context.Context, namespace, name string) (*v1alpha1.Plan, error) {
	obj, err := p.store.Get(direct.Context(ctx, p.status.Scope, namespace, name), name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*v1alpha1.Plan).DeepCopy(), nil // a cache may share it
}

// Cached returns a plan from memory, or a NotFound error. The plan may be a moment old, and the memory may lack a new
// plan. The caller must not change it.
func (p *StoredPlans) Cached(ctx context.Context, namespace, name string) (*v1alpha1.Plan, error) {
	obj, err := p.store.Get(direct.Context(ctx, p.status.Scope, namespace, name), name,
		&metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	return obj.(*v1alpha1.Plan), nil
}

// UpdateStatus changes the status of a plan. change returns direct.ErrUnchanged to write nothing. It may be called
// again after a conflict.
func (p *StoredPlans) UpdateStatus(ctx context.Context, namespace, name string,
	change func(*v1alpha1.Plan) error) error {
	return p.status.Update(ctx, namespace, name, func(obj runtime.Object) error { return change(obj.(*v1alpha1.Plan)) })
}
