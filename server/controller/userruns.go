package controller

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/sdk/steps"
	"github.com/hykube/hykube/server/starter"
)

// UserRuns starts and reads the workflow runs of stacks in the Temporal namespaces of users. The memo of a run names
// its stack and the state of that stack. So a server that stops between a start and the write of the status finds the
// run. Users may start workflows there, too, with any ID and memo. So the memo has a signature, and no user can guess
// the request ID of a start.
type UserRuns struct {
	Service workflowservice.WorkflowServiceClient
	// Prepare makes the Temporal namespace of a namespace, and Room returns an error if the namespace may not start a
	// number of workflows. Their errors are those of gRPC.
	Prepare func(ctx context.Context, namespace string) (id string, err error)
	Room    func(ctx context.Context, namespace string, starts int, schedule bool) error
	// Key returns the key of the signatures, which no user knows.
	Key func(ctx context.Context) ([]byte, error)
	// Stamps signs that a workflow acts for the author of its stack.
	Stamps starter.Signer
}

const (
	// runMemo is the key of the memo that says for which stack a run was started.
	runMemo = "hykubeStack"
	// serverIdentity is the identity of the server's requests in the histories of workflows.
	serverIdentity = "hykube"
	// runCall is the maximum time of a request to Temporal that does not wait.
	runCall = 10 * time.Second
	// maxFailure is the maximum length of the message of a failed run in bytes.
	maxFailure = 2000
	// maxFailureType is the maximum length of the type of the error of a run in bytes.
	maxFailureType = 100
	// polledFor is the time for which a poll of a worker counts. A worker polls at least once a minute.
	polledFor = 90 * time.Second
)

// binary is the metadata of a payload with bytes.
var binary = map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingBinary)}

// runNote is the value of runMemo.
type runNote struct {
	Stack types.UID `json:"stackUID"`
	v1alpha1.RunOrigin
	// Signature authenticates the other fields.
	Signature string `json:"signature,omitempty"`
}

// sign returns the signature of a note.
func (n runNote) sign(key []byte) string {
	n.Signature = ""
	h := hmac.New(sha256.New, key)
	// Encoding plain strings and numbers into a hash cannot fail.
	_ = json.NewEncoder(h).Encode(n)
	return hex.EncodeToString(h.Sum(nil))
}

// userRun is a workflow run, as Temporal knows it.
type userRun struct {
	v1alpha1.StackRun
	// stack is the UID of the stack that started the run; empty if none did.
	stack types.UID
	// queue is the task queue of the workflow, and queued the time since which the run waits for a worker; zero if it
	// does not.
	queue  string
	queued time.Time
	// attempt is the number of the attempt of a worker to continue the workflow; 0 if it waits for something else.
	attempt int32
}

// Start starts the workflow of a stack. An attempt after a crash, or one whose answer was lost, returns the same run.
func (r *UserRuns) Start(ctx context.Context, s *v1alpha1.Stack, origin v1alpha1.RunOrigin,
	plan v1alpha1.PlanSpec) (*userRun, error) {
	ctx, cancel := context.WithTimeout(ctx, runCall)
	defer cancel()
	if _, err := r.Prepare(ctx, s.Namespace); err != nil {
		return nil, err
	}
	if err := r.Room(ctx, s.Namespace, 1, false); err != nil {
		return nil, err
	}
	input := steps.StackInput{Namespace: s.Namespace, Stack: s.Name, Reason: origin.Trigger, Generation: s.Generation,
		Plan: plan}
	if in := s.Spec.Workflow.Input; in != nil {
		input.Input = in.Raw
	}
	convert := converter.GetDefaultDataConverter()
	argument, err := convert.ToPayloads(input)
	if err != nil {
		return nil, fmt.Errorf("encode the argument of the workflow: %w", err)
	}
	key, err := r.Key(ctx)
	if err != nil {
		return nil, err
	}
	noted := runNote{Stack: s.UID, RunOrigin: origin}
	noted.Signature = noted.sign(key)
	note, err := convert.ToPayload(noted)
	if err != nil {
		return nil, fmt.Errorf("encode the memo of the workflow: %w", err)
	}
	summary, err := convert.ToPayload(fmt.Sprintf("stack %s/%s, %s", s.Namespace, s.Name, origin.Trigger))
	if err != nil {
		return nil, fmt.Errorf("encode the summary of the workflow: %w", err)
	}
	id := v1alpha1.WorkflowIDOfStack(s.Name)
	if s.Status.Author == nil {
		return nil, status.Error(codes.PermissionDenied, "the stack has no author, for whom the workflow would act")
	}
	stamp, err := r.Stamps.Sign(ctx,
		starter.Stamp{Kind: starter.OfRun, Namespace: s.Namespace, ID: id, For: *s.Status.Author})
	if err != nil {
		return nil, err
	}
	startedBy, err := convert.ToPayload(s.Status.Author.Username)
	if err != nil {
		return nil, fmt.Errorf("encode the memo of the workflow: %w", err)
	}
	started, err := r.Service.StartWorkflowExecution(ctx, &workflowservice.StartWorkflowExecutionRequest{
		Namespace: v1alpha1.TemporalNamespace(s.Namespace), WorkflowId: id, Input: argument,
		WorkflowType: &commonpb.WorkflowType{Name: s.Spec.Workflow.Type},
		TaskQueue:    &taskqueuepb.TaskQueue{Name: s.Spec.Workflow.TaskQueue},
		RequestId:    noted.Signature, Identity: serverIdentity,
		WorkflowIdReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIdConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{runMemo: note,
			starter.Memo: startedBy}},
		Header: &commonpb.
			Header{Fields: map[string]*commonpb.Payload{starter.Header: {Metadata: binary, Data: []byte(stamp)}}},
		UserMetadata: &sdkpb.UserMetadata{Summary: summary},
	})
	if err != nil {
		return nil, err
	}
	run := &userRun{stack: s.UID}
	run.WorkflowID, run.RunID, run.FirstRunID, run.RunOrigin, run.StartedAt = id, started.GetRunId(),
		started.GetRunId(), origin, metav1.Now()
	return run, nil
}

