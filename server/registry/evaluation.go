package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

// EvaluateFunc evaluates an expression with the rights of who, and fills in the status of e.
type EvaluateFunc func(ctx context.Context, who v1alpha1.Identity, e *v1alpha1.Evaluation) error

// evaluationREST serves Evaluations, which are answered and never stored.
type evaluationREST struct{ evaluate EvaluateFunc }

var (
	_ rest.Creater              = (*evaluationREST)(nil)
	_ rest.Scoper               = (*evaluationREST)(nil)
	_ rest.SingularNameProvider = (*evaluationREST)(nil)
)

// New implements rest.Storage.
func (r *evaluationREST) New() runtime.Object { return new(v1alpha1.Evaluation) }

// Destroy implements rest.Storage.
func (r *evaluationREST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (r *evaluationREST) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (r *evaluationREST) GetSingularName() string { return "evaluation" }

// Create answers an evaluation.
func (r *evaluationREST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	e := obj.(*v1alpha1.Evaluation)
	namespace := genericapirequest.NamespaceValue(ctx)
	if e.Namespace != "" && e.Namespace != namespace {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the namespace of the evaluation is %q, and that of the request %q", e.Namespace, namespace))
	}
	e.Namespace, e.ManagedFields, e.Status = namespace, nil, v1alpha1.EvaluationStatus{}
	if strings.TrimSpace(e.Spec.Expression) == "" {
		return nil, apierrors.NewInvalid(v1alpha1.Kind("Evaluation"), e.Name, field.ErrorList{
			field.Required(field.NewPath("spec", "expression"), `such as "sim_network.main.id"`)})
	}
	if validate != nil {
		if err := validate(ctx, e.DeepCopy()); err != nil {
			return nil, err
		}
	}
	who := requester(ctx)
	if who == nil {
		return nil, apierrors.NewInternalError(errors.New("answer evaluation: the request has no user"))
	}
	if err := r.evaluate(ctx, *who, e); err != nil {
		return nil, err
	}
	return e, nil
}
