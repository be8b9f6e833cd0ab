package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
)

// screenLines leaves room for the question below the first screen of a plan.
const screenLines = diff.FirstScreen - 6

// planAndApply makes plans, shows them, asks, approves them, follows their apply and prints the result.
type planAndApply struct {
	*session
	// autoApprove approves without a question.
	autoApprove bool
	// partial leaves out blocked and stale changes.
	partial bool
	// full shows every change.
	full bool
	// folded is true if a speculative plan was not shown in full.
	folded bool
	// left holds the resources that a prune deletes, by namespace and address.
	left map[[2]string]bool
	// question is the question before the approval.
	question string
	// refuse returns an error for a plan that was shown and that the verb must not apply. A nil function permits every
	// plan.
	refuse func(context.Context, *v1alpha1.Plan) error
	// takeBack reverts what the verb recorded, after the user declined. A nil function keeps the objects.
	takeBack func(context.Context) error
	// gap prints a blank line before the plan.
	gap   bool
	began time.Time
	// waitTimeout is the maximum time to wait for other plans that change the same resources. waited is the time spent
	// so far.
	waitTimeout, waited time.Duration
	// awaited holds the plans that the command waited for, and own those that it made.
	awaited, own map[types.UID]bool
	// made holds the plans that the command made last.
	made []*v1alpha1.Plan
	// yes holds the namespaces and contents of plans to which the user said yes.
	yes map[[2]string]bool
}

// newPlanAndApply returns the planAndApply of a verb with its question.
func newPlanAndApply(s *session, question string) planAndApply {
	return planAndApply{session: s, question: question, began: time.Now()}
}

// addFlags adds the common flags. auto is the help text of --auto-approve.
func (j *planAndApply) addFlags(fs *pflag.FlagSet, auto string) {
	fs.BoolVar(&j.autoApprove, "auto-approve", false, auto)
	fullFlag(fs, &j.full)
	fs.DurationVar(&j.waitTimeout, "wait-timeout", defaultWait, "How long to wait for other plans that change the same resources; 0 does not wait")
}

// fullFlag adds the flag --full.
func fullFlag(fs *pflag.FlagSet, full *bool) {
	fs.BoolVar(full, "full", false, "Show every change in full")
}

// partialFlag adds the flag --partial.
func partialFlag(fs *pflag.FlagSet, partial *bool) {
	fs.BoolVar(partial, "partial", false, "Leave out blocked and stale changes and those that need them, and apply the rest")
}

// checkInteractive returns an error if the verb will need an answer that the user cannot give.
func (j *planAndApply) checkInteractive(verb string, stdin bool) error {
	switch {
	case j.autoApprove || !j.empty && !stdin:
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
		return fmt.Errorf("%s asks before it imports the resource, and standard input is empty: add --auto-approve", verb)
	}
	return fmt.Errorf("%s asks before it changes anything, and standard input is empty: add --auto-approve, or make a plan with %s and approve it later", verb, later)
}

// wanted is the specification of a plan to make.
type wanted struct {
	namespace string
	base      string
	spec      v1alpha1.PlanSpec
}

// plan creates plans and waits for their changes.
func (j *planAndApply) plan(ctx context.Context, want []wanted) ([]*v1alpha1.Plan, error) {
	plans := make([]*v1alpha1.Plan, len(want))
	j.made = nil
	for i, w := range want {
		p, err := j.createPlan(ctx, w.namespace, w.base, w.spec)
		if err != nil {
			return nil, err
		}
		if j.own == nil {
			j.own = map[types.UID]bool{}
		}
		plans[i], j.own[p.UID], j.made = p, true, append(j.made, p)
	}
	return plans, j.awaitAll(ctx, plans)
}

// awaitAll waits for the changes of plans and updates the plans in the slice.
func (s *session) awaitAll(ctx context.Context, plans []*v1alpha1.Plan) (err error) {
	for i := range plans {
		if plans[i], err = s.awaitPlanned(ctx, plans[i]); err != nil {
			return err
		}
	}
	return nil
}

