package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/stack"
)

type stackStatusOptions struct{ stackArgument }

func newStackStatus(s *session) *cobra.Command {
	o := &stackStatusOptions{stackArgument{session: s}}
	cmd := &cobra.Command{
		Use:   "status STACK",
		Short: "Show what a stack does, and what it waits for",
		Long: `Show what a stack does, and what it waits for: its resources, its last plan, the last run of its workflow, the stacks that it
depends on, and the user with whose rights it acts.`,
		Example:           `  kubectl hykube stack status web -n prod`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeStacks(s),
		RunE:              run(o),
	}
	outputFlag(cmd, &o.output, "Print", "json", "yaml")
	return cmd
}

func (o *stackStatusOptions) Run(ctx context.Context) error {
	s, err := o.read(ctx)
	if err != nil {
		return err
	}
	if o.output != "" {
		s.APIVersion, s.Kind = v1alpha1.SchemeGroupVersion.String(), "Stack"
		return printJSON(o.terminal, s, o.output)
	}
	return o.print(s)
}

func (o *stackStatusOptions) print(s *v1alpha1.Stack) error {
	w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)
	status, reason, message := stackReadiness(s)
	fmt.Fprintf(w, "Ready:\t%s, %s\n", status, reason)
	fmt.Fprintf(w, "\t%s\n", strings.Join(strings.Fields(message), " "))
	selector := "all resources that no other stack selects"
	if s.Spec.Selector != nil {
		selector = metav1.FormatLabelSelector(s.Spec.Selector)
	}
	fmt.Fprintf(w, "Selects:\t%s\n", selector)
	fmt.Fprintf(w, "Resources:\t%d, of which %d do not match the spec\n", s.Status.Resources, s.Status.Pending)
	author := "an unknown user"
	if s.Status.Author != nil {
		author = s.Status.Author.Username
	}
	if s.Spec.Workflow != nil {
		fmt.Fprintf(w, "Workflow:\t%s\n", runLine(s))
		fmt.Fprintf(w, "Rights:\t%s starts the workflow and reads the outputs; the plans have the rights of the worker's user\n", author)
	} else {
		fmt.Fprintf(w, "Approval:\t%s; plans and outputs have the rights of %s\n", s.Spec.Approval, author)
	}
	if name := stack.LastPlan(s); s.Spec.Workflow != nil && name != "" {
		fmt.Fprintf(w, "Last plan:\t%s, which the workflow made\n", name)
	} else if p := s.Status.Plan; p != nil && s.Spec.Workflow == nil {
		fmt.Fprintf(w, "Last plan:\t%s, %s\n", p.Name, cmp.Or(p.Reason, v1alpha1.ReasonPlanning))
	}
	if len(s.Spec.DependsOn) > 0 {
		fmt.Fprintf(w, "Depends on:\t%s\n", strings.Join(s.Spec.DependsOn, ", "))
	}
	if d := s.Spec.Drift; d != nil {
		fmt.Fprintf(w, "Drift:\t%s\n", d.Action)
		if status == string(metav1.ConditionTrue) {
			omitReported(s.Status.Drift)
		}
		for _, line := range driftLines(s, time.Now()) {
			fmt.Fprintf(w, "\t%s\n", line)
		}
	}
	if s.Spec.Suspend {
		fmt.Fprintln(w, "Suspended:\tyes")
	}
	if n := len(s.Status.Outputs); n > 0 {
		fmt.Fprintf(w, "Outputs:\t%d; kubectl hykube stack outputs %s -n %s\n", n, s.Name, s.Namespace)
	}
	return w.Flush()
}

// omitReported removes the message of a drift check that the condition Ready of a stack has, too. Only a stack that is Ready
// has it there: that of the running check, or of the last one, if that failed.
func omitReported(d *v1alpha1.StackDriftStatus) {
	switch {
	case d == nil:
	case d.Running != nil:
		d.Running.Message = ""
	case d.Last != nil && d.Last.Outcome == v1alpha1.DriftFailed:
		d.Last.Message = ""
	}
}

// runLine describes the last run of the workflow of a stack.
func runLine(s *v1alpha1.Stack) string {
	r := s.Status.Run
	if r == nil {
		return fmt.Sprintf("%s on the task queue %s, which has no run yet", flat(s.Spec.Workflow.Type), flat(s.Spec.Workflow.TaskQueue))
	}
	run := workflowRun{v1alpha1.TemporalNamespace(s.Namespace), r.WorkflowID, r.RunID}
	state := "goes on"
	if r.EndedAt != nil {
		state = string(r.Outcome)
	}
	return run.String() + ", " + state
}

