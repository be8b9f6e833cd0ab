package temporalapi

import (
	"context"

	commandpb "go.temporal.io/api/command/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/server/common/tasktoken"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/rights"
	"github.com/hykube/hykube/server/starter"
)

// This file puts stamps into the headers of workflows, activities and signals, and checks the rights of those for whom
// a workflow acts.

// caller is the user of a request, and its namespace.
type caller struct {
	client
	namespace string
	// queue is the task queue of the task that the request answers; empty if it answers none.
	queue string
	// updaters are the users whose updates that task has.
	updaters []v1alpha1.WorkflowUser
}

// stamp puts stamps into a request. It returns an error if those for whom a workflow acts lack a right. ctx is that of
// a request for Temporal.
func (s *Service) stamp(ctx context.Context, by caller, message any) error {
	switch m := message.(type) {
	case *workflowservice.StartWorkflowExecutionRequest:
		return s.stampRun(ctx, by.namespace, by.Identity, &m.Header, &m.Memo, m.GetWorkflowId())
	case *workflowservice.SignalWithStartWorkflowExecutionRequest:
		return s.stampRun(ctx, by.namespace, by.Identity, &m.Header, &m.Memo, m.GetWorkflowId())
	case *workflowservice.ExecuteMultiOperationRequest:
		for _, o := range m.GetOperations() {
			if start := o.GetStartWorkflow(); start != nil {
				if err := s.stampRun(ctx, by.namespace, by.Identity, &start.Header, &start.Memo,
					start.GetWorkflowId()); err != nil {
					return err
				}
			}
		}
	case *workflowservice.CreateScheduleRequest:
		action := m.GetSchedule().GetAction().GetStartWorkflow()
		if action == nil {
			return nil // Temporal refuses it
		}
		return s.stampHeader(ctx, by.namespace, by.Identity, &action.Header, &action.Memo, starter.OfSchedule,
			m.GetScheduleId())
	case *workflowservice.UpdateScheduleRequest:
		return s.takeSchedule(ctx, by, m)
	case *workflowservice.PatchScheduleRequest:
		return s.checkTrigger(ctx, by, m)
	case *workflowservice.ResetWorkflowExecutionRequest:
		return s.checkRerun(ctx, by, m)
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		return s.stampCommands(ctx, by, m)
	}
	return nil
}

func (s *Service) stampRun(ctx context.Context, namespace string, who v1alpha1.Identity, header **commonpb.Header,
	memo **commonpb.Memo, workflowID string) error {
	return s.stampHeader(ctx, namespace, who, header, memo, starter.OfRun, workflowID)
}

// stampHeader puts a stamp into a header, and the name of the user into a memo unless that is nil.
func (s *Service) stampHeader(ctx context.Context, namespace string, who v1alpha1.Identity, header **commonpb.Header,
	memo **commonpb.Memo, kind starter.Kind, id string) error {
	text, err := s.config.Stamps.Sign(ctx, starter.Stamp{Kind: kind, Namespace: namespace, ID: id, For: who})
	if err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	setHeader(header, starter.Header, text)
	if memo == nil {
		return nil
	}
	name, err := converter.GetDefaultDataConverter().ToPayload(who.Username)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if *memo == nil {
		*memo = &commonpb.Memo{}
	}
	if (*memo).Fields == nil {
		(*memo).Fields = map[string]*commonpb.Payload{}
	}
	(*memo).Fields[starter.Memo] = name
	return nil
}

func setHeader(header **commonpb.Header, key, text string) {
	if *header == nil {
		*header = &commonpb.Header{}
	}
	if (*header).Fields == nil {
		(*header).Fields = map[string]*commonpb.Payload{}
	}
	(*header).Fields[key] = &commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(
		converter.MetadataEncodingBinary)}, Data: []byte(text)}
}

// stampCommands stamps what a workflow starts or sends. Those are for the user who started the workflow, with all
// who took part in it so far.
func (s *Service) stampCommands(ctx context.Context, by caller,
	m *workflowservice.RespondWorkflowTaskCompletedRequest) error {
	r, err := runOfToken(by.namespace, m.GetTaskToken())
	if err != nil {
		return err
	}
	acts := false
	for _, c := range m.GetCommands() {
		acts = acts || actsAs(c)
	}
	if !acts {
		return s.mustStillRun(ctx, by, r)
	}
	who, err := s.actsFor(ctx, r, 0)
	if err != nil {
		return err
	}
	if err := s.mustBeStarter(ctx, by.namespace, by.queue, r, who); err != nil {
		return err
	}
	who = rights.Join(who, by.updaters...)
	if !by.Trusted {
		who = rights.Join(rights.Join(who, rights.WorkerOf(by.Identity)), by.Through...)
	}
	for _, c := range m.GetCommands() {
		if err := s.stampCommand(ctx, by, r, who, c); err != nil {
			s.failTask(ctx, m, err)
			return err
		}
	}
	return nil
}

// actsAs reports whether a command needs a stamp.
func actsAs(c *commandpb.Command) bool {
	switch c.GetAttributes().(type) {
	case *commandpb.Command_ScheduleActivityTaskCommandAttributes,
		*commandpb.Command_StartChildWorkflowExecutionCommandAttributes,
		*commandpb.Command_ContinueAsNewWorkflowExecutionCommandAttributes,
		*commandpb.Command_SignalExternalWorkflowExecutionCommandAttributes,
		*commandpb.Command_RequestCancelExternalWorkflowExecutionCommandAttributes:
		return true
	}
	return false
}

