package stack

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/session"
)

// stackRequestOptions creates a subresource of a stack, with which a user asks for something.
type stackRequestOptions struct {
	stackArgument
	subresource string
	// failed begins the error, and done what the command prints. They have a place for the name of the stack.
	failed, done string
}

func newStackCancel(s *session.Session) *cobra.Command {
	o := &stackRequestOptions{stackArgument{Session: s}, "cancel", "cancel the workflow of stack %q",
		"The workflow of stack %[1]q was asked to end. To see its state:"}
	return o.command(&cobra.Command{
		Use:   "cancel STACK",
		Short: "Cancel the workflow run of a stack",
		Long: `Ask the running workflow of a stack with spec.workflow to end. The workflow may undo its work before it ends. A run that no worker
has begun ends at once. The stack starts its workflow again when a selected resource or its spec changes.

The command needs the right to create the subresource "cancel" of the stack, which the role edit has. Another command cancels a
plan of a stack: kubectl hykube cancel PLAN.`,
		Example: `  kubectl hykube stack cancel web -n prod`,
	})
}

func newStackTakeOver(s *session.Session) *cobra.Command {
	o := &stackRequestOptions{stackArgument{Session: s}, "takeover", "take over stack %q",
		"You are the author of stack %[1]q now. To see its next plan:"}
	return o.command(&cobra.Command{
		Use:   "takeover STACK",
		Short: "Become the author of a stack",
		Long: `Become the author of a stack, without a change of its spec. The next plans of the stack, their automatic approval and its outputs have
your rights, and policies treat you as the requester of these plans.

The command needs the rights to write the stack, and to create its subresource "takeover", which the role edit has.`,
		Example: `  kubectl hykube stack takeover web -n prod`,
	})
}

func (o *stackRequestOptions) command(cmd *cobra.Command) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction, cmd.RunE = session.Exactly(1), completeStacks(o.Session), session.Run(o)
	return cmd
}

func (o *stackRequestOptions) Run(ctx context.Context) error {
	if err := o.post(ctx, o.subresource, &v1alpha1.Stack{}); err != nil {
		return fmt.Errorf(o.failed+": %w", o.name, o.Explain(err))
	}
	fmt.Fprintf(o.Out, o.done+" kubectl hykube stack status %[1]s -n %[2]s\n", o.name, o.Namespace)
	return nil
}
