package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/history"
	"github.com/hykube/hykube/internal/cli/namespace"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/query"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/cli/workflow"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/diff"
)

// completeChanges completes plans, and then the addresses in the named plan.
func completeChanges(s *session.Session) session.Completer {
	plans := planapi.Complete(s, nil)
	addresses := s.CompleteWith(session.AnyNumber,
		func(ctx context.Context, args []string, _ string) (out []string, err error) {
			p, err := planapi.Get(ctx, s, s.Namespace, args[0])
			if err != nil {
				return nil, err
			}
			for c, err := range planapi.Changes(ctx, s, p) {
				if err != nil || len(out) == 1000 {
					break
				}
				out = append(out, addressOfChange(c)+"\t"+string(c.Action))
			}
			return out, nil
		})
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return plans(cmd, args, begun)
		}
		return addresses(cmd, args, begun)
	}
}

// addressOfChange returns a change's address in the format of addrs.Parse.
func addressOfChange(c *v1alpha1.PlanChange) string {
	if t, err := addrs.Parse(c.Address); err == nil {
		return t.Address()
	}
	return c.Address
}

// headWait is the time that show waits for the answer whether a plan can still be approved. The server checks each
// change for that. If it takes longer, the answer follows the changes.
const headWait = 300 * time.Millisecond

type showOptions struct {
	*session.Session
	name string
	// addresses selects the changes to show; empty means all.
	addresses []string
	// failed and match restrict the changes to failed ones, and to those that contain a text.
	failed bool
	match  string
	output string
}

// NewShow returns the command show.
func NewShow(s *session.Session) *cobra.Command {
	o := &showOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "show (PLAN [ADDRESS ...] | --failed)",
		Short: "Show every change of a plan, or some of them",
		Long: `Show every change of a plan, in full. With addresses the command shows only the changes of those resources and their
outcomes. --failed shows only the changes that failed or whose outcome is unknown, and --match only those that contain a
text in any case: in their address, their message or the lines of the change. Both together show the changes with both.
Without a plan, --failed shows the last plan of the namespace with such changes.

-o terraform-json prints the format of "terraform show -json", which conftest, OPA and infracost can read. -o json and yaml
print the plan object with its changes. Each format masks secrets.`,
		Example: `  kubectl hykube show plan-x7k2d
  kubectl hykube show plan-x7k2d sim_network.main sim-subnet/front
  kubectl hykube show --failed
  kubectl hykube show plan-x7k2d --match 10.0.3.
  kubectl hykube show plan-x7k2d -o terraform-json | conftest test -`,
		Args:              o.args,
		ValidArgsFunction: completeChanges(s),
		RunE:              session.Run(o),
	}
	cmd.Flags().BoolVar(&o.failed, "failed", false, "Only changes that failed, or whose outcome is unknown")
	cmd.Flags().StringVar(&o.match, "match", "",
		"Only changes whose address, message or lines contain this text, in any case")
	printer.OutputFlag(cmd, &o.output, "Print", "terraform-json", "json", "yaml", "name")
	return cmd
}

func onePlan(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return session.ErrNoName
	case len(args) > 1:
		return fmt.Errorf("name one plan, not %d", len(args))
	}
	return nil
}

func (o *showOptions) args(_ *cobra.Command, args []string) error {
	if len(args) == 0 && !o.failed {
		return session.ErrNoName
	}
	return nil
}

func (o *showOptions) Complete(args []string) (err error) {
	if len(args) == 0 {
		return o.Connect()
	}
	o.name = args[0]
	if o.addresses, err = addrs.ParseAll("show", args[1:]); err != nil {
		return err
	}
	return o.Connect()
}

func (o *showOptions) Validate() error {
	if o.output == "terraform-json" || o.output == "name" {
		switch {
		case len(o.addresses) > 0:
			return fmt.Errorf("-o %s is about a whole plan: leave the addresses out, or write -o json or -o yaml",
				o.output)
		case o.filters():
			return fmt.Errorf("-o %s is about a whole plan: leave --failed and --match out, or write -o json or -o yaml", o.output)
		}
	}
	return nil
}

