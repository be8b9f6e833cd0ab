package controller

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/starter"
)

// This file tests which starts of runs Temporal and the rights of users permit.

// noWorkflows is a Temporal without workflows.
type noWorkflows struct {
	workflowservice.WorkflowServiceClient
}

func (noWorkflows) DescribeWorkflowExecution(context.Context, *workflowservice.DescribeWorkflowExecutionRequest, ...grpc.CallOption) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, status.Error(codes.NotFound, "none")
}

// TestLimitsOfRuns refuses the workflows that Temporal does not accept, and repeats those above the limits of the namespace.
func TestLimitsOfRuns(t *testing.T) {
	for code, want := range map[codes.Code]struct {
		reason string
		stalls bool
	}{
		codes.ResourceExhausted: {v1alpha1.ReasonWorkflowRefused, false},
		codes.InvalidArgument:   {v1alpha1.ReasonWorkflowRefused, true},
		codes.Unavailable:       {"", false},
	} {
		refused := errors.New("no")
		prepared := 0
		c := restarted(&UserRuns{
			Prepare: func(context.Context, string) (string, error) { prepared++; return "", nil },
			Room:    func(context.Context, string, int, bool) error { return status.Error(code, refused.Error()) },
			Service: noWorkflows{}, Key: testKey, Stamps: starter.Signer{Key: testKey},
		})
		s := edited("")
		step := s.decide()
		err := c.startRun(t.Context(), s, &step, nil)
		if (err != nil) != (want.reason == "") || want.reason != "" && step.reason != want.reason || (step.after == 0) != want.stalls && err == nil || step.make || prepared == 0 {
			t.Errorf("%s: %+v, %v", code, step, err)
		}
	}
	c, s := restarted(nil), edited("")
	step := s.decide()
	if err := c.startRun(t.Context(), s, &step, nil); err != nil || step.reason != v1alpha1.ReasonWorkflowRefused || step.make {
		t.Errorf("an external cluster: %+v, %v", step, err)
	}
	s = stackWith(hasRun("new", ""))
	s.stack.Status.Run, s.run = &s.run.StackRun, nil
	if err := c.readRun(t.Context(), s); err != nil || s.run.Outcome != v1alpha1.RunLost {
		t.Errorf("a run of the embedded cluster before: %+v, %v", s.run, err)
	}
}

// rightsOnly allows the rights with these names.
type rightsOnly struct {
	store.Access
	allowed string
}

func (r rightsOnly) May(_ context.Context, _ v1alpha1.Identity, right store.Right) (bool, error) {
	return right.String() == r.allowed, nil
}

// TestRightsAtEachStart checks the right of the author that the stack needs at the time.
func TestRightsAtEachStart(t *testing.T) {
	const plans, flows = "create plans.hykube.io", "create workflows.hykube.io"
	for why, tc := range map[string]struct {
		state         *stackState
		allowed, want string
	}{
		"plans":                              {stackWith(), plans, ""},
		"plans without the right":            {stackWith(), flows, plans},
		"a workflow":                         {stackWith(withWorkflow), flows, ""},
		"a workflow without the right":       {stackWith(withWorkflow), plans, flows},
		"a workflow whose author is unknown": {stackWith(withWorkflow, func(s *stackState) { s.stack.Status.Author = nil }), flows, flows},
	} {
		s := tc.state.stack
		if why != "a workflow whose author is unknown" {
			s.Status.Author = &v1alpha1.Identity{Username: "ann"}
		}
		c := NewStacks(StacksConfig{Access: rightsOnly{allowed: tc.allowed}, Logger: slog.New(slog.DiscardHandler)})
		if got, err := c.missing(t.Context(), s); err != nil || got != tc.want {
			t.Errorf("%s: %q, %v, want %q", why, got, err, tc.want)
		}
	}
}
