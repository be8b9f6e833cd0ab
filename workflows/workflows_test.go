package workflows

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/hykube/hykube/internal/plan"
)

// fakeActivities are activities that follow a test's script and record their calls.
type fakeActivities struct {
	survey  func() (Surveyed, error)
	propose func() error
	steps   []Step
	refused string
	step    func(StepInput) (StepResult, error)
	// lane is the Lane activity of a plan with a number of steps, instead of step.
	lane  func() (LaneResult, error)
	total int
	// finished is the result of the Finish activity; the zero value is an applied plan.
	finished Finished

	mu       sync.Mutex
	made     []int
	failures []Failure
	finish   []Finish
}

func (h *fakeActivities) environment(t *testing.T) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(30 * time.Second)
	register := func(name string, fn any) {
		env.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
	register(ActivitySurvey, func(context.Context, Plan) (Surveyed, error) { return h.survey() })
	register(ActivityPropose, func(context.Context, Plan) (Proposed, error) { return Proposed{}, h.propose() })
	register(ActivityPublish, func(context.Context, Plan) (Published, error) { return Published{Summary: "1 to create"}, nil })
	register(ActivityFail, func(_ context.Context, f Failure) error {
		h.failures = append(h.failures, f)
		return nil
	})
	register(ActivityBegin, func(context.Context, Plan) (Begun, error) {
		return Begun{Steps: h.steps, Total: len(h.steps) + h.total, Refused: h.refused}, nil
	})
	register(ActivityLane, func(context.Context, Plan) (LaneResult, error) { return h.lane() })
	register(ActivityStep, func(_ context.Context, in StepInput) (StepResult, error) {
		result, err := h.step(in)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.made = append(h.made, in.Change)
		return result, err
	})
	register(ActivityFinish, func(_ context.Context, f Finish) (Finished, error) {
		h.finish = append(h.finish, f)
		if h.finished.Outcome != "" {
			return h.finished, nil
		}
		return Finished{Outcome: OutcomeApplied}, nil
	})
	return env
}

func step(change int, dependsOn ...int) Step {
	return Step{Step: plan.Step{Change: change, DependsOn: dependsOn}}
}

func TestApplyFollowsDependenciesAndGoesOnBesideAFailure(t *testing.T) {
	// 0 <- 1 <- 2, and 3 alone; 1 fails.
	h := &fakeActivities{steps: []Step{step(0), step(1, 0), step(2, 1), step(3)}}
	h.step = func(in StepInput) (StepResult, error) { return StepResult{OK: in.Change != 1}, nil }
	env := h.environment(t)
	env.ExecuteWorkflow(ApplyPlan, Plan{Namespace: "prod", Name: "p", UID: "u"})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if slices.Index(h.made, 0) > slices.Index(h.made, 1) {
		t.Errorf("made %v: 1 depends on 0", h.made)
	}
	slices.Sort(h.made)
	if diff := cmp.Diff([]int{0, 1, 3}, h.made); diff != "" {
		t.Errorf("made, where 2 depends on what failed: %s", diff)
	}
	if len(h.finish) != 1 || h.finish[0].Cancelled {
		t.Errorf("finish: %+v", h.finish)
	}
}

func TestApplyStopsBetweenChangesWhenCancelled(t *testing.T) {
	h := &fakeActivities{steps: []Step{step(0), step(1, 0)}}
	env := h.environment(t)
	h.step = func(StepInput) (StepResult, error) {
		env.SignalWorkflow(SignalCancel, nil)
		return StepResult{OK: true}, nil
	}
	env.ExecuteWorkflow(ApplyPlan, Plan{UID: "u"})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{0}, h.made); diff != "" {
		t.Errorf("made after a cancel during the first: %s", diff)
	}
	if len(h.finish) != 1 || !h.finish[0].Cancelled {
		t.Errorf("finish: %+v, want cancelled", h.finish)
	}
}

