package workflows

import (
	"fmt"
	"time"

	"github.com/hykube/hykube/internal/graph"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// maxConcurrentSteps is the maximum number of concurrent steps of one plan. The limits of a ProviderConfig also apply.
const maxConcurrentSteps = 32

// ApplyPlan applies an approved plan. It runs each step as soon as its dependencies are done, and independent steps
// concurrently. A failed step skips only the steps that depend on it.
func ApplyPlan(ctx workflow.Context, p Plan) (Finished, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 24 * time.Hour,
		HeartbeatTimeout:    30 * time.Second,
		WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second,
			NonRetryableErrorTypes: []string{ErrorFinal},
		},
	})
	var begun Begun
	if err := workflow.ExecuteActivity(titled(ctx, "check the approval, order the steps"), ActivityBegin, p).Get(ctx,
		&begun); err != nil {
		return Finished{}, err
	}
	if err := upsert(ctx, begun.Providers, ""); err != nil {
		return Finished{}, err
	}
	cancelled := false
	if begun.Refused == "" {
		var err error
		if cancelled, err = applySteps(ctx, p, begun); err != nil {
			return Finished{}, err
		}
	}
	var finished Finished
	if err := workflow.ExecuteActivity(titled(ctx, "record the outcome"), ActivityFinish,
		Finish{Plan: p, Cancelled: cancelled}).Get(ctx, &finished); err != nil {
		return Finished{}, err
	}
	workflow.SetCurrentDetails(ctx, finished.details(p))
	if err := upsert(ctx, nil, finished.Outcome); err != nil {
		return Finished{}, err
	}
	switch finished.Outcome {
	case OutcomeFailed, OutcomeStale, OutcomeRefused:
		return finished, failRun(p, finished.Outcome,
			fmt.Sprintf("%d changes were made, %d failed, %d were not tried%s",
				finished.Done, finished.Failed, finished.Skipped, named(finished.NotMade, finished.Failed)))
	}
	return finished, nil
}

func applySteps(ctx workflow.Context, p Plan, begun Begun) (cancelled bool, err error) {
	cancel := workflow.GetSignalChannel(ctx, SignalCancel)
	if len(begun.Steps) == 0 && begun.Total > 0 {
		return applyInLane(ctx, p, begun.Total, cancel)
	}

	tracker := graph.NewTracker(len(begun.Steps), func(i int) []int { return begun.Steps[i].DependsOn })
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(cancel, func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(ctx, nil)
		cancelled = true
	})
	var waiting []int
	running := 0
	for {
		waiting = append(waiting, tracker.Ready()...)
		for !cancelled && len(waiting) > 0 && running < maxConcurrentSteps {
			i := waiting[0]
			waiting = waiting[1:]
			step := begun.Steps[i]
			future := workflow.ExecuteActivity(titled(ctx, step.Title), ActivityStep,
				StepInput{Plan: p, Change: step.Change, Destroy: step.Destroy})
			running++
			selector.AddFuture(future, func(f workflow.Future) {
				running--
				var result StepResult
				if ferr := f.Get(ctx, &result); ferr != nil || !result.OK {
					tracker.Fail(i)
					return
				}
				tracker.Done(i)
			})
		}
		if running == 0 {
			return cancelled, nil
		}
		selector.Select(ctx)
	}
}

// resumeCheck is the time after which a paused apply checks its plan although no signal has arrived. The plan may have
// been deleted.
const resumeCheck = time.Hour

// applyInLane runs steps that are too many for one history, or that rollouts hold back. The Lane activity reads them
// from the ledger. It learns of a cancel through the Plan object.
func applyInLane(ctx workflow.Context, p Plan, total int, cancel workflow.ReceiveChannel) (cancelled bool, err error) {
	resume := workflow.GetSignalChannel(ctx, SignalResume)
	defer showProgress(ctx, p)()
	for {
		var lane LaneResult
		if err := workflow.ExecuteActivity(titled(ctx, fmt.Sprintf("apply %d steps", total)), ActivityLane, p).Get(ctx,
			&lane); err != nil {
			return false, err
		}
		if cancelled = cancel.ReceiveAsync(nil); cancelled || !lane.Paused {
			for resume.ReceiveAsync(nil) { // the controller may send one too many, and Temporal warns of unread signals
			}
			return cancelled, nil
		}
		timerCtx, stopTimer := workflow.WithCancel(ctx)
		selector := workflow.NewSelector(ctx)
		selector.AddReceive(cancel, func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			cancelled = true
		})
		selector.AddReceive(resume, func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, nil) })
		selector.AddFuture(workflow.NewTimer(timerCtx, resumeCheck), func(workflow.Future) {})
		selector.Select(ctx)
		stopTimer()
		if cancelled {
			return true, nil
		}
	}
}
