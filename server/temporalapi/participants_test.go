package temporalapi

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	updatepb "go.temporal.io/api/update/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/starter"
)

// histories is a connection to a Temporal with runs, by workflow ID.
type histories struct {
	grpc.ClientConnInterface
	of map[string][]*historypb.HistoryEvent
}

func (h histories) Invoke(_ context.Context, _ string, request, reply any, _ ...grpc.CallOption) error {
	switch reply := reply.(type) {
	case *workflowservice.DescribeWorkflowExecutionResponse:
		at := request.(*workflowservice.DescribeWorkflowExecutionRequest).GetExecution()
		if h.of[at.GetWorkflowId()] == nil {
			return status.Error(codes.NotFound, "no such run")
		}
		reply.WorkflowExecutionInfo = &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: at.GetWorkflowId(), RunId: "r"}}
	case *workflowservice.GetWorkflowExecutionHistoryReverseResponse:
		events := h.of[request.(*workflowservice.GetWorkflowExecutionHistoryReverseRequest).GetExecution().GetWorkflowId()]
		reply.History = &historypb.History{}
		for i := range events {
			reply.History.Events = append(reply.History.Events, events[len(events)-1-i])
		}
	}
	return nil
}

func by(user string) string { return client{Identity: v1alpha1.Identity{Username: user}}.encode() }

// TestUsersOfARun has runs of alice, with the users who take part.
func TestUsersOfARun(t *testing.T) {
	s := serviceOf(t, nil)
	header := func(id string, through ...string) *commonpb.Header {
		who := v1alpha1.Identity{Username: "alice"}
		for _, u := range through {
			who.Through = append(who.Through, v1alpha1.WorkflowUser{Username: u})
		}
		var header *commonpb.Header
		if err := s.stampHeader(t.Context(), "a", who, &header, nil, starter.OfRun, id); err != nil {
			t.Fatal(err)
		}
		return header
	}
	started := &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Header: header("w"), Identity: by("mallory")}}}
	answered := func(user string) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
			WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{Identity: user}}}
	}
	signaled := func(user string, header *commonpb.Header) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{Identity: user, Header: header}}}
	}
	child := func(id string) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ChildWorkflowExecutionCompletedEventAttributes{
			ChildWorkflowExecutionCompletedEventAttributes: &historypb.ChildWorkflowExecutionCompletedEventAttributes{WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "r"}}}}
	}
	scheduled := func(header *commonpb.Header) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{Header: header}}}
	}
	trusted := client{Identity: v1alpha1.Identity{Username: "health"}, Trusted: true}.encode()
	for why, tc := range map[string]struct {
		events []*historypb.HistoryEvent
		want   string
	}{
		"nobody else":                      {nil, "alice"},
		"the worker":                       {[]*historypb.HistoryEvent{answered(by("flow")), answered(by("flow"))}, "alice through flow"},
		"the starter is the worker":        {[]*historypb.HistoryEvent{answered(by("alice"))}, "alice"},
		"the server itself":                {[]*historypb.HistoryEvent{signaled("hykube", nil)}, "alice"},
		"a user whose role names a queue":  {[]*historypb.HistoryEvent{answered(trusted)}, "alice"},
		"a signal":                         {[]*historypb.HistoryEvent{signaled(by("mallory"), nil)}, "alice through mallory"},
		"a signal of another workflow":     {[]*historypb.HistoryEvent{signaled("history-service", header("w", "mallory"))}, "alice through mallory"},
		"a signal with a stamp for others": {[]*historypb.HistoryEvent{signaled(by("mallory"), header("other"))}, "alice through mallory"},
		"an update": {[]*historypb.HistoryEvent{{Attributes: &historypb.HistoryEvent_WorkflowExecutionUpdateAcceptedEventAttributes{
			WorkflowExecutionUpdateAcceptedEventAttributes: &historypb.WorkflowExecutionUpdateAcceptedEventAttributes{AcceptedRequest: &updatepb.Request{Meta: &updatepb.Meta{Identity: by("mallory")}}}}}}, "alice through mallory"},
		"a failed activity": {[]*historypb.HistoryEvent{{Attributes: &historypb.HistoryEvent_ActivityTaskFailedEventAttributes{
			ActivityTaskFailedEventAttributes: &historypb.ActivityTaskFailedEventAttributes{Identity: by("mallory")}}}}, "alice through mallory"},
		"the result of a child":              {[]*historypb.HistoryEvent{child("child")}, "alice through mallory"},
		"the result of a child that is gone": {[]*historypb.HistoryEvent{child("gone")}, "alice through system:unknown"},
		"a stamp has those before it":        {[]*historypb.HistoryEvent{answered(by("old")), scheduled(header("w", "flow")), answered(by("next"))}, "alice through flow, next"},
		"the stamp of another workflow":      {[]*historypb.HistoryEvent{answered(by("flow")), scheduled(header("other"))}, "alice through flow"},
	} {
		connection := histories{of: map[string][]*historypb.HistoryEvent{
			"w":     append([]*historypb.HistoryEvent{started}, tc.events...),
			"child": {{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Header: header("child")}}}, answered(by("mallory"))},
		}}
		got, err := serviceOf(t, connection).actsFor(t.Context(), run{"a", "w", "r"}, 0)
		if err != nil || got.String() != tc.want {
			t.Errorf("%s: %q, %v, want %q", why, got, err, tc.want)
		}
	}
	if who, err := serviceOf(t, histories{of: map[string][]*historypb.HistoryEvent{"w": {answered(by("flow"))}}}).actsFor(t.Context(), run{"a", "w", "r"}, 0); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a run without a starter: %q, %v", who, err)
	}
}

// TestIdentitiesAreShort has users whose groups Temporal would not store.
func TestIdentitiesAreShort(t *testing.T) {
	many := client{Identity: v1alpha1.Identity{Username: "alice", Groups: []string{strings.Repeat("g", maxIdentity)}}, Client: "c"}
	if got := many.encode(); len(got) > maxIdentity || !cmp.Equal(decodeClient(got), []v1alpha1.WorkflowUser{{Username: "alice"}}) {
		t.Errorf("many groups: %q", got)
	}
	many.Username = strings.Repeat("a", maxIdentity)
	if got := decodeClient(many.encode()); len(got) != 1 || got[0].Username != unknownUser {
		t.Errorf("a long name: %v", got)
	}
}

func TestStickyQueuesAreOfOneUser(t *testing.T) {
	sticky := func(user string) string {
		m := &workflowservice.PollWorkflowTaskQueueRequest{TaskQueue: &taskqueuepb.TaskQueue{Name: "x", Kind: enumspb.TASK_QUEUE_KIND_STICKY, NormalName: "q"}}
		if err := ownSticky(m, user); err != nil {
			t.Fatal(err)
		}
		return m.GetTaskQueue().GetName()
	}
	alice, again := sticky("alice"), sticky("alice")
	if alice == sticky("mallory") || alice != again {
		t.Error("two users share a sticky queue")
	}
	m := &workflowservice.PollActivityTaskQueueRequest{TaskQueue: &taskqueuepb.TaskQueue{Name: "x", Kind: enumspb.TASK_QUEUE_KIND_WORKER_COMMANDS}}
	if err := ownSticky(m, "alice"); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a queue of another kind: %v", err)
	}
}
