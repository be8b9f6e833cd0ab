package stack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
)

// defaultStackWait is the same as Helm's default timeout.
const defaultStackWait = 5 * time.Minute

type stackWaitOptions struct {
	stackArgument
	names   []string
	timeout time.Duration
	// detailed ends the wait with ExitChanges when a stack waits for the approval of its plan.
	detailed bool
}

func newStackWait(s *session.Session) *cobra.Command {
	o := &stackWaitOptions{stackArgument: stackArgument{Session: s}, timeout: defaultStackWait}
	cmd := &cobra.Command{
		Use:   "wait STACK...",
		Short: "Wait until stacks are Ready, or one of them fails",
		Long: `Wait until the infrastructure of stacks matches the specs, including all writes before the command. The command fails at once
when a stack is Stalled, for example because its plan or its apply failed. kubectl wait would wait until its timeout.

When a plan waits for approval, the command names it and goes on waiting, because a person may approve it meanwhile. With
--detailed-exitcode it ends there.

Use it after a tool that does not wait for stacks, such as Helm 3. The exit code is 0 if all stacks are Ready, 2 if a plan waits
for approval (with --detailed-exitcode), 3 if a policy or preventDestroy stops a plan or a right is missing, and 1 for other
failures and after the timeout.`,
		Example: `  kubectl hykube stack wait web
  helm upgrade web ./chart -n prod && kubectl hykube stack wait network web -n prod --timeout 10m`,
		Args:              namesStack(math.MaxInt - 1),
		ValidArgsFunction: completeStacks(s),
		RunE:              session.Run(o),
	}
	cmd.Flags().BoolVar(&o.detailed, "detailed-exitcode", false, "Exit with 2 at once when a plan waits for approval")
	cmd.Flags().DurationVar(&o.timeout, "timeout", o.timeout, "Maximum time to wait; 0 means no limit")
	return cmd
}

func (o *stackWaitOptions) Complete(args []string) error {
	for _, arg := range args {
		name, err := planapi.StackName(arg)
		if err != nil {
			return err
		}
		o.names = append(o.names, name)
	}
	return o.stackArgument.Complete(args[:1])
}

func (o *stackWaitOptions) Validate() error {
	if o.timeout < 0 {
		return errors.New("--timeout: write a duration such as 10m, or 0 for no limit")
	}
	return nil
}

func (o *stackWaitOptions) Run(ctx context.Context) error {
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, errStackWait)
		defer cancel()
	}
	said, waiting := map[string]string{}, slices.Clone(o.names)
	for {
		var left []string
		for _, name := range waiting {
			o.name = name
			s, err := o.read(ctx)
			switch {
			case context.Cause(ctx) != nil:
				return o.gaveUp(ctx, waiting)
			case err != nil:
				return err
			}
			ready, text, err := stackVerdict(s)
			_, reason, _ := planapi.StackReadiness(s)
			switch {
			case err != nil:
				return err
			case o.detailed && reason == v1alpha1.ReasonAwaitingApproval:
				return &exit.Error{Code: exit.Changes, Cause: fmt.Errorf("stack %s: %s", name, text)}
			case ready:
				if s.Status.Resources == 0 { // the selector, or the labels, may have a typing error
					fmt.Fprintf(o.ErrOut, "stack %s: %s\n", name, text)
				}
				fmt.Fprintf(o.Out, "stack.%s/%s is ready\n", v1alpha1.GroupName, name)
				continue
			case text != said[name]:
				said[name] = text
				fmt.Fprintf(o.ErrOut, "stack %s: %s\n", name, text)
			}
			left = append(left, name)
		}
		if waiting = left; len(waiting) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return o.gaveUp(ctx, waiting)
		case <-time.After(pollStack):
		}
	}
}

// pollStack is the interval at which commands that wait read a stack again.
const pollStack = 300 * time.Millisecond

var errStackWait = errors.New("timed out")

// gaveUp returns the error of a wait that ended too early. The wait has already printed what each stack does.
func (o *stackWaitOptions) gaveUp(ctx context.Context, waiting []string) error {
	if !errors.Is(context.Cause(ctx), errStackWait) {
		return fmt.Errorf("the wait was interrupted. Not ready yet: %s", strings.Join(waiting, ", "))
	}
	return fmt.Errorf("not ready after %s: %s", o.timeout, strings.Join(waiting, ", "))
}

// stackVerdict reports whether a stack is Ready, and otherwise what it does. A Stalled stack is an error.
func stackVerdict(s *v1alpha1.Stack) (ready bool, text string, err error) {
	status, reason, message := planapi.StackReadiness(s)
	text = reason + ": " + printer.Flat(message)
	if status == "True" {
		return true, text, nil
	}
	if s.Status.ObservedGeneration == s.Generation && meta.IsStatusConditionTrue(s.Status.Conditions,
		v1alpha1.ConditionStalled) {
		code := exit.Failed
		switch reason {
		case v1alpha1.ReasonPolicyDenied, v1alpha1.ReasonBlocked, v1alpha1.ReasonMissingRights:
			code = exit.Refused
		}
		return false, text, &exit.Error{Code: code, Cause: fmt.Errorf("stack %s failed with %s", s.Name, text)}
	}
	return false, text, nil
}
