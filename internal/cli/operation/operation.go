// Package operation makes plans, shows them, asks, approves them, follows their apply and prints the result, for every
// verb that changes infrastructure. It knows no files: package speculation plans these before they are recorded.
package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/namespace"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
)

// screenLines leaves room for the question below the first screen of a plan.
const screenLines = diff.FirstScreen - 6

// Operation makes plans, shows them, asks, approves them, follows their apply and prints the result.
type Operation struct {
	*session.Session
	// AutoApprove approves without a question.
	AutoApprove bool
	// Partial leaves out blocked and stale changes.
	Partial bool
	// Full shows every change.
	Full bool
	// folded is true if a speculative plan was not shown in full.
	folded bool
	// Left holds the resources that a prune deletes, by namespace and address.
	Left map[[2]string]bool
	// Question is the question before the approval.
	Question string
	// Refuse returns an error for a plan that was shown and that the verb must not apply. A nil function permits every
	// plan.
	Refuse func(context.Context, *v1alpha1.Plan) error
	// TakeBack reverts what the verb recorded, after the user declined. A nil function keeps the objects.
	TakeBack func(context.Context) error
	// Gap prints a blank line before the plan.
	Gap bool
	// Began is the time from which the summary counts.
	Began time.Time
	// WaitTimeout is the maximum time to wait for other plans that change the same resources. waited is the time spent
	// so far.
	WaitTimeout, Waited time.Duration
	// awaited holds the plans that the command waited for, and own those that it made.
	awaited, own map[types.UID]bool
	// Made holds the plans that the command made last.
	Made []*v1alpha1.Plan
	// yes holds the namespaces and contents of plans to which the user said yes.
	yes map[[2]string]bool
}

// New returns the Operation of a verb with its question.
func New(s *session.Session, question string) Operation {
	return Operation{Session: s, Question: question, Began: time.Now()}
}

// AddFlags adds the common flags. auto is the help text of --auto-approve.
func (j *Operation) AddFlags(fs *pflag.FlagSet, auto string) {
	fs.BoolVar(&j.AutoApprove, "auto-approve", false, auto)
	FullFlag(fs, &j.Full)
	fs.DurationVar(&j.WaitTimeout, "wait-timeout", defaultWait,
		"How long to wait for other plans that change the same resources; 0 does not wait")
}

// FullFlag adds the flag --full.
func FullFlag(fs *pflag.FlagSet, full *bool) {
	fs.BoolVar(full, "full", false, "Show every change in full")
}

// PartialFlag adds the flag --partial.
func PartialFlag(fs *pflag.FlagSet, partial *bool) {
	fs.BoolVar(partial, "partial", false,
		"Leave out blocked and stale changes and those that need them, and apply the rest")
}

// CheckInteractive returns an error if the verb will need an answer that the user cannot give.
func (j *Operation) CheckInteractive(verb string, stdin bool) error {
	switch {
	case j.AutoApprove || !j.Empty && !stdin:
		return nil
	case stdin:
		return fmt.Errorf("%s -f - reads files from standard input, so it cannot ask there: add --auto-approve, or name the files with -f PATH", verb)
	}
	later := "`kubectl hykube plan` (with --record for files)"
	switch verb {
	case "destroy":
		later = "`kubectl hykube plan --destroy`"
	case "refresh":
		later = "`kubectl hykube plan --refresh-only`"
	case "resolve --adopt", "resolve --adopt-from": // no plan can be made before
		return fmt.Errorf("%s asks before it imports the resource, and standard input is empty: add --auto-approve",
			verb)
	}
	return fmt.Errorf("%s asks before it changes anything, and standard input is empty: add --auto-approve, or make a plan with %s and approve it later", verb, later)
}

// Wanted is the specification of a plan to make.
type Wanted struct {
	Namespace string
	Base      string
	Spec      v1alpha1.PlanSpec
}

// Plan creates plans and waits for their changes.
func (j *Operation) Plan(ctx context.Context, want []Wanted) ([]*v1alpha1.Plan, error) {
	plans := make([]*v1alpha1.Plan, len(want))
	j.Made = nil
	for i, w := range want {
		p, err := planapi.Create(ctx, j.Session, w.Namespace, w.Base, w.Spec)
		if err != nil {
			return nil, err
		}
		if j.own == nil {
			j.own = map[types.UID]bool{}
		}
		plans[i], j.own[p.UID], j.Made = p, true, append(j.Made, p)
	}
	return plans, AwaitAll(ctx, j.Session, plans)
}

