package activities

import (
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/workflows"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestAPlanThatGoesOnIsJudgedAgain restores a server with an approved plan, and lets the plan go on after something changed: a user lost
// a right, or there is a new policy. It does so before the apply began, and after its first change: with a new workflow, or with that
// of before, which is past its begin, as in a copied directory or on a Temporal server of its own.
func TestAPlanThatGoesOnIsJudgedAgain(t *testing.T) {
	eve := v1alpha1.Contributor{Identity: v1alpha1.Identity{Username: "eve"}, Wrote: []string{"spec"}, At: metav1.NowMicro()}
	rule := func(effect v1alpha1.PlanPolicyEffect, approvals *v1alpha1.RequiredApprovals) func(*crashScenario) {
		return func(sc *crashScenario) {
			r := v1alpha1.PlanPolicyRule{Name: "r", When: "true", Effect: effect, Message: "a freeze", Approvals: approvals}
			sc.Policies = []v1alpha1.PlanPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.PlanPolicySpec{Rules: []v1alpha1.PlanPolicyRule{r}}}}
		}
	}
	another := &v1alpha1.RequiredApprovals{Count: 1, ExcludeRequester: true}
	for reason, test := range map[string]struct {
		// itself is true if the plan approved itself. Otherwise approver did.
		itself   bool
		approver string
		change   func(*crashScenario)
		want     string // empty if the plan is applied
	}{
		"nothing changed":                                     {itself: true, change: func(*crashScenario) {}},
		"nothing changed, and a person approved":              {approver: "bob", change: func(*crashScenario) {}},
		"a contributor may not approve any more":              {itself: true, change: func(sc *crashScenario) { sc.Forbidden["eve!approve:team/plans/*"] = true }, want: `the user "eve", who wrote spec of test_thing.`},
		"a contributor may not make the change any more":      {itself: true, change: func(sc *crashScenario) { sc.Forbidden["eve!create:team/test-things/*"] = true }, want: `the user "eve", who wrote spec of test_thing.`},
		"a person approved what the contributor may not make": {approver: "bob", change: func(sc *crashScenario) { sc.Forbidden["eve!create:team/test-things/*"] = true }},
		"a new policy denies it":                              {approver: "bob", change: rule(v1alpha1.PolicyDeny, nil), want: "A policy refuses the plan"},
		"a new policy excludes the requester, who approved":   {approver: "ann", change: rule(v1alpha1.PolicyRequireApprovals, another), want: "the user requested the plan"},
		"a new policy excludes the contributor, who approved": {approver: "eve", change: rule(v1alpha1.PolicyRequireApprovals, another), want: "the user wrote a part of the changes"},
		"a new policy counts the approval of a third user":    {approver: "bob", change: rule(v1alpha1.PolicyRequireApprovals, another)},
	} {
		for _, from := range []string{"approved", "begun", "steps", "a lane"} {
			begun := from != "approved"
			sc := newCrashScenario(t)
			sc.lane = from == "a lane"
			things("a")(sc)
			sc.put("test-thing/b", m{"name": "b", "size": "${test_thing.a.id}"}, nil)
			for _, name := range []string{"a", "b"} {
				sc.Stored["team:test-thing/"+name].Object["status"] = map[string]any{"contributors": contributor.ToList([]v1alpha1.Contributor{eve})}
			}
			run := sc.newRun()
			run.approver = test.approver
			sc.until(run, beginning)
			sc.plans.change(run.Name, func(po *v1alpha1.Plan) {
				if len(po.Status.Contributors) != 1 {
					t.Fatalf("%s: the contributors are %v", reason, po.Status.Contributors)
				}
				if test.itself {
					po.Spec.Approval, po.Status.AutomaticApproval = v1alpha1.ApprovalAutomatic, &v1alpha1.AutomaticApproval{Granted: true}
					meta.SetStatusCondition(&po.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionApproved, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAutomatic})
				}
			})
			if begun {
				sc.until(run, stepping)
				first := slices.IndexFunc(run.begun.Steps, func(s workflows.Step) bool { return len(s.DependsOn) == 0 })
				if _, err := sc.applier.Step(t.Context(), workflows.StepInput{Plan: run.Plan, Change: run.begun.Steps[first].Change}, 1); err != nil {
					t.Fatal(err)
				}
				if from == "begun" {
					run.phase = beginning
				}
			}
			sc.restart()
			waiting := map[types.UID]bool{types.UID(run.UID): true}
			sc.applier.Hold = changes.Hold{Restored: func() changes.Restored { return changes.Restored{Waiting: waiting} }}
			if _, err := sc.applier.Begin(t.Context(), run.Plan); err == nil || !strings.Contains(err.Error(), v1alpha1.ReasonServerFrozen) {
				t.Errorf("%s: before the thaw, the plan begins with %v", reason, err)
			}
			test.change(sc)
			waiting = nil
			po := sc.resume(run)
			made := map[bool]int{false: 0, true: 1}[begun]
			if test.want == "" {
				made = 2
			}
			if len(sc.cloud.made) != made {
				t.Errorf("%s, %s: the cloud made %v, want %d", reason, from, sc.cloud.made, made)
			}
			message := meta.FindStatusCondition(po.Status.Conditions, v1alpha1.ConditionReady).Message
			if applied := meta.IsStatusConditionTrue(po.Status.Conditions, v1alpha1.ConditionApplied); applied != (test.want == "") || !strings.Contains(message, test.want) {
				t.Errorf("%s, %s: applied %t: %q, want %q", reason, from, applied, message, test.want)
			}
		}
	}
}
