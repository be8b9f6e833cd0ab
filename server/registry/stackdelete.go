package registry

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/warning"

	"github.com/hykube/hykube/api/v1alpha1"
)

const (
	warningPlanEnds = "stack %q: its plan %s %s. The resources of the stack and their infrastructure stay, also what the plan would destroy. " +
		"To plan again: kubectl hykube plan -n %s"
	warningRunEnds = "stack %q: its workflow %s, run %s, goes on and will be asked to end. The resources of the stack and their infrastructure stay. " +
		"A plan that is being applied goes on."
	warningPlansUnknown = "stack %q: its plans cannot be read: %v. Plans without a decision will be discarded. The resources of the stack and their infrastructure stay."
)

// warnOfEndingPlans adds a warning about each plan, and about the workflow, that the server ends because its stack was
// deleted.
func warnOfEndingPlans(ctx context.Context, plans *genericregistry.Store, s *v1alpha1.Stack) {
	if r := s.Status.Run; r != nil && r.EndedAt == nil {
		warning.AddWarning(ctx, "", fmt.Sprintf(warningRunEnds, s.Name, r.WorkflowID, r.RunID))
	}
	list, err := plans.List(request.WithNamespace(ctx, s.Namespace), &metainternalversion.ListOptions{})
	if err != nil { // an error does not prevent the deletion
		warning.AddWarning(ctx, "", fmt.Sprintf(warningPlansUnknown, s.Name, err))
		return
	}
	items := list.(*v1alpha1.PlanList).Items
	slices.SortFunc(items, func(a, b v1alpha1.Plan) int { return cmp.Compare(numberOf(&a), numberOf(&b)) })
	for i := range items {
		p := &items[i]
		if !p.Undecided() || !endsWith(p, s) {
			continue
		}
		end := "is being made and will be cancelled"
		if meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionPlanned) {
			end = "waits for a decision and will be discarded"
		}
		warning.AddWarning(ctx, "", fmt.Sprintf(warningPlanEnds, s.Name, p.Name, end, s.Namespace))
	}
}

// endsWith reports whether the server ends an undecided plan when the stack is deleted: one of the stack, or one that
// the last run of its workflow made.
func endsWith(p *v1alpha1.Plan, s *v1alpha1.Stack) bool {
	if of := p.Status.Stack; of != nil {
		return of.StackUID == s.UID
	}
	r := s.Status.Run
	return r != nil && p.Annotations[v1alpha1.AnnotationWorkflowRunID] == r.RunID &&
		p.Annotations[v1alpha1.AnnotationWorkflowID] == r.WorkflowID
}

// numberOf returns the number of a plan among those of its stack; 0 if no stack made it.
func numberOf(p *v1alpha1.Plan) int64 {
	if p.Status.Stack == nil {
		return 0
	}
	return p.Status.Stack.Number
}
