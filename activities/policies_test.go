package activities

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPolicyAfterTheApproval writes a policy after a plan was approved and before it is begun.
func TestPolicyAfterTheApproval(t *testing.T) {
	for effect, why := range map[v1alpha1.PlanPolicyEffect]string{
		v1alpha1.PolicyDeny: "A policy refuses the plan", v1alpha1.PolicyRequireApprovals: "Approvals are missing", v1alpha1.PolicyWarn: "",
	} {
		sc := newCrashScenario(t)
		things("a")(sc)
		run := sc.newRun()
		sc.until(run, beginning)
		rule := v1alpha1.PlanPolicyRule{Name: "r", When: "counts.create == 1", Effect: effect, Message: "not today"}
		if effect == v1alpha1.PolicyRequireApprovals {
			rule.Approvals = &v1alpha1.RequiredApprovals{Count: 2}
		}
		sc.Policies = []v1alpha1.PlanPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.PlanPolicySpec{Rules: []v1alpha1.PlanPolicyRule{rule}}}}
		begun, err := sc.applier.Begin(t.Context(), run.Plan)
		if err != nil || !strings.Contains(begun.Refused, why) || (begun.Refused != "") != (why != "") {
			t.Errorf("%s: begun %+v, %v", effect, begun, err)
		}
		ended := sc.plans.get(run.Name).Status.StalledFor() == v1alpha1.ReasonApplyFailed
		if ended != (why != "") || len(sc.cloud.made) > 0 {
			t.Errorf("%s: ended %t, and the cloud made %v", effect, ended, sc.cloud.made)
		}
	}
}

// TestAnAutomaticPlanOfAUserWithoutTheRightWaits has a requester that lost the verb "approve" while the plan was made.
func TestAnAutomaticPlanOfAUserWithoutTheRightWaits(t *testing.T) {
	sc := newCrashScenario(t)
	things("a")(sc)
	run := sc.newRun()
	sc.plans.change(run.Name, func(po *v1alpha1.Plan) {
		po.Spec.Approval, po.Status.AutomaticApproval = v1alpha1.ApprovalAutomatic, &v1alpha1.AutomaticApproval{Granted: true}
	})
	po := sc.until(run, approving)
	if a := po.Status.AutomaticApproval; a.Granted || a.Message == "" {
		t.Errorf("the automatic approval is %+v", a)
	}
	if ready := meta.FindStatusCondition(po.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Reason != v1alpha1.ReasonAwaitingApproval {
		t.Errorf("the plan is %+v", ready)
	}
}
