package controller

import (
	"context"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"go.temporal.io/sdk/client"
)

// onePlan holds one Plan, or none.
type onePlan struct {
	store.Plans
	plan *v1alpha1.Plan
}

func (o onePlan) Get(context.Context, string, string, types.UID) (*v1alpha1.Plan, error) {
	if o.plan == nil {
		return nil, store.ErrGone
	}
	return o.plan, nil
}

// noRuns fails the test when a workflow is started.
type noRuns struct {
	client.Client
	t *testing.T
}

func (n noRuns) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	n.t.Errorf("workflow %q was started", o.ID)
	return nil, nil
}

func TestRunsOfPlansThatEndedAreNotStartedAgain(t *testing.T) {
	for reason, live := range map[string]*v1alpha1.Plan{
		"the plan ended, and the cache does not know it yet": {Status: v1alpha1.PlanStatus{FinishedAt: new(metav1.Now())}},
		"the plan was deleted":                               nil,
	} {
		t.Run(reason, func(t *testing.T) {
			p := &Plans{Status: onePlan{plan: live}, Temporal: noRuns{t: t}, requests: map[string]bool{}}
			ref := workflows.Plan{Namespace: "prod", Name: "p", UID: "u"}
			cached := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", CreationTimestamp: metav1.Now()}}
			if err := p.begin(t.Context(), cached, ref, ref.PlanID(), workflows.PlanName); err != nil {
				t.Error(err)
			}
		})
	}
}