func (o *showOptions) Run(ctx context.Context) error {
	p, err := o.plan(ctx)
	if err != nil {
		return err
	}
	if !planapi.Planned(p) && o.output != "json" && o.output != "yaml" && o.output != "name" {
		return fmt.Errorf("plan %q is still being made: kubectl hykube status %s -n %s", p.Name, p.Name, p.Namespace)
	}
	switch o.output {
	case "terraform-json":
		return o.terraformJSON(ctx, p)
	case "name":
		return printer.Plan(o.Terminal, p, "name")
	case "json", "yaml":
		return o.object(ctx, p)
	}
	switch {
	case len(o.addresses) > 0:
		return o.printNamed(ctx, p)
	case o.filters():
		return o.printMatching(ctx, p)
	}
	answer := make(chan string, 1)
	go func() { answer <- o.whyNotApprovable(ctx, p) }()
	text, early := "", true
	select {
	case text = <-answer:
	case <-time.After(headWait):
		early = false
	}
	if text != "" {
		fmt.Fprintf(o.Out, "%s\n\n", o.Style.Bold(text))
	}
	if err := operation.ShowPlan(ctx, o.Session, p, nil, nil); err != nil {
		return err
	}
	if !early {
		if text = <-answer; text != "" {
			fmt.Fprintf(o.Out, "\n%s\n", o.Style.Bold(text))
		}
	}
	if history.WrittenByOthers(p.Status.RequestedBy, p.Status.Contributors) {
		fmt.Fprintf(o.Out, "\nWritten by: %s\n", contributor.Text(p.Status.Contributors))
	}
	if why := planapi.WhyNotAutomatic(p); why != "" {
		fmt.Fprintf(o.Out, "\n%s\n", why)
	}
	if planapi.Speculative(p) {
		fmt.Fprintf(o.Out, "\n%s\n", o.Style.Dim(cannotBeApproved(p)))
	}
	if w := workflow.RunOf(p); w != nil {
		fmt.Fprintf(o.Out, "\n%s\n", o.Style.Dim(
			fmt.Sprintf("The workflow %s asked for it: kubectl hykube ui %s -n %s --workflow", w, p.Name, p.Namespace)))
	}
	if planapi.Waiting(p) {
		fmt.Fprintf(o.Out, "\n%s\n", o.Style.Dim(planapi.ApprovedSoFar(p)+o.approvalHint(ctx, p, text != "")))
	}
	return nil
}

// plan returns the named plan, or the last one of the namespace with failed changes.
func (o *showOptions) plan(ctx context.Context) (*v1alpha1.Plan, error) {
	if o.name != "" {
		return planapi.Get(ctx, o.Session, o.Namespace, o.name)
	}
	all, err := planapi.List(ctx, o.Session, o.Namespace)
	if err != nil {
		return nil, err
	}
	var last *v1alpha1.Plan
	for i := range all {
		p := &all[i]
		failed := p.Status.Progress != nil && p.Status.Progress.Failed > 0
		if failed && (last == nil || !p.CreationTimestamp.Before(&last.CreationTimestamp)) {
			last = p
		}
	}
	if last == nil {
		if err := namespace.NotFound(ctx, o.Session, o.Namespace); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("no plan of namespace %q has failed changes; `kubectl get plans -n %[1]s` lists them",
			o.Namespace)
	}
	return last, nil
}

// approvalHint says how the user can approve a plan that waits, or why not. obstructed is true if changes of the plan
// are stale.
func (o *showOptions) approvalHint(ctx context.Context, p *v1alpha1.Plan, obstructed bool) string {
	approve := planapi.ApproveCommand(p)
	switch {
	case planapi.Superseded(p), planapi.Stale(p), planapi.Cancelling(p):
		return fmt.Sprintf("It cannot be approved. Make a new plan: kubectl hykube plan -n %s", p.Namespace)
	case planapi.Outdated(p):
		return planapi.ReadyMessage(p)
	case !planapi.MayApprove(ctx, o.Session, p.Namespace):
		return planapi.CannotApproveText(p)
	case !planapi.ApprovalCounts(ctx, o.Session, p):
		return planapi.AnotherApproves(p)
	case obstructed:
		return fmt.Sprintf("It cannot be approved as a whole. Make a new plan: kubectl hykube plan -n %s\nTo approve what is not stale: %s --partial", p.Namespace, approve)
	case planapi.Denied(p):
		return diff.Clean(planapi.Why(p), true) + "\nIt can be approved when no policy refuses it any more: " + approve
	case planapi.Blocked(p):
		return "It cannot be approved as a whole, since changes of it are blocked. To approve the others: " + approve +
			" --partial"
	}
	return "It waits for approval: " + approve
}

// whyNotApprovable returns why a plan can no longer be approved, or "" if it can.
func (o *showOptions) whyNotApprovable(ctx context.Context, p *v1alpha1.Plan) string {
	head := "Plan " + p.Name + " "
	switch {
	case planapi.Superseded(p), planapi.Stale(p), planapi.Cancelling(p):
		return head + "can no longer be approved. " + diff.Clean(planapi.Why(p), true)
	case planapi.NothingToDo(p), planapi.Speculative(p):
		return ""
	case planapi.Discarded(p):
		return head + "was discarded" + planapi.By(p.Status.Approval) + "."
	case planapi.AppliedInPart(p):
		return head + "was " + planapi.State(p) + "."
	case planapi.Ready(p), planapi.ApplyFailed(p):
		return head + "was approved" + planapi.ApprovedBy(p) + ". " + diff.Clean(planapi.Why(p), true)
	case planapi.Waiting(p) && planapi.MayApprove(ctx, o.Session, p.Namespace):
		return o.staleHint(ctx, p)
	}
	return ""
}

