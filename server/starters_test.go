package server_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	commandpb "go.temporal.io/api/command/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ownership"
	"github.com/hykube/hykube/sdk/steps"
)

// In these tests, the user "approver" is the worker of the queue "privileged" and may read Roles. The user "editor" may
// not. The activity "readRoles" is a step that needs this right.

// privileges are the activities of the privileged worker.
type privileges struct {
	client    kubernetes.Interface
	itself    kubernetes.Interface // without steps.OnBehalf
	namespace string
	texts     chan string // what the worker sends
}

// privileged makes a namespace and starts its worker.
func privileged(t *testing.T, namespace string) (worker, editor client.Client, texts chan string) {
	t.Helper()
	workflowsOf(t, namespace, "editor", "approver")
	bindRole(t, namespace, "admin", "approver")
	worker, editor = temporalOf(t, shared.as("approver"), namespace), temporalOf(t, shared.as("editor"), namespace)
	p := &privileges{namespace: namespace, texts: make(chan string, 100)}
	config := rest.CopyConfig(shared.as("approver"))
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return seen{inner, p.texts} })
	p.client, p.itself = core(t, steps.OnBehalf(config)), core(t, shared.as("approver"))
	serve(t, worker, "privileged", p)
	serve(t, editor, "own", nil)
	return worker, editor, p.texts
}

// bindRole gives a user a ClusterRole in a namespace.
func bindRole(t *testing.T, namespace, role, user string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user + "-" + role}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
	if _, err := core(t, shared.admin()).RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// seen keeps the texts with which a worker acts for others.
type seen struct {
	inner http.RoundTripper
	texts chan string
}

func (s seen) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case s.texts <- r.Header.Get(v1alpha1.HeaderOnBehalfOf):
	default:
	}
	return s.inner.RoundTrip(r)
}

// serve runs a worker of a queue.
func serve(t *testing.T, c client.Client, queue string, p *privileges) {
	t.Helper()
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(act, workflow.RegisterOptions{Name: "act"})
	if p != nil {
		w.RegisterActivityWithOptions(p.readRoles, activity.RegisterOptions{Name: "readRoles"})
		w.RegisterActivityWithOptions(p.readRolesItself, activity.RegisterOptions{Name: "readRolesItself"})
		w.RegisterActivityWithOptions(p.bindItself, activity.RegisterOptions{Name: "bindItself"})
	}
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
}

// readRoles reads the Roles of a namespace, or of that of the worker. It returns "done" or "forbidden".
func (p *privileges) readRoles(ctx context.Context, in string) (string, error) {
	_, err := p.client.RbacV1().Roles(cmp.Or(in, p.namespace)).List(ctx, metav1.ListOptions{})
	return didOrForbidden(err)
}

// bindItself gives the user of the worker all rights in the namespace.
func (p *privileges) bindItself(ctx context.Context) (string, error) {
	_, err := p.client.RbacV1().RoleBindings(p.namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "made-"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "approver"}}}, metav1.CreateOptions{})
	return didOrForbidden(err)
}

// readRolesItself is readRoles without steps.OnBehalf.
func (p *privileges) readRolesItself(ctx context.Context) (string, error) {
	_, err := p.itself.RbacV1().Roles(p.namespace).List(ctx, metav1.ListOptions{})
	return didOrForbidden(err)
}

func didOrForbidden(err error) (string, error) {
	switch {
	case err == nil:
		return "done", nil
	case apierrors.IsForbidden(err):
		return "forbidden", nil
	}
	return "", err
}

// way is how a workflow reaches the privileged worker.
type way struct {
	Child    bool   // by a child on its queue
	Continue bool   // by continuing on its queue
	Signal   bool   // after a signal
	Check    bool   // after an activity of the queue "checks"
	Update   bool   // after an update
	Local    bool   // by a local activity
	In       string // in another namespace
	Activity string // by another activity than readRoles
}

