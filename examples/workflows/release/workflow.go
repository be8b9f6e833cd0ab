package main

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/hykube/hykube/sdk/steps"
)

// taskQueue is the task queue of the worker. The stack names it in spec.workflow.taskQueue.
const taskQueue = "release"

// Limits is spec.workflow.input of the stack.
type Limits struct {
	// MaxDestroy is the maximum number of resources that one release may destroy or replace.
	MaxDestroy int32 `json:"maxDestroy"`
}

// Release plans what the stack selects, and refuses a plan that destroys too much. It waits for a person, and for the
// apply.
func Release(ctx workflow.Context, in steps.StackInput) error {
	var limits Limits
	if err := in.Decode(&limits); err != nil {
		return err
	}
	plan, err := steps.Plan(ctx, in.PlanOptions())
	if err != nil {
		if ref, ok := steps.PlanOf(err); ok { // a policy denies it, and it waits
			return giveUp(ctx, ref, err)
		}
		return err
	}
	if plan.NoChanges {
		return nil
	}
	if n := plan.Summary.Delete + plan.Summary.Replace; n > limits.MaxDestroy {
		return giveUp(ctx, plan.PlanRef, temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("plan %s has %d to destroy, and the input allows %d", plan.Name, n, limits.MaxDestroy), "TooMany", nil))
	}
	if _, err := steps.AwaitApproval(ctx, steps.AwaitApprovalOptions{Plan: plan.PlanRef}); err != nil {
		return giveUp(ctx, plan.PlanRef, err)
	}
	_, err = steps.Apply(ctx, steps.ApplyOptions{Plan: plan.PlanRef})
	return err
}

// giveUp discards the plan of a workflow that cannot continue, and returns the reason. It also runs after a cancel.
func giveUp(ctx workflow.Context, plan steps.PlanRef, reason error) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if err := steps.Discard(ctx, steps.DiscardOptions{Plan: plan, Message: reason.Error()}); err != nil {
		workflow.GetLogger(ctx).Warn("the plan waits", "plan", plan.String(), "error", err)
	}
	return reason
}
