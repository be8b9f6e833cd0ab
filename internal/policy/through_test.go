package policy

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestFourEyesThroughAWorkflow counts approvals of users who took part in the workflow that made the plan.
func TestFourEyesThroughAWorkflow(t *testing.T) {
	who := func(name string, through ...string) *v1alpha1.Identity {
		i := &v1alpha1.Identity{Username: name}
		for _, u := range through {
			i.Through = append(i.Through, v1alpha1.WorkflowUser{Username: u})
		}
		return i
	}
	for why, tc := range map[string]struct {
		requester, approver *v1alpha1.Identity
		want                int
	}{
		"another user":                       {who("alice", "flow"), who("bob"), 1},
		"the starter of the workflow":        {who("alice", "flow"), who("alice"), 0},
		"the worker":                         {who("alice", "flow"), who("flow"), 0},
		"a workflow of another user there":   {who("alice", "flow"), who("bob", "flow"), 0},
		"the requester through a workflow":   {who("alice"), who("alice", "flow"), 0},
		"the requester answered the other's": {who("alice"), who("bob", "alice"), 0},
		"another user's workflow":            {who("alice"), who("bob", "flow"), 1},
	} {
		rule := &v1alpha1.RequiredApprovals{Count: 1, ExcludeRequester: true}
		if got := new(Verdict).approvers(rule, tc.requester, []v1alpha1.PlanApproval{{Decision: v1alpha1.DecisionApproved, By: tc.approver}}); got != tc.want {
			t.Errorf("%s: %d approvals count, want %d", why, got, tc.want)
		}
	}
}

// TestApprovalsThroughAWorkflow counts approvals that a user gives in the name of the starter of a workflow, whose task the user
// took.
func TestApprovalsThroughAWorkflow(t *testing.T) {
	by := func(name, group string, through ...v1alpha1.WorkflowUser) v1alpha1.PlanApproval {
		return v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, By: &v1alpha1.Identity{Username: name, Groups: []string{group}, Through: through}}
	}
	worker := func(name, group string) v1alpha1.WorkflowUser {
		return v1alpha1.WorkflowUser{Username: name, Groups: []string{group}}
	}
	mallory := by("mallory", "team")
	asAlice := by("alice", "on-call", worker("mallory", "team"))
	for why, tc := range map[string]struct {
		groups    []string
		approvals []v1alpha1.PlanApproval
		want      int
	}{
		"two users":                             {nil, []v1alpha1.PlanApproval{mallory, by("bob", "team")}, 2},
		"a user, and again for the starter":     {nil, []v1alpha1.PlanApproval{mallory, asAlice}, 1},
		"in the other order":                    {nil, []v1alpha1.PlanApproval{asAlice, mallory}, 1},
		"for two starters":                      {nil, []v1alpha1.PlanApproval{asAlice, by("bob", "on-call", worker("mallory", "team"))}, 1},
		"the starter approves, too":             {nil, []v1alpha1.PlanApproval{asAlice, mallory, by("alice", "on-call")}, 2},
		"a member through one who is none":      {[]string{"on-call"}, []v1alpha1.PlanApproval{asAlice}, 0},
		"a member through another member":       {[]string{"on-call"}, []v1alpha1.PlanApproval{by("alice", "on-call", worker("flow", "on-call"))}, 1},
		"one who is no member through a member": {[]string{"on-call"}, []v1alpha1.PlanApproval{by("mallory", "team", worker("flow", "on-call"))}, 0},
	} {
		rule := &v1alpha1.RequiredApprovals{Count: 3, Groups: tc.groups}
		if got := new(Verdict).approvers(rule, &v1alpha1.Identity{Username: "carol"}, tc.approvals); got != tc.want {
			t.Errorf("%s: %d approvals count, want %d", why, got, tc.want)
		}
	}
}

// TestContributorsThroughAWorkflow lets nobody approve alone what a workflow of theirs, or their worker, wrote.
func TestContributorsThroughAWorkflow(t *testing.T) {
	who := func(name string, through ...string) v1alpha1.Identity {
		i := v1alpha1.Identity{Username: name}
		for _, u := range through {
			i.Through = append(i.Through, v1alpha1.WorkflowUser{Username: u})
		}
		return i
	}
	v := &Verdict{contributors: names([]v1alpha1.Contributor{{Identity: who("alice", "flow")}})}
	rule := &v1alpha1.RequiredApprovals{Count: 1, ExcludeRequester: true}
	for why, tc := range map[string]struct {
		approver v1alpha1.Identity
		want     int
	}{
		"the starter":                {who("alice"), 0},
		"the worker":                 {who("flow"), 0},
		"through the worker":         {who("bob", "flow"), 0},
		"through a worker of theirs": {who("bob", "alice"), 0},
		"another user":               {who("bob"), 1},
	} {
		if got := v.approvers(rule, &v1alpha1.Identity{Username: "carol"}, []v1alpha1.PlanApproval{{By: &tc.approver}}); got != tc.want {
			t.Errorf("%s: %d approvals count, want %d", why, got, tc.want)
		}
	}
}
