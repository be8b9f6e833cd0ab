package webui_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/hykube/hykube/server/engine"
	"github.com/hykube/hykube/tests/webui"
	"github.com/hykube/hykube/workflows"
)

// registerLargeApply registers the Apply workflow, with the activities of a plan that a lane applies and of which a change fails.
func registerLargeApply(w worker.Registry) {
	w.RegisterWorkflowWithOptions(workflows.ApplyPlan, workflow.RegisterOptions{Name: workflows.ApplyName})
	failed := []workflows.NotMade{{Change: "create sim_network.main", Why: "Failed"}}
	for name, fn := range map[string]any{
		workflows.ActivityBegin: func(context.Context, workflows.Plan) (workflows.Begun, error) {
			return workflows.Begun{Total: 1000}, nil
		},
		workflows.ActivityLane: func(ctx context.Context, p workflows.Plan) (workflows.LaneResult, error) {
			return workflows.LaneResult{}, activity.GetClient(ctx).SignalWorkflow(ctx, p.ApplyID(), "", workflows.SignalProgress,
				workflows.Progress{Total: 1000, Done: 999, Failed: 1, NotMade: failed})
		},
		workflows.ActivityFinish: func(context.Context, workflows.Finish) (workflows.Finished, error) {
			return workflows.Finished{Outcome: workflows.OutcomeFailed, Done: 999, Failed: 1, NotMade: failed}, nil
		},
	} {
		w.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
}

func TestWebUIShowsARun(t *testing.T) {
	browser := webui.Open(t)
	e, err := engine.New(engine.Config{DataDir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
		defer cancel()
		if err := e.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	w := worker.New(e.Client(), "test", worker.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context) error { return nil }, workflow.RegisterOptions{Name: "Sample"})
	registerLargeApply(w)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	run, err := e.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: "apply-0001", TaskQueue: "test", StaticSummary: "the first plan",
		TypedSearchAttributes: temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword("HykubePlan").ValueSet("the-first"),
			temporal.NewSearchAttributeKeyKeyword("HykubeRequester").ValueSet("alice"),
		),
	}, "Sample")
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}

	// As behind the API server, a request needs the token, and the browser has none.
	guarded := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		e.UIHandler().ServeHTTP(w, r)
	}))
	t.Cleanup(guarded.Close)
	target, err := url.Parse(guarded.URL)
	if err != nil {
		t.Fatal(err)
	}
	base := webui.Proxy(t, target, webui.Bearer("token", guarded.Client().Transport))

	browser.See(base+"/temporal/namespaces/hykube/workflows", 30*time.Second, "apply-0001", "Sample", "Completed", "HykubePlan", "the-first", "HykubeRequester", "alice")
	browser.See(base+"/temporal/namespaces/hykube/workflows/apply-0001/"+run.GetRunID()+"/history", 30*time.Second, "Sample", "Workflow Execution Completed")
	browser.See(base+"/temporal/namespaces/hykube/workflows?query="+url.QueryEscape(`HykubePlan="the-first" AND HykubeRequester="alice"`), 30*time.Second, "apply-0001")

	// The run of a large plan says what happened, although one activity applied it.
	apply := workflows.Plan{Namespace: "prod", Name: "large", UID: "1"}
	large, err := e.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: apply.ApplyID(), TaskQueue: "test"}, workflows.ApplyName, apply)
	if err != nil {
		t.Fatal(err)
	}
	page := base + "/temporal/namespaces/hykube/workflows/" + apply.ApplyID() + "/" + large.GetRunID()
	if err := large.Get(t.Context(), nil); err == nil {
		t.Fatal("the run of a failed plan did not fail")
	}
	browser.See(page+"/history", 30*time.Second, "999 changes were made, 1 failed", "create sim_network.main: Failed")
	browser.See(page+"/user-metadata", 30*time.Second, "Current Details", "999 done, 1 failed, 0 not tried", "create sim_network.main: Failed")
	for _, message := range browser.Errors() {
		t.Errorf("a page logged: %s", message)
	}
}
