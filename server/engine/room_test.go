package engine_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hykube/hykube/server/engine"
)

// TestWorkflowStartsAreCountedOnce asks for more starts at once than a namespace may have, while counts become old.
func TestWorkflowStartsAreCountedOnce(t *testing.T) {
	e := start(t, engine.Config{DataDir: t.TempDir(), NamespaceOwner: func(string) (string, bool) { return "uid-1", true }})
	users := e.Users()
	if _, err := users.Prepare(t.Context(), "prod"); err != nil {
		t.Fatal(err)
	}
	var permitted atomic.Int64
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			for range 300 {
				switch err := users.Room(t.Context(), "prod", 1, false); status.Code(err) {
				case codes.OK:
					if permitted.Add(1)%500 == 0 {
						users.ForgetCount("prod")
					}
				case codes.ResourceExhausted:
					return
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	if n := permitted.Load(); n != engine.RunningExecutions {
		t.Errorf("%d starts were permitted, want %d", n, engine.RunningExecutions)
	}
}

// TestExecutionsWithLargeMemosAreDeleted has runs of a removed namespace whose memos are larger than a message of gRPC by
// default, as an earlier version accepted them.
func TestExecutionsWithLargeMemosAreDeleted(t *testing.T) {
	var owner atomic.Value
	owner.Store("uid-1")
	e := start(t, engine.Config{DataDir: t.TempDir(), NamespaceOwner: func(string) (string, bool) { return owner.Load().(string), true }})
	users := e.Users()
	if _, err := users.Prepare(t.Context(), "prod"); err != nil {
		t.Fatal(err)
	}
	memo := &commonpb.Memo{Fields: map[string]*commonpb.Payload{"x": {Data: make([]byte, 15<<10)}}}
	for i := range 320 {
		_, err := users.Service().StartWorkflowExecution(t.Context(), &workflowservice.StartWorkflowExecutionRequest{
			Namespace: "hykube.prod", WorkflowId: fmt.Sprint("w", i), RequestId: fmt.Sprint(i), Memo: memo,
			WorkflowType: &commonpb.WorkflowType{Name: "w"}, TaskQueue: &taskqueuepb.TaskQueue{Name: "q"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		c, err := users.Service().CountWorkflowExecutions(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Namespace: "hykube.prod"})
		if err != nil || time.Now().After(end) {
			t.Fatal(c, err)
		}
		if c.GetCount() == 320 {
			break
		}
	}
	owner.Store("uid-2")
	if _, err := users.Prepare(t.Context(), "prod"); err != nil {
		t.Error(err)
	}
}
