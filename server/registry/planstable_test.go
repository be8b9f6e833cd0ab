package registry

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
)

// TestAPlanThatAPolicyRefusesWaitsForNobody fills the column APPROVED of planned plans without a decision.
func TestAPlanThatAPolicyRefusesWaitsForNobody(t *testing.T) {
	p := &v1alpha1.Plan{}
	condition.Set(&p.Status.Conditions, 1, v1alpha1.ConditionPlanned, true, v1alpha1.ReasonPlanned, "")
	condition.Waiting(&p.Status.Conditions, 1, v1alpha1.ReasonAwaitingApproval, "1 to create.")
	if got := approved(p); got != "waiting" {
		t.Errorf("a plan that waits: %q", got)
	}
	condition.Stalled(&p.Status.Conditions, 1, v1alpha1.ReasonPolicyDenied, "A policy refuses the plan.")
	if got := approved(p); got != "-" {
		t.Errorf("a plan that a policy refuses: %q", got)
	}
}
