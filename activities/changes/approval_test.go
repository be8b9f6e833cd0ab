package changes

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
)

// TestApprovedByAnother finds out whether a person who is none of the writers approved a plan.
func TestApprovedByAnother(t *testing.T) {
	user := func(name string) *v1alpha1.Identity { return &v1alpha1.Identity{Username: name} }
	eve, flow := []v1alpha1.Contributor{{Identity: *user("eve")}}, v1alpha1.Identity{Username: "ann", Through: []v1alpha1.WorkflowUser{{Username: "eve"}}}
	for why, tc := range map[string]struct {
		by      []*v1alpha1.Identity
		itself  bool
		writers []v1alpha1.Contributor
		want    bool
	}{
		"another user":                       {by: []*v1alpha1.Identity{user("ann")}, writers: eve, want: true},
		"the writer":                         {by: []*v1alpha1.Identity{user("eve")}, writers: eve},
		"the writer and another user":        {by: []*v1alpha1.Identity{user("eve"), user("ann")}, writers: eve, want: true},
		"a user through a worker of eve":     {by: []*v1alpha1.Identity{&flow}, writers: eve},
		"the plan approved itself":           {by: []*v1alpha1.Identity{user("ann")}, itself: true, writers: eve},
		"the writers are not all named":      {by: []*v1alpha1.Identity{user("ann")}, writers: append([]v1alpha1.Contributor{{More: true}}, eve...)},
		"the server does not know who it is": {by: []*v1alpha1.Identity{nil, {}}, writers: eve},
		"nobody":                             {writers: eve},
	} {
		p := &v1alpha1.Plan{}
		for _, by := range tc.by {
			p.Status.Approvals = append(p.Status.Approvals, v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, By: by})
			p.Status.Approval = &p.Status.Approvals[0]
		}
		reason := v1alpha1.ReasonApproved
		if tc.itself {
			reason = v1alpha1.ReasonAutomatic
		}
		condition.Set(&p.Status.Conditions, 1, v1alpha1.ConditionApproved, true, reason, "")
		if got := ApprovedByAnother(p, tc.writers); got != tc.want {
			t.Errorf("%s: approved by another user: %t", why, got)
		}
	}
}