// AwaitAll waits for the changes of plans and updates the plans in the slice.
func AwaitAll(ctx context.Context, s *session.Session, plans []*v1alpha1.Plan) (err error) {
	for i := range plans {
		if plans[i], err = AwaitPlanned(ctx, s, plans[i]); err != nil {
			return err
		}
	}
	return nil
}

// show prints the first screen of a plan, or the whole plan.
func (j *Operation) show(ctx context.Context, p *v1alpha1.Plan) error {
	if j.Full {
		return ShowPlan(ctx, j.Session, p, nil, j.Left)
	}
	screen := diff.NewScreen(j.Style, screenLines)
	screen.Temporary = p.Spec.Speculative && j.AutoApprove
	err := ShowPlan(ctx, j.Session, p, screen, j.Left)
	j.folded = j.folded || screen.Folded && p.Spec.Speculative
	return err
}

// ShowPlan prints a plan on screen, or every change in full if screen is nil. left holds the resources that a prune
// deletes.
func ShowPlan(ctx context.Context, s *session.Session, p *v1alpha1.Plan, screen *diff.Screen,
	left map[[2]string]bool) error {
	if planapi.HasNoResources(p) {
		fmt.Fprintln(s.Out, s.Style.Bold(s.Style.Green("No changes."))+" "+namespace.NoResources(ctx, s, p.Namespace))
		return nil
	}
	var errs []v1alpha1.Diagnostic
	keep := func(c *v1alpha1.PlanChange) {
		if left[[2]string{p.Namespace, c.Address}] && c.ActionReason == "delete_because_no_resource_config" {
			c.ActionReason = diff.LeftFiles
		}
		for _, d := range c.Diagnostics {
			if len(errs) < 10 {
				d.Address = cmp.Or(d.Address, c.Address)
				errs = append(errs, d)
			}
		}
	}
	var add func(*v1alpha1.PlanChange) error
	var finish func() error
	if screen == nil {
		full := s.Style
		full.Width = 0 // do not cut lines in the full view, which users page and search
		w := diff.NewFull(s.Out, p, full)
		add, finish = w.Add, w.Close
	} else {
		add = func(c *v1alpha1.PlanChange) error { screen.Add(c); return nil }
		finish = func() error { return screen.Write(s.Out, p) }
	}
	for c, err := range planapi.Changes(ctx, s, p) {
		if err == nil {
			keep(c)
			s.Lines.Planned(c)
			err = add(c)
		}
		if err != nil {
			return err
		}
	}
	if err := finish(); err != nil {
		return err
	}
	// The plan's diagnostics repeat those of its changes.
	s.Printed = map[v1alpha1.Diagnostic]bool{}
	for _, d := range slices.Concat(p.Status.Diagnostics, errs, p.Status.Checks) {
		if !s.Printed[d] {
			s.Printed[d] = true
			fmt.Fprint(s.ErrOut, manifest.Diagnostic(s, d))
			s.Lines.Diagnostic(d)
		}
	}
	if p.Status.Summary != nil {
		s.Lines.Summary(p, *p.Status.Summary, "plan")
	}
	if planapi.Waiting(p) || planapi.Speculative(p) {
		noteLeaving(ctx, s, p)
	}
	return nil
}

// Failure prints why planning failed and returns the error.
func Failure(s *session.Session, p *v1alpha1.Plan) error {
	PrintDiagnostics(s, s.ErrOut, p.Status.Diagnostics, nil)
	hasErrors := slices.ContainsFunc(p.Status.Diagnostics,
		func(d v1alpha1.Diagnostic) bool { return d.Severity == v1alpha1.SeverityError })
	code, what := exit.Failed, "could not be made"
	switch {
	case planapi.Stale(p):
		code, what = exit.Stale, "is stale"
	case planapi.Superseded(p):
		code, what = exit.Stale, "is not applied"
	case planapi.Discarded(p):
		what = "was discarded"
	case p.Status.Cancel != nil:
		what = "was cancelled"
	}
	text := fmt.Sprintf("plan %q %s", p.Name, what)
	// The message of a failed plan summarizes the errors that were printed above.
	if m := planapi.Why(p); m != "" && !(hasErrors && p.PlanFailed()) {
		text += ": " + diff.Clean(m, true)
	}
	return &exit.Error{Code: code, Cause: &exit.Unchanged{Problem: text}}
}

// PlanAndApply makes plans, shows them, asks, and applies those that were approved. It plans again if another command
// overtook a plan.
func (j *Operation) PlanAndApply(ctx context.Context, want []Wanted) error {
	for {
		plans, err := j.PlanInTurn(ctx, want)
		if err != nil {
			return j.interruptedPlanning(ctx, err)
		}
		lost, err := j.ConfirmAndApply(ctx, plans)
		if err != nil || len(lost) == 0 {
			return err
		}
		if want, err = j.AwaitOtherPlans(ctx, plans, want, lost); err != nil {
			return err
		}
	}
}

