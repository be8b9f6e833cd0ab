package kinds

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
)

// Messages of the condition Ready after the decision that a create made nothing.
const (
	messageRetry       = "%s decided that the create with the unknown outcome made nothing: the next plan creates the resource"
	messageRetryImport = "%s decided that the create with the unknown outcome made nothing: the next plan imports the resource that lifecycle.import names; to create one instead, remove lifecycle.import"
)

// resolve drops a create with an unknown outcome, because the user found that it made nothing. The next plan then
// creates the resource.
func (k *Kinds) resolve(ctx context.Context, s *served,
	obj *unstructured.Unstructured) (func(*unstructured.Unstructured), error) {
	if err := k.config.Infrastructure.Resolve(ctx, obj, s.Kind); err != nil {
		return nil, err
	}
	who := nameOf(ctx)
	return func(u *unstructured.Unstructured) {
		noteWriter(ctx, u, v1alpha1.WroteResolve)
		message := messageRetry
		if by, _, _ := unstructured.NestedMap(u.Object, "lifecycle", "import"); by != nil {
			message = messageRetryImport
		}
		condition.Edit(u, func(c *[]metav1.Condition) {
			condition.Waiting(c, u.GetGeneration(), v1alpha1.ReasonAwaitingPlan, fmt.Sprintf(message, who))
		})
		// After a replacement whose create was lost, the status still shows the old instance. Edit copied the map.
		status := u.Object["status"].(map[string]any)
		delete(status, "attributes")
		status["appliedGeneration"] = int64(0)
	}, nil
}
