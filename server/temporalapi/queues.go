package temporalapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
)

// This file checks the rights on task queues. A role may name queues in resourceNames; one without names gives the
// right on all queues of the namespace.

// VerbRerun is the verb for what runs a workflow again for the user who started it: the reset of another user's run,
// and a run of another user's schedule.
const VerbRerun = "rerun"

// may reports whether a user has a verb on workflows of a task queue. An empty queue means all queues.
func (s *Service) may(ctx context.Context, who v1alpha1.Identity, verb, namespace, queue string) (bool, error) {
	ok, err := s.config.Access.May(ctx, who,
		store.Right{Verb: verb, Namespace: namespace, Group: v1alpha1.GroupName, Resource: Resource, Name: queue})
	if err != nil {
		return false, status.Errorf(codes.Unavailable, "check the rights of user %q: %v", who.Username, err)
	}
	return ok, nil
}

// mustOn returns an error if a user lacks a verb on workflows of a task queue.
func (s *Service) mustOn(ctx context.Context, who v1alpha1.Identity, verb, namespace, queue string) error {
	ok, err := s.may(ctx, who, verb, namespace, queue)
	if err != nil || ok {
		return err
	}
	return status.Errorf(codes.PermissionDenied,
		"user %q lacks the verb %q on workflows.%s with the task queue %q in namespace %q; ask for a role with it",
		who.Username, verb, v1alpha1.GroupName, queue, namespace)
}

// authorize returns an error if a user lacks the verb of a method on the task queues of a request. named is true if the
// user has it by a role that names the queues. queue is that of the task token. ctx is that of a request for Temporal.
func (s *Service) authorize(ctx context.Context, who v1alpha1.Identity, verb, namespace, queue string,
	message any) (named bool, err error) {
	if ok, err := s.may(ctx, who, verb, namespace, ""); ok || err != nil {
		return false, err
	}
	if _, ok := message.(*workflowservice.DescribeNamespaceRequest); ok {
		return true, nil // each worker begins with it, and Authorizer has found a role for some queue
	}
	queues := queuesOf(message)
	switch {
	case queue != "":
		queues = []string{queue}
	case len(queues) == 0:
		if queue, err = s.queueOfTarget(ctx, message); err != nil {
			return false, err
		}
		queues = []string{queue}
	}
	for _, queue := range queues {
		if err := s.mustOn(ctx, who, verb, namespace, queue); err != nil {
			return false, err
		}
	}
	return true, nil
}

// queuesOf returns the task queues that a request names.
func queuesOf(message any) []string {
	switch m := message.(type) {
	case *workflowservice.StartWorkflowExecutionRequest:
		return []string{m.GetTaskQueue().GetName()}
	case *workflowservice.SignalWithStartWorkflowExecutionRequest:
		return []string{m.GetTaskQueue().GetName()}
	case *workflowservice.ExecuteMultiOperationRequest:
		var queues []string
		for _, o := range m.GetOperations() {
			if start := o.GetStartWorkflow(); start != nil {
				queues = append(queues, start.GetTaskQueue().GetName())
			}
		}
		return queues
	case *workflowservice.CreateScheduleRequest:
		return []string{m.GetSchedule().GetAction().GetStartWorkflow().GetTaskQueue().GetName()}
	case *workflowservice.UpdateScheduleRequest:
		return []string{m.GetSchedule().GetAction().GetStartWorkflow().GetTaskQueue().GetName()}
	case *workflowservice.PollWorkflowTaskQueueRequest:
		return []string{normal(m.GetTaskQueue())}
	case *workflowservice.PollActivityTaskQueueRequest:
		return []string{normal(m.GetTaskQueue())}
	case *workflowservice.DescribeTaskQueueRequest:
		return []string{normal(m.GetTaskQueue())}
	case *workflowservice.ShutdownWorkerRequest:
		if m.GetTaskQueue() != "" {
			return []string{m.GetTaskQueue()}
		}
	}
	return nil
}

