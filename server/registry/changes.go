package registry

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

// changesREST serves the subresource "changes": the changes of a plan, in pages.
type changesREST struct {
	paged
	plans   *genericregistry.Store
	changes ChangesFunc
}

var (
	_ rest.GetterWithOptions = (*changesREST)(nil)
	_ rest.TableConvertor    = (*changesREST)(nil)
)

func newChanges(plans *genericregistry.Store, changes ChangesFunc) rest.Storage {
	return &changesREST{paged{subresource{func() runtime.Object { return new(v1alpha1.PlanChangeList) }},
		"changes of plan"}, plans, changes}
}

// Get returns a page of changes.
func (r *changesREST) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	limit, cont, err := r.page(name, options)
	if err != nil {
		return nil, err
	}
	obj, err := r.plans.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	list, err := r.changes(ctx, obj.(*v1alpha1.Plan), limit, cont)
	return list, apiError(err)
}

func (r *changesREST) ConvertToTable(_ context.Context, obj, _ runtime.Object) (*metav1.Table, error) {
	list, ok := obj.(*v1alpha1.PlanChangeList)
	if !ok {
		return nil, fmt.Errorf("make table of changes: unexpected type %T", obj)
	}
	return changesTable(list), nil
}