type stackHistoryOptions struct {
	stackArgument
	limit int
	at    string
}

func newStackHistory(s *session) *cobra.Command {
	o := &stackHistoryOptions{stackArgument: stackArgument{session: s}, limit: 20}
	cmd := &cobra.Command{
		Use:   "history STACK",
		Short: "List the plans of a stack, or show an earlier state of it",
		Long: `List the plans that a stack, or its workflow, made and that the server still keeps, newest first. kubectl hykube history shows
the records of all decided plans of the namespace, which outlive the plans.

With --at, show the state of the stack at the end of one of these plans: who asked for the plan and approved it, its changes, and the
resources of the stack with the values that were recorded then. The command computes the values: it begins with those of today, and
takes back all later changes of the plans that the server still keeps. If a later plan is removed, the values of what it
changed are unknown, and the command reports that. The server keeps no earlier outputs, nor earlier specs.`,
		Example: `  kubectl hykube stack history web -n prod
  kubectl hykube stack history web --at web-3
  kubectl hykube stack history web --at 2026-11-24T19:47:16Z -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeStacks(s),
		RunE:              run(o),
	}
	cmd.Flags().IntVar(&o.limit, "limit", o.limit, "Number of plans to list; 0 lists all")
	cmd.Flags().StringVar(&o.at, "at", "", "Show the stack at the end of this plan, or of the last plan that had ended at this time (RFC 3339)")
	outputFlag(cmd, &o.output, "Print", "json", "yaml", "name")
	return cmd
}

func (o *stackHistoryOptions) Validate() error {
	if o.at != "" && o.output == "name" {
		return errors.New("-o name: not with --at")
	}
	if o.limit < 0 {
		return errors.New("--limit: write a number of plans, or 0 for all")
	}
	return nil
}

func (o *stackHistoryOptions) Run(ctx context.Context) error {
	s, err := o.read(ctx)
	if err != nil {
		return err
	}
	all, err := o.listPlans(ctx, o.namespace)
	if err != nil {
		return err
	}
	plans := plansOfStack(slices.Clone(all), s)
	if o.at != "" {
		return o.showAt(ctx, s, all, plans)
	}
	if o.limit > 0 && len(plans) > o.limit {
		plans = plans[:o.limit]
	}
	switch {
	case o.output == "name":
		for _, p := range plans {
			fmt.Fprintf(o.Out, "plan.%s/%s\n", v1alpha1.GroupName, p.Name)
		}
		return nil
	case o.output != "":
		list := v1alpha1.PlanList{Items: plans}
		list.APIVersion, list.Kind = v1alpha1.SchemeGroupVersion.String(), "PlanList"
		return printJSON(o.terminal, list, o.output)
	case len(plans) == 0:
		fmt.Fprintf(o.ErrOut, "The stack %q has no plans.\n", s.Name)
		return nil
	}
	w := tabwriter.NewWriter(o.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "MADE\tPLAN\tASKED BY\tDECIDED BY\tSUMMARY\tSTATE")
	for i := range plans {
		p, summary, by := &plans[i], "-", "-"
		if p.Status.Summary != nil {
			summary = cmp.Or(p.Status.Summary.Text, "-")
		}
		if made := decisions(p); len(made) > 0 {
			names := make([]string, 0, len(made))
			for _, a := range made {
				names = append(names, username(a.By))
			}
			by = strings.Join(names, ", ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", p.CreationTimestamp.UTC().Format(time.RFC3339), p.Name, username(p.Status.RequestedBy), by, summary, planState(p))
	}
	return w.Flush()
}

// plansOfStack returns the plans that a stack, or its workflow, made, newest first.
func plansOfStack(all []v1alpha1.Plan, s *v1alpha1.Stack) []v1alpha1.Plan {
	plans := slices.DeleteFunc(all, func(p v1alpha1.Plan) bool { return !madeFor(&p, s) })
	slices.SortFunc(plans, func(a, b v1alpha1.Plan) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(numberOf(&b), numberOf(&a)))
	})
	return plans
}

// madeFor reports whether a stack, or its workflow, made a plan. An earlier stack may have had the same name.
func madeFor(p *v1alpha1.Plan, s *v1alpha1.Stack) bool {
	if p.Status.Stack != nil {
		return p.Status.Stack.StackUID == s.UID
	}
	return p.StackName() == s.Name && !p.CreationTimestamp.Time.Before(s.CreationTimestamp.Time)
}

// numberOf returns the number of a plan among those that its stack made; 0 if no stack made it.
func numberOf(p *v1alpha1.Plan) int64 {
	if p.Status.Stack == nil {
		return 0
	}
	return p.Status.Stack.Number
}