// interruptedPlanning cancels the plan that Ctrl-C interrupted, and reverts what the verb recorded. It returns other
// errors unchanged.
func (j *Operation) interruptedPlanning(ctx context.Context, err error) error {
	interrupted, ok := errors.AsType[*interruptedError](err)
	if !ok || j.TakeBack == nil {
		return err
	}
	p := interrupted.plan
	if _, err := planapi.Cancel(ctx, j.Session, p); err != nil {
		fmt.Fprintf(j.ErrOut, "Warning: %v\nThe plan changes nothing until it is approved. To discard it: kubectl hykube discard %s -n %s\n", err, p.Name, p.Namespace)
	}
	if err := j.TakeBack(ctx); err != nil {
		return err
	}
	return errors.New("interrupted; no infrastructure was changed")
}

// Review shows plans, and calls each for every plan with changes that can be applied. It returns an error for every
// other plan with changes.
func (j *Operation) Review(ctx context.Context, plans []*v1alpha1.Plan,
	each func(*v1alpha1.Plan)) (failed []error, err error) {
	for i, p := range plans {
		if i > 0 || j.Gap {
			fmt.Fprintln(j.Out)
		}
		j.heading(p, len(plans))
		if !planapi.NothingToDo(p) && (p.PlanFailed() || planapi.Stalled(p)) {
			failed = append(failed, Failure(j.Session, p))
			continue
		}
		if err := j.show(ctx, p); err != nil {
			return nil, err
		}
		if j.Refuse != nil {
			if err := j.Refuse(ctx, p); err != nil {
				failed = append(failed, err)
				continue
			}
		}
		if planapi.NothingToDo(p) {
			continue
		}
		if err := planapi.WhyNotApproved(p, j.Partial); err != nil {
			failed = append(failed, err)
			continue
		}
		each(p)
	}
	return failed, nil
}

// heading prints the namespace of one of several plans.
func (j *Operation) heading(p *v1alpha1.Plan, plans int) {
	if plans > 1 {
		fmt.Fprintln(j.Out, j.Style.Bold("Namespace "+p.Namespace))
	}
}

// ConfirmAndApply shows plans, asks, applies those that were approved and prints the results. It returns the plans that
// other plans overtook.
func (j *Operation) ConfirmAndApply(ctx context.Context, plans []*v1alpha1.Plan) ([]Conflict, error) {
	var current, todo []*v1alpha1.Plan
	var lost []Conflict
	for _, p := range plans {
		if !planapi.Superseded(p) {
			current = append(current, p)
			continue
		}
		o, err := j.conflictOf(ctx, p, nil)
		if err != nil {
			return nil, err
		}
		lost = append(lost, *o)
	}
	failed, err := j.Review(ctx, current, func(p *v1alpha1.Plan) { todo = append(todo, p) })
	if err != nil {
		return nil, err
	}
	if len(failed) > 0 {
		for _, p := range todo {
			failed = append(failed, fmt.Errorf(
				"plan %q waits for approval, because another plan of this command failed or is blocked. %s", p.Name,
				planapi.ApproveCommand(p)))
		}
		return nil, exit.Join(failed)
	}
	if len(lost) > 0 { // plan all again to show and ask about them together
		for _, p := range todo {
			lost = append(lost, Conflict{plan: p, beside: true})
		}
		return lost, nil
	}
	if len(todo) == 0 {
		return nil, nil
	}
	fmt.Fprintln(j.Out)
	if !j.AutoApprove && !j.AllConfirmed(todo) {
		if err := j.checkMayApprove(ctx, todo); err != nil {
			return nil, err
		}
		yes, err := j.Confirm(ctx, todo...)
		if err != nil {
			return nil, err
		}
		if !yes {
			return nil, j.declined(ctx, todo)
		}
		j.Confirmed(todo)
	}
	return j.ApproveAll(ctx, todo)
}

