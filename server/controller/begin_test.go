package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

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
			p := &Plans{Status: onePlan{plan: live}, Temporal: noRuns{t: t}, requests: map[string]bool{}, started: map[string]time.Time{}}
			ref := workflows.Plan{Namespace: "prod", Name: "p", UID: "u"}
			cached := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", CreationTimestamp: metav1.Now()}}
			if err := p.begin(t.Context(), cached, ref, ref.PlanID(), workflows.PlanName); err != nil {
				t.Error(err)
			}
		})
	}
}

// lostRuns is a Temporal server that loses each run.
type lostRuns struct {
	client.Client
	started int
}

func (l *lostRuns) ExecuteWorkflow(context.Context, client.StartWorkflowOptions, any, ...any) (client.WorkflowRun, error) {
	l.started++
	return nil, nil
}

func (o onePlan) UpdateStatus(_ context.Context, _, _ string, _ types.UID, change func(*v1alpha1.PlanStatus)) error {
	change(&o.plan.Status)
	return nil
}

// TestARunThatTemporalLostIsStartedAgain begins a plan whose run Temporal has lost, as after a restore of its database.
func TestARunThatTemporalLostIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := &lostRuns{}
		plan := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}}
		p := &Plans{Status: onePlan{plan: plan}, Temporal: runs, requests: map[string]bool{}, started: map[string]time.Time{}}
		ref := workflows.Plan{Namespace: "prod", Name: "p", UID: "u"}
		begin := func() {
			t.Helper()
			if err := p.begin(t.Context(), plan, ref, ref.ApplyID(), workflows.ApplyName); err != nil {
				t.Fatal(err)
			}
		}
		begin()
		p.note(ref.ApplyID()+" "+workflows.SignalCancel, true)
		begin()
		if runs.started != 1 {
			t.Errorf("%d starts at once, want 1", runs.started)
		}
		time.Sleep(runCheck)
		begin()
		if runs.started != 2 || p.sent(ref.ApplyID()+" "+workflows.SignalCancel) {
			t.Errorf("%d starts after %s, want 2, and no signal of the run before", runs.started, runCheck)
		}
	})
}