func (s *Service) stampCommand(ctx context.Context, by caller, r run, who v1alpha1.Identity,
	c *commandpb.Command) error {
	switch a := c.GetAttributes().(type) {
	case *commandpb.Command_ScheduleActivityTaskCommandAttributes:
		activity := a.ScheduleActivityTaskCommandAttributes
		if err := s.mayUse(ctx, by, who, normal(activity.GetTaskQueue())); err != nil {
			return err
		}
		return s.stampHeader(ctx, r.namespace, who, &activity.Header, nil, starter.OfRun, r.workflowID)
	case *commandpb.Command_StartChildWorkflowExecutionCommandAttributes:
		child := a.StartChildWorkflowExecutionCommandAttributes
		if err := s.mayUse(ctx, by, who, normal(child.GetTaskQueue())); err != nil {
			return err
		}
		return s.stampRun(ctx, r.namespace, who, &child.Header, &child.Memo, child.GetWorkflowId())
	case *commandpb.Command_ContinueAsNewWorkflowExecutionCommandAttributes:
		next := a.ContinueAsNewWorkflowExecutionCommandAttributes
		if err := s.mayUse(ctx, by, who, normal(next.GetTaskQueue())); err != nil {
			return err
		}
		return s.stampRun(ctx, r.namespace, who, &next.Header, &next.Memo, r.workflowID)
	case *commandpb.Command_SignalExternalWorkflowExecutionCommandAttributes:
		signal := a.SignalExternalWorkflowExecutionCommandAttributes
		if err := s.mayReach(ctx, by, who, signal.GetExecution()); err != nil {
			return err
		}
		return s.stampHeader(ctx, r.namespace, who, &signal.Header, nil, starter.OfRun,
			signal.GetExecution().GetWorkflowId())
	case *commandpb.Command_RequestCancelExternalWorkflowExecutionCommandAttributes:
		cancel := a.RequestCancelExternalWorkflowExecutionCommandAttributes
		return s.mayReach(ctx, by, who,
			&commonpb.WorkflowExecution{WorkflowId: cancel.GetWorkflowId(), RunId: cancel.GetRunId()})
	}
	return nil
}

// mayUse returns an error if a workflow may not start something on a task queue: its starter may not, or the worker
// that wants it. An empty queue is that of the workflow. A worker may also use a queue that it works on.
func (s *Service) mayUse(ctx context.Context, by caller, who v1alpha1.Identity, queue string) error {
	if queue == "" || queue == by.queue {
		return nil // the starter's right was checked, and the worker works on it
	}
	if err := s.mustOn(ctx, alone(who), "create", by.namespace, queue); err != nil {
		return err
	}
	works, err := s.may(ctx, by.Identity, VerbWork, by.namespace, queue)
	if err != nil || works {
		return err
	}
	return s.mustOn(ctx, by.Identity, "create", by.namespace, queue)
}

// mayReach returns an error if a workflow may not signal or cancel another one.
func (s *Service) mayReach(ctx context.Context, by caller, who v1alpha1.Identity,
	target *commonpb.WorkflowExecution) error {
	for _, user := range []v1alpha1.Identity{alone(who), by.Identity} {
		all, err := s.may(ctx, user, "update", by.namespace, "")
		if err != nil {
			return err
		}
		if all {
			continue
		}
		queue, err := s.queueOfRun(ctx, v1alpha1.TemporalNamespace(by.namespace), target)
		if status.Code(err) == codes.NotFound {
			return nil // the workflow gets that answer from Temporal
		}
		if err != nil {
			return err
		}
		if err := s.mustOn(ctx, user, "update", by.namespace, queue); err != nil {
			return err
		}
	}
	return nil
}

// alone returns the user who started a workflow without those who took part in it.
func alone(who v1alpha1.Identity) v1alpha1.Identity {
	who.Through = nil
	return who
}

// failTask fails a workflow task, so that its history says why. Temporal repeats the task.
func (s *Service) failTask(ctx context.Context, m *workflowservice.RespondWorkflowTaskCompletedRequest, why error) {
	if status.Code(why) != codes.PermissionDenied {
		return
	}
	// If Temporal does not take it, the task times out.
	_, _ = s.temporal.RespondWorkflowTaskFailed(ctx, &workflowservice.RespondWorkflowTaskFailedRequest{
		Namespace: m.GetNamespace(), TaskToken: m.GetTaskToken(), Identity: m.GetIdentity(),
		Cause:   enumspb.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE,
		Failure: &failurepb.Failure{Message: status.Convert(why).Message(), Source: "hykube"},
	})
}

// runOfToken returns the run of a task token of Temporal.
func runOfToken(namespace string, token []byte) (run, error) {
	t, err := tasktoken.NewSerializer().Deserialize(token)
	if err != nil {
		return run{}, status.Error(codes.InvalidArgument, "the task token is invalid")
	}
	return run{namespace, t.GetWorkflowId(), t.GetRunId()}, nil
}