// act is a workflow that runs readRoles on the privileged worker.
func act(ctx workflow.Context, how way) (out string, err error) {
	switch {
	case how.Child:
		ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{TaskQueue: "privileged"})
		how.Child = false
		err = workflow.ExecuteChildWorkflow(ctx, "act", how).Get(ctx, &out)
		return out, err
	case how.Continue:
		return "", workflow.NewContinueAsNewError(workflow.WithTaskQueue(ctx, "privileged"), "act", way{})
	case how.Signal:
		workflow.GetSignalChannel(ctx, "go").Receive(ctx, nil)
	case how.Update:
		updated := false
		if err := workflow.SetUpdateHandler(ctx, "go", func(workflow.Context) error { updated = true; return nil }); err != nil {
			return "", err
		}
		if err := workflow.Await(ctx, func() bool { return updated }); err != nil {
			return "", err
		}
	case how.Local:
		ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute})
		err = workflow.ExecuteLocalActivity(ctx, "readRoles", how.In).Get(ctx, &out)
		return out, err
	case how.Check:
		check := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: "checks", StartToCloseTimeout: time.Minute})
		if err := workflow.ExecuteActivity(check, "check").Get(ctx, nil); err != nil {
			return "", err
		}
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: "privileged", StartToCloseTimeout: time.Minute})
	if how.Activity != "" {
		err = workflow.ExecuteActivity(ctx, how.Activity).Get(ctx, &out)
		return out, err
	}
	err = workflow.ExecuteActivity(ctx, "readRoles", how.In).Get(ctx, &out)
	return out, err
}

// outcome waits for the result of a workflow.
func outcome(t *testing.T, c client.Client, id string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	var out string
	if err := c.GetWorkflow(ctx, id, "").Get(ctx, &out); err != nil {
		t.Fatalf("workflow %s: %v", id, err)
	}
	return out
}

// TestWorkflowsActForTheirStarter reaches a privileged worker by each way in which a workflow can.
func TestWorkflowsActForTheirStarter(t *testing.T) {
	trusted, editor, texts := privileged(t, "acts")
	workflowsOf(t, "acts-prod", "editor")
	bindRole(t, "acts-prod", "admin", "approver")
	start := func(c client.Client, id, queue string, how way) {
		t.Helper()
		if _, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: queue}, "act", how); err != nil {
			t.Fatal(err)
		}
	}
	for id, tc := range map[string]struct {
		by    client.Client
		queue string
		how   way
		want  string
	}{
		"own-worker":          {trusted, "privileged", way{}, "done"},
		"own-child":           {trusted, "privileged", way{Child: true}, "done"},
		"own-continue":        {trusted, "privileged", way{Continue: true}, "done"},
		"activity":            {editor, "own", way{}, "forbidden"},
		"workflow":            {editor, "privileged", way{}, "forbidden"},
		"child":               {editor, "own", way{Child: true}, "forbidden"},
		"continue":            {editor, "own", way{Continue: true}, "forbidden"},
		"others-worker":       {trusted, "own", way{}, "forbidden"}, // the editor's worker decides what it does
		"others-worker-child": {trusted, "own", way{Child: true}, "forbidden"},
		"own-elsewhere":       {trusted, "privileged", way{In: "acts-prod"}, "done"},
		"elsewhere":           {editor, "privileged", way{In: "acts-prod"}, "forbidden"},
		"child-continue":      {editor, "own", way{Child: true, Continue: true}, "forbidden"},
		"own-child-continue":  {trusted, "privileged", way{Child: true, Continue: true}, "done"},
	} {
		start(tc.by, id, tc.queue, tc.how)
		if got := outcome(t, tc.by, id); got != tc.want {
			t.Errorf("%s: %s, want %s", id, got, tc.want)
		}
	}
	if _, err := editor.SignalWithStartWorkflow(t.Context(), "with-signal", "go", nil, client.StartWorkflowOptions{TaskQueue: "privileged"}, "act", way{Signal: true}); err != nil {
		t.Fatal(err)
	}
	if got := outcome(t, editor, "with-signal"); got != "forbidden" {
		t.Errorf("a start with a signal: %s", got)
	}
	updateWithStart := func(c client.Client, id string) {
		t.Helper()
		first := c.NewWithStartWorkflowOperation(client.StartWorkflowOptions{ID: id, TaskQueue: "privileged", WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING}, "act", way{Update: true})
		handle, err := c.UpdateWithStartWorkflow(t.Context(), client.UpdateWithStartWorkflowOptions{StartWorkflowOperation: first,
			UpdateOptions: client.UpdateWorkflowOptions{UpdateName: "go", WaitForStage: client.WorkflowUpdateStageCompleted}})
		if err == nil {
			err = handle.Get(t.Context(), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	start(trusted, "updated-by-another", "privileged", way{Update: true})
	for id, by := range map[string]struct {
		client client.Client
		want   string
	}{"own-with-update": {trusted, "done"}, "with-update": {editor, "forbidden"}, "updated-by-another": {editor, "forbidden"}} {
		updateWithStart(by.client, id)
		if got := outcome(t, trusted, id); got != by.want {
			t.Errorf("%s: %s, want %s", id, got, by.want)
		}
	}
	start(editor, "local", "privileged", way{Local: true})
	if err := editor.GetWorkflow(t.Context(), "local", "").Get(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "does not know who started the workflow") {
		t.Errorf("a local activity: %v, want a refusal", err)
	}
	for id, by := range map[string]struct {
		client client.Client
		want   string
	}{"signal-own": {trusted, "done"}, "signal": {editor, "forbidden"}} {
		start(trusted, id, "privileged", way{Signal: true})
		if err := by.client.SignalWorkflow(t.Context(), id, "", "go", nil); err != nil {
			t.Fatal(err)
		}
		if got := outcome(t, trusted, id); got != by.want {
			t.Errorf("%s: %s, want %s", id, got, by.want)
		}
	}
	t.Run("a stolen text", func(t *testing.T) {
		for len(texts) > 0 {
			<-texts
		}
		start(editor, "for-text", "privileged", way{})
		outcome(t, editor, "for-text")
		text := <-texts
		if text == "" {
			t.Fatal("the worker sent no text")
		}
		for name, sent := range map[string]string{"of another worker": text, "changed": text[:len(text)-1] + "x", "none": "x"} {
			config := rest.CopyConfig(shared.as("editor"))
			config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return sends{inner, sent} })
			if _, err := core(t, config).CoreV1().ConfigMaps("acts").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
				t.Errorf("a text %s: %v, want Forbidden", name, err)
			}
		}
	})
}

