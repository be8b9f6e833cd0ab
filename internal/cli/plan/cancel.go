package plan

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/session"
)

type cancelOptions struct {
	session.PlanArgument
	noWait bool
}

// NewCancel returns the command cancel.
func NewCancel(s *session.Session) *cobra.Command {
	o := &cancelOptions{PlanArgument: session.PlanArgument{Session: s}}
	cmd := &cobra.Command{
		Use:   "cancel PLAN",
		Short: "Cancel a plan",
		Long: `Cancel a plan. The server starts no further changes. It never abandons a running call to a provider, because the
outcome would be unknown. The call gets ten seconds to end by itself. Then the server asks the provider to stop, as
Terraform does at the first Ctrl-C, waits for the answer and records it. While another plan uses the same provider
process, the server asks it to stop later.

The plan is cancelled after the last answer. Until then it is cancelling, and "kubectl hykube status" names the calls
that still run.`,
		Example:           `  kubectl hykube cancel apply-x7k2d`,
		Args:              onePlan,
		ValidArgsFunction: planapi.Complete(s, func(p *v1alpha1.Plan) bool { return !p.Ended() }),
		RunE:              session.Run(o),
	}
	cmd.Flags().BoolVar(&o.noWait, "no-wait", false, "Return without waiting for the last answer")
	return cmd
}

func (o *cancelOptions) Run(ctx context.Context) error {
	began := time.Now()
	p, err := planapi.Get(ctx, o.Session, o.Namespace, o.Name)
	if err != nil {
		return err
	}
	if p.Ended() {
		fmt.Fprintf(o.Out, "Plan %q has ended already; there is nothing to cancel.\n", p.Name)
		return nil
	}
	if p, err = planapi.Cancel(ctx, o.Session, p); err != nil {
		return err
	}
	if p.Ended() {
		fmt.Fprintf(o.Out, "plan.%s/%s cancelled\n", v1alpha1.GroupName, p.Name)
		return nil
	}
	fmt.Fprintf(o.Out, "plan.%s/%s cancelling\n", v1alpha1.GroupName, p.Name)
	if o.noWait {
		return nil
	}
	if p.Status.Approval == nil { // planning is still in progress
		if p, err = operation.AwaitPlanned(ctx, o.Session, p); err == nil && p.Ended() {
			fmt.Fprintf(o.Out, "plan.%s/%s cancelled\n", v1alpha1.GroupName, p.Name)
		}
		return err
	}
	end, err := operation.FollowToEnd(ctx, o.Session, p, began)
	if errors.Is(err, operation.ErrDetached) || end != nil && exit.Code(err) == exit.Failed &&
		end.Status.Cancel != nil {
		return nil // cancelled, as requested
	}
	return err
}
