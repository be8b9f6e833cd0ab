package temporalapi

import (
	"context"
	"fmt"

	schedulepb "go.temporal.io/api/schedule/v1"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/starter"
)

// This file checks the rights of the users who started runs and made schedules, again and again. It ends runs, and
// pauses schedules, of users who lost them.

// serverIdentity is the identity of the server's own requests in the histories of workflows.
const serverIdentity = "hykube"

// rememberedRuns is the number of runs whose starters the service remembers.
const rememberedRuns = 10_000

// mustStillRun returns an error if the user who started a run may not start it any more.
func (s *Service) mustStillRun(ctx context.Context, by caller, r run) error {
	who, err := s.starterOf(ctx, r)
	if err != nil {
		return err
	}
	return s.mustBeStarter(ctx, by.namespace, by.queue, r, who)
}

// starterOf returns the user who started a run. It never changes.
func (s *Service) starterOf(ctx context.Context, r run) (v1alpha1.Identity, error) {
	if known, ok := s.starters.Get(r); ok {
		return known.(v1alpha1.Identity), nil
	}
	who, err := s.actsFor(ctx, r, 0)
	if err != nil {
		return who, err
	}
	who = alone(who)
	s.starters.Add(r, who)
	return who, nil
}

// mustBeStarter returns an error if a user may not start workflows on a task queue, and ends the run.
func (s *Service) mustBeStarter(ctx context.Context, namespace, queue string, r run, who v1alpha1.Identity) error {
	err := s.mustOn(ctx, alone(who), "create", namespace, queue)
	if status.Code(err) == codes.PermissionDenied {
		s.end(ctx, r, who.Username, status.Convert(err).Message())
	}
	return err
}

// end terminates a run whose starter lost the right to it, and pauses its schedule.
func (s *Service) end(ctx context.Context, r run, user, why string) {
	name := v1alpha1.TemporalNamespace(r.namespace)
	text := fmt.Sprintf("The server terminated workflow %q, run %s, which %q started: %s", r.workflowID, r.runID, user,
		why)
	described, err := s.temporal.DescribeWorkflowExecution(ctx,
		&workflowservice.DescribeWorkflowExecutionRequest{Namespace: name, Execution: r.execution()})
	if err == nil {
		_, err = s.temporal.TerminateWorkflowExecution(ctx, &workflowservice.TerminateWorkflowExecutionRequest{
			Namespace: name, WorkflowExecution: r.execution(), Reason: why, Identity: serverIdentity,
		})
	}
	if err != nil { // the next step of the run ends it
		return
	}
	if schedule := scheduleOf(described.GetWorkflowExecutionInfo().GetSearchAttributes()); schedule != "" {
		if _, err := s.temporal.PatchSchedule(ctx, &workflowservice.PatchScheduleRequest{
			Namespace: name, ScheduleId: schedule, Identity: serverIdentity,
			Patch: &schedulepb.SchedulePatch{Pause: why},
		}); err == nil {
			text += fmt.Sprintf(". It paused the schedule %q; delete it, or update it to make it yours.", schedule)
		}
	}
	s.config.Ended(r.namespace, text)
}

// schedule returns the owner and the task queue of a schedule. An owner without a name is unknown.
func (s *Service) schedule(ctx context.Context, temporalNamespace,
	id string) (owner v1alpha1.Identity, queue string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	d, err := s.temporal.DescribeSchedule(ctx,
		&workflowservice.DescribeScheduleRequest{Namespace: temporalNamespace, ScheduleId: id})
	if err != nil {
		return owner, "", err
	}
	namespace, _ := v1alpha1.NamespaceOfTemporal(temporalNamespace)
	action := d.GetSchedule().GetAction().GetStartWorkflow()
	owner, _ = s.verify(ctx, action.GetHeader(), starter.OfSchedule, namespace, id)
	return owner, action.GetTaskQueue().GetName(), nil
}