// sends sets the header of a worker.
type sends struct {
	inner http.RoundTripper
	text  string
}

func (s sends) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(v1alpha1.HeaderOnBehalfOf, s.text)
	return s.inner.RoundTrip(r)
}

// scheduleReadRoles returns the command that schedules readRoles, with a header.
func scheduleReadRoles(header *commonpb.Header) *commandpb.Command {
	return &commandpb.Command{CommandType: enumspb.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK, Attributes: &commandpb.Command_ScheduleActivityTaskCommandAttributes{
		ScheduleActivityTaskCommandAttributes: &commandpb.ScheduleActivityTaskCommandAttributes{
			ActivityId: "1", ActivityType: &commonpb.ActivityType{Name: "readRoles"}, TaskQueue: &taskqueuepb.TaskQueue{Name: "privileged"},
			Input:               &commonpb.Payloads{Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(`""`)}}},
			StartToCloseTimeout: durationpb.New(time.Minute), ScheduleToCloseTimeout: durationpb.New(time.Minute), Header: header,
		}}}
}

// resultOf waits for the result of the first activity of a run.
func resultOf(t *testing.T, c client.Client, id string) (result string, header *commonpb.Header) {
	t.Helper()
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for events := c.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
			e, err := events.Next()
			if err != nil {
				t.Fatal(err)
			}
			if a := e.GetWorkflowExecutionStartedEventAttributes(); a != nil {
				header = a.GetHeader()
			}
			if a := e.GetActivityTaskCompletedEventAttributes(); a != nil {
				return string(a.GetResult().GetPayloads()[0].GetData()), header
			}
		}
	}
	t.Fatalf("no activity of workflow %s ended", id)
	return "", nil
}