// polled returns the task queue that a worker polls; "" for another request.
func polled(message any) string {
	switch m := message.(type) {
	case *workflowservice.PollWorkflowTaskQueueRequest:
		return normal(m.GetTaskQueue())
	case *workflowservice.PollActivityTaskQueueRequest:
		return normal(m.GetTaskQueue())
	}
	return ""
}

// normal returns the name of a task queue, or of the one to which a sticky queue belongs.
func normal(q *taskqueuepb.TaskQueue) string {
	if q.GetKind() == enumspb.TASK_QUEUE_KIND_STICKY {
		return q.GetNormalName()
	}
	return q.GetName()
}

// queueOfTarget returns the task queue of the run or the schedule that a request is about.
func (s *Service) queueOfTarget(ctx context.Context, message any) (string, error) {
	if m, ok := message.(interface{ GetScheduleId() string }); ok {
		_, queue, err := s.schedule(ctx, message.(interface{ GetNamespace() string }).GetNamespace(), m.GetScheduleId())
		return queue, err
	}
	execution := targetOf(message)
	if execution.GetWorkflowId() == "" {
		return "", status.Error(codes.PermissionDenied,
			"the request is about all task queues, and the roles of the user name some: ask for a role without resourceNames")
	}
	return s.queueOfRun(ctx, message.(interface{ GetNamespace() string }).GetNamespace(), execution)
}

func (s *Service) queueOfRun(ctx context.Context, namespace string,
	execution *commonpb.WorkflowExecution) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	d, err := s.temporal.DescribeWorkflowExecution(ctx,
		&workflowservice.DescribeWorkflowExecutionRequest{Namespace: namespace, Execution: execution})
	return d.GetExecutionConfig().GetTaskQueue().GetName(), err
}

// targetOf returns the run that a request is about; nil if it is about none.
func targetOf(message any) *commonpb.WorkflowExecution {
	switch m := message.(type) {
	case interface {
		GetWorkflowExecution() *commonpb.WorkflowExecution
	}:
		return m.GetWorkflowExecution()
	case interface {
		GetExecution() *commonpb.WorkflowExecution
	}:
		return m.GetExecution()
	case *workflowservice.PollWorkflowExecutionUpdateRequest:
		return m.GetUpdateRef().GetWorkflowExecution()
	case interface {
		GetWorkflowId() string
		GetRunId() string
	}:
		return &commonpb.WorkflowExecution{WorkflowId: m.GetWorkflowId(), RunId: m.GetRunId()}
	}
	return nil
}

// ownSticky gives the sticky queues in a request names of their own for each user. The name of a sticky queue is in the
// history of a run, and who polls it gets the tasks of the run.
func ownSticky(message any, user string) error {
	sum := sha256.Sum256([]byte(user))
	prefix := hex.EncodeToString(sum[:8]) + ":"
	own := func(q *taskqueuepb.TaskQueue) error {
		switch q.GetKind() {
		case enumspb.TASK_QUEUE_KIND_STICKY:
			q.Name = prefix + q.Name
		case enumspb.TASK_QUEUE_KIND_UNSPECIFIED, enumspb.TASK_QUEUE_KIND_NORMAL:
		default:
			return status.Error(codes.PermissionDenied,
				fmt.Sprintf("this server has no task queues of the kind %s for users", q.GetKind()))
		}
		return nil
	}
	switch m := message.(type) {
	case *workflowservice.PollWorkflowTaskQueueRequest:
		return own(m.GetTaskQueue())
	case *workflowservice.PollActivityTaskQueueRequest:
		return own(m.GetTaskQueue())
	case *workflowservice.DescribeTaskQueueRequest:
		return own(m.GetTaskQueue())
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		if q := m.GetStickyAttributes().GetWorkerTaskQueue(); q != nil {
			return own(q)
		}
	case *workflowservice.ShutdownWorkerRequest:
		if m.StickyTaskQueue != "" {
			m.StickyTaskQueue = prefix + m.StickyTaskQueue
		}
	}
	return nil
}
