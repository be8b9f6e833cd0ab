package stack

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/session"
)

type stackCancelOptions struct{ stackArgument }

func newStackCancel(s *session.Session) *cobra.Command {
	o := &stackCancelOptions{stackArgument{Session: s}}
	return &cobra.Command{
		Use:   "cancel STACK",
		Short: "Cancel the workflow run of a stack",
		Long: `Ask the running workflow of a stack with spec.workflow to end. The workflow may undo its work before it ends. A run that no worker
has begun ends at once. The stack starts its workflow again when a selected resource or its spec changes.

The command needs the right to create the subresource "cancel" of the stack, which the role edit has. Another command cancels a
plan of a stack: kubectl hykube cancel PLAN.`,
		Example:           `  kubectl hykube stack cancel web -n prod`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeStacks(s),
		RunE:              session.Run(o),
	}
}

func (o *stackCancelOptions) Run(ctx context.Context) error {
	if err := o.post(ctx, "cancel", &v1alpha1.Stack{}); err != nil {
		return fmt.Errorf("cancel the workflow of stack %q: %w", o.name, o.Explain(err))
	}
	fmt.Fprintf(o.Out, "The workflow of stack %q was asked to end. To see its state: kubectl hykube stack status %s -n %s\n", o.name, o.name, o.Namespace)
	return nil
}