// TestAnswersOfOthersTakePart answers the tasks of a privileged workflow as another user.
func TestAnswersOfOthersTakePart(t *testing.T) {
	trusted, _, _ := privileged(t, "answers")
	s := newRaw(t)
	const namespace = "hykube.answers"
	ctx, cancel := context.WithTimeout(from(t, "editor-token", namespace), deadline)
	defer cancel()
	poll := func(queue string) *workflowservice.PollWorkflowTaskQueueResponse {
		t.Helper()
		for {
			task, err := s.PollWorkflowTaskQueue(ctx, &workflowservice.PollWorkflowTaskQueueRequest{Namespace: namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: queue}})
			if err != nil {
				t.Fatal(err)
			}
			if len(task.GetTaskToken()) > 0 {
				return task
			}
		}
	}
	// The workflow has a stamp of the privileged user, which the editor copies.
	if _, err := trusted.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "donor", TaskQueue: "privileged"}, "act", way{}); err != nil {
		t.Fatal(err)
	}
	got, stolen := resultOf(t, trusted, "donor")
	if got != `"done"` || len(stolen.GetFields()) == 0 {
		t.Fatalf("the privileged workflow: %s with the header %v", got, stolen)
	}
	t.Run("a workflow task", func(t *testing.T) {
		if _, err := trusted.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "theirs", TaskQueue: "bare"}, "act", way{}); err != nil {
			t.Fatal(err)
		}
		task := poll("bare")
		if _, err := s.RespondWorkflowTaskCompleted(ctx, &workflowservice.RespondWorkflowTaskCompletedRequest{
			Namespace: namespace, TaskToken: task.GetTaskToken(), Identity: `{"username":"approver","trusted":true}`, Commands: []*commandpb.Command{scheduleReadRoles(nil)},
		}); err != nil {
			t.Fatal(err)
		}
		if got, _ := resultOf(t, trusted, "theirs"); got != `"forbidden"` {
			t.Errorf("an activity that another user scheduled: %s", got)
		}
	})
	t.Run("a stolen stamp", func(t *testing.T) {
		if _, err := s.StartWorkflowExecution(ctx, &workflowservice.StartWorkflowExecutionRequest{Namespace: namespace, WorkflowId: "mine", RequestId: uuid.NewString(), Header: stolen,
			WorkflowType: &commonpb.WorkflowType{Name: "act"}, TaskQueue: &taskqueuepb.TaskQueue{Name: "bare-mine"}, Identity: `{"username":"approver"}`}); err != nil {
			t.Fatal(err)
		}
		task := poll("bare-mine")
		if _, err := s.RespondWorkflowTaskCompleted(ctx, &workflowservice.RespondWorkflowTaskCompletedRequest{
			Namespace: namespace, TaskToken: task.GetTaskToken(), Commands: []*commandpb.Command{scheduleReadRoles(stolen)},
		}); err != nil {
			t.Fatal(err)
		}
		if got, _ := resultOf(t, trusted, "mine"); got != `"forbidden"` {
			t.Errorf("an activity with the stamp of another run: %s", got)
		}
	})
	t.Run("an activity task", func(t *testing.T) {
		if _, err := trusted.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "checked", TaskQueue: "privileged"}, "act", way{Check: true}); err != nil {
			t.Fatal(err)
		}
		for {
			task, err := s.PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{Namespace: namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: "checks"}})
			if err != nil {
				t.Fatal(err)
			}
			if len(task.GetTaskToken()) == 0 {
				continue
			}
			if _, err := s.RespondActivityTaskCompleted(ctx, &workflowservice.RespondActivityTaskCompletedRequest{Namespace: namespace, TaskToken: task.GetTaskToken()}); err != nil {
				t.Fatal(err)
			}
			break
		}
		if got := outcome(t, trusted, "checked"); got != "forbidden" {
			t.Errorf("after the answer of another user: %s", got)
		}
	})
}

