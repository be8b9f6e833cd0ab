package changes

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Rolled reports whether the rollout of a ResourceSet limits a change: an update or a replace of an instance.
func Rolled(c *v1alpha1.PlanChange) bool {
	return c.Object.SetUID != "" && c.Deposed == "" && (c.Action == v1alpha1.ActionUpdate ||
		c.Action == v1alpha1.ActionReplace)
}

// RolloutFailed reports whether a change counts as a failure of the rollout of its set.
func (c *StoredChange) RolloutFailed() bool {
	switch c.State {
	case v1alpha1.ChangeFailed, v1alpha1.ChangeUnknown, v1alpha1.ChangeStale:
		return !c.Held
	}
	return false
}

// StoppedRollouts returns why rollouts of a plan stopped, by the UIDs of their sets. It omits the others. Call it when
// no step of the plan runs.
func (w *Stored) StoppedRollouts(po *v1alpha1.Plan) map[types.UID]string {
	failed := map[types.UID]int32{}
	for i := range w.Changes {
		c := &w.Changes[i]
		half := c.HalfDone && c.State == v1alpha1.ChangeRunning // the apply has ended
		if c.Rolled && (c.RolloutFailed() || half) {
			failed[c.Object.SetUID]++
		}
	}
	why := map[types.UID]string{}
	for _, r := range po.Status.Rollouts {
		if n := failed[r.UID]; n > r.MaxFailures {
			why[r.UID] = fmt.Sprintf("the rollout of the ResourceSet %q stopped: %s failed, and spec.rollout.maxFailures is %d",
				r.ResourceSet, Counted(int(n), "change", "changes"), r.MaxFailures)
		}
	}
	return why
}
