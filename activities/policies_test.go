package activities

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/workflows"

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

// TestALostRunIsFollowedByTheApproval makes a plan that approves itself, and loses its run between the status and the approval, as a
// killed server with a Temporal that lost its database does. The next run surveys nothing, and asks for the approval.
func TestALostRunIsFollowedByTheApproval(t *testing.T) {
	sc := newCrashScenario(t)
	things("a")(sc)
	run := sc.newRun()
	sc.plans.change(run.Name, func(po *v1alpha1.Plan) {
		po.Spec.Approval, po.Status.AutomaticApproval = v1alpha1.ApprovalAutomatic, &v1alpha1.AutomaticApproval{Granted: true}
	})
	before := sc.until(run, approving)
	sc.plans.change(run.Name, func(po *v1alpha1.Plan) {
		po.Status.AutomaticApproval = &v1alpha1.AutomaticApproval{Granted: true}
		condition.Reconciling(&po.Status.Conditions, po.Generation, v1alpha1.ReasonPlanning, "The plan approves itself.")
	})
	surveyed, err := sc.planner.Survey(t.Context(), run.Plan)
	if err != nil || !surveyed.Published {
		t.Fatalf("the next run surveys %+v, %v", surveyed, err)
	}
	if _, err := sc.planner.Publish(t.Context(), workflows.Publish{Plan: run.Plan}); err != nil {
		t.Fatal(err)
	}
	po := sc.plans.get(run.Name)
	if po.Status.AutomaticApproval.Granted || po.Status.Digest != before.Status.Digest || *po.Status.Summary != *before.Status.Summary {
		t.Errorf("after the next run, the plan has %+v", po.Status) // the approval of this world is refused
	}
}
