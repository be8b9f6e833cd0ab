package temporalapi

import (
	"context"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/rights"
	"github.com/hykube/hykube/server/starter"
)

// This file finds for whom a run acts: the user who started it, and the users whose answers, signals and updates it
// has.

const (
	// eventPage is the number of events of a page. An event may have a payload of 512 KiB.
	eventPage = 100
	// maxOwnAnswer is the maximum size of a page in bytes.
	maxOwnAnswer = 128 << 20
	// maxChildren is the maximum depth of children whose histories are read for one run.
	maxChildren = 5
	// scheduledBy is the search attribute with the schedule that started a run.
	scheduledBy = "TemporalScheduledById"
)

// run is a run of a workflow in a Kubernetes namespace.
type run struct {
	namespace  string
	workflowID string
	runID      string
}

func (r run) execution() *commonpb.WorkflowExecution {
	return &commonpb.WorkflowExecution{WorkflowId: r.workflowID, RunId: r.runID}
}

// actsFor returns for whom a run acts. A stamp in an event has all users of the events before it, so it reads
// the history backwards to the last stamp. ctx is that of a request for Temporal.
func (s *Service) actsFor(ctx context.Context, r run, depth int) (v1alpha1.Identity, error) {
	request := &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: v1alpha1.TemporalNamespace(r.namespace), Execution: r.execution(), MaximumPageSize: eventPage,
	}
	var joined []v1alpha1.WorkflowUser
	for {
		page, err := s.temporal.GetWorkflowExecutionHistoryReverse(ctx, request, grpc.MaxCallRecvMsgSize(maxOwnAnswer))
		if err != nil {
			return v1alpha1.Identity{}, err
		}
		for _, e := range page.GetHistory().GetEvents() {
			if who, ok := s.stampOf(ctx, r, e); ok {
				return rights.Join(who, joined...), nil
			}
			users, err := s.usersOf(ctx, r, e, depth)
			if err != nil {
				return v1alpha1.Identity{}, err
			}
			joined = append(joined, users...)
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return v1alpha1.Identity{}, status.Errorf(codes.PermissionDenied,
				"the server does not know who started workflow %q, run %s; start it again", r.workflowID, r.runID)
		}
	}
}

// stampOf returns the users of the stamp in an event of a run; ok is false if it has none.
func (s *Service) stampOf(ctx context.Context, r run, e *historypb.HistoryEvent) (who v1alpha1.Identity, ok bool) {
	header, kind, id := (*commonpb.Header)(nil), starter.OfRun, r.workflowID
	switch a := e.GetAttributes().(type) {
	case *historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes:
		started := a.WorkflowExecutionStartedEventAttributes
		header = started.GetHeader()
		if schedule := scheduleOf(started.GetSearchAttributes()); schedule != "" {
			if who, ok := s.verify(ctx, header, starter.OfSchedule, r.namespace, schedule); ok {
				return who, true
			}
		}
	case *historypb.HistoryEvent_ActivityTaskScheduledEventAttributes:
		header = a.ActivityTaskScheduledEventAttributes.GetHeader()
	case *historypb.HistoryEvent_StartChildWorkflowExecutionInitiatedEventAttributes:
		child := a.StartChildWorkflowExecutionInitiatedEventAttributes
		header, id = child.GetHeader(), child.GetWorkflowId()
	}
	return s.verify(ctx, header, kind, r.namespace, id)
}

// verify returns the users of the stamp in a header.
func (s *Service) verify(ctx context.Context, header *commonpb.Header, kind starter.Kind, namespace,
	id string) (who v1alpha1.Identity, ok bool) {
	payload := header.GetFields()[starter.Header]
	if payload == nil {
		return who, false
	}
	who, err := s.config.Stamps.Verify(ctx, string(payload.GetData()), kind, namespace, id)
	return who, err == nil
}

// scheduleOf returns the ID of the schedule that started a run, from its search attributes; "" if none did.
func scheduleOf(attributes *commonpb.SearchAttributes) (id string) {
	payload := attributes.GetIndexedFields()[scheduledBy]
	if payload == nil || converter.GetDefaultDataConverter().FromPayload(payload, &id) != nil {
		return ""
	}
	return id
}

