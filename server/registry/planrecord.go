package registry

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/hykube/hykube/api/v1alpha1"
)

// recordPlanField is the field selector for the PlanRecords of plans with a name.
const recordPlanField = "plan.name"

// recordREST serves PlanRecords. Only the server creates and updates them, regardless of a user's rights. Users with
// the right may read and delete them. They are in no category, because `kubectl get hykube` lists the current state and
// not the history.
type recordREST struct{ *genericregistry.Store }

var (
	_ rest.StandardStorage      = (*recordREST)(nil)
	_ rest.ShortNamesProvider   = (*recordREST)(nil)
	_ rest.SingularNameProvider = (*recordREST)(nil)
)

func newPlanRecords(c Config) (*recordREST, error) {
	main := kindStrategy[*v1alpha1.PlanRecord, struct{}]{
		ObjectTyper:   c.Codecs.Scheme,
		NameGenerator: names.SimpleNameGenerator,
		namespaced:    true,
		begin:         func(context.Context, *v1alpha1.PlanRecord) {},
		spec:          func(*v1alpha1.PlanRecord) any { return nil },
		status:        func(*v1alpha1.PlanRecord) *struct{} { return new(struct{}) },
		validate:      func(r *v1alpha1.PlanRecord) field.ErrorList { return validateObjectName(r.Name) },
	}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return new(v1alpha1.PlanRecord) },
		NewListFunc:               func() runtime.Object { return new(v1alpha1.PlanRecordList) },
		DefaultQualifiedResource:  v1alpha1.Resource("planrecords"),
		SingularQualifiedResource: v1alpha1.Resource("planrecord"),
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		TableConvertor:            planRecordTable,
	}
	err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: c.UncachedOptions, AttrFunc: recordAttributes})
	return &recordREST{store}, err
}

// recordAttributes returns the labels and fields for selectors.
func recordAttributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	r, ok := obj.(*v1alpha1.PlanRecord)
	if !ok {
		return nil, nil, fmt.Errorf("select by attributes: unexpected type %T", obj)
	}
	return r.Labels, fields.Set{"metadata.name": r.Name, "metadata.namespace": r.Namespace,
		recordPlanField: r.Plan.Name}, nil
}

func (*recordREST) ShortNames() []string { return []string{"planrec"} }

// Create creates a record; only the server may.
func (r *recordREST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc,
	opts *metav1.CreateOptions) (runtime.Object, error) {
	if err := requireServer(ctx, obj.(*v1alpha1.PlanRecord).Name); err != nil {
		return nil, err
	}
	return r.Store.Create(ctx, obj, validate, opts)
}

// Update updates a record; only the server may.
func (r *recordREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, force bool,
	opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	if err := requireServer(ctx, name); err != nil {
		return nil, false, err
	}
	return r.Store.Update(ctx, name, info, create, update, force, opts)
}

func requireServer(ctx context.Context, name string) error {
	if byServer(ctx) {
		return nil
	}
	return apierrors.NewForbidden(v1alpha1.Resource("planrecords"), name,
		errors.New("only the server can create or change PlanRecords"))
}

// byServer reports whether the server itself made the request.
func byServer(ctx context.Context) bool {
	who, ok := genericapirequest.UserFrom(ctx)
	return ok && who.GetName() == user.APIServerUser
}
