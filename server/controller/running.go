package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"
)

// maxRunning is the default maximum number of plans that are made at once, and of those that are applied at once. The
// namespaces share both numbers fairly.
const maxRunning = 64

// phaseSlot is the slot of a plan, or its request for one, to be made or to be applied.
type phaseSlot struct {
	*fair.Slot
	phase *fair.Slots
}

// runs reports whether a plan is being made or applied, or should be. A plan that pauses is not being applied.
func runs(obj *v1alpha1.Plan) bool {
	planned := meta.FindStatusCondition(obj.Status.Conditions, v1alpha1.ConditionPlanned)
	return !obj.Ended() && pauseLeft(obj) <= 0 && obj.Status.FinishedAt == nil &&
		(planned == nil || planned.Reason == v1alpha1.ReasonPlanning || obj.ApprovalFollows() ||
			meta.IsStatusConditionTrue(obj.Status.Conditions, v1alpha1.ConditionApproved))
}

// admit reports whether a plan may be made or applied now; phase has the slots for that. If not, it queues the plan and
// sets the reason Queued in its status. A plan that was cancelled needs no slot, because its run only ends it. Neither
// does a plan whose apply had begun before a restart of the server, because its changes must not stay halfway.
func (p *Plans) admit(ctx context.Context, name cache.ObjectName, obj *v1alpha1.Plan, phase *fair.Slots) (bool, error) {
	slot := p.slotOf(ctx, name, obj, phase)
	if granted(slot) || obj.Status.Cancel != nil || begun(obj) {
		return true, nil
	}
	err := p.Status.UpdateStatus(ctx, obj.Namespace, obj.Name, obj.UID, func(s *v1alpha1.PlanStatus) {
		if !granted(slot) && !s.Ended() {
			condition.Reconciling(&s.Conditions, obj.Generation, v1alpha1.ReasonQueued,
				p.describeLimit(phase))
		}
	})
	return false, store.IgnoreGone(err)
}

// begun reports whether the apply of a plan has begun and does not pause.
func begun(obj *v1alpha1.Plan) bool {
	ready := meta.FindStatusCondition(obj.Status.Conditions, v1alpha1.ConditionReady)
	return obj.Status.PausedUntil == nil && ready != nil && (ready.Reason == v1alpha1.ReasonApplying ||
		ready.Reason == v1alpha1.ReasonRolloutPaused ||
		(ready.Reason == v1alpha1.ReasonServerCopied || ready.Reason == v1alpha1.ReasonServerFrozen) &&
			obj.Status.Progress != nil) &&
		meta.IsStatusConditionTrue(obj.Status.Conditions, v1alpha1.ConditionApproved)
}

// slotOf returns the slot of a plan for a phase, or its request for one. It releases the slot of an earlier phase.
func (p *Plans) slotOf(ctx context.Context, name cache.ObjectName, obj *v1alpha1.Plan, phase *fair.Slots) *fair.Slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	has := p.slots[obj.UID]
	if has.phase == phase {
		return has.Slot
	}
	if has.Slot != nil {
		has.Release()
	}
	slot := phase.Request(obj.Namespace)
	p.slots[obj.UID] = phaseSlot{slot, phase}
	if !granted(slot) {
		go p.requeue(ctx, name, slot)
	}
	return slot
}

// describeLimit returns the message of a plan that waits for a slot.
func (p *Plans) describeLimit(phase *fair.Slots) string {
	switch {
	case phase == p.applying:
		return fmt.Sprintf("Waiting for other plans. The server applies at most %d plans at once, and the namespaces share them.", p.MaxRunning)
	case p.NamespacePlans == 0:
		return fmt.Sprintf("Waiting for other plans. The server makes at most %d plans at once, and the namespaces share them.", p.MaxRunning)
	}
	return fmt.Sprintf("Waiting for other plans. The server makes at most %d plans at once, and %d of one namespace.",
		p.MaxRunning, p.NamespacePlans)
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

// releaseSlot releases the slot of a plan, or withdraws its request for one.
func (p *Plans) releaseSlot(plan types.UID) {
	p.mu.Lock()
	slot, ok := p.slots[plan]
	delete(p.slots, plan)
	p.mu.Unlock()
	if ok {
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

// pauseLeft returns the rest of a plan's pause; 0 or less if the plan does not pause.
func pauseLeft(obj *v1alpha1.Plan) time.Duration {
	if obj.Status.PausedUntil == nil || obj.Status.Cancel != nil {
		return 0
	}
	return time.Until(obj.Status.PausedUntil.Time)
}

// pausePoll is the maximum time between two looks at the namespace of a plan that pauses.
const pausePoll = 20 * time.Second

// endPauseOfDeleted cancels a plan that pauses if its namespace is being deleted. Otherwise the plan would keep the
// namespace until the end of its rollout.
func (p *Plans) endPauseOfDeleted(ctx context.Context, obj *v1alpha1.Plan) error {
	if terminating, err := p.Terminating(ctx, obj.Namespace); err != nil || !terminating {
		return err
	}
	return p.cancel(ctx, obj)
}

// resume makes the apply of a plan continue after a pause. The plan has its slot again.
func (p *Plans) resume(ctx context.Context, obj *v1alpha1.Plan, id string) error {
	key := id + " " + workflows.SignalResume
	switch {
	case obj.Status.Progress == nil: // its first wave has not begun
		p.note(key, true)
		return nil
	case obj.Status.PausedUntil == nil:
		// After a restart, perhaps the status was written, but the signal was not sent. A second signal does no harm.
		return p.signal(ctx, id, workflows.SignalResume)
	}
	p.note(key, false)
	err := p.Status.UpdateStatus(ctx, obj.Namespace, obj.Name, obj.UID, func(s *v1alpha1.PlanStatus) {
		if s.PausedUntil.Equal(obj.Status.PausedUntil) { // otherwise the cache was stale
			s.PausedUntil = nil
			condition.Reconciling(&s.Conditions, obj.Generation, v1alpha1.ReasonApplying, "The rollout continues.")
		}
	})
	if err != nil {
		return store.IgnoreGone(err)
	}
	return p.signal(ctx, id, workflows.SignalResume)
}