// TestRightsOnTaskQueues has a user whose role names one queue.
func TestRightsOnTaskQueues(t *testing.T) {
	const namespace = "queues"
	trusted, _, _ := privileged(t, namespace)
	client := core(t, shared.admin()).RbacV1()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "narrow"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"hykube.io"}, Resources: []string{"workflows"},
		Verbs: []string{"get", "create", "update", "delete", "work"}, ResourceNames: []string{"narrow", "helped"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "narrow"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "narrow"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "viewer"}}}
	if _, err := client.Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	narrow := temporalOf(t, shared.as("viewer"), namespace)
	serve(t, narrow, "narrow", nil)
	begin(t, trusted, "theirs", "privileged", way{Signal: true})
	begin(t, narrow, "own", "narrow", way{Signal: true})
	s := newRaw(t)
	const own = "hykube." + namespace
	ctx, cancel := context.WithTimeout(from(t, "viewer-token", own), deadline)
	defer cancel()
	queue := func(name string) *taskqueuepb.TaskQueue { return &taskqueuepb.TaskQueue{Name: name} }
	run := func(id string) *commonpb.WorkflowExecution { return &commonpb.WorkflowExecution{WorkflowId: id} }
	for name, call := range map[string]func(queue, id string) error{
		"start": func(q, _ string) error {
			_, err := s.StartWorkflowExecution(ctx, &workflowservice.StartWorkflowExecutionRequest{Namespace: own, WorkflowId: uuid.NewString(), RequestId: uuid.NewString(), WorkflowType: &commonpb.WorkflowType{Name: "none"}, TaskQueue: queue(q)})
			return err
		},
		"signal with start": func(q, _ string) error {
			_, err := s.SignalWithStartWorkflowExecution(ctx, &workflowservice.SignalWithStartWorkflowExecutionRequest{Namespace: own, WorkflowId: uuid.NewString(), RequestId: uuid.NewString(), SignalName: "x", WorkflowType: &commonpb.WorkflowType{Name: "none"}, TaskQueue: queue(q)})
			return err
		},
		"schedule": func(q, _ string) error {
			_, err := s.CreateSchedule(ctx, &workflowservice.CreateScheduleRequest{Namespace: own, ScheduleId: uuid.NewString(), RequestId: uuid.NewString(), Schedule: daily(q)})
			return err
		},
		"describe": func(_, id string) error {
			_, err := s.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{Namespace: own, Execution: run(id)})
			return err
		},
		"history": func(_, id string) error {
			_, err := s.GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{Namespace: own, Execution: run(id)})
			return err
		},
		"signal": func(_, id string) error {
			_, err := s.SignalWorkflowExecution(ctx, &workflowservice.SignalWorkflowExecutionRequest{Namespace: own, WorkflowExecution: run(id), SignalName: "x"})
			return err
		},
		"cancel": func(_, id string) error {
			_, err := s.RequestCancelWorkflowExecution(ctx, &workflowservice.RequestCancelWorkflowExecutionRequest{Namespace: own, WorkflowExecution: run(id)})
			return err
		},
		"queue": func(q, _ string) error {
			_, err := s.DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{Namespace: own, TaskQueue: queue(q)})
			return err
		},
		"pause": func(_, id string) error {
			_, err := s.PauseActivity(ctx, &workflowservice.PauseActivityRequest{Namespace: own, Execution: run(id), Activity: &workflowservice.PauseActivityRequest_Id{Id: "none"}})
			return ignoreNotFound(err)
		},
		"poll": func(q, _ string) error {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := s.PollActivityTaskQueue(short, &workflowservice.PollActivityTaskQueueRequest{Namespace: own, TaskQueue: queue(q)})
			return ignoreDeadline(err)
		},
		"sticky poll": func(q, _ string) error {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := s.PollWorkflowTaskQueue(short, &workflowservice.PollWorkflowTaskQueueRequest{Namespace: own, TaskQueue: &taskqueuepb.TaskQueue{Name: "x", Kind: enumspb.TASK_QUEUE_KIND_STICKY, NormalName: q}})
			return ignoreDeadline(err)
		},
		"answer by ID": func(_, id string) error {
			_, err := s.RespondActivityTaskCompletedById(ctx, &workflowservice.RespondActivityTaskCompletedByIdRequest{Namespace: own, WorkflowId: id, ActivityId: "none"})
			return ignoreNotFound(err)
		},
		"terminate": func(_, id string) error {
			_, err := s.TerminateWorkflowExecution(ctx, &workflowservice.TerminateWorkflowExecutionRequest{Namespace: own, WorkflowExecution: run(id)})
			return ignoreNotFound(err)
		},
	} {
		if err := call("privileged", "theirs"); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s on another queue: %v, want PermissionDenied", name, err)
		}
		if name == "terminate" {
			continue // the others need the run
		}
		if err := call("narrow", "own"); err != nil {
			t.Errorf("%s on the own queue: %v", name, err)
		}
	}
	if _, err := s.ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: own}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a list of all queues: %v, want PermissionDenied", err)
	}
	// A workflow of this user reaches no other queue, also if a worker with all rights answers its tasks. Temporal shows why, and
	// repeats the task.
	serve(t, trusted, "helped", nil)
	for _, q := range []string{"narrow", "helped"} {
		id := "beyond-" + q
		begin(t, narrow, id, q, way{})
		for end := time.Now().Add(deadline); ; time.Sleep(50 * time.Millisecond) {
			if why := lastTaskFailure(t, narrow, id); strings.Contains(why, `lacks the verb "create" on workflows.hykube.io with the task queue "privileged"`) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("no failed workflow task of %s says that the user may not use the queue", id)
			}
		}
	}
}

