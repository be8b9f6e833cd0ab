package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hykube/hykube/server/engine"
)

func TestFinishedRunsAreTrimmed(t *testing.T) {
	var removed atomic.Bool
	e := start(t, engine.Config{DataDir: t.TempDir(), NamespaceOwner: func(name string) (string, bool) { return "uid-1", name == "prod" && !removed.Load() }})
	users := e.Users()
	if _, err := users.Prepare(t.Context(), "nowhere"); status.Code(err) != codes.NotFound {
		t.Errorf("a namespace that does not exist: %v, want NotFound", err)
	}
	id, err := users.Prepare(t.Context(), "prod")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := users.Prepare(t.Context(), "prod"); err != nil || again != id {
		t.Errorf("a second time: %q, %v; want %q", again, err, id)
	}
	c, err := client.NewClientFromExisting(e.Client(), client.Options{Namespace: "hykube.prod"})
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context) error { return nil }, workflow.RegisterOptions{Name: "brief"})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error { return workflow.Sleep(ctx, time.Hour) }, workflow.RegisterOptions{Name: "endless"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	if _, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "endless", TaskQueue: queue}, "endless"); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: fmt.Sprint("brief-", i), TaskQueue: queue}, "brief")
		if err == nil {
			err = run.Get(t.Context(), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	listed := func(want ...string) {
		t.Helper()
		var got []string
		end := time.Now().Add(90 * time.Second) // Temporal deletes a finished run up to a minute later
		for ; time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			page, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: `ExecutionStatus = "Running" OR ExecutionStatus = "Completed"`})
			if err != nil {
				t.Fatal(err)
			}
			got = nil
			for _, e := range page.GetExecutions() {
				got = append(got, e.GetExecution().GetWorkflowId()+" "+e.GetStatus().String())
			}
			slices.Sort(got)
			if slices.Equal(got, want) {
				return
			}
		}
		t.Fatalf("runs: %v, want %v", got, want)
	}
	// The list follows the executions with a delay, also from Running to Completed, and Trim counts the finished ones.
	listed("brief-0 Completed", "brief-1 Completed", "brief-2 Completed", "brief-3 Completed", "brief-4 Completed", "brief-5 Completed", "endless Running")
	if err := users.Trim(t.Context(), "hykube.prod", 2); err != nil {
		t.Fatal(err)
	}
	listed("brief-4 Completed", "brief-5 Completed", "endless Running") // a running one is not deleted
	if err := users.CleanAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	listed("brief-4 Completed", "brief-5 Completed", "endless Running")
	if err := users.Terminate(t.Context(), "hykube.prod", 0); err != nil {
		t.Fatal(err)
	}
	listed("brief-4 Completed", "brief-5 Completed") // a running one above the limit ends
	removed.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	if err := users.CleanAll(ctx); err != nil {
		t.Fatal(err)
	}
	listed()
	if d, err := e.Client().DescribeWorkflowExecution(t.Context(), "x", ""); err == nil {
		t.Errorf("the server's namespace has a run: %v", d)
	}
}
