package stack

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestColumns compares the columns of stacks with and without a workflow, and with and without plans.
func TestColumns(t *testing.T) {
	workflow := &v1alpha1.StackWorkflow{}
	own := &v1alpha1.StackPlan{Name: "web-1"}
	for name, test := range map[string]struct {
		workflow       *v1alpha1.StackWorkflow
		plan           *v1alpha1.StackPlan
		run            *v1alpha1.StackRun
		approval, last string
	}{
		"a new stack":                          {nil, nil, nil, "Manual", ""},
		"a plan of the stack":                  {nil, own, nil, "Manual", "web-1"},
		"a workflow that did not run":          {workflow, own, nil, "-", ""},
		"a run without a plan":                 {workflow, own, &v1alpha1.StackRun{}, "-", ""},
		"a plan of the workflow":               {workflow, own, &v1alpha1.StackRun{Plan: &v1alpha1.PlanReference{Name: "run-1"}}, "-", "run-1"},
		"a run of a workflow that was removed": {nil, own, &v1alpha1.StackRun{Plan: &v1alpha1.PlanReference{Name: "run-1"}}, "Manual", "web-1"},
	} {
		s := &v1alpha1.Stack{Spec: v1alpha1.StackSpec{Approval: v1alpha1.ApprovalManual, Workflow: test.workflow}, Status: v1alpha1.StackStatus{Plan: test.plan, Run: test.run}}
		if approval, last := Approval(s), LastPlan(s); approval != test.approval || last != test.last {
			t.Errorf("%s: the approval %q and the plan %q, want %q and %q", name, approval, last, test.approval, test.last)
		}
	}
}