// takeSchedule makes the user who updates a schedule its owner.
func (s *Service) takeSchedule(ctx context.Context, by caller, m *workflowservice.UpdateScheduleRequest) error {
	action := m.GetSchedule().GetAction().GetStartWorkflow()
	if action == nil {
		return nil // Temporal refuses it
	}
	_, queue, err := s.schedule(ctx, m.GetNamespace(), m.GetScheduleId())
	if err != nil {
		return err
	}
	if err := s.mustOn(ctx, by.Identity, "update", by.namespace, queue); err != nil {
		return err
	}
	if err := s.mustOn(ctx, by.Identity, "create", by.namespace, action.GetTaskQueue().GetName()); err != nil {
		return err
	}
	return s.stampHeader(ctx, by.namespace, by.Identity, &action.Header, &action.Memo, starter.OfSchedule,
		m.GetScheduleId())
}

// checkTrigger returns an error if a user runs another user's schedule now.
func (s *Service) checkTrigger(ctx context.Context, by caller, m *workflowservice.PatchScheduleRequest) error {
	if m.GetPatch().GetTriggerImmediately() == nil && len(m.GetPatch().GetBackfillRequest()) == 0 {
		return nil
	}
	owner, queue, err := s.schedule(ctx, m.GetNamespace(), m.GetScheduleId())
	if err != nil {
		return err
	}
	return s.mayRerun(ctx, by, owner, queue,
		fmt.Sprintf("the schedule %q acts for %q: update it to make it yours", m.GetScheduleId(), owner.Username))
}

// checkRerun returns an error if a user resets another user's run.
func (s *Service) checkRerun(ctx context.Context, by caller, m *workflowservice.ResetWorkflowExecutionRequest) error {
	queue, err := s.queueOfRun(ctx, m.GetNamespace(), m.GetWorkflowExecution())
	if err != nil {
		return err
	}
	r := run{by.namespace, m.GetWorkflowExecution().GetWorkflowId(), m.GetWorkflowExecution().GetRunId()}
	who, err := s.starterOf(ctx, r)
	if err != nil {
		return err
	}
	return s.mayRerun(ctx, by, who, queue,
		fmt.Sprintf("the workflow %q acts for %q: start one of your own", r.workflowID, who.Username))
}

// mayRerun returns an error if a user may not run again what acts for its owner: the user is another one, or may not
// start workflows any more.
func (s *Service) mayRerun(ctx context.Context, by caller, owner v1alpha1.Identity, queue, why string) error {
	if err := s.mustOn(ctx, by.Identity, "create", by.namespace, queue); err != nil {
		return err
	}
	if owner.Username == by.Username && len(by.Through) == 0 {
		return nil
	}
	ok, err := s.may(ctx, by.Identity, VerbRerun, by.namespace, queue)
	if err != nil || ok {
		return err
	}
	return status.Errorf(codes.PermissionDenied, "%s, or ask for the verb %q on workflows.%s", why, VerbRerun,
		v1alpha1.GroupName)
}

// deliver prepares an answer for a worker: it seals the tokens of tasks, and gives activities the text with which the
// worker acts for the user who started the workflow. It returns false for a task of a run that has ended, because its
// starter lost the right to it.
func (s *Service) deliver(ctx context.Context, by caller, answer any) (bool, error) {
	switch a := answer.(type) {
	case *workflowservice.PollWorkflowTaskQueueResponse:
		return s.deliverWorkflow(ctx, by, a)
	case *workflowservice.PollActivityTaskQueueResponse:
		return s.deliverActivity(ctx, by, a)
	case *workflowservice.RespondWorkflowTaskCompletedResponse:
		if next := a.GetWorkflowTask(); next != nil {
			if ok, err := s.deliverWorkflow(ctx, by, next); err != nil || !ok {
				a.WorkflowTask = nil
				return true, err
			}
		}
		for _, activity := range a.GetActivityTasks() {
			if _, err := s.deliverActivity(ctx, by, activity); err != nil {
				return true, err
			}
		}
	case *workflowservice.StartWorkflowExecutionResponse:
		return true, s.deliverEager(ctx, by, a)
	case *workflowservice.ExecuteMultiOperationResponse:
		for _, o := range a.GetResponses() {
			if start := o.GetStartWorkflow(); start != nil {
				if err := s.deliverEager(ctx, by, start); err != nil {
					return true, err
				}
			}
		}
	}
	return true, nil
}

