// Package activities registers the Temporal activities of Hykube. Each activity sends heartbeats and calls the package
// planning or applying. Temporal may run an activity twice, so each continues from the record of an earlier attempt.
package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hykube/hykube/activities/applying"
	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/activities/planning"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
)

// Activities carries out what the workflows order.
type Activities struct {
	planner *planning.Planner
	applier *applying.Applier
}

// New returns the activities over sources and the Plan objects.
func New(sources *scope.Sources, plans store.Plans, logger *slog.Logger) *Activities {
	cancels := changes.CancelReader{Plans: plans, Logger: logger}
	return &Activities{
		planner: planning.New(sources, plans, cancels, logger),
		applier: applying.NewApplier(sources, plans, cancels, logger),
	}
}

// Register makes the activities known to a worker.
func (a *Activities) Register(w worker.Registry) {
	for name, fn := range map[string]any{
		workflows.ActivitySurvey:  a.Survey,
		workflows.ActivityPropose: a.Propose,
		workflows.ActivityPublish: a.Publish,
		workflows.ActivityFail:    a.Fail,
		workflows.ActivityBegin:   a.Begin,
		workflows.ActivityStep:    a.Step,
		workflows.ActivityLane:    a.Lane,
		workflows.ActivityFinish:  a.Finish,
	} {
		w.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
}

// Survey decides what a plan visits; see planning.Planner.
func (a *Activities) Survey(ctx context.Context, p workflows.Plan) (workflows.Surveyed, error) {
	defer heartbeat(ctx)()
	return a.planner.Survey(ctx, p)
}

// Propose asks the providers what a plan would change.
func (a *Activities) Propose(ctx context.Context, p workflows.Plan) (workflows.Proposed, error) {
	defer heartbeat(ctx)()
	return a.planner.Propose(ctx, p)
}

// Publish sums a plan up in its Plan object.
func (a *Activities) Publish(ctx context.Context, in workflows.Publish) (workflows.Published, error) {
	defer heartbeat(ctx)()
	return a.planner.Publish(ctx, in)
}

// Fail records why a plan could not be made at all.
func (a *Activities) Fail(ctx context.Context, f workflows.Failure) error {
	return a.planner.Fail(ctx, f)
}

// Begin checks that a plan may be applied as it stands, and puts its steps in order.
func (a *Activities) Begin(ctx context.Context, p workflows.Plan) (workflows.Begun, error) {
	defer heartbeat(ctx)()
	return a.applier.Begin(ctx, p)
}

// Step makes one step of an approved plan. The Web UI shows a change that did not succeed as a failed activity.
func (a *Activities) Step(ctx context.Context, in workflows.StepInput) (workflows.StepResult, error) {
	defer heartbeat(ctx)()
	result, err := a.applier.Step(ctx, in, int(activity.GetInfo(ctx).Attempt))
	if _, ok := errors.AsType[*applying.RetryError](err); ok {
		// The change holds the reason: a provider's words may contain what payloads must not.
		return result, temporal.NewApplicationError("the provider could not be reached, or asked to be called later", "Transient")
	}
	if err == nil && !result.OK && result.State != string(v1alpha1.ChangePending) {
		return result, temporal.NewNonRetryableApplicationError(fmt.Sprintf("the change is %s; kubectl hykube status %s -n %s says why",
			result.State, in.Plan.Name, in.Plan.Namespace), workflows.ErrorStep, nil)
	}
	return result, err
}

// Lane makes all steps of a large plan, in dependency order.
func (a *Activities) Lane(ctx context.Context, p workflows.Plan) error {
	defer heartbeat(ctx)()
	return a.applier.Lane(ctx, p)
}

// Finish records how the apply of a plan ended.
func (a *Activities) Finish(ctx context.Context, f workflows.Finish) (workflows.Finished, error) {
	defer heartbeat(ctx)()
	return a.applier.Finish(ctx, f)
}

// heartbeatEvery must be well under the heartbeat timeout of the workflows.
const heartbeatEvery = 5 * time.Second

// heartbeat tells Temporal that the activity lives, until the returned function is called.
func heartbeat(ctx context.Context) (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(heartbeatEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}