func begin(t *testing.T, c client.Client, id, queue string, how way) {
	t.Helper()
	if _, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: queue}, "act", how); err != nil {
		t.Fatal(err)
	}
}

func ignoreNotFound(err error) error {
	if status.Code(err) == codes.NotFound || status.Code(err) == codes.InvalidArgument {
		return nil
	}
	return err
}

// ignoreDeadline accepts the answers to a poll that ends at once. Temporal refuses one with a short time limit.
func ignoreDeadline(err error) error {
	if status.Code(err) == codes.FailedPrecondition || status.Code(err) == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

func lastTaskFailure(t *testing.T, c client.Client, id string) (why string) {
	t.Helper()
	for events := c.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		if a := e.GetWorkflowTaskFailedEventAttributes(); a != nil {
			why = a.GetFailure().GetMessage()
		}
	}
	return why
}

// daily returns a schedule that starts act on a queue once a day.
func daily(queue string) *schedulepb.Schedule {
	return &schedulepb.Schedule{
		Spec: &schedulepb.ScheduleSpec{Interval: []*schedulepb.IntervalSpec{{Interval: durationpb.New(24 * time.Hour)}}},
		Action: &schedulepb.ScheduleAction{Action: &schedulepb.ScheduleAction_StartWorkflow{StartWorkflow: &workflowpb.NewWorkflowExecutionInfo{
			WorkflowId: "daily", WorkflowType: &commonpb.WorkflowType{Name: "act"}, TaskQueue: &taskqueuepb.TaskQueue{Name: queue},
			Input: &commonpb.Payloads{Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte("{}")}}},
		}}},
	}
}