// Read returns a run of a workflow; nil if Temporal does not have it. An empty run ID means the current, or else the
// last run.
func (r *UserRuns) Read(ctx context.Context, namespace, workflowID, runID string) (*userRun, error) {
	ctx, cancel := context.WithTimeout(ctx, runCall)
	defer cancel()
	if _, err := r.Prepare(ctx, namespace); err != nil {
		return nil, err
	}
	at := &commonpb.WorkflowExecution{WorkflowId: workflowID, RunId: runID}
	found, err := r.Service.DescribeWorkflowExecution(ctx,
		&workflowservice.DescribeWorkflowExecutionRequest{Namespace: v1alpha1.TemporalNamespace(namespace),
			Execution: at})
	if status.Code(err) == codes.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read workflow %q: %w", workflowID, err)
	}
	key, err := r.Key(ctx)
	if err != nil {
		return nil, err
	}
	info := found.GetWorkflowExecutionInfo()
	run := runOf(info, key)
	run.queue = found.GetExecutionConfig().GetTaskQueue().GetName()
	run.attempt = found.GetPendingWorkflowTask().GetAttempt()
	if task := found.GetPendingWorkflowTask(); task.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED {
		run.queued = task.GetScheduledTime().AsTime()
	}
	for _, a := range found.GetPendingActivities() {
		if a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED && a.GetScheduledTime().IsValid() &&
			!a.GetScheduledTime().AsTime().After(time.Now()) {
			run.queued = a.GetScheduledTime().AsTime()
		}
	}
	if run.Outcome == "" {
		return run, nil
	}
	run.EndedAt = new(metav1.NewTime(info.GetCloseTime().AsTime()))
	return run, r.readEnd(ctx, namespace, run)
}

// First returns the ID of the first run of the workflow of which a run is a continuation; "" if Temporal does not have
// the run. Users may write the run ID.
func (r *UserRuns) First(ctx context.Context, namespace, workflowID, runID string) (string, error) {
	if runID == "" { // for Temporal, that is the current run
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, runCall)
	defer cancel()
	found, err := r.Service.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: v1alpha1.TemporalNamespace(namespace),
		Execution: &commonpb.WorkflowExecution{WorkflowId: workflowID, RunId: runID},
	})
	switch status.Code(err) {
	case codes.OK:
		return found.GetWorkflowExecutionInfo().GetFirstRunId(), nil
	case codes.NotFound, codes.InvalidArgument:
		return "", nil
	}
	return "", fmt.Errorf("read workflow %q: %w", workflowID, err)
}

