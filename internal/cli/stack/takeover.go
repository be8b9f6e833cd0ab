package stack

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/session"
)

type stackTakeOverOptions struct{ stackArgument }

func newStackTakeOver(s *session.Session) *cobra.Command {
	o := &stackTakeOverOptions{stackArgument{Session: s}}
	return &cobra.Command{
		Use:   "takeover STACK",
		Short: "Become the author of a stack",
		Long: `Become the author of a stack, without a change of its spec. The next plans of the stack, their automatic approval and its outputs have
your rights, and policies treat you as the requester of these plans.

The command needs the rights to write the stack, and to create its subresource "takeover", which the role edit has.`,
		Example:           `  kubectl hykube stack takeover web -n prod`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeStacks(s),
		RunE:              session.Run(o),
	}
}

func (o *stackTakeOverOptions) Run(ctx context.Context) error {
	if err := o.post(ctx, "takeover", &v1alpha1.Stack{}); err != nil {
		return fmt.Errorf("take over stack %q: %w", o.name, o.Explain(err))
	}
	fmt.Fprintf(o.Out, "You are the author of stack %q now. To see its next plan: kubectl hykube stack status %s -n %s\n", o.name, o.name, o.Namespace)
	return nil
}
