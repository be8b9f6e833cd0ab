package registry

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/policy"
	"github.com/hykube/hykube/server/rights"
)

// judged judges plans by one rule that holds for all.
func judged(effect v1alpha1.PlanPolicyEffect, required *v1alpha1.RequiredApprovals) JudgeFunc {
	return func(context.Context, *v1alpha1.Plan, changes.Judged) (*policy.Verdict, error) {
		return &policy.Verdict{Results: []v1alpha1.PlanPolicyResult{{Rule: "PlanPolicy/p/r", Effect: effect, Message: "why", Approvals: required}}}, nil
	}
}

func approve(t *testing.T, who string, p *v1alpha1.Plan, partial bool, judge JudgeFunc) error {
	return approveIn(as(t, who), p, partial, judge)
}

func approveIn(ctx context.Context, p *v1alpha1.Plan, partial bool, judge JudgeFunc) error {
	all := authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "", nil
	})
	verify := func(context.Context, *v1alpha1.Plan) (changes.Verification, error) {
		return changes.Verification{Left: 1}, nil
	}
	c := Config{Authorizer: all, Verify: verify, Backend: &Backend{Judge: judge}}
	return c.decide(ctx, p, &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, Digest: p.Status.Digest, Partial: partial})
}

func isApproved(p *v1alpha1.Plan) bool {
	return p.Status.Approval != nil && meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionApproved)
}

func TestPolicyRefusesAnApproval(t *testing.T) {
	p := waiting()
	err := approve(t, "ann", p, false, judged(v1alpha1.PolicyDeny, nil))
	if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, v1alpha1.CausePolicy) || p.Status.Approval != nil {
		t.Fatalf("%v, approved %t", err, p.Status.Approval != nil)
	}
	if err := approve(t, "ann", p, false, judged(v1alpha1.PolicyWarn, nil)); err != nil || !isApproved(p) || len(p.Status.Policies) != 1 {
		t.Errorf("once the policy was removed: %v, %+v", err, p.Status)
	}
}

// TestFourEyes approves a plan that needs two users, neither of them the requester.
func TestFourEyes(t *testing.T) {
	judge := judged(v1alpha1.PolicyRequireApprovals, &v1alpha1.RequiredApprovals{Count: 2, ExcludeRequester: true})
	p := waiting()
	p.Status.RequestedBy = &v1alpha1.Identity{Username: "req"}
	if err := approve(t, "req", p, false, judge); !apierrors.HasStatusCause(err, v1alpha1.CausePolicy) {
		t.Fatalf("the requester: %v", err)
	}
	if err := approve(t, "ann", p, false, judge); err != nil || isApproved(p) || len(p.Status.Approvals) != 1 {
		t.Fatalf("the first: %v, %+v", err, p.Status)
	}
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonAwaitingApproval || meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionApproved) {
		t.Fatalf("the plan does not wait: %+v", p.Status.Conditions)
	}
	if err := approve(t, "ann", p, false, judge); !apierrors.HasStatusCause(err, v1alpha1.CausePolicy) || !strings.Contains(err.Error(), "has approved the plan already") || len(p.Status.Approvals) != 1 {
		t.Fatalf("the first again: %v", err)
	}
	cat := rights.InfoOf(v1alpha1.Identity{Username: "cat", Through: []v1alpha1.WorkflowUser{{Username: "ann"}}})
	if err := approveIn(request.WithUser(t.Context(), cat), p, false, judge); !apierrors.HasStatusCause(err, v1alpha1.CausePolicy) || !strings.Contains(err.Error(), `"ann" has approved the plan already`) {
		t.Fatalf("the first again, for the starter of a workflow: %v", err)
	}
	if err := approve(t, "bob", p, true, judge); !apierrors.IsConflict(err) {
		t.Fatalf("the second, for another part: %v", err)
	}
	if err := approve(t, "bob", p, false, judge); err != nil || !isApproved(p) || len(p.Status.Approvals) != 2 || p.Status.Approval.By.Username != "bob" {
		t.Fatalf("the second: %v, %+v", err, p.Status)
	}
}

// TestServerApprovesWithinPolicy lets the server approve a plan that approves itself.
func TestServerApprovesWithinPolicy(t *testing.T) {
	for effect, allowed := range map[v1alpha1.PlanPolicyEffect]bool{
		v1alpha1.PolicyAllowAutomatic: true, v1alpha1.PolicyWarn: false, v1alpha1.PolicyDeny: false, v1alpha1.PolicyRequireApprovals: false,
	} {
		p := waiting()
		p.Status.AutomaticApproval = &v1alpha1.AutomaticApproval{Granted: true, ByPolicy: true}
		err := approve(t, user.APIServerUser, p, false, judged(effect, &v1alpha1.RequiredApprovals{}))
		if (err == nil) != allowed || isApproved(p) != allowed {
			t.Errorf("%s: %v", effect, err)
		}
	}
}

// TestAllowAutomaticNeedsApprove writes policies as users with and without the verb "approve".
func TestAllowAutomaticNeedsApprove(t *testing.T) {
	spec := func(obj runtime.Object) v1alpha1.PlanPolicySpec { return obj.(*v1alpha1.PlanPolicy).Spec }
	p := &v1alpha1.PlanPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "team"}}
	for effect, needs := range map[v1alpha1.PlanPolicyEffect]bool{v1alpha1.PolicyAllowAutomatic: true, v1alpha1.PolicyDeny: false} {
		p.Spec.Rules = []v1alpha1.PlanPolicyRule{{Name: "r", When: "true", Effect: effect}}
		for decision, allowed := range map[authorizer.Decision]bool{authorizer.DecisionAllow: true, authorizer.DecisionNoOpinion: false} {
			a := authorizer.AuthorizerFunc(func(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
				if asked.GetVerb() != "approve" || asked.GetNamespace() != "team" || asked.GetName() != "" {
					t.Errorf("asked %+v", asked)
				}
				return decision, "", nil
			})
			err := mayAllowAutomatic(a, "planpolicies", spec)(as(t, "ann"), p, nil)
			if (err == nil) != (allowed || !needs) || err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("%s, allowed %t: %v", effect, allowed, err)
			}
		}
	}
}
