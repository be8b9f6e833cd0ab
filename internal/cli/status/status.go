// Package status is the verb status: of a plan, of a namespace, and of all namespaces.
package status

import (
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
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/workflow"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/diff"
)

type statusOptions struct {
	session.PlanArgument
	watch  bool
	all    bool
	output string
	// kinds lists the kinds to count; nil means all kinds of the server.
	kinds []session.Kind
}

// New returns the command status.
func New(s *session.Session) *cobra.Command {
	o := &statusOptions{PlanArgument: session.PlanArgument{Session: s}}
	cmd := &cobra.Command{
		Use:   "status [PLAN]",
		Short: "Show the status of a namespace or a plan",
		Long: `Show the status of a namespace or a plan.

For a namespace the command counts resources by the reason of their condition Ready, and lists those that need attention,
those that drifted, and the last plans. For a plan it shows the progress, the decision and all errors. With -A it shows
each namespace that has resources or plans.

The command exits with 0 even if something needs attention, and with 1 if it cannot read the status.`,
		Example: `  kubectl hykube status -n prod
  kubectl hykube status -A
  kubectl hykube status --watch
  kubectl hykube status -n prod -o json
  kubectl hykube status apply-x7k2d --watch`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: planapi.Complete(s, nil),
		RunE:              session.Run(o),
	}
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "Show every namespace that has resources or plans")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Watch the namespace until Ctrl-C, or a plan until it ends")
	printer.OutputFlag(cmd, &o.output, "Print", "json", "yaml")
	return cmd
}

func (o *statusOptions) Validate() error {
	switch {
	case o.output != "" && o.watch:
		return errors.New("--watch and -o exclude each other; to watch objects as JSON, use kubectl get --watch -o json")
	case o.all && o.Name != "":
		return errors.New("-A shows all namespaces, and a plan is in one namespace: leave out -A or the plan")
	case o.all && o.watch:
		return errors.New("--watch shows one namespace: name it with -n in place of -A")
	}
	return nil
}

func (o *statusOptions) Run(ctx context.Context) error {
	if o.all {
		return o.everyNamespace(ctx)
	}
	if o.Name == "" && o.watch {
		return o.watchNamespace(ctx)
	}
	if o.Name == "" && o.output != "" {
		found, err := o.count(ctx)
		if err != nil {
			return err
		}
		return o.printItems([]map[string]any{found.document()})
	}
	if o.Name == "" {
		return o.overview(ctx)
	}
	return o.showPlan(ctx)
}

// showPlan prints the status of a plan.
func (o *statusOptions) showPlan(ctx context.Context) error {
	p, err := planapi.Get(ctx, o.Session, o.Namespace, o.Name)
	if err != nil {
		return err
	}
	if o.output != "" {
		return printer.Plan(o.Terminal, p, o.output)
	}
	if o.watch {
		var ended bool
		if p, ended, err = o.watchPlanEnd(ctx, p); err != nil || ended {
			return err
		}
	}
	if err := o.printFacts(ctx, p); err != nil {
		return err
	}
	if err := o.failures(ctx, p); err != nil {
		return err
	}
	if hint := planapi.NextStep(ctx, o.Session, p); hint != "" {
		fmt.Fprintln(o.Out, "\n"+o.Style.Dim(hint))
	}
	return nil
}

// watchPlanEnd watches a plan until it ends, including a decision that it waits for. printed is true if nothing remains
// to print: the summary was printed, or Ctrl-C ended the watch.
func (o *statusOptions) watchPlanEnd(ctx context.Context,
	p *v1alpha1.Plan) (_ *v1alpha1.Plan, printed bool, err error) {
	if planapi.Waiting(p) {
		if p, err = o.awaitDecision(ctx, p); err != nil || p == nil {
			return nil, true, err
		}
	}
	if p.Ended() {
		return p, false, nil
	}
	began := time.Now()
	if p, err = operation.AwaitPlanned(ctx, o.Session, p); err != nil {
		return nil, true, err
	}
	if p.Status.Approval == nil && !p.ApprovesItself() {
		return p, false, nil
	}
	if p, err = operation.FollowToEnd(ctx, o.Session, p, began); errors.Is(err, operation.ErrDetached) {
		err = nil
	}
	return p, true, err
}

