package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
)

type cancelOptions struct {
	planArgument
	noWait bool
}

func newCancel(s *session) *cobra.Command {
	o := &cancelOptions{planArgument: planArgument{session: s}}
	cmd := &cobra.Command{
		Use:   "cancel PLAN",
		Short: "Stop a plan",
		Long: `Stop a plan. Nothing new is begun. Calls to providers that are under way are never cut off, since nobody would know
what they did: they get ten seconds to end by themselves, then their provider is asked to stop, as Terraform asks at the
first Ctrl-C, and their answers are waited for and recorded. A provider that works for another plan at that moment, too, is
asked only when that is done.

The plan is cancelled when the last answer is there. Until then it is cancelling, and "kubectl hykube status" tells what it
waits for.`,
		Example:           `  kubectl hykube cancel apply-x7k2d`,
		Args:              onePlan,
		ValidArgsFunction: completePlans(s, func(p *v1alpha1.Plan) bool { return !p.Ended() }),
		RunE:              run(o),
	}
	cmd.Flags().BoolVar(&o.noWait, "no-wait", false, "Return as soon as the server was asked")
	return cmd
}

func (o *cancelOptions) Run(ctx context.Context) error {
	began := time.Now()
	p, err := o.getPlan(ctx, o.namespace, o.name)
	if err != nil {
		return err
	}
	if p.Ended() {
		fmt.Fprintf(o.Out, "Plan %q has ended already; there is nothing to cancel.\n", p.Name)
		return nil
	}
	if p, err = o.cancelPlan(ctx, p); err != nil {
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
	if p.Status.Approval == nil { // it is only being made
		if p, err = o.awaitPlanned(ctx, p); err == nil && p.Ended() {
			fmt.Fprintf(o.Out, "plan.%s/%s cancelled\n", v1alpha1.GroupName, p.Name)
		}
		return err
	}
	end, how, err := o.follow(ctx, p)
	if errors.Is(err, errDetached) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := o.printSummary(ctx, end, how, time.Since(began), planAnew(end)); ExitCode(err) == ExitError && end.Status.Cancel != nil {
		return nil // that is what was asked for
	} else if err != nil {
		return err
	}
	return nil
}
