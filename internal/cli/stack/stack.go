// Package stack is the verbs below stack, and drift.
package stack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/stack"
)

// New returns the command stack.
func New(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stack",
		Short: "List stacks, wait for them, and show their status, plans and outputs",
		Example: `  kubectl hykube stack list
  kubectl hykube stack status web
  kubectl hykube stack history web
  kubectl hykube stack outputs web
  kubectl hykube stack wait web`,
		Args: cobra.ArbitraryArgs,
		RunE: session.Group(nil),
	}
	cmd.AddCommand(newStackList(s), newStackStatus(s), newStackHistory(s), newStackOutputs(s), newStackWait(s),
		newStackCancel(s), newStackTakeOver(s))
	return cmd
}

type stackListOptions struct {
	*session.Session
	all    bool
	output string
}

func newStackList(s *session.Session) *cobra.Command {
	o := &stackListOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the stacks of a namespace",
		Example: `  kubectl hykube stack list -n prod
  kubectl hykube stack list -A`,
		Args: cobra.NoArgs,
		RunE: session.Run(o),
	}
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "List the stacks of all namespaces")
	printer.OutputFlag(cmd, &o.output, "Print", "json", "yaml", "name")
	return cmd
}

func (o *stackListOptions) Run(ctx context.Context) error {
	namespace := o.Namespace
	if o.all {
		namespace = ""
	}
	list := &v1alpha1.StackList{}
	if err := o.Hykube.Get().NamespaceIfScoped(namespace,
		namespace != "").Resource(planapi.StacksResource).Do(ctx).Into(list); err != nil {
		return fmt.Errorf("list stacks: %w", o.Explain(err))
	}
	switch {
	case o.output == "name":
		for _, s := range list.Items {
			fmt.Fprintf(o.Out, "stack.%s/%s\n", v1alpha1.GroupName, s.Name)
		}
		return nil
	case o.output != "":
		list.APIVersion, list.Kind = v1alpha1.SchemeGroupVersion.String(), "StackList"
		return printer.JSON(o.Terminal, list, o.output)
	case len(list.Items) == 0:
		fmt.Fprintln(o.ErrOut, "No stacks. To learn about stacks: `kubectl explain stack.spec`.")
		return nil
	}
	w := tabwriter.NewWriter(o.Out, 0, 0, 3, ' ', 0)
	head := "NAME\tREADY\tREASON\tPLAN\tRESOURCES\tPENDING\tAPPROVAL\tAGE"
	if o.all {
		head = "NAMESPACE\t" + head
	}
	fmt.Fprintln(w, head)
	for _, s := range list.Items {
		status, reason, _ := planapi.StackReadiness(&s)
		if o.all {
			fmt.Fprintf(w, "%s\t", s.Namespace)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", s.Name, status, reason, cmp.Or(stack.LastPlan(&s), "-"),
			s.Status.Resources, s.Status.Pending, stack.Approval(&s), printer.Age(s.CreationTimestamp.Time))
	}
	return w.Flush()
}

// stackArgument reads a stack, which the first argument names.
type stackArgument struct {
	*session.Session
	name   string
	output string
}

func (o *stackArgument) Complete(args []string) error {
	var err error
	if o.name, err = planapi.StackName(args[0]); err != nil {
		return err
	}
	return o.Connect()
}

// namesStack returns an error unless the arguments begin with the name of a stack, and have most others at most.
func namesStack(most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("name a stack: %s. To list the stacks: kubectl hykube stack list",
				strings.TrimSuffix(cmd.UseLine(), " [flags]"))
		case len(args) > most+1:
			return fmt.Errorf("%q is one name too many: %s", args[most+1],
				strings.TrimSuffix(cmd.UseLine(), " [flags]"))
		}
		return nil
	}
}

func (o *stackArgument) read(ctx context.Context) (*v1alpha1.Stack, error) {
	s := &v1alpha1.Stack{}
	if err := o.Hykube.Get().Namespace(o.Namespace).Resource(planapi.StacksResource).Name(o.name).Do(ctx).Into(
		s); err != nil {
		return nil, fmt.Errorf("read stack %q in namespace %q: %w", o.name, o.Namespace, o.Explain(err))
	}
	return s, nil
}

