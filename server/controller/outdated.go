package controller

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/kinds"
)

// receiveOutdated queues the plans that writes and deletions of objects made stale, until ctx ends.
func (p *Plans) receiveOutdated(ctx context.Context) {
	for {
		select {
		case o := <-p.Outdated:
			p.outdated.work.Add(o)
		case <-ctx.Done():
			return
		}
	}
}

// reconcileOutdated sets the condition Ready of a waiting plan to stale. The approval still checks each change, and can
// leave out the stale ones.
func (p *Plans) reconcileOutdated(ctx context.Context, o kinds.Outdated) error {
	plan, ok, err := lookup[*v1alpha1.Plan](p.informer, cache.NewObjectName(o.Namespace, o.Plan))
	if err != nil || !ok || !awaitsApproval(plan) {
		return err
	}
	err = p.Status.UpdateStatus(ctx, plan.Namespace, plan.Name, plan.UID, func(s *v1alpha1.PlanStatus) {
		noteStale(&v1alpha1.Plan{ObjectMeta: plan.ObjectMeta, Spec: plan.Spec, Status: *s}, o.Object, &s.Conditions)
	})
	if errors.Is(err, store.ErrGone) {
		return nil
	}
	return err
}

// noteStale sets the condition Ready of a plan that still awaits approval.
func noteStale(plan *v1alpha1.Plan, object string, conditions *[]metav1.Condition) {
	if awaitsApproval(plan) {
		condition.Waiting(conditions, plan.Generation, v1alpha1.ReasonStale, fmt.Sprintf(
			"%s was changed or deleted after planning. Make a new plan. To apply only the changes that are not stale: kubectl hykube approve %s -n %s --partial.", object, plan.Name, plan.Namespace))
	}
}

// awaitsApproval reports whether a plan waits for approval and its condition Ready has the reason AwaitingApproval.
func awaitsApproval(p *v1alpha1.Plan) bool {
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	return waits(p) && ready != nil && ready.Reason == v1alpha1.ReasonAwaitingApproval
}
