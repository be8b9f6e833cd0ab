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

// TestASlowPlanNamesItsResources lets one provider take long while a plan of two changes is made.
func TestASlowPlanNamesItsResources(t *testing.T) {
	plans := &statusOf{}
	w := &waiting{Planner: &Planner{Plans: plans, LongCall: time.Nanosecond}, plan: &v1alpha1.Plan{}, began: time.Now(), total: func() int { return 2 }}
	reconciling := func() (reason, message string) {
		w.report(t.Context())
		c := meta.FindStatusCondition(plans.status.Conditions, v1alpha1.ConditionReconciling)
		if c == nil {
			return "", ""
		}
		return c.Reason, c.Message
	}
	if reason, message := reconciling(); reason != v1alpha1.ReasonPlanning || message != "0 of 2 changes are planned." {
		t.Errorf("reason %q, message %q of a plan that waits for nothing", reason, message)
	}
	end := w.begin(&ledger.Change{PlanChange: v1alpha1.PlanChange{Address: "data.sim_network.found"}})
	if reason, message := reconciling(); reason != v1alpha1.ReasonAwaitingProvider || !strings.Contains(message, "data.sim_network.found (since ") {
		t.Errorf("reason %q, message %q; want the resource and the time", reason, message)
	}
	end()
	if reason, message := reconciling(); reason != v1alpha1.ReasonPlanning || message != "1 of 2 changes are planned, about 0s left." {
		t.Errorf("reason %q, message %q after the call ended", reason, message)
	}
	w.begin(&ledger.Change{})()
	if _, message := reconciling(); message != "2 of 2 changes are planned." {
		t.Errorf("message %q after the last call", message)
	}
}