// post creates a subresource of the stack, and reads the answer.
func (o *stackArgument) post(ctx context.Context, subresource string, answer *v1alpha1.Stack) error {
	body := &v1alpha1.Stack{}
	body.APIVersion, body.Kind, body.Name = v1alpha1.SchemeGroupVersion.String(), "Stack", o.name
	return o.Hykube.Post().Namespace(o.Namespace).Resource(planapi.StacksResource).Name(o.name).SubResource(
		subresource).Body(body).Do(ctx).Into(answer)
}

// completeStacks completes the stacks of the namespace with their reasons.
func completeStacks(s *session.Session) session.Completer {
	return s.CompleteWith(1, func(ctx context.Context, _ []string, _ string) (out []string, err error) {
		all, err := planapi.Stacks(ctx, s, s.Namespace)
		for _, of := range all {
			_, reason, _ := planapi.StackReadiness(of)
			out = append(out, of.Name+"\t"+reason)
		}
		return out, err
	})
}

type stackOutputsOptions struct {
	stackArgument
	one string
}

func newStackOutputs(s *session.Session) *cobra.Command {
	o := &stackOutputsOptions{stackArgument: stackArgument{Session: s}}
	cmd := &cobra.Command{
		Use:   "outputs STACK [OUTPUT]",
		Short: "Show the outputs of a stack",
		Long: `Show the outputs of a stack, as they were evaluated after its last apply. With the name of an output, print its value alone:
a string as it is, and any other value as JSON. The status of a stack has no sensitive values; they are only in the Secret that
spec.writeOutputsTo names.`,
		Example: `  kubectl hykube stack outputs web
  kubectl hykube stack outputs web url
  kubectl hykube stack outputs web -o json`,
		Args:              namesStack(1),
		ValidArgsFunction: completeStacks(s),
		RunE:              session.Run(o),
	}
	printer.OutputFlag(cmd, &o.output, "Print", "json", "yaml")
	return cmd
}

func (o *stackOutputsOptions) Complete(args []string) error {
	if len(args) == 2 {
		o.one = args[1]
	}
	return o.stackArgument.Complete(args[:1])
}

func (o *stackOutputsOptions) Validate() error {
	if o.one != "" && o.output != "" {
		return errors.New("-o: leave it out, or name no output")
	}
	return nil
}

func (o *stackOutputsOptions) Run(ctx context.Context) error {
	s, err := o.read(ctx)
	if err != nil {
		return err
	}
	switch {
	case o.one != "":
		return o.printOne(s)
	case o.output != "":
		return printer.JSON(o.Terminal, outputValues(s), o.output)
	case len(s.Status.Outputs) == 0:
		_, reason, message := planapi.StackReadiness(s)
		fmt.Fprintf(o.ErrOut, "The stack %q has no outputs yet. %s: %s\n", s.Name, reason, message)
		return nil
	}
	w := tabwriter.NewWriter(o.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAME\tVALUE")
	for _, out := range s.Status.Outputs {
		fmt.Fprintf(w, "%s\t%s\n", out.Name, diff.Clean(cmp.Or(out.Value, "(sensitive value)"), true))
	}
	return w.Flush()
}

// printOne prints the value of one output.
func (o *stackOutputsOptions) printOne(s *v1alpha1.Stack) error {
	at := slices.IndexFunc(s.Status.Outputs, func(out v1alpha1.StackOutput) bool { return out.Name == o.one })
	if at < 0 {
		return fmt.Errorf("the stack %q has no output %q yet; kubectl hykube stack outputs %s lists them", s.Name,
			o.one, s.Name)
	}
	out := s.Status.Outputs[at]
	if out.Sensitive {
		where := "name a Secret in spec.writeOutputsTo of the stack to get its value"
		if to := s.Spec.WriteOutputsTo; to != nil && to.Secret != "" {
			where = fmt.Sprintf("its value is in the Secret %q: kubectl get secret %s -n %s -o jsonpath='{.data.%s}' | base64 -d", to.Secret, to.Secret, s.Namespace, out.Name)
		}
		return fmt.Errorf("the output %q is sensitive; %s", out.Name, where)
	}
	text := ""
	if json.Unmarshal([]byte(out.Value), &text) != nil {
		text = out.Value
	}
	_, err := fmt.Fprintln(o.Out, text)
	return err
}

// outputValues returns the outputs of a stack in the form of `terraform output -json`.
func outputValues(s *v1alpha1.Stack) map[string]any {
	values := map[string]any{}
	for _, out := range s.Status.Outputs {
		one := map[string]any{"sensitive": out.Sensitive}
		if !out.Sensitive {
			one["value"] = json.RawMessage(out.Value)
		}
		values[out.Name] = one
	}
	return values
}
