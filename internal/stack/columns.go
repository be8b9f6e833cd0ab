package stack

import "github.com/hykube/hykube/api/v1alpha1"

// Approval returns the approval of a stack's plans for tables; "-" if the stack has a workflow, which decides that.
func Approval(s *v1alpha1.Stack) string {
	if s.Spec.Workflow != nil {
		return "-"
	}
	return string(s.Spec.Approval)
}

// LastPlan returns the name of the last plan that a stack, or its workflow, made; "" if there is none.
func LastPlan(s *v1alpha1.Stack) string {
	switch r := s.Status.Run; {
	case s.Spec.Workflow != nil && r != nil && r.Plan != nil:
		return r.Plan.Name
	case s.Spec.Workflow != nil, s.Status.Plan == nil:
		return ""
	}
	return s.Status.Plan.Name
}