// runOf returns a run as a list of workflows has it, without its end. A run whose memo has another signature is of no
// stack.
func runOf(info *workflowpb.WorkflowExecutionInfo, key []byte) *userRun {
	run := &userRun{}
	run.WorkflowID, run.RunID = info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId()
	run.FirstRunID, run.StartedAt = info.GetFirstRunId(), metav1.NewTime(info.GetStartTime().AsTime())
	var note runNote
	err := converter.GetDefaultDataConverter().FromPayload(info.GetMemo().GetFields()[runMemo], &note)
	if err == nil && hmac.Equal([]byte(note.Signature), []byte(note.sign(key))) {
		run.stack, run.RunOrigin = note.Stack, note.RunOrigin
	}
	run.Outcome = map[enumspb.WorkflowExecutionStatus]v1alpha1.RunOutcome{
		enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:  v1alpha1.RunCompleted,
		enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:     v1alpha1.RunFailed,
		enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:  v1alpha1.RunTimedOut,
		enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED: v1alpha1.RunTerminated,
		enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:   v1alpha1.RunCancelled,
		// Its next run is gone, or Read would have found that.
		enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW: v1alpha1.RunLost,
	}[info.GetStatus()]
	return run
}

// readEnd sets the reason why a run that ended did not complete. A run that the server terminated counts as cancelled,
// because no worker had begun it.
func (r *UserRuns) readEnd(ctx context.Context, namespace string, run *userRun) error {
	last, err := r.close(ctx, namespace, &commonpb.WorkflowExecution{WorkflowId: run.WorkflowID, RunId: run.RunID},
		false)
	if err != nil {
		return fmt.Errorf("read the end of workflow %q: %w", run.WorkflowID, err)
	}
	message := ""
	switch {
	case last.GetWorkflowExecutionFailedEventAttributes() != nil:
		failure := cause(last.GetWorkflowExecutionFailedEventAttributes().GetFailure())
		message, run.FailureType = failure.GetMessage(),
			oneLine(failure.GetApplicationFailureInfo().GetType(), maxFailureType)
	case last.GetWorkflowExecutionTerminatedEventAttributes() != nil:
		ended := last.GetWorkflowExecutionTerminatedEventAttributes()
		if message = ended.GetReason(); ended.GetIdentity() == serverIdentity {
			run.Outcome = v1alpha1.RunCancelled
		}
	case run.Outcome == v1alpha1.RunCancelled:
		if message, err = r.whyCancelled(ctx, namespace, run); err != nil {
			return err
		}
	}
	run.Message = oneLine(message, maxFailure)
	return nil
}

// whyCancelled returns the reason in the last request to cancel a run; "" if its last events have none.
func (r *UserRuns) whyCancelled(ctx context.Context, namespace string, run *userRun) (string, error) {
	page, err := r.Service.GetWorkflowExecutionHistoryReverse(ctx,
		&workflowservice.GetWorkflowExecutionHistoryReverseRequest{
			Namespace: v1alpha1.TemporalNamespace(namespace), MaximumPageSize: 100,
			Execution: &commonpb.WorkflowExecution{WorkflowId: run.WorkflowID, RunId: run.RunID},
		})
	if status.Code(err) == codes.NotFound {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the end of workflow %q: %w", run.WorkflowID, err)
	}
	for _, e := range page.GetHistory().GetEvents() {
		if requested := e.GetWorkflowExecutionCancelRequestedEventAttributes(); requested != nil {
			return requested.GetCause(), nil
		}
	}
	return "", nil
}

// oneLine returns a text of a user's worker as one line of at most limit bytes.
func oneLine(text string, limit int) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""),
		func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }), " ")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit-3], "") + "..."
	}
	return text
}

// cause returns the failure that explains another one. That of a failed step says only that an activity failed.
func cause(f *failurepb.Failure) *failurepb.Failure {
	for f.GetCause() != nil && (f.GetActivityFailureInfo() != nil || f.GetChildWorkflowExecutionFailureInfo() != nil) {
		f = f.GetCause()
	}
	return f
}

// close returns the event that ended a run, and nil if the run has not ended. With wait, it waits for the end of the
// run, but Temporal may answer without an event after some time.
func (r *UserRuns) close(ctx context.Context, namespace string, run *commonpb.WorkflowExecution,
	wait bool) (*historypb.HistoryEvent, error) {
	request := &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: v1alpha1.TemporalNamespace(namespace), Execution: run, WaitNewEvent: wait,
		HistoryEventFilterType: enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT,
	}
	for {
		page, err := r.Service.GetWorkflowExecutionHistory(ctx, request)
		if err != nil {
			return nil, err
		}
		if events := page.GetHistory().GetEvents(); len(events) > 0 {
			return events[len(events)-1], nil
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil, nil
		}
	}
}

// Await returns when a run has ended, or Temporal does not have it.
func (r *UserRuns) Await(ctx context.Context, namespace, workflowID, runID string) error {
	_, err := r.close(ctx, namespace, &commonpb.WorkflowExecution{WorkflowId: workflowID, RunId: runID}, true)
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return err
}

