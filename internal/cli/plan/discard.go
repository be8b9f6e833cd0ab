package plan

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
)

type discardOptions struct {
	session.PlanArgument
	message string
}

// NewDiscard returns the command discard.
func NewDiscard(s *session.Session) *cobra.Command {
	o := &discardOptions{PlanArgument: session.PlanArgument{Session: s}}
	cmd := &cobra.Command{
		Use:               "discard PLAN",
		Short:             "Discard a plan",
		Long:              "Discard a plan. Nobody can approve it any more. The infrastructure and the objects stay as they are.",
		Example:           `  kubectl hykube discard plan-x7k2d -m "wrong region"`,
		Args:              onePlan,
		ValidArgsFunction: planapi.Complete(s, planapi.Waiting),
		RunE:              session.Run(o),
	}
	cmd.Flags().StringVarP(&o.message, "message", "m", "", "Reason for the decision, which the plan keeps")
	return cmd
}

func (o *discardOptions) Run(ctx context.Context) error {
	p, err := planapi.Get(ctx, o.Session, o.Namespace, o.Name)
	if err != nil {
		return err
	}
	if p.Status.Approval != nil {
		return fmt.Errorf("plan %q was %s already%s", p.Name, planapi.DecisionWord(p.Status.Approval.Decision),
			planapi.By(p.Status.Approval))
	}
	if p.Spec.Speculative {
		return fmt.Errorf("plan %q is speculative and cannot be approved, so there is nothing to discard. To remove it: kubectl delete plan %s -n %s", p.Name, p.Name, p.Namespace)
	}
	if planapi.Superseded(p) {
		return fmt.Errorf("nobody can approve plan %q any more, so there is nothing to discard: %s", p.Name,
			diff.Clean(planapi.Why(p), true))
	}
	if _, err := planapi.Decide(ctx, o.Session, p,
		v1alpha1.PlanApproval{Decision: v1alpha1.DecisionDiscarded, Digest: p.Status.Digest,
			Message: o.message}); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "plan.%s/%s discarded\n", v1alpha1.GroupName, p.Name)
	return nil
}