// TestSchedulesOfUsers runs a schedule as its owner, as others, and after the owner lost the rights.
func TestSchedulesOfUsers(t *testing.T) {
	const namespace = "schedules"
	trusted, editor, _ := privileged(t, namespace)
	admin := temporalOf(t, shared.admin(), namespace)
	const own = "hykube." + namespace
	create := func(c client.Client, id string) {
		t.Helper()
		if _, err := c.WorkflowService().CreateSchedule(t.Context(), &workflowservice.CreateScheduleRequest{Namespace: own, ScheduleId: id, RequestId: uuid.NewString(), Schedule: daily("privileged")}); err != nil {
			t.Fatal(err)
		}
	}
	trigger := func(c client.Client, id string) error {
		return c.ScheduleClient().GetHandle(t.Context(), id).Trigger(t.Context(), client.ScheduleTriggerOptions{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL})
	}
	last := func(schedule string, runs int) string {
		t.Helper()
		for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			d, err := admin.ScheduleClient().GetHandle(t.Context(), schedule).Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(d.Info.RecentActions) >= runs {
				return d.Info.RecentActions[runs-1].StartWorkflowResult.WorkflowID
			}
		}
		t.Fatalf("schedule %s has not run", schedule)
		return ""
	}
	create(trusted, "trusted")
	create(editor, "editors")
	if err := trigger(trusted, "trusted"); err != nil {
		t.Fatal(err)
	}
	if got := outcome(t, trusted, last("trusted", 1)); got != "done" {
		t.Errorf("the schedule of the privileged user: %s", got)
	}
	if err := trigger(editor, "trusted"); err == nil || !strings.Contains(err.Error(), "update it to make it yours") {
		t.Errorf("a run of another user's schedule: %v, want a refusal", err)
	}
	// Who updates a schedule becomes its owner.
	err := editor.ScheduleClient().GetHandle(t.Context(), "trusted").Update(t.Context(), client.ScheduleUpdateOptions{DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		return &client.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := trigger(editor, "trusted"); err != nil {
		t.Fatal(err)
	}
	if got := outcome(t, trusted, last("trusted", 2)); got != "forbidden" {
		t.Errorf("the schedule after another user's update: %s", got)
	}
	// The owner loses the right. The administrator may run the schedule.
	begin(t, editor, "waiting", "own", way{Signal: true})
	eventually(t, "the list has what runs, with its owners", func() bool {
		list := owned(t, shared.as("editor"), namespace)
		return gocmp.Equal(list.Workflows, []ownership.Workflow{{ID: "waiting", Type: "act", TaskQueue: "own", StartedBy: "editor"}}, cmpopts.IgnoreFields(ownership.Workflow{}, "RunID", "StartedAt")) &&
			len(list.Schedules) == 2 && list.Schedules[0].Owner == "editor" && list.Schedules[1].Owner == "editor" && list.Schedules[0].Next != nil
	})
	for path, want := range map[string]int{"/workflows/" + namespace: http.StatusForbidden, "/workflows/": http.StatusForbidden, "/workflows/" + namespace + "/x": http.StatusForbidden} {
		if got := statusOf(t, shared.as("viewer"), path); got != want {
			t.Errorf("%s for a user without the right: %d, want %d", path, got, want)
		}
	}
	if err := core(t, shared.admin()).RbacV1().RoleBindings(namespace).Delete(t.Context(), "editor", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(deadline); ; time.Sleep(50 * time.Millisecond) {
		if _, err := editor.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Namespace: own}); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the editor still has the right")
		}
	}
	if err := trigger(admin, "editors"); err != nil {
		t.Fatal(err)
	}
	ended := last("editors", 1)
	_, terminated := errors.AsType[*temporal.TerminatedError](admin.GetWorkflow(t.Context(), ended, "").Get(t.Context(), nil))
	if !terminated {
		t.Errorf("the run of a user without the right was not terminated")
	}
	d, err := admin.ScheduleClient().GetHandle(t.Context(), "editors").Describe(t.Context())
	if err != nil || !d.Schedule.State.Paused || !strings.Contains(d.Schedule.State.Note, `user "editor" lacks the verb "create"`) {
		t.Errorf("the schedule: paused %t with the note %q, %v", d.Schedule.State.Paused, d.Schedule.State.Note, err)
	}
	for end := time.Now().Add(deadline); ; time.Sleep(50 * time.Millisecond) {
		events, err := core(t, shared.admin()).CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		told := slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.Reason == v1alpha1.ReasonStarterLostRight && strings.Contains(e.Message, `paused the schedule "editors"`)
		})
		if told {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("no Event says that the schedule was paused: %v", events.Items)
		}
	}
}

// TestResetsOfOthersRuns resets another user's run.
func TestResetsOfOthersRuns(t *testing.T) {
	const namespace = "reruns"
	trusted, editor, _ := privileged(t, namespace)
	begin(t, trusted, "once", "privileged", way{})
	outcome(t, trusted, "once")
	reset := func(c client.Client) error {
		_, err := c.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
			Namespace: "hykube." + namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: "once"}, RequestId: uuid.NewString(), WorkflowTaskFinishEventId: 4})
		return err
	}
	if err := reset(editor); err == nil || !strings.Contains(err.Error(), `acts for "approver"`) {
		t.Errorf("a reset by another user: %v, want a refusal", err)
	}
	for name, c := range map[string]client.Client{"the starter": trusted, "an administrator": temporalOf(t, shared.admin(), namespace)} {
		if err := reset(c); err != nil {
			t.Errorf("a reset by %s: %v", name, err)
		}
		if got := outcome(t, trusted, "once"); got != "done" {
			t.Errorf("after a reset by %s: %s", name, got)
		}
	}
}

// owned returns the list of what runs in a namespace.
func owned(t *testing.T, config *rest.Config, namespace string) (list ownership.List) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Get(shared.URL() + ownership.Path + namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list
}

func statusOf(t *testing.T, config *rest.Config, path string) int {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Get(shared.URL() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}
