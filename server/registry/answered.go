package registry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

// answeredREST serves a kind whose objects are answered and never stored.
type answeredREST[T object] struct {
	rest.TableConvertor
	singular string
	empty    func() T
	// answer fills in the status of an object, which is in the namespace of the request.
	answer func(ctx context.Context, obj T, validate rest.ValidateObjectFunc, opts *metav1.CreateOptions) error
}

var (
	_ rest.Creater              = answeredREST[*v1alpha1.Query]{}
	_ rest.Scoper               = answeredREST[*v1alpha1.Query]{}
	_ rest.SingularNameProvider = answeredREST[*v1alpha1.Query]{}
)

func (r answeredREST[T]) New() runtime.Object     { return r.empty() }
func (answeredREST[T]) Destroy()                  {}
func (answeredREST[T]) NamespaceScoped() bool     { return true }
func (r answeredREST[T]) GetSingularName() string { return r.singular }

// Create implements rest.Creater. Nothing is stored, so nobody owns a field.
func (r answeredREST[T]) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, opts *metav1.CreateOptions) (runtime.Object, error) {
	o := obj.(T)
	o.SetNamespace(genericapirequest.NamespaceValue(ctx))
	o.SetManagedFields(nil)
	if err := r.answer(ctx, o, validate, opts); err != nil {
		return nil, err
	}
	return o, nil
}
