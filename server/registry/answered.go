package registry

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

// answeredREST serves a kind whose create returns a result and stores nothing.
type answeredREST[T object] struct {
	rest.TableConvertor
	singular string
	empty    func() T
	// answer sets the status of an object. The object has the namespace of the request.
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

// Create implements rest.Creater. It removes the managed fields, because nothing is stored.
func (r answeredREST[T]) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc,
	opts *metav1.CreateOptions) (runtime.Object, error) {
	o := obj.(T)
	o.SetNamespace(genericapirequest.NamespaceValue(ctx))
	o.SetManagedFields(nil)
	if err := r.answer(ctx, o, validate, opts); err != nil {
		return nil, err
	}
	return o, nil
}

// newEvaluations returns the storage for Evaluations.
func newEvaluations(backend *Backend) rest.Storage {
	answer := func(ctx context.Context, e *v1alpha1.Evaluation, validate rest.ValidateObjectFunc,
		_ *metav1.CreateOptions) error {
		e.Status = v1alpha1.EvaluationStatus{}
		if strings.TrimSpace(e.Spec.Expression) == "" {
			return apierrors.NewInvalid(v1alpha1.Kind("Evaluation"), e.Name, field.ErrorList{
				field.Required(field.NewPath("spec", "expression"), `an expression, such as "sim_network.main.id"`)})
		}
		if err := validate(ctx, e.DeepCopy()); err != nil {
			return err
		}
		who, err := requireUser(ctx, "answer evaluation")
		if err != nil {
			return err
		}
		return backend.Evaluate(ctx, who, e)
	}
	return answeredREST[*v1alpha1.Evaluation]{
		rest.NewDefaultTableConvertor(v1alpha1.Resource("evaluations")), "evaluation",
		func() *v1alpha1.Evaluation { return new(v1alpha1.Evaluation) }, answer,
	}
}
