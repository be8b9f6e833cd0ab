package temporalapi

import (
	"context"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/starter"
)

// runConnection is a connection to a Temporal with one run.
type runConnection struct {
	grpc.ClientConnInterface
	run *workflowpb.WorkflowExecutionInfo
}

func (c runConnection) Invoke(ctx context.Context, _ string, _, reply any, _ ...grpc.CallOption) error {
	if c.run == nil {
		return status.Error(codes.NotFound, "no such run")
	}
	switch reply := reply.(type) {
	case *workflowservice.DescribeWorkflowExecutionResponse:
		reply.WorkflowExecutionInfo = c.run
	case *workflowservice.GetWorkflowExecutionHistoryReverseResponse:
		reply.History = &historypb.History{Events: []*historypb.HistoryEvent{startedBy(ctx, "u", c.run.GetExecution().GetWorkflowId())}}
	}
	return nil
}

// startedBy returns the first event of a run in namespace a that a user started.
func startedBy(ctx context.Context, who, workflowID string) *historypb.HistoryEvent {
	namespace, _ := metadata.FromOutgoingContext(ctx)
	text, err := testStamps.Sign(ctx, starter.Stamp{Kind: starter.OfRun, Namespace: strings.TrimPrefix(namespace.Get(header)[0], "hykube."), ID: workflowID, For: v1alpha1.Identity{Username: who}})
	if err != nil {
		panic(err)
	}
	attributes := &historypb.WorkflowExecutionStartedEventAttributes{TaskQueue: &taskqueuepb.TaskQueue{Name: "q"}}
	setHeader(&attributes.Header, starter.Header, text)
	return &historypb.HistoryEvent{EventId: 1, Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{WorkflowExecutionStartedEventAttributes: attributes}}
}

func TestResetsOfLongRunsAreRefused(t *testing.T) {
	const running = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	run := func(events int64, state enumspb.WorkflowExecutionStatus) *workflowpb.WorkflowExecutionInfo {
		return &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: "w", RunId: "r"}, HistoryLength: events, Status: state}
	}
	for name, tc := range map[string]struct {
		run        *workflowpb.WorkflowExecutionInfo
		event      int64
		operations int
		want       codes.Code
	}{
		"a short run":               {run(4, running), 4, 0, codes.OK},
		"a finished run":            {run(4, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED), 4, 0, codes.OK},
		"the longest":               {run(4000, running), 4, 0, codes.OK},
		"a long run":                {run(4001, running), 4, 0, codes.FailedPrecondition},
		"many changes after it":     {run(4, running), 4, 3997, codes.FailedPrecondition},
		"an event of the future":    {run(4, running), 5, 0, codes.InvalidArgument},
		"a run with later runs":     {run(4, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW), 4, 0, codes.FailedPrecondition},
		"a run that does not exist": {nil, 4, 0, codes.NotFound},
	} {
		s := serviceOf(t, runConnection{run: tc.run})
		message := &workflowservice.ResetWorkflowExecutionRequest{Namespace: "hykube.a", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: "w"},
			WorkflowTaskFinishEventId: tc.event, PostResetOperations: make([]*workflowpb.PostResetOperation, tc.operations)}
		err := callOf(t, s, "a", "ResetWorkflowExecution", message, func(_ context.Context, forwarded any) (any, error) {
			// Without a run, Temporal would take the current one, which may be a later one than the checked one.
			if got := forwarded.(*workflowservice.ResetWorkflowExecutionRequest).GetWorkflowExecution().GetRunId(); got != "r" {
				t.Errorf("%s: Temporal resets the run %q, want the checked one", name, got)
			}
			return nil, nil
		})
		if status.Code(err) != tc.want {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

func TestResetsAreLimited(t *testing.T) {
	s := serviceOf(t, runConnection{run: &workflowpb.WorkflowExecutionInfo{HistoryLength: 4}})
	if s.resets.limit != rate.Every(5*time.Second) {
		t.Errorf("%v resets in a second", s.resets.limit)
	}
	s.resets.limit = rate.Every(time.Hour)
	reset := func(namespace string) codes.Code {
		return status.Code(callOf(t, s, namespace, "ResetWorkflowExecution",
			&workflowservice.ResetWorkflowExecutionRequest{Namespace: "hykube." + namespace, WorkflowTaskFinishEventId: 4}, accepting))
	}
	for i := range 5 {
		if got := reset("a"); got != codes.OK {
			t.Errorf("reset %d: %v", i+1, got)
		}
	}
	if got := reset("a"); got != codes.ResourceExhausted {
		t.Errorf("reset 6: %v, want %v", got, codes.ResourceExhausted)
	}
	if got := reset("b"); got != codes.OK {
		t.Errorf("a reset in another namespace: %v", got)
	}
}
