//lint:file-ignore SA1019 attackers set deprecated fields, too

package server_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	commandpb "go.temporal.io/api/command/v1"
	commonpb "go.temporal.io/api/common/v1"
	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	tokenspb "go.temporal.io/server/api/token/v1"
	"go.temporal.io/server/common/tasktoken"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/sdk/steps"
)

// workflowsOf makes a namespace in which the users have the role edit.
func workflowsOf(t *testing.T, name string, users ...string) {
	t.Helper()
	namespace(t, name)
	for _, user := range users {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
		if _, err := core(t, shared.admin()).RbacV1().RoleBindings(name).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// temporalOf returns a client for the workflows of a namespace. It waits until the user may use them.
func temporalOf(t *testing.T, config *rest.Config, namespace string) client.Client {
	t.Helper()
	options, err := steps.ConnectOptions(config, namespace)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.DialContext(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	var last error
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, last = c.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: options.Namespace}); last == nil {
			return c
		}
	}
	t.Fatalf("the user cannot use workflows in %s: %v", namespace, last)
	return nil
}

// echo is a workflow with an activity.
func echo(ctx workflow.Context, text string) (string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	var out string
	err := workflow.ExecuteActivity(ctx, "upper", text).Get(ctx, &out)
	return out, err
}

func upper(_ context.Context, text string) (string, error) { return strings.ToUpper(text), nil }

func echoWorker(t *testing.T, c client.Client) {
	t.Helper()
	w := worker.New(c, "mine", worker.Options{})
	w.RegisterWorkflow(echo)
	w.RegisterActivityWithOptions(upper, activity.RegisterOptions{Name: "upper"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
}

func TestWorkflowsOfUsers(t *testing.T) {
	workflowsOf(t, "flows", "editor")
	c := temporalOf(t, shared.as("editor"), "flows")
	echoWorker(t, c)
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "first", TaskQueue: "mine"}, echo, "hello")
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := run.Get(t.Context(), &got); err != nil || got != "HELLO" {
		t.Errorf("result %q, %v; want HELLO", got, err)
	}
	// The administrator's certificate is a credential, too.
	admin := temporalOf(t, shared.admin(), "flows")
	if d, err := admin.DescribeWorkflowExecution(t.Context(), "first", ""); err != nil || d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		t.Errorf("describe: %v, %v", d.GetWorkflowExecutionInfo().GetStatus(), err)
	}
}

// TestResetOfARun resets a finished run, which then runs again.
func TestResetOfARun(t *testing.T) {
	workflowsOf(t, "resets", "editor")
	c := temporalOf(t, shared.as("editor"), "resets")
	echoWorker(t, c)
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "again", TaskQueue: "mine"}, echo, "hello")
	if err == nil {
		err = run.Get(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	for events := c.GetWorkflowHistory(t.Context(), "again", run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		event, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		last = event.GetEventId()
	}
	reset := func(event int64) (*workflowservice.ResetWorkflowExecutionResponse, error) {
		return c.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
			Namespace: "hykube.resets", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: "again"}, RequestId: uuid.NewString(), WorkflowTaskFinishEventId: event,
		})
	}
	_, err = reset(last + 1)
	if _, invalid := errors.AsType[*serviceerror.InvalidArgument](err); !invalid {
		t.Errorf("a reset to an event after the last one, %d: %v; want InvalidArgument", last, err)
	}
	again, err := reset(4) // the end of the first workflow task
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := c.GetWorkflow(t.Context(), "again", again.GetRunId()).Get(t.Context(), &got); err != nil || got != "HELLO" || again.GetRunId() == run.GetRunID() {
		t.Errorf("the run %s after a reset: %q, %v; want HELLO", again.GetRunId(), got, err)
	}
}

// raw sends requests as an attacker does, with any header.
type raw struct {
	workflowservice.WorkflowServiceClient
	conn *grpc.ClientConn
}

