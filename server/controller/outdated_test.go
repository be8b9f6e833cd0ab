package controller

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"

	"k8s.io/apimachinery/pkg/api/meta"
)

// TestAWaitingPlanSaysThatItIsStale marks a plan whose object was written. A plan that does not wait stays as it is.
func TestAWaitingPlanSaysThatItIsStale(t *testing.T) {
	for reason, tc := range map[string]struct {
		change func(*v1alpha1.Plan)
		want   string
	}{
		"it waits":        {nil, v1alpha1.ReasonStale},
		"it was approved": {approve, v1alpha1.ReasonAwaitingApproval},
		"it was applied":  {finish, v1alpha1.ReasonApplied},
	} {
		p := planAt("p", 0, tc.change)
		noteStale(p.DeepCopy(), "sim-network/main", &p.Status.Conditions)
		if ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); ready.Reason != tc.want {
			t.Errorf("%s: %s %s", reason, ready.Reason, ready.Message)
		}
		if tc.change == nil && (!waits(p) || awaitsApproval(p)) {
			t.Errorf("%s: it can still be approved, and is marked once", reason)
		}
	}
}
