package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/diff"
)

type statusOptions struct {
	planArgument
	watch  bool
	all    bool
	output string
	// kinds lists the kinds to count; nil means all kinds of the server.
	kinds []kind
}

func newStatus(s *session) *cobra.Command {
	o := &statusOptions{planArgument: planArgument{session: s}}
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
		ValidArgsFunction: completePlans(s, nil),
		RunE:              run(o),
	}
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "Show every namespace that has resources or plans")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Watch the namespace until Ctrl-C, or a plan until it ends")
	outputFlag(cmd, &o.output, "Print", "json", "yaml")
	return cmd
}

func (o *statusOptions) Validate() error {
	switch {
	case o.output != "" && o.watch:
		return errors.New("--watch and -o exclude each other; to watch objects as JSON, use kubectl get --watch -o json")
	case o.all && o.name != "":
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
	if o.name == "" && o.watch {
		return o.watchNamespace(ctx)
	}
	if o.name == "" && o.output != "" {
		found, err := o.count(ctx)
		if err != nil {
			return err
		}
		return o.printItems([]map[string]any{found.document()})
	}
	if o.name == "" {
		return o.overview(ctx)
	}
	return o.one(ctx)
}

// one prints the status of a plan.
func (o *statusOptions) one(ctx context.Context) error {
	p, err := o.getPlan(ctx, o.namespace, o.name)
	if err != nil {
		return err
	}
	if o.output != "" {
		return printPlan(o.terminal, p, o.output)
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
	if hint := o.nextStep(ctx, p); hint != "" {
		fmt.Fprintln(o.Out, "\n"+o.style.Dim(hint))
	}
	return nil
}

// watchPlanEnd watches a plan until it ends, including a decision that it waits for. printed is true if nothing remains to
// print: the summary was printed, or Ctrl-C ended the watch.
func (o *statusOptions) watchPlanEnd(ctx context.Context, p *v1alpha1.Plan) (_ *v1alpha1.Plan, printed bool, err error) {
	if waiting(p) {
		if p, err = o.awaitDecision(ctx, p); err != nil || p == nil {
			return nil, true, err
		}
	}
	if p.Ended() {
		return p, false, nil
	}
	began := time.Now()
	if p, err = o.awaitPlanned(ctx, p); err != nil {
		return nil, true, err
	}
	if p.Status.Approval == nil && !p.ApprovesItself() {
		return p, false, nil
	}
	end, how, err := o.follow(ctx, p)
	if errors.Is(err, errDetached) {
		return nil, true, nil
	}
	if err != nil {
		return nil, true, err
	}
	return end, true, o.printSummary(ctx, end, how, time.Since(began), planAnew(end))
}

// printFacts prints the facts about a plan, one per line.
func (o *statusOptions) printFacts(ctx context.Context, p *v1alpha1.Plan) error {
	w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)
	row := rows(w)
	row("Plan", p.Name+" in namespace "+p.Namespace)
	state := planState(p)
	if cancelling(p) {
		state = o.cancellingText(ctx, p)
	}
	row("State", state)
	row("Paused", pausedText(p))
	row("Looks at", scopeText(p))
	row("Changes", summaryText(p.Status.Summary))
	if g := p.Status.Progress; g != nil && g.Total > 0 {
		row("Progress", progressText(g, p.Status.StalledFor()))
	}
	if r := p.Status.RequestedBy; r != nil {
		row("Asked for", "by "+r.String()+", "+age(p.CreationTimestamp.Time)+" ago")
	}
	row("Written by", contributor.Text(p.Status.Contributors))
	row("Waits", whyPerson(p))
	for _, a := range decisions(p) {
		text := decisionWord(a.Decision) + by(&a)
		if a.Message != "" {
			text += fmt.Sprintf(" (%s)", flat(a.Message))
		}
		row("Decision", text)
	}
	if c := p.Status.Cancel; c != nil {
		who := ""
		if c.By != nil {
			who = " by " + c.By.String()
		}
		if c.At != nil {
			who += ", " + age(c.At.Time) + " ago"
		}
		row("To be stopped", strings.TrimSpace(strings.TrimPrefix(who, ",")))
	}
	if f := p.Status.FinishedAt; f != nil {
		row("Ended", age(f.Time)+" ago")
	}
	if r := p.Status.Runs; r != nil {
		row("Runs", strings.TrimSpace(r.Plan+" "+r.Apply))
	}
	if w := workflowOf(p); w != nil {
		row("Workflow", w.String())
	}
	return w.Flush()
}

// whyPerson returns why a plan that could have approved itself waits for a person; "" if it does not wait.
func whyPerson(p *v1alpha1.Plan) string {
	if a := p.Status.AutomaticApproval; a != nil && !a.Granted && waiting(p) {
		return flat(a.Message)
	}
	return ""
}

// rows returns a function that prints a named fact, unless the fact is empty.
func rows(w io.Writer) func(name, fact string) {
	return func(name, fact string) {
		if fact != "" {
			fmt.Fprintf(w, "%s:\t%s\n", name, fact)
		}
	}
}

// summaryText returns the counts of a plan's changes, or "" before planning has ended.
func summaryText(s *v1alpha1.PlanSummary) string {
	if s == nil {
		return ""
	}
	return cmp.Or(s.Text, counts(*s))
}

// failures prints the failed and the running changes.
func (o *statusOptions) failures(ctx context.Context, p *v1alpha1.Plan) error {
	if p.Status.Progress == nil {
		o.printTogether(o.Out, slices.Concat(p.Status.Diagnostics, p.Status.Checks), nil)
		return nil
	}
	diagnostics, failed := slices.Concat(p.Status.Diagnostics, p.Status.Checks), map[int32]*v1alpha1.PlanChange{}
	byState := map[v1alpha1.ChangeState][]string{}
	var left, halves []string
	var notTried []skipped
	for c, err := range o.changes(ctx, p) {
		if err != nil {
			return err
		}
		switch c.State {
		case v1alpha1.ChangeFailed, v1alpha1.ChangeUnknown:
			byState[c.State] = append(byState[c.State], c.Address)
			if diff.HalfDone(c) {
				halves = append(halves, diff.Name(c)+": "+halfText(c))
			}
			diagnostics, failed[c.Index] = append(diagnostics, o.diagnosticsOf(c, v1alpha1.SeverityError)...), c
		case v1alpha1.ChangeRunning:
			byState[c.State] = append(byState[c.State], c.Address)
		case v1alpha1.ChangeSkipped, v1alpha1.ChangeStale:
			if c.Blocked != "" && c.State == v1alpha1.ChangeSkipped {
				left = append(left, c.Address+": "+c.Blocked)
				continue
			}
			if c.State == v1alpha1.ChangeSkipped {
				notTried = append(notTried, skipped{c.Address, oneLine(c)})
				continue
			}
			byState[c.State] = append(byState[c.State], c.Address+": "+oneLine(c))
		}
	}
	o.printTogether(o.Out, diagnostics, o.failedInstances(failed))
	o.list(o.Out, "\nRunning:", byState[v1alpha1.ChangeRunning])
	o.list(o.Out, "\nIncompletely replaced:", halves)
	o.list(o.Out, "\nBlocked, and not changed:", left)
	o.list(o.Out, "\nNot tried:", skippedLines(notTried))
	o.list(o.Out, "\nNot applied, because they changed after the plan was made:", byState[v1alpha1.ChangeStale])
	return nil
}

// planState returns the state of a plan in a few words.
func planState(p *v1alpha1.Plan) string {
	switch {
	case stale(p):
		return "stale"
	case discarded(p), p.Status.StalledFor() == v1alpha1.ReasonDiscarded: // the server discards plans of stacks
		return "discarded"
	case superseded(p):
		return "superseded"
	case nothingToDo(p):
		return "nothing to do"
	case p.Spec.Speculative && ready(p):
		return "speculative: it cannot be approved"
	case appliedInPart(p):
		return "applied in part: " + progressText(p.Status.Progress, "")
	case ready(p):
		return "applied"
	case p.PlanFailed():
		return "failed to plan"
	case p.Status.Cancel != nil && (stalled(p) || applyFailed(p)):
		return "cancelled"
	case stalled(p), applyFailed(p):
		return "failed"
	case blocked(p):
		return "blocked"
	case denied(p):
		return "refused by a policy"
	case waiting(p) && outdated(p):
		return "stale"
	case waiting(p):
		return "waits for approval"
	case p.Status.Cancel != nil:
		return "cancelling"
	case heldByServer(p):
		return "approved, and held"
	case p.Status.Approval != nil:
		return "applying"
	case !planned(p):
		return "planning"
	}
	return "applying"
}

// cancelling reports whether a plan was cancelled and has not ended yet.
func cancelling(p *v1alpha1.Plan) bool { return p.Status.Cancel != nil && !p.Ended() }

// whyCancelling returns the server's message about what a cancelled plan waits for.
func whyCancelling(p *v1alpha1.Plan) string {
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReconciling); c != nil && c.Reason == v1alpha1.ReasonCancelling {
		return c.Message
	}
	return ""
}