// ApproveAll approves plans, follows them and prints the results. It returns the plans that other plans overtook.
func (j *Operation) ApproveAll(ctx context.Context, todo []*v1alpha1.Plan) ([]Conflict, error) {
	if err := j.checkMayApprove(ctx, todo); err != nil {
		return nil, err
	}
	defer HoldInterrupts(j.Session)()
	var lost []Conflict
	var ends []error
	var approved []*v1alpha1.Plan
	for _, p := range todo {
		decided, err := planapi.Decide(ctx, j.Session, p,
			v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, Digest: p.Status.Digest, Partial: j.Partial})
		if err != nil {
			o, oerr := j.conflictOf(ctx, p, err)
			if apierrors.HasStatusCause(err, v1alpha1.CausePolicy) {
				err = fmt.Errorf("%w\nThe plan waits for approval. To approve it: %s", err, planapi.ApproveCommand(p))
			}
			if oerr != nil || o == nil {
				ends = append(ends, errors.Join(err, oerr))
				break // the plans approved so far are still followed
			}
			lost = append(lost, *o)
			continue
		}
		if decided.Status.Approval == nil {
			ends = append(ends, needsApprovals(decided))
			continue
		}
		approved = append(approved, decided)
		if j.folded { // the shown plan was deleted, and this one stays
			fmt.Fprintln(j.Out, diff.EveryChange(decided, j.Style)+"\n")
		}
	}
	for _, p := range approved {
		j.heading(p, len(approved))
		o, failed, err := j.followToEnd(ctx, p)
		if errors.Is(err, ErrDetached) {
			return nil, Detached(j.Session, approved)
		}
		if err != nil {
			return nil, err
		}
		if o != nil {
			lost = append(lost, *o)
		}
		if failed != nil {
			ends = append(ends, failed)
		}
	}
	if len(ends) > 0 {
		for _, o := range lost {
			ends = append(ends, fmt.Errorf("plan %q was not applied either, because %s", o.plan.Name, o.why()))
		}
		return nil, exit.Join(ends)
	}
	return lost, nil
}

// FollowToEnd follows an approved plan of another command, and prints its result. It returns the plan after its end, or
// nil if it could not be followed until then, as with ErrDetached.
func FollowToEnd(ctx context.Context, s *session.Session, p *v1alpha1.Plan, began time.Time) (*v1alpha1.Plan, error) {
	end, how, err := follow(ctx, s, p)
	if err != nil {
		return nil, err
	}
	return end, printSummary(ctx, s, end, how, time.Since(began), planAnew(end))
}

// followToEnd follows an approved plan and prints its result. lost is not nil if another plan overtook the plan, and
// failed if a change failed.
func (j *Operation) followToEnd(ctx context.Context, p *v1alpha1.Plan) (lost *Conflict, failed, err error) {
	end, how, err := follow(ctx, j.Session, p)
	if err != nil {
		return nil, nil, err
	}
	if planapi.Stale(end) && !j.Partial && j.WaitTimeout > 0 {
		if lost, err = j.conflictOf(ctx, end, nil); err != nil || lost != nil {
			return lost, nil, err
		}
	}
	return nil, printSummary(ctx, j.Session, end, how, time.Since(j.Began), "to continue, run the same command again"),
		nil
}

// needsApprovals returns the error for a plan that was approved and needs further approvals.
func needsApprovals(p *v1alpha1.Plan) error {
	return &exit.Error{Code: exit.Refused,
		Cause: fmt.Errorf("plan %q was approved, but not applied: %s\nAnother user approves it with: %s", p.Name,
			planapi.ReadyMessage(p), planapi.ApproveCommand(p))}
}

// checkMayApprove returns an error if the user may not approve the plans, which then wait for another user, or if the
// server applies no plan of the namespace.
func (j *Operation) checkMayApprove(ctx context.Context, plans []*v1alpha1.Plan) error {
	var refused []error
	for _, p := range plans {
		if j.Frozen[p.Namespace] {
			text := fmt.Sprintf("plan %s waits: %s", p.Name, planapi.FrozenText(p.Namespace))
			refused = append(refused, &exit.Error{Code: exit.Refused, Cause: errors.New(text)})
		} else if !planapi.MayApprove(ctx, j.Session, p.Namespace) {
			refused = append(refused, &exit.Error{Code: exit.Refused, Cause: errors.New(planapi.CannotApproveText(p))})
		} else if !planapi.ApprovalCounts(ctx, j.Session, p) {
			refused = append(refused, &exit.Error{Code: exit.Refused, Cause: errors.New(planapi.AnotherApproves(p))})
		}
	}
	return exit.Join(refused)
}

// Detached prints how to watch plans that continue without the command, and returns its error.
func Detached(s *session.Session, plans []*v1alpha1.Plan) error {
	fmt.Fprintln(s.ErrOut, "Detached. The server continues the plan. To watch or cancel it:")
	for _, p := range plans {
		fmt.Fprintf(s.ErrOut, "  kubectl hykube status %s -n %s\n  kubectl hykube cancel %s -n %s\n", p.Name,
			p.Namespace, p.Name, p.Namespace)
	}
	return exit.Silent(exit.Failed)
}
