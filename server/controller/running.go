package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/store"
)

// maxRunning is the default maximum number of plans that are made or applied at once. The namespaces share it fairly.
const maxRunning = 64

// runs reports whether a plan is being made or applied, or should be.
func runs(obj *v1alpha1.Plan) bool {
	planned := meta.FindStatusCondition(obj.Status.Conditions, v1alpha1.ConditionPlanned)
	return !obj.Ended() && obj.Status.FinishedAt == nil && (planned == nil || planned.Reason == v1alpha1.ReasonPlanning ||
		meta.IsStatusConditionTrue(obj.Status.Conditions, v1alpha1.ConditionApproved))
}

// admit reports whether a plan may run now. If not, it queues the plan and says so in its status. A plan that was
// cancelled runs at once, because its run only ends it.
func (p *Plans) admit(ctx context.Context, name cache.ObjectName, obj *v1alpha1.Plan) (bool, error) {
	p.mu.Lock()
	slot := p.slots[obj.UID]
	if slot == nil {
		slot = p.running.Request(obj.Namespace)
		p.slots[obj.UID] = slot
		if !granted(slot) {
			go p.requeue(ctx, name, slot)
		}
	}
	p.mu.Unlock()
	if granted(slot) || obj.Status.Cancel != nil {
		return true, nil
	}
	err := p.Status.UpdateStatus(ctx, obj.Namespace, obj.Name, obj.UID, func(s *v1alpha1.PlanStatus) {
		if !granted(slot) && !s.Ended() {
			condition.Reconciling(&s.Conditions, obj.Generation, v1alpha1.ReasonQueued,
				fmt.Sprintf("Waiting for other plans. The server runs at most %d at once, and the namespaces share them.", p.MaxRunning))
		}
	})
	return false, store.IgnoreGone(err)
}

// requeue reconciles a plan again when it gets its slot.
func (p *Plans) requeue(ctx context.Context, name cache.ObjectName, slot *fair.Slot) {
	select {
	case <-slot.Granted():
		p.queue.work.Add(name)
	case <-slot.Released():
	case <-ctx.Done():
	}
}

func granted(slot *fair.Slot) bool {
	select {
	case <-slot.Granted():
		return true
	default:
		return false
	}
}

// leave releases the slot of a plan, or takes the plan from the queue.
func (p *Plans) leave(plan types.UID) {
	p.mu.Lock()
	slot := p.slots[plan]
	delete(p.slots, plan)
	p.mu.Unlock()
	if slot != nil {
		slot.Release()
	}
}

// unqueue replaces the reason Queued in the status of a plan whose run begins.
func unqueue(s *v1alpha1.PlanStatus, generation int64) {
	ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil || ready.Reason != v1alpha1.ReasonQueued:
	case meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionApproved):
		condition.Reconciling(&s.Conditions, generation, v1alpha1.ReasonApproved, "Waiting to be applied.")
	default:
		condition.Reconciling(&s.Conditions, generation, v1alpha1.ReasonPlanning, "Waiting to be planned.")
	}
}
