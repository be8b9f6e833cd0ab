package changes

import (
	"context"
	"errors"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReadPlan reads the Plan object of a workflow. Its deletion ends the workflow.
func ReadPlan(ctx context.Context, plans store.Plans, p workflows.Plan) (*v1alpha1.Plan, error) {
	obj, err := plans.Get(ctx, p.Namespace, p.Name, workflows.ObjectUID(p))
	if errors.Is(err, store.ErrGone) {
		return nil, workflows.Final(errors.New("the Plan object was deleted"))
	}
	return obj, err
}

// Now is the time for a field of a status.
func Now() *metav1.Time { return new(metav1.Now()) }