// TestApplyPausesBetweenTheRunsOfItsLane has a lane that pauses three times. A signal ends the first pause, and the workflow
// checks the plan by itself after the second one. A cancel ends the third one.
func TestApplyPausesBetweenTheRunsOfItsLane(t *testing.T) {
	h := &fakeActivities{total: 1000}
	env := h.environment(t)
	runs := 0
	h.lane = func() (LaneResult, error) {
		runs++
		return LaneResult{Paused: true}, nil
	}
	ran := func(after time.Duration, want int) {
		env.RegisterDelayedCallback(func() {
			if runs != want {
				t.Errorf("the lane ran %d times after %s, want %d", runs, after, want)
			}
		}, after)
	}
	begun := env.Now()
	ran(29*time.Minute, 1)
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalResume, nil) }, 30*time.Minute)
	ran(31*time.Minute, 2)
	ran(89*time.Minute, 2)
	ran(91*time.Minute, 3)
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalCancel, nil) }, 100*time.Minute)
	env.ExecuteWorkflow(ApplyPlan, Plan{UID: "u"})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if took := env.Now().Sub(begun); runs != 3 || took > 101*time.Minute {
		t.Errorf("the lane ran %d times in %s, want 3 and the end at the cancel", runs, took)
	}
	if len(h.finish) != 1 || !h.finish[0].Cancelled {
		t.Errorf("finish: %+v, want cancelled", h.finish)
	}
}

// TestARunSaysWhatHappened reads the details of the run of a large plan, during its lane and after it.
func TestARunSaysWhatHappened(t *testing.T) {
	h := &fakeActivities{total: 5000}
	env := h.environment(t)
	details := func() string {
		t.Helper()
		value, err := env.QueryWorkflow("__temporal_workflow_metadata")
		var metadata sdkpb.WorkflowMetadata
		if err == nil {
			err = value.Get(&metadata)
		}
		if err != nil {
			t.Fatal(err)
		}
		return metadata.CurrentDetails
	}
	failed := []NotMade{{Change: "create a.b", Why: "Failed"}, {Change: "update c.d[\"*x*\"]", Why: "Stale, the object was changed\nafter the plan was made"}}
	h.lane = func() (LaneResult, error) {
		env.SignalWorkflow(SignalProgress, Progress{Total: 5000, Done: 100})
		env.SignalWorkflow(SignalProgress, Progress{Total: 5000, Done: 249, Failed: 1, NotMade: failed[:1]})
		return LaneResult{Paused: true}, nil
	}
	env.RegisterDelayedCallback(func() {
		want := "**p** in namespace **prod**: 249 of 5000 changes done, 1 failed\n\n    create a.b: Failed\n\nkubectl hykube status p -n prod says why"
		if got := details(); got != want {
			t.Errorf("during the lane: %q, want %q", got, want)
		}
		h.lane = func() (LaneResult, error) { return LaneResult{}, nil }
		env.SignalWorkflow(SignalResume, nil)
	}, time.Minute)
	h.finished = Finished{Outcome: OutcomeFailed, Done: 4990, Failed: 10, NotMade: failed}
	env.ExecuteWorkflow(ApplyPlan, Plan{Namespace: "prod", Name: "p", UID: "u"})
	wantFailed(t, env.GetWorkflowError(), OutcomeFailed)
	want := "**p** in namespace **prod**: Failed; 4990 done, 10 failed, 0 not tried\n\n    create a.b: Failed\n" +
		"    update c.d[\"*x*\"]: Stale, the object was changed after the plan was made\n    and 8 more\n\nkubectl hykube status p -n prod says why"
	if got := details(); got != want {
		t.Errorf("after the apply: %q, want %q", got, want)
	}
	for _, text := range []string{"4990 changes were made, 10 failed", "create a.b: Failed; update c.d", "and 8 more; kubectl hykube status p -n prod says why"} {
		if got := env.GetWorkflowError().Error(); !strings.Contains(got, text) {
			t.Errorf("the run failed with %q, want %q", got, text)
		}
	}
}

func TestApplyOfARefusedPlanMakesNothing(t *testing.T) {
	h := &fakeActivities{steps: []Step{step(0)}, refused: "not approved"}
	h.step = func(StepInput) (StepResult, error) { return StepResult{OK: true}, nil }
	env := h.environment(t)
	env.ExecuteWorkflow(ApplyPlan, Plan{UID: "u"})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if len(h.made) > 0 {
		t.Errorf("made %v of a plan that was refused", h.made)
	}
}