func newRaw(t *testing.T) raw {
	t.Helper()
	secure, err := rest.TLSConfigFor(rest.AnonymousClientConfig(shared.admin()))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(strings.TrimPrefix(shared.URL(), "https://"), grpc.WithTransportCredentials(credentials.NewTLS(secure)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return raw{workflowservice.NewWorkflowServiceClient(conn), conn}
}

// from returns a context with a token and the header of a namespace.
func from(t *testing.T, token, namespace string) context.Context {
	ctx := t.Context()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	if namespace != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "temporal-namespace", namespace)
	}
	return ctx
}

func TestUsersReachOnlyTheirWorkflows(t *testing.T) {
	workflowsOf(t, "attacker", "editor")
	namespace(t, "victim")
	temporalOf(t, shared.as("editor"), "attacker")
	temporalOf(t, shared.admin(), "victim")
	s := newRaw(t)
	list := func(header, field string) func(context.Context) error {
		return func(ctx context.Context) error {
			if header != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "temporal-namespace", header)
			}
			_, err := s.ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: field})
			return err
		}
	}
	for name, tc := range map[string]struct {
		token string
		call  func(context.Context) error
		want  codes.Code
	}{
		"own namespace":                    {"editor-token", list("hykube.attacker", "hykube.attacker"), codes.OK},
		"without credentials":              {"", list("hykube.attacker", "hykube.attacker"), codes.Unauthenticated},
		"with a wrong token":               {"no-token", list("hykube.attacker", "hykube.attacker"), codes.Unauthenticated},
		"a user without a right":           {"viewer-token", list("hykube.attacker", "hykube.attacker"), codes.PermissionDenied},
		"another namespace":                {"editor-token", list("hykube.victim", "hykube.victim"), codes.PermissionDenied},
		"another namespace in the message": {"editor-token", list("hykube.attacker", "hykube.victim"), codes.PermissionDenied},
		"another namespace in the header":  {"editor-token", list("hykube.victim", "hykube.attacker"), codes.PermissionDenied},
		"the server's namespace":           {"editor-token", list("hykube", "hykube"), codes.PermissionDenied},
		"the server's in the message":      {"editor-token", list("hykube.attacker", "hykube"), codes.PermissionDenied},
		"Temporal's own namespace":         {"editor-token", list("temporal-system", "temporal-system"), codes.PermissionDenied},
		"no header":                        {"editor-token", list("", "hykube.attacker"), codes.PermissionDenied},
		"no namespace in the message":      {"editor-token", list("hykube.attacker", ""), codes.PermissionDenied},
		"only the prefix":                  {"editor-token", list("hykube.", "hykube."), codes.PermissionDenied},
		"another case":                     {"editor-token", list("hykube.attacker", "HYKUBE.attacker"), codes.PermissionDenied},
		"a look-alike":                     {"editor-token", list("hykube.attacker", "hykube.аttacker"), codes.PermissionDenied},
		"a zero byte":                      {"editor-token", list("hykube.attacker", "hykube.attacker\x00"), codes.PermissionDenied},
		"a path":                           {"editor-token", list("hykube.attacker/../victim", "hykube.victim"), codes.PermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.call(from(t, tc.token, "")); status.Code(err) != tc.want {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
	// The rights of the administrator do not make the server's workflows reachable, nor a namespace that is none.
	admin, err := steps.ConnectOptions(shared.admin(), "attacker")
	if err != nil {
		t.Fatal(err)
	}
	for namespace, want := range map[string]codes.Code{"hykube": codes.PermissionDenied, "hykube.nowhere": codes.NotFound, "temporal-system": codes.PermissionDenied} {
		admin.Namespace = namespace
		c, err := client.DialContext(t.Context(), admin)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.WorkflowService().CountWorkflowExecutions(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace})
		if status.Code(err) != want && !strings.Contains(strings.ToLower(err.Error()), "namespace") {
			t.Errorf("the administrator in %s: %v, want %v", namespace, err, want)
		}
		if err == nil {
			t.Errorf("the administrator reaches the Temporal namespace %s", namespace)
		}
		c.Close()
	}
}

// These requests name the attacker's own namespace, and something else inside.
func TestUsersReachNoOtherTemporalNamespace(t *testing.T) {
	workflowsOf(t, "nested", "editor")
	namespace(t, "target")
	temporalOf(t, shared.as("editor"), "nested")
	temporalOf(t, shared.admin(), "target")
	s := newRaw(t)
	const own, other = "hykube.nested", "hykube.target"
	ctx := from(t, "editor-token", own)
	token := func(namespaceID string) []byte {
		data, err := tasktoken.NewSerializer().Serialize(&tokenspb.Task{NamespaceId: namespaceID, WorkflowId: "x", RunId: uuid.NewString(), ScheduledEventId: 5, Attempt: 1})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	describe := func(ctx context.Context, name string) string {
		admin := temporalOf(t, shared.admin(), strings.TrimPrefix(name, "hykube."))
		d, err := admin.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: name})
		if err != nil {
			t.Fatal(err)
		}
		return d.GetNamespaceInfo().GetId()
	}
	ownID, otherID := describe(t.Context(), own), describe(t.Context(), other)
	command := func(c *commandpb.Command) func() error {
		return func() error {
			_, err := s.RespondWorkflowTaskCompleted(ctx, &workflowservice.RespondWorkflowTaskCompletedRequest{Namespace: own, TaskToken: token(ownID), Commands: []*commandpb.Command{c}})
			return err
		}
	}
	begin := &workflowservice.StartWorkflowExecutionRequest{Namespace: own, WorkflowId: "x", RequestId: uuid.NewString(),
		WorkflowType: &commonpb.WorkflowType{Name: "x"}, TaskQueue: &taskqueuepb.TaskQueue{Name: "mine"}}
	startWith := func(change func(*workflowservice.StartWorkflowExecutionRequest)) func() error {
		return func() error {
			r := &workflowservice.StartWorkflowExecutionRequest{Namespace: begin.Namespace, WorkflowId: begin.WorkflowId, RequestId: begin.RequestId, WorkflowType: begin.WorkflowType, TaskQueue: begin.TaskQueue}
			change(r)
			_, err := s.StartWorkflowExecution(ctx, r)
			return err
		}
	}
	for name, call := range map[string]func() error{
		"a child in another namespace": command(&commandpb.Command{CommandType: enumspb.COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION, Attributes: &commandpb.Command_StartChildWorkflowExecutionCommandAttributes{
			StartChildWorkflowExecutionCommandAttributes: &commandpb.StartChildWorkflowExecutionCommandAttributes{Namespace: other, WorkflowId: "y"}}}),
		"a signal to another namespace": command(&commandpb.Command{CommandType: enumspb.COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION, Attributes: &commandpb.Command_SignalExternalWorkflowExecutionCommandAttributes{
			SignalExternalWorkflowExecutionCommandAttributes: &commandpb.SignalExternalWorkflowExecutionCommandAttributes{Namespace: "hykube"}}}),
		"a cancel in another namespace": command(&commandpb.Command{CommandType: enumspb.COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION, Attributes: &commandpb.Command_RequestCancelExternalWorkflowExecutionCommandAttributes{
			RequestCancelExternalWorkflowExecutionCommandAttributes: &commandpb.RequestCancelExternalWorkflowExecutionCommandAttributes{Namespace: "hykube"}}}),
		"a Nexus operation": command(&commandpb.Command{CommandType: enumspb.COMMAND_TYPE_SCHEDULE_NEXUS_OPERATION, Attributes: &commandpb.Command_ScheduleNexusOperationCommandAttributes{
			ScheduleNexusOperationCommandAttributes: &commandpb.ScheduleNexusOperationCommandAttributes{Endpoint: "e", Service: "s", Operation: "o"}}}),
		"the token of another namespace's task": func() error {
			_, err := s.RespondActivityTaskCompleted(ctx, &workflowservice.RespondActivityTaskCompletedRequest{Namespace: own, TaskToken: token(otherID)})
			return err
		},
		"the token of another namespace's heartbeat": func() error {
			_, err := s.RecordActivityTaskHeartbeat(ctx, &workflowservice.RecordActivityTaskHeartbeatRequest{Namespace: own, TaskToken: token(otherID)})
			return err
		},
		"the token of another namespace's query": func() error {
			data, err := tasktoken.NewSerializer().SerializeQueryTaskToken(&tokenspb.QueryTask{NamespaceId: otherID, TaskQueue: "q", TaskId: "1"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.RespondQueryTaskCompleted(ctx, &workflowservice.RespondQueryTaskCompletedRequest{Namespace: own, TaskToken: data})
			return err
		},
		"a callback": startWith(func(r *workflowservice.StartWorkflowExecutionRequest) {
			r.CompletionCallbacks = []*commonpb.Callback{{Variant: &commonpb.Callback_Nexus_{Nexus: &commonpb.Callback_Nexus{Url: "http://127.0.0.1:1/"}}}}
		}),
		"a link to another namespace": startWith(func(r *workflowservice.StartWorkflowExecutionRequest) {
			r.Links = []*commonpb.Link{{Variant: &commonpb.Link_WorkflowEvent_{WorkflowEvent: &commonpb.Link_WorkflowEvent{Namespace: "hykube", WorkflowId: "x", RunId: uuid.NewString()}}}}
		}),
		"an operation of several in another namespace": func() error {
			inner := &workflowservice.StartWorkflowExecutionRequest{Namespace: other, WorkflowId: "x", RequestId: uuid.NewString(), WorkflowType: begin.WorkflowType, TaskQueue: begin.TaskQueue}
			_, err := s.ExecuteMultiOperation(ctx, &workflowservice.ExecuteMultiOperationRequest{Namespace: own, Operations: []*workflowservice.ExecuteMultiOperationRequest_Operation{
				{Operation: &workflowservice.ExecuteMultiOperationRequest_Operation_StartWorkflow{StartWorkflow: inner}}}})
			return err
		},
		"a schedule of another namespace": func() error {
			_, err := s.DescribeSchedule(ctx, &workflowservice.DescribeScheduleRequest{Namespace: other, ScheduleId: "s"})
			return err
		},
		"a namespace by its ID": func() error {
			_, err := s.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: own, Id: otherID})
			return err
		},
		"a versioned worker": func() error {
			_, err := s.PollWorkflowTaskQueue(ctx, &workflowservice.PollWorkflowTaskQueueRequest{Namespace: own, TaskQueue: begin.TaskQueue,
				DeploymentOptions: &deploymentpb.WorkerDeploymentOptions{DeploymentName: "d", BuildId: "1", WorkerVersioningMode: enumspb.WORKER_VERSIONING_MODE_VERSIONED}})
			return err
		},
		"register a namespace": func() error {
			_, err := s.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{Namespace: own})
			return err
		},
		"list namespaces": func() error {
			_, err := s.ListNamespaces(ctx, &workflowservice.ListNamespacesRequest{})
			return err
		},
		"update the own namespace": func() error {
			_, err := s.UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{Namespace: own})
			return err
		},
		"a batch operation": func() error {
			_, err := s.StartBatchOperation(ctx, &workflowservice.StartBatchOperationRequest{Namespace: own, JobId: "j"})
			return err
		},
		"a Nexus task": func() error {
			_, err := s.PollNexusTaskQueue(ctx, &workflowservice.PollNexusTaskQueueRequest{Namespace: own, TaskQueue: begin.TaskQueue})
			return err
		},
		"answer a Nexus task": func() error {
			_, err := s.RespondNexusTaskCompleted(ctx, &workflowservice.RespondNexusTaskCompletedRequest{Namespace: own, TaskToken: token(ownID), Response: &nexuspb.Response{}})
			return err
		},
		"the state of the cluster": func() error {
			_, err := s.GetClusterInfo(ctx, &workflowservice.GetClusterInfoRequest{})
			return err
		},
		"another service": func() error {
			return s.conn.Invoke(ctx, "/temporal.api.operatorservice.v1.OperatorService/ListSearchAttributes", &workflowservice.ListNamespacesRequest{}, &workflowservice.ListNamespacesResponse{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := call()
			if code := status.Code(err); code != codes.PermissionDenied && code != codes.Unimplemented {
				t.Errorf("got %v, want PermissionDenied", err)
			}
		})
	}
	if err := startWith(func(*workflowservice.StartWorkflowExecutionRequest) {})(); err != nil {
		t.Errorf("without anything forbidden: %v, want success", err)
	}
	large := startWith(func(r *workflowservice.StartWorkflowExecutionRequest) {
		r.WorkflowId, r.Input = "large", &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: bytes.Repeat([]byte("x"), 5<<20)}}}
	})
	if err := large(); status.Code(err) != codes.ResourceExhausted && status.Code(err) != codes.InvalidArgument {
		t.Errorf("a message of 5 MiB: %v, want a refusal", err)
	}
}