// usersOf returns the users who decided the content of an event.
func (s *Service) usersOf(ctx context.Context, r run, e *historypb.HistoryEvent,
	depth int) ([]v1alpha1.WorkflowUser, error) {
	switch a := e.GetAttributes().(type) {
	case *historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes:
		return decodeClient(a.WorkflowTaskCompletedEventAttributes.GetIdentity()), nil
	case *historypb.HistoryEvent_ActivityTaskCompletedEventAttributes:
		return decodeClient(a.ActivityTaskCompletedEventAttributes.GetIdentity()), nil
	case *historypb.HistoryEvent_ActivityTaskFailedEventAttributes:
		return decodeClient(a.ActivityTaskFailedEventAttributes.GetIdentity()), nil
	case *historypb.HistoryEvent_ActivityTaskCanceledEventAttributes:
		return decodeClient(a.ActivityTaskCanceledEventAttributes.GetIdentity()), nil
	case *historypb.HistoryEvent_WorkflowExecutionUpdateAcceptedEventAttributes:
		return decodeClient(a.WorkflowExecutionUpdateAcceptedEventAttributes.GetAcceptedRequest().GetMeta().
			GetIdentity()), nil
	case *historypb.HistoryEvent_WorkflowExecutionUpdateAdmittedEventAttributes:
		return decodeClient(a.WorkflowExecutionUpdateAdmittedEventAttributes.GetRequest().GetMeta().GetIdentity()), nil
	case *historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes:
		signal := a.WorkflowExecutionSignaledEventAttributes
		// another workflow sent it
		if from, ok := s.verify(ctx, signal.GetHeader(), starter.OfRun, r.namespace, r.workflowID); ok {
			return allOf(from), nil
		}
		return decodeClient(signal.GetIdentity()), nil
	case *historypb.HistoryEvent_ChildWorkflowExecutionCompletedEventAttributes:
		return s.usersOfChild(ctx, r, a.ChildWorkflowExecutionCompletedEventAttributes.GetWorkflowExecution(), depth)
	case *historypb.HistoryEvent_ChildWorkflowExecutionFailedEventAttributes:
		return s.usersOfChild(ctx, r, a.ChildWorkflowExecutionFailedEventAttributes.GetWorkflowExecution(), depth)
	case *historypb.HistoryEvent_ChildWorkflowExecutionCanceledEventAttributes:
		return s.usersOfChild(ctx, r, a.ChildWorkflowExecutionCanceledEventAttributes.GetWorkflowExecution(), depth)
	}
	return nil, nil
}

// usersOfChild returns the users who decided the result of a child. If its history is gone, or too deep, that is a
// user without rights.
func (s *Service) usersOfChild(ctx context.Context, r run, child *commonpb.WorkflowExecution,
	depth int) ([]v1alpha1.WorkflowUser, error) {
	unknown := []v1alpha1.WorkflowUser{{Username: unknownUser}}
	if depth == maxChildren {
		return unknown, nil
	}
	last, err := s.lastOf(ctx, run{r.namespace, child.GetWorkflowId(), child.GetRunId()})
	var who v1alpha1.Identity
	if err == nil {
		who, err = s.actsFor(ctx, last, depth+1)
	}
	switch status.Code(err) {
	case codes.OK:
		return allOf(who), nil
	case codes.NotFound, codes.PermissionDenied:
		return unknown, nil
	}
	return nil, err
}

// lastOf returns the last run of the chain that a run of a child began. Its stamp has the users of those before it. An
// error is NotFound if another workflow has the ID meanwhile.
func (s *Service) lastOf(ctx context.Context, child run) (run, error) {
	describe := func(runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
		return s.temporal.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
			Namespace: v1alpha1.TemporalNamespace(child.namespace),
			Execution: &commonpb.WorkflowExecution{WorkflowId: child.workflowID, RunId: runID},
		})
	}
	latest, err := describe("")
	if err != nil {
		return child, err
	}
	info := latest.GetWorkflowExecutionInfo()
	if id := info.GetExecution().GetRunId(); id == child.runID || info.GetFirstRunId() == child.runID {
		child.runID = id
		return child, nil
	}
	own, err := describe(child.runID)
	if err != nil {
		return child, err
	}
	if own.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
		return child, status.Error(codes.NotFound, "another workflow has the ID of the child")
	}
	return child, nil
}

// allOf returns all users of an identity.
func allOf(who v1alpha1.Identity) []v1alpha1.WorkflowUser {
	return append([]v1alpha1.WorkflowUser{rights.WorkerOf(who)}, who.Through...)
}