func TestPlanStartsAgainWhenObjectsMove(t *testing.T) {
	surveys := 0
	h := &fakeActivities{survey: func() (Surveyed, error) {
		surveys++
		return Surveyed{Visited: 1, Providers: []string{"sim"}}, nil
	}}
	h.propose = func() error {
		if surveys == 1 {
			return temporal.NewNonRetryableApplicationError("moved", ErrorObjectChanged, nil)
		}
		return nil
	}
	env := h.environment(t)
	env.ExecuteWorkflow(MakePlan, Plan{UID: "u"})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if surveys != 2 || len(h.failures) > 0 {
		t.Errorf("%d surveys, failures %v; want 2 and none", surveys, h.failures)
	}
}

func TestPlanThatCannotBeMadeSaysWhy(t *testing.T) {
	h := &fakeActivities{survey: func() (Surveyed, error) {
		return Surveyed{}, temporal.NewNonRetryableApplicationError("the store is on fire", ErrorFinal, errors.New("fire"))
	}}
	env := h.environment(t)
	env.ExecuteWorkflow(MakePlan, Plan{Namespace: "prod", Name: "p", UID: "u"})
	wantFailed(t, env.GetWorkflowError(), OutcomePlanFailed)
	want := []Failure{{Plan: Plan{Namespace: "prod", Name: "p", UID: "u"}, Message: "the store is on fire"}}
	if diff := cmp.Diff(want, h.failures); diff != "" {
		t.Error(diff)
	}
}

// wantFailed expects a failed run with a typed reason and without a retry.
func wantFailed(t *testing.T, err error, outcome string) {
	t.Helper()
	ae, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || ae.Type() != outcome || !ae.NonRetryable() {
		t.Errorf("the run ended with %v, want a failure of type %s that is not tried again", err, outcome)
	}
}

// TestDriftCheckWorkflow waits for a drift check that ends after an hour, and asks the stack once.
func TestDriftCheckWorkflow(t *testing.T) {
	for why, first := range map[string]CheckState{"a check": {}, "skipped": {Ended: true, Outcome: CheckSkipped}} {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestWorkflowEnvironment()
		began, asked, looked, ids := env.Now(), 0, 0, map[string]bool{}
		env.RegisterActivityWithOptions(func(_ context.Context, r StackRequest) (CheckState, error) {
			ids[r.ID] = true
			if asked++; asked == 1 {
				return CheckState{}, errors.New("the server is not reachable")
			}
			return first, nil
		}, activity.RegisterOptions{Name: ActivityRequestCheck})
		env.RegisterActivityWithOptions(func(_ context.Context, r StackRequest) (CheckState, error) {
			ids[r.ID] = true
			looked++
			ended := env.Now().Sub(began) > time.Hour
			state := CheckState{Ended: ended, Text: "3 resources read"}
			if ended {
				state.Outcome = "Drifted"
			}
			return state, nil
		}, activity.RegisterOptions{Name: ActivityCheckState})
		env.ExecuteWorkflow(DriftCheck, Stack{Namespace: "prod", Name: "web", UID: "u"})
		if err := env.GetWorkflowError(); err != nil {
			t.Fatal(err)
		}
		var got CheckState
		if err := env.GetWorkflowResult(&got); err != nil {
			t.Fatal(err)
		}
		switch {
		case asked != 2 || len(ids) != 1 || ids[""]:
			t.Errorf("%s: asked %d times with the IDs %v", why, asked, ids)
		case first.Ended && (got.Outcome != CheckSkipped || looked > 0):
			t.Errorf("%s: %+v after %d looks", why, got, looked)
		case !first.Ended && (got.Outcome != "Drifted" || looked > 70):
			t.Errorf("%s: %+v after %d looks", why, got, looked)
		}
	}
}

func TestScheduledPlanWorkflow(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	var asked []StackRequest
	env.RegisterActivityWithOptions(func(_ context.Context, r StackRequest) error {
		asked = append(asked, r)
		return nil
	}, activity.RegisterOptions{Name: ActivityRequestPlan})
	stack := Stack{Namespace: "prod", Name: "web", UID: "u"}
	env.ExecuteWorkflow(ScheduledPlan, stack)
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 1 || asked[0].ID == "" || asked[0].Stack != stack {
		t.Errorf("asked %+v", asked)
	}
}