// A user with many pollers takes nothing from the others.
func TestPollersAreLimited(t *testing.T) {
	workflowsOf(t, "flood", "editor")
	workflowsOf(t, "beside", "approver")
	temporalOf(t, shared.as("editor"), "flood")
	quiet := temporalOf(t, shared.as("approver"), "beside")
	ctx, cancel := context.WithTimeout(from(t, "editor-token", "hykube.flood"), 2*deadline) // Temporal refuses a poll without a time limit
	defer cancel()
	refused := make(chan error, 300)
	var pollers sync.WaitGroup
	for range 3 { // a connection has 250 streams at most
		s := newRaw(t)
		for range 100 {
			pollers.Go(func() {
				_, err := s.PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{Namespace: "hykube.flood", TaskQueue: &taskqueuepb.TaskQueue{Name: "q"}})
				if status.Code(err) == codes.ResourceExhausted {
					refused <- err
				}
			})
		}
	}
	for range 200 {
		select {
		case <-refused:
		case <-time.After(deadline):
			t.Fatalf("of 300 pollers, only %d were refused", len(refused))
		}
	}
	echoWorker(t, quiet)
	run, err := quiet.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "beside", TaskQueue: "mine"}, echo, "hello")
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := run.Get(t.Context(), &got); err != nil || got != "HELLO" {
		t.Errorf("a workflow beside the flood: %q, %v", got, err)
	}
	cancel()
	pollers.Wait()
}

// The runs of a removed namespace do not belong to the next one of its name.
func TestANewNamespaceHasNoOldRuns(t *testing.T) {
	workflowsOf(t, "again", "editor")
	c := temporalOf(t, shared.as("editor"), "again")
	if _, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "old", TaskQueue: "mine"}, echo, "secret of the old namespace"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the run is listed", func() bool {
		page, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{})
		return err == nil && len(page.GetExecutions()) == 1
	})
	namespaces := core(t, shared.admin()).CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), "again", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is removed", func() bool {
		_, err := namespaces.Get(t.Context(), "again", metav1.GetOptions{})
		return err != nil
	})
	workflowsOf(t, "again", "approver")
	next := temporalOf(t, shared.as("approver"), "again")
	if d, err := next.DescribeWorkflowExecution(t.Context(), "old", ""); err == nil {
		t.Errorf("the user of the new namespace sees the old run: %v", d.GetWorkflowExecutionInfo().GetStatus())
	}
	page, err := next.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{})
	if err != nil || len(page.GetExecutions()) != 0 {
		t.Errorf("the new namespace lists %d runs, %v", len(page.GetExecutions()), err)
	}
}
