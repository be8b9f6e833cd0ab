package temporalapi

import (
	"context"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxResetEvents is the maximum number of events of a run that is reset. Temporal writes all pending timers and signals
// of the new run with one statement. SQLite refuses one with 32,767 parameters, which are about 5,000 timers, and
// Temporal then reloads the shard that all namespaces share.
const maxResetEvents = 4000

// checkReset returns an error if a request resets a long run, or if its namespace resets runs too often. It pins the
// request to the run that it has checked. ctx is that of a request for Temporal.
func (s *Service) checkReset(ctx context.Context, namespace string, message any) error {
	m, ok := message.(*workflowservice.ResetWorkflowExecutionRequest)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	d, err := s.temporal.DescribeWorkflowExecution(ctx,
		&workflowservice.DescribeWorkflowExecutionRequest{Namespace: m.GetNamespace(),
			Execution: m.GetWorkflowExecution()})
	if err != nil {
		return err
	}
	info := d.GetWorkflowExecutionInfo()
	events := info.GetHistoryLength()
	switch {
	case events+int64(len(m.GetPostResetOperations())) > maxResetEvents:
		return status.Errorf(codes.FailedPrecondition,
			"the run has %d events, and this server resets runs of at most %d: terminate it, and start a new workflow",
			events, maxResetEvents)
	case m.GetWorkflowTaskFinishEventId() > events: // the run could have many more events when Temporal resets it
		return status.Errorf(codes.InvalidArgument, "the run has %d events, so it cannot be reset to event %d", events,
			m.GetWorkflowTaskFinishEventId())
	case info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return status.Error(codes.FailedPrecondition,
			"the run has continued as new, and its reset would repeat the signals of all later runs: reset the current run, or start a new workflow")
	case !s.resets.allow(namespace, 1, time.Now()):
		return status.Errorf(codes.ResourceExhausted,
			"namespace %q may reset %d runs at once, and then one in %s; try again later", namespace, resetBurst,
			resetEvery)
	}
	m.WorkflowExecution = &commonpb.WorkflowExecution{WorkflowId: info.GetExecution().GetWorkflowId(),
		RunId: info.GetExecution().GetRunId()}
	return nil
}
