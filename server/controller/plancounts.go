package controller

import (
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
)

// planStates are the reasons of the condition Ready of a Plan. The metrics count others as otherState, so that no user
// adds further ones.
var planStates = map[string]bool{
	v1alpha1.ReasonPlanning: true, v1alpha1.ReasonQueued: true, v1alpha1.ReasonAwaitingProvider: true,
	v1alpha1.ReasonAwaitingObjects: true,
	v1alpha1.ReasonSpeculative:     true, v1alpha1.ReasonPlanFailed: true, v1alpha1.ReasonNoChanges: true,
	v1alpha1.ReasonDeferred:         true,
	v1alpha1.ReasonAwaitingApproval: true, v1alpha1.ReasonBlocked: true, v1alpha1.ReasonPolicyDenied: true,
	v1alpha1.ReasonStale:     true,
	v1alpha1.ReasonDiscarded: true, v1alpha1.ReasonSuperseded: true, v1alpha1.ReasonApproved: true,
	v1alpha1.ReasonApplying: true, v1alpha1.ReasonRolloutPaused: true,
	v1alpha1.ReasonApplied: true, v1alpha1.ReasonAppliedInPart: true, v1alpha1.ReasonApplyFailed: true,
	v1alpha1.ReasonCancelling: true,
	v1alpha1.ReasonCancelled:  true, v1alpha1.ReasonServerCopied: true, v1alpha1.ReasonServerFrozen: true,
}

const otherState = "Other"

// Counts returns the number of plans by the reason of their condition Ready. oldest is the time that the oldest plan
// without a decision has waited for one; 0 if no plan waits. Counts reads only the cache. Run must have called work.
func (p *Plans) Counts() (byState map[string]int, oldest time.Duration) {
	return countPlans(p.informer.GetStore(), time.Now())
}

func countPlans(plans cache.Store, now time.Time) (byState map[string]int, oldest time.Duration) {
	byState = map[string]int{v1alpha1.ReasonAwaitingApproval: 0}
	for _, obj := range plans.List() {
		plan, ok := obj.(*v1alpha1.Plan)
		if !ok {
			continue
		}
		state, _ := readyOf(plan)
		if !planStates[state] {
			state = otherState
		}
		byState[state]++
		if waits(plan) && plan.Status.PlannedAt != nil {
			oldest = max(oldest, now.Sub(plan.Status.PlannedAt.Time))
		}
	}
	return byState, oldest
}
