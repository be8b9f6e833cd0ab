package stack

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/workflow"
	"github.com/hykube/hykube/internal/cron"
	"github.com/hykube/hykube/internal/stack"
)

type stackStatusOptions struct{ stackArgument }

func newStackStatus(s *session.Session) *cobra.Command {
	o := &stackStatusOptions{stackArgument{Session: s}}
	cmd := &cobra.Command{
		Use:   "status STACK",
		Short: "Show what a stack does, and what it waits for",
		Long: `Show what a stack does, and what it waits for: its resources, its last plan, the last run of its workflow, the stacks that it
depends on, and the user with whose rights it acts.`,
		Example:           `  kubectl hykube stack status web -n prod`,
		Args:              namesStack(0),
		ValidArgsFunction: completeStacks(s),
		RunE:              session.Run(o),
	}
	printer.OutputFlag(cmd, &o.output, "Print", "json", "yaml")
	return cmd
}

func (o *stackStatusOptions) Run(ctx context.Context) error {
	s, err := o.read(ctx)
	if err != nil {
		return err
	}
	if o.output != "" {
		s.APIVersion, s.Kind = v1alpha1.SchemeGroupVersion.String(), "Stack"
		return printer.JSON(o.Terminal, s, o.output)
	}
	applied, err := o.appliedLast(ctx, s)
	if err != nil {
		return err
	}
	return o.print(s, applied)
}

// print prints the status of a stack. applied is the plan that applied something last; nil if there is none, or if the
// user may not read it.
func (o *stackStatusOptions) print(s *v1alpha1.Stack, applied *v1alpha1.Plan) error {
	w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)
	status, reason, message := planapi.StackReadiness(s)
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
	if applied != nil && applied.Name != stack.LastPlan(s) {
		fmt.Fprintf(w, "Applied last:\t%s, which ended %s%s\n", applied.Name, endOf(applied).UTC().Format(time.RFC3339),
			notOfStack(applied, s))
	}
	if lines := scheduleLines(s, time.Now()); len(lines) > 0 {
		fmt.Fprintf(w, "Schedule:\t%s\n", strings.Join(lines, "\n\t"))
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

// scheduleLines describes the schedule of the plans of a stack, and its next time. It returns nothing without a
// schedule.
func scheduleLines(s *v1alpha1.Stack, now time.Time) []string {
	plan := s.Spec.Plan
	if plan.Schedule == "" {
		return nil
	}
	lines := []string{printer.Flat(plan.Schedule) + ", " + cmp.Or(plan.TimeZone, "UTC")}
	times, err := cron.Parse(plan.Schedule, plan.TimeZone)
	if err != nil || s.Spec.Suspend { // a suspended stack pauses its schedules
		return lines
	}
	what := "plan"
	if s.Spec.Workflow != nil {
		what = "run of the workflow"
	}
	return append(lines, fmt.Sprintf("Next %s: %s, or up to %s later.", what,
		times.Next(now).UTC().Format(time.RFC3339), times.Jitter(now)))
}

// omitReported removes the message of a drift check that the condition Ready of a stack has, too. Only a stack that is
// Ready has it there: that of the running check, or of the last one, if that failed.
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
		return fmt.Sprintf("%s on the task queue %s, which has no run yet", printer.Flat(s.Spec.Workflow.Type),
			printer.Flat(s.Spec.Workflow.TaskQueue))
	}
	run := workflow.Run{Namespace: v1alpha1.TemporalNamespace(s.Namespace), ID: r.WorkflowID, Run: r.RunID}
	state := "goes on"
	if r.EndedAt != nil {
		state = string(r.Outcome)
	}
	return run.String() + ", " + state
}