// staleHint checks with a dry run of an approval whether changes of a waiting plan are stale. It returns "" if the user
// may not approve the plan.
func (o *showOptions) staleHint(ctx context.Context, p *v1alpha1.Plan) string {
	body := &v1alpha1.Plan{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: p.UID},
		Status: v1alpha1.PlanStatus{Approval: &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved,
			Digest: p.Status.Digest}},
	}
	err := o.Hykube.Put().Namespace(p.Namespace).Resource("plans").Name(p.Name).SubResource("approval").
		Param("dryRun", metav1.DryRunAll).Body(body).Do(ctx).Error()
	if !apierrors.HasStatusCause(err, v1alpha1.CauseStale) {
		return ""
	}
	return fmt.Sprintf("Plan %s is stale: something that it depends on changed after planning.\n%s", p.Name,
		diff.Clean(session.APIStatus(err).Message, true))
}

// object prints the plan with its changes as one document.
func (o *showOptions) object(ctx context.Context, p *v1alpha1.Plan) error {
	out := struct {
		*v1alpha1.Plan `json:",inline"`
		Changes        []*v1alpha1.PlanChange `json:"changes"`
	}{Plan: p.DeepCopy(), Changes: []*v1alpha1.PlanChange{}}
	out.APIVersion, out.Kind, out.ManagedFields = v1alpha1.SchemeGroupVersion.String(), "Plan", nil
	if len(o.addresses) > 0 {
		var err error
		if out.Changes, err = o.chosen(ctx, p); err != nil {
			return err
		}
		out.Changes = slices.DeleteFunc(out.Changes, func(c *v1alpha1.PlanChange) bool { return !o.selects(c) })
		return printer.JSON(o.Terminal, out, o.output)
	}
	for c, err := range planapi.Changes(ctx, o.Session, p) {
		if err != nil {
			return err
		}
		if o.selects(c) {
			out.Changes = append(out.Changes, c)
		}
	}
	return printer.JSON(o.Terminal, out, o.output)
}

// chosen returns the changes of the named addresses in the order of the plan. An address with deposed instances has
// several. It returns an error for an address without changes.
func (o *showOptions) chosen(ctx context.Context, p *v1alpha1.Plan) ([]*v1alpha1.PlanChange, error) {
	var out []*v1alpha1.PlanChange
	var known []string
	found := map[string]bool{}
	for c, err := range planapi.Changes(ctx, o.Session, p) {
		if err != nil {
			return nil, err
		}
		address := addressOfChange(c)
		known = append(known, address)
		if slices.Contains(o.addresses, address) {
			found[address] = true
			out = append(out, c)
		}
	}
	var missing []error
	for _, a := range o.addresses {
		if !found[a] {
			missing = append(missing, fmt.Errorf("plan %q has no change of %s%s", p.Name, a,
				query.Suggestion(a, known)))
		}
	}
	return out, errors.Join(missing...)
}

// filters reports whether --failed or --match restricts the changes.
func (o *showOptions) filters() bool { return o.failed || o.match != "" }

// selects reports whether --failed and --match permit a change.
func (o *showOptions) selects(c *v1alpha1.PlanChange) bool {
	if o.failed && c.State != v1alpha1.ChangeFailed && c.State != v1alpha1.ChangeUnknown {
		return false
	}
	if o.match == "" {
		return true
	}
	texts := []string{c.Address, c.Message, diff.Change(c, diff.Style{})}
	for _, d := range c.Diagnostics {
		texts = append(texts, d.Summary, d.Detail)
	}
	return slices.ContainsFunc(texts,
		func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(o.match)) })
}

// printMatching prints the changes that --failed and --match permit, as it reads them.
func (o *showOptions) printMatching(ctx context.Context, p *v1alpha1.Plan) error {
	all, shown := 0, 0
	for c, err := range planapi.Changes(ctx, o.Session, p) {
		if err != nil {
			return err
		}
		all++
		if o.selects(c) {
			shown++
			o.printChange(p, c)
		}
	}
	fmt.Fprintf(o.Out, "%s of the %s of plan %s.\n", diff.Count(shown), diff.Plural(all, "change"), p.Name)
	return nil
}

// printNamed prints the named changes with their results.
func (o *showOptions) printNamed(ctx context.Context, p *v1alpha1.Plan) error {
	list, err := o.chosen(ctx, p)
	if err != nil {
		return err
	}
	for _, c := range list {
		if o.selects(c) {
			o.printChange(p, c)
		}
	}
	return nil
}

// printChange prints a change in full, with its result.
func (o *showOptions) printChange(p *v1alpha1.Plan, c *v1alpha1.PlanChange) {
	style := o.Style
	style.Width = 0 // do not cut lines in the full view
	text := diff.Change(c, style)
	if text == "" {
		text = fmt.Sprintf("  %s: no change.\n\n", style.Bold(diff.Name(c)))
	}
	fmt.Fprint(o.Out, text)
	for _, d := range c.Diagnostics {
		if d.Address == "" {
			d.Address = c.Address
		}
		fmt.Fprint(o.Out, diff.Diagnostic(d, o.Style))
	}
	if c.State == "" || c.State == v1alpha1.ChangePending && p.Status.Approval == nil {
		return
	}
	line := fmt.Sprintf("%s: %s", diff.Name(c), c.State)
	if c.Message != "" {
		line += ": " + diff.Clean(c.Message, false)
	}
	fmt.Fprintln(o.Out, line)
}
