package activities

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPolicyAfterTheApproval writes a policy after a plan was approved and before it is begun.
func TestPolicyAfterTheApproval(t *testing.T) {
	for effect, why := range map[v1alpha1.PlanPolicyEffect]string{
		v1alpha1.PolicyDeny: "A policy refuses the plan", v1alpha1.PolicyRequireApprovals: "Approvals are missing", v1alpha1.PolicyWarn: "",
	} {
		tn := newCrashScenario(t)
		things("a")(tn)
		run := tn.newRun()
		tn.until(run, beginning)
		rule := v1alpha1.PlanPolicyRule{Name: "r", When: "counts.create == 1", Effect: effect, Message: "not today"}
		if effect == v1alpha1.PolicyRequireApprovals {
			rule.Approvals = &v1alpha1.RequiredApprovals{Count: 2}
		}
		tn.Policies = []v1alpha1.PlanPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.PlanPolicySpec{Rules: []v1alpha1.PlanPolicyRule{rule}}}}
		begun, err := tn.applier.Begin(t.Context(), run.Plan)
		if err != nil || !strings.Contains(begun.Refused, why) || (begun.Refused != "") != (why != "") {
			t.Errorf("%s: begun %+v, %v", effect, begun, err)
		}
		ended := tn.plans[run.Name].Status.StalledFor() == v1alpha1.ReasonApplyFailed
		if ended != (why != "") || len(tn.cloud.made) > 0 {
			t.Errorf("%s: ended %t, and the cloud made %v", effect, ended, tn.cloud.made)
		}
	}
}
