package kinds

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
)

// Messages of the condition Ready after a taint and after its removal.
const (
	messageTainted   = "tainted by %s: the next plan replaces it"
	messageUntainted = "no longer tainted; make a Plan to see whether the resource needs changes"
)

// taint returns the change that marks an object's infrastructure for replacement by the next plan, or removes the mark.
func (k *Kinds) taint(tainted bool) recordChange {
	return func(ctx context.Context, s *served,
		obj *unstructured.Unstructured) (func(*unstructured.Unstructured), error) {
		applied, err := k.config.Infrastructure.Taint(ctx, obj, s.Kind, tainted)
		if err != nil {
			return nil, err
		}
		reason, message := v1alpha1.ReasonTainted, fmt.Sprintf(messageTainted, nameOf(ctx))
		if !tainted {
			reason, message = v1alpha1.ReasonAwaitingPlan, messageUntainted
		}
		return func(u *unstructured.Unstructured) {
			if tainted || !applied {
				noteWriter(ctx, u, v1alpha1.WroteTaint)
			} else {
				takeBack(u, v1alpha1.WroteTaint)
			}
			condition.Edit(u, func(c *[]metav1.Condition) {
				if applied && u.GetGeneration() == obj.GetGeneration() {
					condition.Ready(c, u.GetGeneration(), v1alpha1.ReasonApplied, v1alpha1.MessageApplied)
					return
				}
				condition.Waiting(c, u.GetGeneration(), reason, message)
			})
		}, nil
	}
}
