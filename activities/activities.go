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
	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Activities implements the activities of the workflows.
type Activities struct {
	planner    *planning.Planner
	applier    *applying.Applier
	slots      *fair.Slots
	processors *fair.Slots
	logger     *slog.Logger
}

// concurrent is the maximum number of concurrent activities in this process that call providers or read many objects.
// The namespaces share it fairly.
const concurrent = 256

// MaxTasks is the number of activity tasks that the worker must accept at once: those of all plans that run at once.
// Tasks that wait for a slot must not keep the worker from tasks of other namespaces.
const MaxTasks = 4096

// New returns the activities for the sources and the Plan objects. The namespaces share the processors. hold
// holds plans that another server may apply.
func New(sources *scope.Sources, plans store.Plans, processors *fair.Slots, hold changes.Hold,
	logger *slog.Logger) *Activities {
	cancels := changes.CancelReader{Plans: plans, Logger: logger}
	applier := applying.NewApplier(sources, plans, cancels, logger)
	applier.Hold = hold
	return &Activities{
		planner:    planning.New(sources, plans, cancels, logger),
		applier:    applier,
		slots:      fair.New(concurrent),
		processors: processors,
		logger:     logger,
	}
}

// Register registers the activities with a worker.
func (a *Activities) Register(w worker.Registry) {
	for name, fn := range map[string]any{
		workflows.ActivitySurvey: bugsAreFinal(withHeartbeats(a.logger,
			withSlot(a.slots, withProcessor(a.processors, a.planner.Survey)))),
		workflows.ActivityPropose: bugsAreFinal(withHeartbeats(a.logger,
			withSlot(a.slots, withProcessor(a.processors, a.planner.Propose)))),
		workflows.ActivityPublish: bugsAreFinal(withHeartbeats(a.logger,
			withProcessor(a.processors, a.planner.Publish))),
		workflows.ActivityFail:   a.planner.Fail,
		workflows.ActivityBegin:  withHeartbeats(a.logger, withProcessor(a.processors, a.applier.Begin)),
		workflows.ActivityStep:   withHeartbeats(a.logger, withSlot(a.slots, withProcessor(a.processors, a.step))),
		workflows.ActivityLane:   withHeartbeats(a.logger, withSlot(a.slots, withProcessor(a.processors, a.lane))),
		workflows.ActivityFinish: withHeartbeats(a.logger, withProcessor(a.processors, a.applier.Finish)),
	} {
		w.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
}

// step runs one step of an approved plan. A change that does not succeed fails the activity, so that the Web UI shows
// it.
func (a *Activities) step(ctx context.Context, in workflows.StepInput) (workflows.StepResult, error) {
	result, err := a.applier.Step(ctx, in, int(activity.GetInfo(ctx).Attempt))
	if _, ok := errors.AsType[*applying.RetryError](err); ok {
		// The change holds the reason, because a provider's message may be unfit for payloads.
		return result, temporal.NewApplicationError("the provider could not be reached, or the API throttled the call",
			"Transient")
	}
	if err == nil && !result.OK && result.State != string(v1alpha1.ChangePending) {
		return result, temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("the change is %s; kubectl hykube status %s -n %s says why",
				result.State, in.Plan.Name, in.Plan.Namespace), workflows.ErrorStep, nil)
	}
	return result, err
}

// lane runs all steps of a large plan, and signals its progress to the run.
func (a *Activities) lane(ctx context.Context, p workflows.Plan) (workflows.LaneResult, error) {
	run := activity.GetInfo(ctx).WorkflowExecution
	return a.applier.Lane(ctx, p, func(ctx context.Context, progress workflows.Progress) error {
		return activity.GetClient(ctx).SignalWorkflow(ctx, run.ID, run.RunID, workflows.SignalProgress, progress)
	})
}

// heartbeatEvery must be well below the heartbeat timeout of the workflows.
const heartbeatEvery = 5 * time.Second

// planInput is the input of an activity.
type planInput interface{ PlanRef() workflows.Plan }

// withHeartbeats wraps an activity so that it sends heartbeats until do returns. Its context names the plan's
// namespace, so that the namespaces share the database fairly. A panic is an error, with its stack in the log.
func withHeartbeats[In planInput, Out any](logger *slog.Logger,
	do func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (out Out, err error) {
		done := make(chan struct{})
		defer close(done)
		go wait.Until(func() { activity.RecordHeartbeat(ctx) }, heartbeatEvery, done)
		p := in.PlanRef()
		err = bug.Guard(logger, "work on plan "+p.Namespace+"/"+p.Name, func() (err error) {
			out, err = do(fair.WithKey(ctx, p.Namespace), in)
			return err
		})
		return out, err
	}
}

// bugsAreFinal wraps an activity of planning so that a panic fails the plan. Planning changes nothing, and a retry
// would panic, too.
func bugsAreFinal[In planInput, Out any](do func(context.Context, In) (Out, error)) func(context.Context,
	In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		out, err := do(ctx, in)
		if bug.Is(err) {
			err = workflows.Final(err)
		}
		return out, err
	}
}

// withSlot wraps an activity so that it first waits for one of the slots, which all namespaces share.
func withSlot[In planInput, Out any](slots *fair.Slots, do func(context.Context, In) (Out, error)) func(context.Context,
	In) (Out, error) {
	return func(ctx context.Context, in In) (out Out, err error) {
		slot, err := slots.Acquire(ctx, in.PlanRef().Namespace)
		if err != nil {
			return out, fmt.Errorf("wait for other activities: %w", err)
		}
		defer slot.Release()
		return do(ctx, in)
	}
}

// withProcessor wraps an activity so that it holds a processor only while it computes. The namespaces share the
// processors fairly.
func withProcessor[In planInput, Out any](processors *fair.Slots,
	do func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (out Out, err error) {
		ctx, done, err := processors.Take(ctx, in.PlanRef().Namespace)
		if err != nil {
			return out, fmt.Errorf("wait for a processor: %w", err)
		}
		defer done()
		return do(ctx, in)
	}
}