// heldByServer reports whether the server applies no change of an approved plan, because its database is a copy or was restored.
func heldByServer(p *v1alpha1.Plan) bool {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	return c != nil && (c.Reason == v1alpha1.ReasonServerFrozen || c.Reason == v1alpha1.ReasonServerCopied)
}

// pausedText returns the server's message about the pause of a rollout or of the server; "" if none pauses.
func pausedText(p *v1alpha1.Plan) string {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.Reason != v1alpha1.ReasonRolloutPaused && !heldByServer(p) {
		return ""
	}
	return diff.Clean(c.Message, true)
}

// cancellingText returns the text about the wait of a cancelled plan.
func (s *session) cancellingText(ctx context.Context, p *v1alpha1.Plan) string {
	var running []*v1alpha1.PlanChange
	if p.Status.Progress != nil {
		for c, err := range s.changes(ctx, p) {
			if err != nil {
				break // the plan's status has the counts, too
			}
			if c.State == v1alpha1.ChangeRunning {
				running = append(running, c)
			}
		}
	}
	return waitsFor(p, running)
}

// waitsFor returns a text such as "cancelling: waiting for 2 running calls (sim_instance.web, 40s; sim_disk.data,
// 12s)".
func waitsFor(p *v1alpha1.Plan, running []*v1alpha1.PlanChange) string {
	n := len(running)
	if g := p.Status.Progress; g != nil {
		n = max(n, int(g.Running))
	}
	calls := "1 running call"
	switch {
	case n == 0:
		return "cancelling"
	case n > 1:
		calls = diff.Count(n) + " running calls"
	}
	text := "cancelling: waiting for " + calls
	var names []string
	for i, c := range running {
		if i == 3 {
			names = append(names, fmt.Sprintf("and %s more", diff.Count(n-i)))
			break
		}
		name := diff.Name(c)
		if c.StartedAt != nil {
			name += ", " + elapsedSeconds(time.Since(c.StartedAt.Time))
		}
		names = append(names, name)
	}
	if len(names) > 0 {
		text += " (" + strings.Join(names, "; ") + ")"
	}
	return text
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

// progressText returns the counts of a plan's changes by progress. With the outcome Stale, the failed ones are called
// stale.
func progressText(g *v1alpha1.PlanProgress, outcome string) string {
	failed := "failed"
	if outcome == v1alpha1.ReasonStale {
		failed = "stale"
	}
	text := fmt.Sprintf("%s of %s made", diff.Count(int(g.Done)), diff.Count(int(g.Total+g.Blocked)))
	for _, x := range []struct {
		n    int32
		what string
	}{{g.Running, "running"}, {g.Failed - g.HalfDone, failed}, {g.HalfDone, "half done"}, {g.Skipped, "not tried"}, {g.Blocked, "blocked"}} {
		if x.n > 0 {
			text += fmt.Sprintf(", %s %s", diff.Count(int(x.n)), x.what)
		}
	}
	return text
}

func (s *session) nextStep(ctx context.Context, p *v1alpha1.Plan) string {
	switch {
	case nothingToDo(p):
		if ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			return diff.Clean(ready.Message, true)
		}
	case blocked(p), denied(p):
		return diff.Clean(why(p), true)
	case waiting(p) && outdated(p):
		return readyMessage(p)
	case waiting(p) && !s.mayApprove(ctx, p.Namespace):
		return approvedSoFar(p) + cannotApproveText(p)
	case waiting(p) && !s.approvalCounts(ctx, p):
		return readyMessage(p) + "\n" + anotherApproves(p)
	case waiting(p) && len(p.Status.Approvals) == 0 && requiresApprovals(p):
		return readyMessage(p)
	case waiting(p):
		return approvedSoFar(p) + fmt.Sprintf("Next: kubectl hykube show %s -n %s, then approve or discard it.", p.Name, p.Namespace)
	case stalled(p) && !discarded(p):
		if m := why(p); m != "" {
			return diff.Clean(m, true)
		}
	case cancelling(p):
		return diff.Clean(whyCancelling(p), true)
	case heldUp(p) != "":
		return diff.Clean(heldUp(p), true)
	case !p.Ended():
		return fmt.Sprintf("Watch it: kubectl hykube status %s -n %s --watch", p.Name, p.Namespace)
	}
	return ""
}

// heldUp says that a plan waits for other plans, or for a provider for longer than usual. It returns "" for other plans.
func heldUp(p *v1alpha1.Plan) string {
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil && (ready.Reason == v1alpha1.ReasonQueued || ready.Reason == v1alpha1.ReasonAwaitingProvider) {
		return ready.Message
	}
	return ""
}

// waits holds the reasons of the condition Ready that need no attention.
var waits = map[string]bool{
	v1alpha1.ReasonAwaitingPlan: true, v1alpha1.ReasonApplying: true,
	v1alpha1.ReasonDeleting: true, v1alpha1.ReasonForgetting: true, v1alpha1.ReasonMoving: true, v1alpha1.ReasonDestroyed: true, v1alpha1.ReasonForgotten: true,
}

// listPage is the number of objects per list request, and listAtOnce the number of kinds that are listed concurrently.
const (
	listPage   = 500
	listAtOnce = 16
)
