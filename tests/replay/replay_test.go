package replay

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/hykube/hykube/internal/notification"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/server/engine"
	"github.com/hykube/hykube/workflows"
)

var record = flag.Bool("record", false, "record the runs of today into testdata")

func TestRecordedRunsGoOn(t *testing.T) {
	if *record {
		recordRuns(t)
	}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded runs: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r := worker.NewWorkflowReplayer()
			r.RegisterWorkflowWithOptions(workflows.MakePlan, workflow.RegisterOptions{Name: workflows.PlanName})
			r.RegisterWorkflowWithOptions(workflows.ApplyPlan, workflow.RegisterOptions{Name: workflows.ApplyName})
			r.RegisterWorkflowWithOptions(workflows.Notify, workflow.RegisterOptions{Name: workflows.NotifyName})
			if err := r.ReplayWorkflowHistoryFromJSONFile(nil, file); err != nil {
				t.Errorf("a run that was recorded earlier does not go on with this code; use workflow.GetVersion: %v", err)
			}
		})
	}
}

// recordRuns runs the workflows on a real Temporal server, with activities that return the results for each run.
func recordRuns(t *testing.T) {
	e, err := engine.New(engine.Config{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Stop(context.WithoutCancel(t.Context())) }()
	w := worker.New(e.Client(), workflows.TaskQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(workflows.MakePlan, workflow.RegisterOptions{Name: workflows.PlanName})
	w.RegisterWorkflowWithOptions(workflows.ApplyPlan, workflow.RegisterOptions{Name: workflows.ApplyName})
	w.RegisterWorkflowWithOptions(workflows.Notify, workflow.RegisterOptions{Name: workflows.NotifyName})
	moved := false
	for name, fn := range map[string]any{
		workflows.ActivitySurvey: func(_ context.Context, p workflows.Plan) (workflows.Surveyed, error) {
			if p.Name == "impossible" {
				return workflows.Surveyed{}, temporal.NewNonRetryableApplicationError("there is no store", workflows.ErrorFinal, nil)
			}
			return workflows.Surveyed{Resources: 3, Visited: 2, Providers: []string{"sim"}}, nil
		},
		workflows.ActivityPropose: func(_ context.Context, p workflows.Plan) (workflows.Proposed, error) {
			if p.Name == "moved" && !moved {
				moved = true
				return workflows.Proposed{}, temporal.NewNonRetryableApplicationError("moved", workflows.ErrorObjectChanged, nil)
			}
			return workflows.Proposed{}, nil
		},
		workflows.ActivityPublish: func(context.Context, workflows.Plan) (workflows.Published, error) {
			return workflows.Published{Summary: "2 to create"}, nil
		},
		workflows.ActivityFail: func(context.Context, workflows.Failure) error { return nil },
		workflows.ActivityBegin: func(_ context.Context, p workflows.Plan) (workflows.Begun, error) {
			if p.Name == "large" {
				return workflows.Begun{Total: 1000}, nil
			}
			if p.Name == "refused" {
				return workflows.Begun{Refused: "not approved"}, nil
			}
			steps := []workflows.Step{{Title: "create a.b"}, {Step: plan.Step{Change: 1, DependsOn: []int{0}}, Title: "create c.d"}, {Step: plan.Step{Change: 2}, Title: "create e.f"}}
			return workflows.Begun{Steps: steps, Total: len(steps), Providers: []string{"sim"}}, nil
		},
		workflows.ActivityStep: func(_ context.Context, in workflows.StepInput) (workflows.StepResult, error) {
			if in.Plan.Name == "failing" && in.Change == 0 {
				return workflows.StepResult{State: "Failed"}, temporal.NewNonRetryableApplicationError("the change is Failed", workflows.ErrorStep, nil)
			}
			return workflows.StepResult{OK: true, State: "Done"}, nil
		},
		workflows.ActivityLane: func(ctx context.Context, _ workflows.Plan) error {
			for _, p := range []workflows.Progress{{Total: 1000, Done: 100}, {Total: 1000, Done: 101, Failed: 1, NotMade: []workflows.NotMade{{Change: "create a.b", Why: "Failed"}}}} {
				if err := activity.GetClient(ctx).SignalWorkflow(ctx, activity.GetInfo(ctx).WorkflowExecution.ID, "", workflows.SignalProgress, p); err != nil {
					return err
				}
			}
			return nil
		},
		workflows.ActivityFinish: func(_ context.Context, f workflows.Finish) (workflows.Finished, error) {
			switch f.Plan.Name {
			case "failing":
				return workflows.Finished{Outcome: workflows.OutcomeFailed, Done: 1, Failed: 1, Skipped: 1}, nil
			case "refused":
				return workflows.Finished{Outcome: workflows.OutcomeRefused}, nil
			}
			return workflows.Finished{Outcome: workflows.OutcomeApplied, Done: 3}, nil
		},
		workflows.ActivityDeliver: func(_ context.Context, d workflows.Delivery) (workflows.Delivered, error) {
			if d.Transition != nil && d.Transition.Name == "refused" {
				return workflows.Delivered{}, temporal.NewNonRetryableApplicationError("no", workflows.ErrorFinal, nil)
			}
			return workflows.Delivered{Sent: true, Gone: d.Transition != nil && d.Transition.Name == "last"}, nil
		},
		workflows.ActivityGiveUp: func(context.Context, workflows.Delivery) error { return nil },
	} {
		w.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, run := range []struct{ workflow, name string }{
		{workflows.PlanName, "plain"}, {workflows.PlanName, "moved"}, {workflows.PlanName, "impossible"},
		{workflows.ApplyName, "plain"}, {workflows.ApplyName, "failing"}, {workflows.ApplyName, "large"}, {workflows.ApplyName, "refused"},
	} {
		recordRun(t, e.Client(), run.workflow, run.name)
	}
	recordNotification(t, e.Client())
}

// recordNotification records a workflow that sends several messages, gives one up, leaves others out, waits, and ends.
func recordNotification(t *testing.T, c client.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	current := func(names ...string) (now workflows.Transitions) {
		for _, name := range names {
			now.Current = append(now.Current, notification.Transition{ID: name, Kind: notification.KindPlan, Name: name, Reason: "Failed"})
		}
		return now
	}
	id := workflows.NotifyName + "-plain"
	run, err := c.SignalWithStartWorkflow(ctx, id, workflows.SignalTransitions, current("first", "refused"), client.StartWorkflowOptions{ID: id, TaskQueue: workflows.TaskQueue},
		workflows.NotifyName, workflows.NotifyState{Notification: workflows.Notification{Namespace: "prod", Name: "plain", UID: "00000000-0000-0000-0000-000000000000"}})
	if err != nil {
		t.Fatal(err)
	}
	many := []string{"first", "refused"}
	for i := range 12 {
		many = append(many, "plan-"+strconv.Itoa(i))
	}
	if err := c.SignalWorkflow(ctx, id, "", workflows.SignalTransitions, current(append(many, "last")...)); err != nil {
		t.Fatal(err)
	}
	if err := run.Get(ctx, nil); err != nil {
		t.Fatal(err)
	}
	save(t, c, run, id+"-v1.json")
}

func recordRun(t *testing.T, c client.Client, workflowName, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	input := workflows.Plan{Namespace: "prod", Name: name, UID: "00000000-0000-0000-0000-000000000000"}
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: workflowName + "-" + name, TaskQueue: workflows.TaskQueue}, workflowName, input)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Get(ctx, nil); err != nil {
		if _, failed := errors.AsType[*temporal.WorkflowExecutionError](err); !failed {
			t.Fatal(err)
		}
	}
	save(t, c, run, workflowName+"-"+name+"-v2.json")
}

// save writes the history of a run into testdata.
func save(t *testing.T, c client.Client, run client.WorkflowRun, file string) {
	t.Helper()
	ctx := t.Context()
	h := &history.History{}
	for events := c.GetWorkflowHistory(ctx, run.GetID(), run.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		event, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		h.Events = append(h.Events, event)
	}
	data, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", file), data, 0o644); err != nil {
		t.Fatal(err)
	}
}
