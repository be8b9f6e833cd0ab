package registry

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

// EvaluateFunc evaluates an expression with the rights of who, and fills in the status of e.
type EvaluateFunc func(ctx context.Context, who v1alpha1.Identity, e *v1alpha1.Evaluation) error

// newEvaluations serves Evaluations.
func newEvaluations(evaluate EvaluateFunc) rest.Storage {
	answer := func(ctx context.Context, e *v1alpha1.Evaluation, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) error {
		e.Status = v1alpha1.EvaluationStatus{}
		if strings.TrimSpace(e.Spec.Expression) == "" {
			return apierrors.NewInvalid(v1alpha1.Kind("Evaluation"), e.Name, field.ErrorList{
				field.Required(field.NewPath("spec", "expression"), `such as "sim_network.main.id"`)})
		}
		if err := validate(ctx, e.DeepCopy()); err != nil {
			return err
		}
		who := requester(ctx)
		if who == nil {
			return apierrors.NewInternalError(errors.New("answer evaluation: the request has no user"))
		}
		return evaluate(ctx, *who, e)
	}
	return answeredREST[*v1alpha1.Evaluation]{
		rest.NewDefaultTableConvertor(v1alpha1.Resource("evaluations")), "evaluation", func() *v1alpha1.Evaluation { return new(v1alpha1.Evaluation) }, answer,
	}
}
