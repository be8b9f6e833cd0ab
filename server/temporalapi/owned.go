package temporalapi

import (
	"context"
	"encoding/json"
	"net/http"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ownership"
	"github.com/hykube/hykube/server/starter"
)

// ServeOwned serves the running workflows and the schedules of a namespace, with their owners. The API server has
// authorized the request as a list of workflows.
func (s *Service) ServeOwned(w http.ResponseWriter, r *http.Request) {
	info, _ := request.RequestInfoFrom(r.Context())
	switch {
	case s.config.External:
		http.Error(w, "this server uses an external Temporal cluster, which knows its own workflows",
			http.StatusNotImplemented)
		return
	case info == nil || info.Resource != Resource || info.Verb != "list" || info.Namespace == "" ||
		r.Method != http.MethodGet:
		http.Error(w, "the path is "+ownership.Path+"NAMESPACE", http.StatusNotFound)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), callTime)
	defer cancel()
	list, err := s.owned(ctx, info.Namespace)
	if err != nil {
		http.Error(w, "list the workflows: "+status.Convert(err).Message(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list) // the client is gone
}

func (s *Service) owned(ctx context.Context, namespace string) (list ownership.List, err error) {
	if _, err := s.config.Prepare(ctx, namespace); err != nil {
		return list, err
	}
	name := v1alpha1.TemporalNamespace(namespace)
	ctx = forwarded(ctx, name)
	list = ownership.List{Workflows: []ownership.Workflow{}, Schedules: []ownership.Schedule{}}
	runs := &workflowservice.ListWorkflowExecutionsRequest{Namespace: name, PageSize: maxPage,
		Query: `ExecutionStatus = "Running"`}
	for {
		page, err := s.temporal.ListWorkflowExecutions(ctx, runs, grpc.MaxCallRecvMsgSize(maxOwnAnswer))
		if err != nil {
			return list, err
		}
		for _, e := range page.GetExecutions() {
			list.Workflows = append(list.Workflows, ownership.Workflow{
				ID: e.GetExecution().GetWorkflowId(), RunID: e.GetExecution().GetRunId(), Type: e.GetType().GetName(),
				TaskQueue: e.GetTaskQueue(),
				StartedBy: starterIn(e.GetMemo()), StartedAt: e.GetStartTime().AsTime(),
				Schedule: scheduleOf(e.GetSearchAttributes()),
			})
		}
		if runs.NextPageToken = page.GetNextPageToken(); len(runs.NextPageToken) == 0 {
			break
		}
	}
	schedules := &workflowservice.ListSchedulesRequest{Namespace: name, MaximumPageSize: maxPage}
	for {
		page, err := s.temporal.ListSchedules(ctx, schedules, grpc.MaxCallRecvMsgSize(maxOwnAnswer))
		if err != nil {
			return list, err
		}
		for _, e := range page.GetSchedules() {
			owner, queue, err := s.schedule(ctx, name, e.GetScheduleId())
			if err != nil {
				return list, err
			}
			next := ownership.Schedule{
				ID: e.GetScheduleId(), Type: e.GetInfo().GetWorkflowType().GetName(), TaskQueue: queue,
				Owner:  owner.Username,
				Paused: e.GetInfo().GetPaused(), Note: e.GetInfo().GetNotes(),
			}
			if times := e.GetInfo().GetFutureActionTimes(); len(times) > 0 && !next.Paused {
				next.Next = new(times[0].AsTime())
			}
			list.Schedules = append(list.Schedules, next)
		}
		if schedules.NextPageToken = page.GetNextPageToken(); len(schedules.NextPageToken) == 0 {
			return list, nil
		}
	}
}

// starterIn returns the name of the user in the memo of a run. Only the server writes it.
func starterIn(memo *commonpb.Memo) (name string) {
	if payload := memo.GetFields()[starter.Memo]; payload != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(payload, &name)
	}
	return name
}
