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
