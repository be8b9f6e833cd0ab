package webui_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/hykube/hykube/server/engine"
	"github.com/hykube/hykube/tests/webui"
)

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
	w.RegisterWorkflowWithOptions(func(workflow.Context) error { return nil }, workflow.RegisterOptions{Name: "ApplyPlan"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	run, err := e.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: "apply-0001", TaskQueue: "test", StaticSummary: "the first plan",
		TypedSearchAttributes: temporal.NewSearchAttributes(temporal.NewSearchAttributeKeyKeyword("HykubePlan").ValueSet("first")),
	}, "ApplyPlan")
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

	browser.See(base+"/temporal/namespaces/hykube/workflows", 30*time.Second, "apply-0001", "ApplyPlan", "Completed")
	browser.See(base+"/temporal/namespaces/hykube/workflows/apply-0001/"+run.GetRunID()+"/history", 30*time.Second, "ApplyPlan", "Workflow Execution Completed")
	browser.See(base+"/temporal/namespaces/hykube/workflows?query="+url.QueryEscape(`HykubePlan="first"`), 30*time.Second, "apply-0001")
	for _, message := range browser.Errors() {
		t.Errorf("a page logged: %s", message)
	}
}