// Polled reports whether a worker polls a task queue for workflows.
func (r *UserRuns) Polled(ctx context.Context, namespace, taskQueue string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, runCall)
	defer cancel()
	q, err := r.Service.DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: v1alpha1.TemporalNamespace(namespace), TaskQueue: &taskqueuepb.TaskQueue{Name: taskQueue},
		TaskQueueType: enumspb.TASK_QUEUE_TYPE_WORKFLOW,
	})
	if err != nil {
		return false, fmt.Errorf("read task queue %q: %w", taskQueue, err)
	}
	for _, p := range q.GetPollers() {
		if time.Since(p.GetLastAccessTime().AsTime()) < polledFor {
			return true, nil
		}
	}
	return false, nil
}

// End asks a run to end. It terminates a run that no worker has begun, because no worker may ever hear the request. A
// run that has ended is no error.
func (r *UserRuns) End(ctx context.Context, namespace string, run *userRun, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, runCall)
	defer cancel()
	begun, err := r.begun(ctx, namespace, run)
	if err != nil {
		return err
	}
	at := &commonpb.WorkflowExecution{WorkflowId: run.WorkflowID, RunId: run.RunID}
	if begun {
		_, err = r.Service.RequestCancelWorkflowExecution(ctx, &workflowservice.RequestCancelWorkflowExecutionRequest{
			Namespace: v1alpha1.TemporalNamespace(namespace), Identity: serverIdentity, Reason: reason,
			RequestId: string(run.stack) + "-cancel", WorkflowExecution: at,
		})
	} else {
		_, err = r.Service.TerminateWorkflowExecution(ctx, &workflowservice.TerminateWorkflowExecutionRequest{
			Namespace: v1alpha1.TemporalNamespace(namespace), Identity: serverIdentity,
			Reason: reason + " No worker had begun the workflow.", WorkflowExecution: at,
		})
	}
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return err
}

// begun reports whether a worker has run the code of a workflow. Until then, the workflow has changed nothing. One that
// continued as new has begun, although the history of its last run may not show it.
func (r *UserRuns) begun(ctx context.Context, namespace string, run *userRun) (bool, error) {
	if run.RunID != run.FirstRunID {
		return true, nil
	}
	page, err := r.Service.GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: v1alpha1.TemporalNamespace(namespace), MaximumPageSize: 50,
		Execution: &commonpb.WorkflowExecution{WorkflowId: run.WorkflowID, RunId: run.RunID},
	})
	switch {
	case status.Code(err) == codes.NotFound:
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read the history of workflow %q: %w", run.WorkflowID, err)
	}
	completed := slices.ContainsFunc(page.GetHistory().GetEvents(), func(e *historypb.HistoryEvent) bool {
		return e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
	})
	return completed || len(page.GetNextPageToken()) > 0, nil
}

// Running returns the runs of all stacks that go on, by their namespaces.
func (r *UserRuns) Running(ctx context.Context) (map[string][]*userRun, error) {
	out := map[string][]*userRun{}
	spaces := &workflowservice.ListNamespacesRequest{PageSize: 100}
	for {
		page, err := r.Service.ListNamespaces(ctx, spaces)
		if err != nil {
			return nil, fmt.Errorf("list the Temporal namespaces: %w", err)
		}
		for _, d := range page.GetNamespaces() {
			namespace, ok := v1alpha1.NamespaceOfTemporal(d.GetNamespaceInfo().GetName())
			if !ok {
				continue
			}
			if out[namespace], err = r.runningIn(ctx, namespace); err != nil {
				return nil, err
			}
		}
		if spaces.NextPageToken = page.GetNextPageToken(); len(spaces.NextPageToken) == 0 {
			return out, nil
		}
	}
}

func (r *UserRuns) runningIn(ctx context.Context, namespace string) (out []*userRun, err error) {
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: v1alpha1.TemporalNamespace(namespace),
		Query: fmt.Sprintf(`ExecutionStatus = "Running" AND WorkflowId STARTS_WITH %q`,
			v1alpha1.WorkflowIDOfStack("")),
	}
	key, err := r.Key(ctx)
	if err != nil {
		return nil, err
	}
	for {
		page, err := r.Service.ListWorkflowExecutions(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("list the workflows of stacks in namespace %q: %w", namespace, err)
		}
		for _, info := range page.GetExecutions() {
			out = append(out, runOf(info, key))
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return out, nil
		}
	}
}
