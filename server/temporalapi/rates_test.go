package temporalapi

import (
	"context"
	"fmt"
	"testing"
	"time"

	commandpb "go.temporal.io/api/command/v1"
	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	tokenspb "go.temporal.io/server/api/token/v1"
	"go.temporal.io/server/common/tasktoken"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/starter"
)

func TestRates(t *testing.T) {
	r := newRates(10, 100)
	begin := time.Now()
	allow := func(why, namespace string, number int, after time.Duration, want bool) {
		t.Helper()
		if got := r.allow(namespace, number, begin.Add(after)); got != want {
			t.Errorf("%s: %d in %s: %t, want %t", why, number, namespace, got, want)
		}
	}
	allow("the burst", "a", 90, 0, true)
	allow("more than is left", "a", 11, 0, false)
	allow("a refusal takes nothing", "a", 10, 0, true)
	allow("nothing is left", "a", 1, 0, false)
	allow("another namespace", "b", 100, 0, true)
	allow("a second later", "a", 10, time.Second, true)
	allow("the rate", "a", 1, time.Second, false)
	allow("more than the burst", "a", 101, time.Hour, false)
}

// TestIdleNamespacesAreForgotten has many namespaces that need their limiters only once.
func TestIdleNamespacesAreForgotten(t *testing.T) {
	r := newRates(10, 100)
	now := time.Now()
	for i := range 1000 {
		r.allow(fmt.Sprint("idle-", i), 100, now)
	}
	now = now.Add(forgetEvery - time.Second)
	r.allow("busy", 100, now)
	now = now.Add(time.Second)
	if r.allow("busy", 100, now) {
		t.Error("a namespace that is not idle was forgotten")
	}
	if len(r.of) != 1 {
		t.Errorf("%d limiters, want 1", len(r.of))
	}
}

// callOf calls a method of a service in the Kubernetes namespace "a" or another. handler is that of Temporal.
func callOf(t *testing.T, s *Service, namespace, name string, message proto.Message, handler grpc.UnaryHandler) error {
	ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: "u"})
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{IsResourceRequest: true, Resource: Resource, Verb: methods[name].verb, Namespace: namespace})
	ctx = answers{}.TagRPC(ctx, nil)
	defer answers{}.HandleRPC(ctx, &stats.End{})
	_, err := s.intercept(ctx, message, &grpc.UnaryServerInfo{FullMethod: PathPrefix + name}, handler)
	return err
}

// serviceOf returns a service for namespaces that exist and have room.
func serviceOf(t *testing.T, connection grpc.ClientConnInterface) *Service {
	t.Helper()
	s, err := New(Config{
		Connection: func() grpc.ClientConnInterface { return connection },
		Prepare:    func(context.Context, string) (string, error) { return "id", nil },
		Room:       func(context.Context, string, int, bool) error { return nil },
		Access:     everything{}, Stamps: testStamps, Ended: func(string, string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// testStamps signs with a key of the tests.
var testStamps = starter.Signer{Key: func(context.Context) ([]byte, error) { return []byte("key"), nil }}

// everything gives all users all rights.
type everything struct{}

func (everything) May(context.Context, v1alpha1.Identity, store.Right) (bool, error) {
	return true, nil
}

// sealedToken returns a task token of a run, as workers get it.
func sealedToken(t *testing.T, queue string) []byte {
	t.Helper()
	token, err := tasktoken.NewSerializer().Serialize(&tokenspb.Task{NamespaceId: "id", WorkflowId: "w", RunId: "r"})
	if err == nil {
		token, err = testStamps.Seal(t.Context(), starter.Task{Queue: queue, Token: token})
	}
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func accepting(context.Context, any) (any, error) { return nil, nil }

// TestCommandsAreLimited sends the largest workflow task, and then other requests.
func TestCommandsAreLimited(t *testing.T) {
	task := func(namespace string, n int) proto.Message {
		return &workflowservice.RespondWorkflowTaskCompletedRequest{Namespace: namespace, TaskToken: sealedToken(t, "q"), Commands: make([]*commandpb.Command, n)}
	}
	for name, tc := range map[string]struct {
		method string
		one    func(namespace string) proto.Message
		want   codes.Code
	}{
		"a workflow task": {"RespondWorkflowTaskCompleted", func(namespace string) proto.Message { return task(namespace, 1) }, codes.ResourceExhausted},
		"a start": {"StartWorkflowExecution", func(namespace string) proto.Message {
			return &workflowservice.StartWorkflowExecutionRequest{Namespace: namespace}
		}, codes.ResourceExhausted},
		"a signal": {"SignalWorkflowExecution", func(namespace string) proto.Message {
			return &workflowservice.SignalWorkflowExecutionRequest{Namespace: namespace}
		}, codes.ResourceExhausted},
		"a start with a signal": {"SignalWithStartWorkflowExecution", func(namespace string) proto.Message {
			return &workflowservice.SignalWithStartWorkflowExecutionRequest{Namespace: namespace}
		}, codes.ResourceExhausted},
		"a start with an update": {"ExecuteMultiOperation", func(namespace string) proto.Message {
			return &workflowservice.ExecuteMultiOperationRequest{Namespace: namespace}
		}, codes.ResourceExhausted},
		"a workflow task without commands": {"RespondWorkflowTaskCompleted", func(namespace string) proto.Message { return task(namespace, 0) }, codes.OK},
		"a list": {"ListWorkflowExecutions", func(namespace string) proto.Message {
			return &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace}
		}, codes.OK},
	} {
		s := serviceOf(t, runConnection{run: &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: "w", RunId: "r"}}})
		if s.commands.limit != 200 || s.commands.burst != maxCommands {
			t.Fatalf("%v commands in a second, and %d at once", s.commands.limit, s.commands.burst)
		}
		s.commands.limit = rate.Every(time.Hour)
		if err := callOf(t, s, "a", "RespondWorkflowTaskCompleted", task("hykube.a", maxCommands), accepting); err != nil {
			t.Errorf("%s: the largest task: %v", name, err)
		}
		if err := callOf(t, s, "a", tc.method, tc.one("hykube.a"), accepting); status.Code(err) != tc.want {
			t.Errorf("%s after the largest task: %v, want %v", name, err, tc.want)
		}
		if err := callOf(t, s, "b", tc.method, tc.one("hykube.b"), accepting); err != nil {
			t.Errorf("%s in another namespace: %v", name, err)
		}
	}
}