func (s *Service) deliverEager(ctx context.Context, by caller,
	a *workflowservice.StartWorkflowExecutionResponse) error {
	if a.GetEagerWorkflowTask() == nil {
		return nil
	}
	_, err := s.deliverWorkflow(ctx, by, a.GetEagerWorkflowTask())
	return err
}

func (s *Service) deliverWorkflow(ctx context.Context, by caller,
	a *workflowservice.PollWorkflowTaskQueueResponse) (ok bool, err error) {
	if len(a.GetTaskToken()) == 0 {
		return true, nil
	}
	by.queue = a.GetWorkflowExecutionTaskQueue().GetName()
	if a.GetQuery() == nil {
		r := run{by.namespace, a.GetWorkflowExecution().GetWorkflowId(), a.GetWorkflowExecution().GetRunId()}
		if err := s.mustStillRun(ctx, by, r); err != nil {
			return false, refusedTask(err)
		}
	}
	updaters, err := updatersOf(a)
	if err != nil {
		return false, err
	}
	a.TaskToken, err = s.config.Stamps.Seal(ctx,
		starter.Task{Queue: by.queue, Users: updaters, Token: a.GetTaskToken()})
	return true, err
}

// updatersOf returns the users whose updates a workflow task has. The workflow may already act on an update in its
// answer, which comes before the event with the update.
func updatersOf(a *workflowservice.PollWorkflowTaskQueueResponse) (users []v1alpha1.WorkflowUser, err error) {
	for _, message := range a.GetMessages() {
		body, err := message.GetBody().UnmarshalNew()
		if err != nil {
			return nil, status.Errorf(codes.Internal, "read a message of the workflow task: %v", err)
		}
		if update, ok := body.(*updatepb.Request); ok {
			users = append(users, decodeClient(update.GetMeta().GetIdentity())...)
		}
	}
	return users, nil
}

func (s *Service) deliverActivity(ctx context.Context, by caller,
	a *workflowservice.PollActivityTaskQueueResponse) (ok bool, err error) {
	if len(a.GetTaskToken()) == 0 {
		return true, nil
	}
	r := run{by.namespace, a.GetWorkflowExecution().GetWorkflowId(), a.GetWorkflowExecution().GetRunId()}
	who, ok := s.verify(ctx, a.GetHeader(), starter.OfRun, by.namespace, r.workflowID)
	if !ok {
		return false, nil // no worker of this server scheduled it
	}
	if err := s.mustBeStarter(ctx, by.namespace, by.queue, r, who); err != nil {
		return false, refusedTask(err)
	}
	text, err := s.config.Stamps.Sign(ctx,
		starter.Stamp{Kind: starter.OfTask, Namespace: by.namespace, ID: by.Username, For: who})
	if err != nil {
		return false, err
	}
	setHeader(&a.Header, v1alpha1.ActivityHeaderOnBehalfOf, text)
	a.TaskToken, err = s.config.Stamps.Seal(ctx, starter.Task{Queue: by.queue, Token: a.GetTaskToken()})
	return true, err
}

// refusedTask returns nil for the error of a starter who lost the right, so that the worker polls again.
func refusedTask(err error) error {
	if status.Code(err) == codes.PermissionDenied || status.Code(err) == codes.NotFound {
		return nil
	}
	return err
}

// emptied returns an answer without a task.
func emptied(answer any) any {
	switch answer.(type) {
	case *workflowservice.PollWorkflowTaskQueueResponse:
		return &workflowservice.PollWorkflowTaskQueueResponse{}
	case *workflowservice.PollActivityTaskQueueResponse:
		return &workflowservice.PollActivityTaskQueueResponse{}
	}
	return answer
}