// printFacts prints the facts about a plan, one per line.
func (o *statusOptions) printFacts(ctx context.Context, p *v1alpha1.Plan) error {
	w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)
	row := printer.Facts(w)
	row("Plan", p.Name+" in namespace "+p.Namespace)
	state := planapi.State(p)
	if planapi.Cancelling(p) {
		state = planapi.CancellingText(ctx, o.Session, p)
	}
	row("State", state)
	row("Paused", planapi.PausedText(p))
	row("Looks at", scopeText(p))
	row("Changes", planapi.Summary(p.Status.Summary))
	if g := p.Status.Progress; g != nil && g.Total > 0 {
		row("Progress", planapi.Progress(g, p.Status.StalledFor()))
	}
	if r := p.Status.RequestedBy; r != nil {
		row("Asked for", "by "+r.String()+", "+printer.Age(p.CreationTimestamp.Time)+" ago")
	}
	row("Written by", contributor.Text(p.Status.Contributors))
	row("Waits", planapi.WhyNotAutomatic(p))
	for _, a := range planapi.Decisions(p) {
		text := planapi.DecisionWord(a.Decision) + planapi.By(&a)
		if a.Message != "" {
			text += fmt.Sprintf(" (%s)", printer.Flat(a.Message))
		}
		row("Decision", text)
	}
	if c := p.Status.Cancel; c != nil {
		who := ""
		if c.By != nil {
			who = " by " + c.By.String()
		}
		if c.At != nil {
			who += ", " + printer.Age(c.At.Time) + " ago"
		}
		row("To be stopped", strings.TrimSpace(strings.TrimPrefix(who, ",")))
	}
	if f := p.Status.FinishedAt; f != nil {
		row("Ended", printer.Age(f.Time)+" ago")
	}
	if r := p.Status.Runs; r != nil {
		row("Runs", strings.TrimSpace(r.Plan+" "+r.Apply))
	}
	if w := workflow.RunOf(p); w != nil {
		row("Workflow", w.String())
	}
	return w.Flush()
}

// failures prints the failed and the running changes.
func (o *statusOptions) failures(ctx context.Context, p *v1alpha1.Plan) error {
	if p.Status.Progress == nil {
		operation.PrintDiagnostics(o.Session, o.Out, slices.Concat(p.Status.Diagnostics, p.Status.Checks), nil)
		return nil
	}
	diagnostics, failed := slices.Concat(p.Status.Diagnostics, p.Status.Checks), map[int32]*v1alpha1.PlanChange{}
	byState := map[v1alpha1.ChangeState][]string{}
	var left, halves []string
	var notTried []operation.Skipped
	for c, err := range planapi.Changes(ctx, o.Session, p) {
		if err != nil {
			return err
		}
		switch c.State {
		case v1alpha1.ChangeFailed, v1alpha1.ChangeUnknown:
			byState[c.State] = append(byState[c.State], c.Address)
			if diff.HalfDone(c) {
				halves = append(halves, diff.Name(c)+": "+operation.HalfText(c))
			}
			diagnostics, failed[c.Index] = append(diagnostics,
				operation.DiagnosticsOf(o.Session, c, v1alpha1.SeverityError)...), c
		case v1alpha1.ChangeRunning:
			byState[c.State] = append(byState[c.State], c.Address)
		case v1alpha1.ChangeSkipped, v1alpha1.ChangeStale:
			if c.Blocked != "" && c.State == v1alpha1.ChangeSkipped {
				left = append(left, c.Address+": "+c.Blocked)
				continue
			}
			if c.State == v1alpha1.ChangeSkipped {
				notTried = append(notTried, operation.Skipped{Name: c.Address, Reason: printer.OneLine(c)})
				continue
			}
			byState[c.State] = append(byState[c.State], c.Address+": "+printer.OneLine(c))
		}
	}
	operation.PrintDiagnostics(o.Session, o.Out, diagnostics, operation.FailedInstances(failed))
	printer.List(o.Session.Terminal, o.Out, "\nRunning:", byState[v1alpha1.ChangeRunning])
	printer.List(o.Session.Terminal, o.Out, "\nIncompletely replaced:", halves)
	printer.List(o.Session.Terminal, o.Out, "\nBlocked, and not changed:", left)
	printer.List(o.Session.Terminal, o.Out, "\nNot tried:", operation.SkippedLines(notTried))
	printer.List(o.Session.Terminal, o.Out, "\nNot applied, because they changed after the plan was made:",
		byState[v1alpha1.ChangeStale])
	return nil
}

func scopeText(p *v1alpha1.Plan) string {
	some := func(addresses []string) string {
		if n := len(addresses); n > 3 {
			return fmt.Sprintf("%s and %d more", strings.Join(addresses[:3], ", "), n-3)
		}
		return strings.Join(addresses, ", ")
	}
	text := "the whole namespace"
	switch {
	case len(p.Spec.Targets) > 0:
		text = some(p.Spec.Targets)
	case p.Spec.Selector != nil:
		text = "resources with " + metav1.FormatLabelSelector(p.Spec.Selector)
	}
	if len(p.Spec.Exclude) > 0 {
		text += ", without " + some(p.Spec.Exclude)
	}
	if len(p.Spec.Invoke) > 0 {
		text += ", to invoke " + strings.Join(p.Spec.Invoke[:min(3, len(p.Spec.Invoke))], ", ")
	}
	if p.Spec.Destroy {
		text += ", to destroy"
	}
	if p.Spec.RefreshOnly {
		text += ", to refresh"
	}
	return text
}

// waits holds the reasons of the condition Ready that need no attention.
var waits = map[string]bool{
	v1alpha1.ReasonAwaitingPlan: true, v1alpha1.ReasonApplying: true,
	v1alpha1.ReasonDeleting: true, v1alpha1.ReasonForgetting: true, v1alpha1.ReasonMoving: true,
	v1alpha1.ReasonDestroyed: true, v1alpha1.ReasonForgotten: true,
}