// show prints the first screen of a plan, or the whole plan.
func (j *planAndApply) show(ctx context.Context, p *v1alpha1.Plan) error {
	if j.full {
		return j.showPlan(ctx, p, nil, j.left)
	}
	screen := diff.NewScreen(j.style, screenLines)
	screen.Temporary = p.Spec.Speculative && j.autoApprove
	err := j.showPlan(ctx, p, screen, j.left)
	j.folded = j.folded || screen.Folded && p.Spec.Speculative
	return err
}

// showPlan prints a plan on screen, or every change in full if screen is nil. left holds the resources that a prune
// deletes.
func (s *session) showPlan(ctx context.Context, p *v1alpha1.Plan, screen *diff.Screen, left map[[2]string]bool) error {
	if hasNoResources(p) {
		fmt.Fprintln(s.Out, s.style.Bold(s.style.Green("No changes."))+" "+s.noResources(ctx, p.Namespace))
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
		full := s.style
		full.Width = 0 // do not cut lines in the full view, which users page and search
		w := diff.NewFull(s.Out, p, full)
		add, finish = w.Add, w.Close
	} else {
		add = func(c *v1alpha1.PlanChange) error { screen.Add(c); return nil }
		finish = func() error { return screen.Write(s.Out, p) }
	}
	for c, err := range s.changes(ctx, p) {
		if err == nil {
			keep(c)
			s.lines.planned(c)
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
	s.printed = map[v1alpha1.Diagnostic]bool{}
	for _, d := range slices.Concat(p.Status.Diagnostics, errs, p.Status.Checks) {
		if !s.printed[d] {
			s.printed[d] = true
			fmt.Fprint(s.ErrOut, s.diagnostic(d))
			s.lines.diagnostic(d)
		}
	}
	if p.Status.Summary != nil {
		s.lines.summary(p, *p.Status.Summary, "plan")
	}
	if waiting(p) || speculative(p) {
		s.noteLeaving(ctx, p)
	}
	return nil
}

// failure prints why planning failed and returns the error.
func (s *session) failure(p *v1alpha1.Plan) error {
	s.printTogether(s.ErrOut, p.Status.Diagnostics, nil)
	hasErrors := slices.ContainsFunc(p.Status.Diagnostics, func(d v1alpha1.Diagnostic) bool { return d.Severity == v1alpha1.SeverityError })
	code, what := ExitError, "could not be made"
	switch {
	case stale(p):
		code, what = ExitStale, "is stale"
	case superseded(p):
		code, what = ExitStale, "is not applied"
	case discarded(p):
		what = "was discarded"
	case p.Status.Cancel != nil:
		what = "was cancelled"
	}
	text := fmt.Sprintf("plan %q %s", p.Name, what)
	// The message of a failed plan summarizes the errors that were printed above.
	if m := why(p); m != "" && !(hasErrors && p.PlanFailed()) {
		text += ": " + diff.Clean(m, true)
	}
	return &exitError{code, &unchangedError{problem: text}}
}

// run makes plans, shows them, asks, and applies those that were approved. It plans again if another command overtook a
// plan.
func (j *planAndApply) run(ctx context.Context, want []wanted) error {
	for {
		plans, err := j.planInTurn(ctx, want)
		if err != nil {
			return j.interruptedPlanning(ctx, err)
		}
		lost, err := j.confirmAndApply(ctx, plans)
		if err != nil || len(lost) == 0 {
			return err
		}
		if want, err = j.awaitOtherPlans(ctx, plans, want, lost); err != nil {
			return err
		}
	}
}

// interruptedPlanning cancels the plan that Ctrl-C interrupted, and reverts what the verb recorded. It returns other
// errors unchanged.
func (j *planAndApply) interruptedPlanning(ctx context.Context, err error) error {
	interrupted, ok := errors.AsType[*interruptedError](err)
	if !ok || j.takeBack == nil {
		return err
	}
	p := interrupted.plan
	if _, err := j.cancelPlan(ctx, p); err != nil {
		fmt.Fprintf(j.ErrOut, "Warning: %v\nThe plan changes nothing until it is approved. To discard it: kubectl hykube discard %s -n %s\n", err, p.Name, p.Namespace)
	}
	if err := j.takeBack(ctx); err != nil {
		return err
	}
	return errors.New("interrupted; no infrastructure was changed")
}

// review shows plans, and calls each for every plan with changes that can be applied. It returns an error for every
// other plan with changes.
func (j *planAndApply) review(ctx context.Context, plans []*v1alpha1.Plan, each func(*v1alpha1.Plan)) (failed []error, err error) {
	for i, p := range plans {
		if i > 0 || j.gap {
			fmt.Fprintln(j.Out)
		}
		j.heading(p, len(plans))
		if !nothingToDo(p) && (p.PlanFailed() || stalled(p)) {
			failed = append(failed, j.failure(p))
			continue
		}
		if err := j.show(ctx, p); err != nil {
			return nil, err
		}
		if j.refuse != nil {
			if err := j.refuse(ctx, p); err != nil {
				failed = append(failed, err)
				continue
			}
		}
		if nothingToDo(p) {
			continue
		}
		if err := whyNotApproved(p, j.partial); err != nil {
			failed = append(failed, err)
			continue
		}
		each(p)
	}
	return failed, nil
}

// heading prints the namespace of one of several plans.
func (j *planAndApply) heading(p *v1alpha1.Plan, plans int) {
	if plans > 1 {
		fmt.Fprintln(j.Out, j.style.Bold("Namespace "+p.Namespace))
	}
}

// confirmAndApply shows plans, asks, applies those that were approved and prints the results. It returns the plans that
// other plans overtook.
func (j *planAndApply) confirmAndApply(ctx context.Context, plans []*v1alpha1.Plan) ([]overtaken, error) {
	var current, todo []*v1alpha1.Plan
	var lost []overtaken
	for _, p := range plans {
		if !superseded(p) {
			current = append(current, p)
			continue
		}
		o, err := j.overtaken(ctx, p, nil)
		if err != nil {
			return nil, err
		}
		lost = append(lost, *o)
	}
	failed, err := j.review(ctx, current, func(p *v1alpha1.Plan) { todo = append(todo, p) })
	if err != nil {
		return nil, err
	}
	if len(failed) > 0 {
		for _, p := range todo {
			failed = append(failed, fmt.Errorf("plan %q waits for approval, because another plan of this command failed or is blocked. %s", p.Name, approveCommand(p)))
		}
		return nil, joinExit(failed)
	}
	if len(lost) > 0 { // plan all again to show and ask about them together
		for _, p := range todo {
			lost = append(lost, overtaken{plan: p, beside: true})
		}
		return lost, nil
	}
	if len(todo) == 0 {
		return nil, nil
	}
	fmt.Fprintln(j.Out)
	if !j.autoApprove && !j.allConfirmed(todo) {
		if err := j.checkMayApprove(ctx, todo); err != nil {
			return nil, err
		}
		yes, err := j.confirm(ctx, todo...)
		if err != nil {
			return nil, err
		}
		if !yes {
			return nil, j.declined(ctx, todo)
		}
		j.confirmed(todo)
	}
	return j.approveAll(ctx, todo)
}

// approveAll approves plans, follows them and prints the results. It returns the plans that other plans overtook.
func (j *planAndApply) approveAll(ctx context.Context, todo []*v1alpha1.Plan) ([]overtaken, error) {
	if err := j.checkMayApprove(ctx, todo); err != nil {
		return nil, err
	}
	defer j.holdInterrupts()()
	var lost []overtaken
	var ends []error
	var approved []*v1alpha1.Plan
	for _, p := range todo {
		decided, err := j.decide(ctx, p, v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, Digest: p.Status.Digest, Partial: j.partial})
		if err != nil {
			o, oerr := j.overtaken(ctx, p, err)
			if apierrors.HasStatusCause(err, v1alpha1.CausePolicy) {
				err = fmt.Errorf("%w\nThe plan waits for approval. To approve it: %s", err, approveCommand(p))
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
			fmt.Fprintln(j.Out, diff.EveryChange(decided, j.style)+"\n")
		}
	}
	for _, p := range approved {
		j.heading(p, len(approved))
		o, failed, err := j.followToEnd(ctx, p)
		if errors.Is(err, errDetached) {
			return nil, j.detached(approved)
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
		return nil, joinExit(ends)
	}
	return lost, nil
}

// followToEnd follows an approved plan and prints its result. lost is not nil if another plan overtook the plan, and failed
// if a change failed.
func (j *planAndApply) followToEnd(ctx context.Context, p *v1alpha1.Plan) (lost *overtaken, failed, err error) {
	end, how, err := j.follow(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	if stale(end) && !j.partial && j.waitTimeout > 0 {
		if lost, err = j.overtaken(ctx, end, nil); err != nil || lost != nil {
			return lost, nil, err
		}
	}
	return nil, j.printSummary(ctx, end, how, time.Since(j.began), "to continue, run the same command again"), nil
}

// readyMessage returns the message of the condition Ready: of a plan that waits, the approvals that it still needs, or why it is stale.
func readyMessage(p *v1alpha1.Plan) string {
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return diff.Clean(c.Message, true)
	}
	return ""
}

// needsApprovals returns the error for a plan that was approved and needs further approvals.
func needsApprovals(p *v1alpha1.Plan) error {
	return &exitError{ExitRefused, fmt.Errorf("plan %q was approved, but not applied: %s\nAnother user approves it with: %s", p.Name, readyMessage(p), approveCommand(p))}
}

// isBlocked returns the error for a plan that is not applied because changes are blocked.
func isBlocked(p *v1alpha1.Plan) error {
	if speculative(p) { // it has no condition about that, and the server removes it when the command ends
		return &exitError{ExitRefused, &unchangedError{problem: "the plan is blocked: lifecycle.preventDestroy forbids the changes that the errors above name"}}
	}
	return &exitError{ExitRefused, &unchangedError{problem: fmt.Sprintf("plan %q is blocked: %s", p.Name, diff.Clean(why(p), true))}}
}

// checkMayApprove returns an error if the user may not approve the plans, which then wait for another user.
func (j *planAndApply) checkMayApprove(ctx context.Context, plans []*v1alpha1.Plan) error {
	var refused []error
	for _, p := range plans {
		if !j.mayApprove(ctx, p.Namespace) {
			refused = append(refused, &exitError{ExitRefused, errors.New(cannotApproveText(p))})
		} else if !j.approvalCounts(ctx, p) {
			refused = append(refused, &exitError{ExitRefused, errors.New(anotherApproves(p))})
		}
	}
	return joinExit(refused)
}

// joinExit joins errors. The exit code is the most severe one: an error, then a refusal, then staleness.
func joinExit(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	if len(errs) == 1 {
		return errs[0]
	}
	code := 0
	var texts []error
	for _, e := range errs {
		c := ExitCode(e)
		if code == 0 || c == ExitError {
			code = c
		}
		if x, ok := errors.AsType[*exitError](e); !ok || x.cause != nil {
			texts = append(texts, e)
		}
	}
	return &exitError{code, errors.Join(texts...)}
}

func (s *session) detached(plans []*v1alpha1.Plan) error {
	fmt.Fprintln(s.ErrOut, "Detached. The server continues the plan. To watch or cancel it:")
	for _, p := range plans {
		fmt.Fprintf(s.ErrOut, "  kubectl hykube status %s -n %s\n  kubectl hykube cancel %s -n %s\n", p.Name, p.Namespace, p.Name, p.Namespace)
	}
	return silent(ExitError)
}
