package registry

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

const (
	// defaultPage and maxPage are the default and the maximum number of changes in a response.
	defaultPage = 500
	maxPage     = 5000
)

// changesREST serves the subresource "changes": the changes of a plan, in pages.
type changesREST struct {
	subresource
	plans   *genericregistry.Store
	changes ChangesFunc
}

var (
	_ rest.GetterWithOptions = (*changesREST)(nil)
	_ rest.TableConvertor    = (*changesREST)(nil)
)

func newChanges(plans *genericregistry.Store, changes ChangesFunc) rest.Storage {
	return &changesREST{subresource{func() runtime.Object { return new(v1alpha1.PlanChangeList) }}, plans, changes}
}

// NewGetOptions returns the options limit and continue, as for a list.
func (r *changesREST) NewGetOptions() (runtime.Object, bool, string) {
	return new(metav1.ListOptions), false, ""
}

// Get returns a page of changes.
func (r *changesREST) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	opts, ok := options.(*metav1.ListOptions)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("list changes of plan %q: unexpected options %T", name, options))
	}
	limit := int(opts.Limit)
	switch {
	case limit < 0:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("list changes of plan %q: limit %d is negative", name, limit))
	case limit == 0:
		limit = defaultPage
	}
	obj, err := r.plans.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	list, err := r.changes(ctx, obj.(*v1alpha1.Plan), min(limit, maxPage), opts.Continue)
	if err != nil {
		if _, ok := errors.AsType[*apierrors.StatusError](err); ok {
			return nil, err
		}
		return nil, apierrors.NewInternalError(err)
	}
	return list, nil
}

func (r *changesREST) ConvertToTable(_ context.Context, obj, _ runtime.Object) (*metav1.Table, error) {
	list, ok := obj.(*v1alpha1.PlanChangeList)
	if !ok {
		return nil, fmt.Errorf("make table of changes: unexpected type %T", obj)
	}
	return changesTable(list), nil
}
