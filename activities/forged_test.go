package activities

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/workflows"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/temporal"
)

// forged lists the activities that an attacker with access to the task queue may schedule for a plan.
func (sc *crashScenario) forged(p workflows.Plan) map[string]func(context.Context) error {
	step := func(change int, destroy bool) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := sc.applier.Step(ctx, workflows.StepInput{Plan: p, Change: change, Destroy: destroy}, 1)
			return err
		}
	}
	return map[string]func(context.Context) error{
		"Survey": func(ctx context.Context) error { _, err := sc.planner.Survey(ctx, p); return err },
		"Propose": func(ctx context.Context) error {
			_, err := sc.planner.Propose(ctx, workflows.Propose{Plan: p})
			return err
		},
		"Fail": func(ctx context.Context) error {
			return sc.planner.Fail(ctx, workflows.Failure{Plan: p, Message: "forged"})
		},
		"Step":               step(0, false),
		"Step that destroys": step(0, true),
		"Step out of order":  step(1, false),
		"Lane":               func(ctx context.Context) error { _, err := sc.applier.Lane(ctx, p, unreported); return err },
		"Finish": func(ctx context.Context) error {
			_, err := sc.applier.Finish(ctx, workflows.Finish{Plan: p})
			return err
		},
		"Finish, cancelled": func(ctx context.Context) error {
			_, err := sc.applier.Finish(ctx, workflows.Finish{Plan: p, Cancelled: true})
			return err
		},
	}
}

// TestForgedActivities schedules activities that no workflow ordered, for a plan in each of its phases. None changes
// the cloud or the plan, except for the activity that comes next anyway.
func TestForgedActivities(t *testing.T) {
	approved := []string{"Survey", "Propose", "Fail", "Step that destroys", "Step out of order"}
	for _, phase := range []struct {
		name    string
		reach   int
		prepare func(*v1alpha1.PlanStatus)
		refused []string // empty means all
	}{
		{name: "waits for its approval", reach: approving},
		{name: "was discarded", reach: beginning, prepare: func(s *v1alpha1.PlanStatus) { s.Approval.Decision = v1alpha1.DecisionDiscarded }},
		{name: "has an approval of other changes", reach: stepping, prepare: func(s *v1alpha1.PlanStatus) { s.Approval.Digest = "sha256:other" }},
		{name: "was changed behind its approval", reach: beginning, prepare: func(s *v1alpha1.PlanStatus) { s.Digest, s.Approval.Digest = "sha256:other", "sha256:other" },
			refused: append([]string{"Step", "Lane"}, approved...)},
		{name: "is approved and was not begun", reach: beginning, refused: append([]string{"Step", "Lane"}, approved...)},
		{name: "is being applied", reach: stepping, refused: approved},
		{name: "waits for its rollouts", reach: stepping, prepare: func(s *v1alpha1.PlanStatus) { s.Rollouts = []v1alpha1.PlanRollout{{ResourceSet: "web"}} },
			refused: append([]string{"Step"}, approved...)},
		{name: "has ended", reach: over, refused: append([]string{"Lane"}, approved...)},
	} {
		t.Run(phase.name, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.put("test-thing/a", m{"name": "a"}, nil)
			sc.put("test-thing/b", m{"name": "b", "uses": "${test_thing.a.id}"}, nil)
			run := sc.newRun()
			sc.until(run, phase.reach)
			if phase.prepare != nil {
				_ = sc.forged(run.Plan)["Step out of order"](t.Context()) // after that, the applier knows the order of the steps
				sc.plans.change(run.Name, func(po *v1alpha1.Plan) { phase.prepare(&po.Status) })
			}
			status, calls := sc.plans.get(run.Name).Status.DeepCopy(), slices.Clone(sc.cloud.log)
			for name, forged := range sc.forged(run.Plan) {
				if len(phase.refused) > 0 && !slices.Contains(phase.refused, name) {
					continue
				}
				err := forged(t.Context())
				if ae, ok := errors.AsType[*temporal.ApplicationError](err); !ok || ae.Type() != workflows.ErrorFinal {
					t.Errorf("%s: got %v, want that it is refused for good", name, err)
				}
				if diff := cmp.Diff(calls, sc.cloud.log); diff != "" {
					t.Fatalf("%s called the provider:\n%s", name, diff)
				}
				if diff := cmp.Diff(*status, sc.plans.get(run.Name).Status); diff != "" {
					t.Fatalf("%s changed the plan:\n%s", name, diff)
				}
			}
			if phase.prepare == nil {
				sc.resume(run)
				if sc.cloud.made["a"] != 1 || sc.cloud.made["b"] != 1 {
					t.Errorf("afterwards the plan made %v", sc.cloud.made)
				}
			}
		})
	}
}

// TestForgedBegin begins a plan that waits for its approval. The plan continues to wait.
func TestForgedBegin(t *testing.T) {
	sc := newCrashScenario(t)
	things("a")(sc)
	run := sc.newRun()
	po := sc.until(run, approving)
	status := po.Status.DeepCopy()
	begun, err := sc.applier.Begin(t.Context(), run.Plan)
	if err != nil || begun.Refused == "" {
		t.Errorf("begun: %+v, %v", begun, err)
	}
	if diff := cmp.Diff(*status, sc.plans.get(run.Name).Status); diff != "" {
		t.Errorf("it changed the plan:\n%s", diff)
	}
}
