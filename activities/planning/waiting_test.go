package planning

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/store"
)

// statusOf holds the status of one Plan.
type statusOf struct {
	store.Plans
	status v1alpha1.PlanStatus
}

func (s *statusOf) UpdateStatus(_ context.Context, _, _ string, _ types.UID, update func(*v1alpha1.PlanStatus)) error {
	update(&s.status)
	return nil
}

// TestASlowPlanNamesItsResources lets one provider take long while the plan is made.
func TestASlowPlanNamesItsResources(t *testing.T) {
	plans := &statusOf{}
	w := &waiting{Planner: &Planner{Plans: plans, LongCall: time.Nanosecond}, plan: &v1alpha1.Plan{}}
	reconciling := func() (reason, message string) {
		w.report(t.Context())
		c := meta.FindStatusCondition(plans.status.Conditions, v1alpha1.ConditionReconciling)
		if c == nil {
			return "", ""
		}
		return c.Reason, c.Message
	}
	if reason, _ := reconciling(); reason != "" {
		t.Errorf("a plan that waits for nothing has the reason %q", reason)
	}
	end := w.begin(&ledger.Change{PlanChange: v1alpha1.PlanChange{Address: "data.sim_network.found"}})
	if reason, message := reconciling(); reason != v1alpha1.ReasonAwaitingProvider || !strings.Contains(message, "data.sim_network.found (since ") {
		t.Errorf("reason %q, message %q; want the resource and the time", reason, message)
	}
	end()
	if reason, _ := reconciling(); reason != v1alpha1.ReasonPlanning {
		t.Errorf("reason %q after the call ended", reason)
	}
}
