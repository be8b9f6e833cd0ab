package cli

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
)

// confirm asks the user about plans. It returns an error if one of them stops waiting for a decision before the answer.
func (j *planAndApply) confirm(ctx context.Context, plans ...*v1alpha1.Plan) (bool, error) {
	fmt.Fprintf(j.ErrOut, "%s\n  Only 'yes' will be accepted.\n\n  %s ", j.style.Bold(j.question), j.style.Bold("Enter a value:"))
	stop, done := j.interrupts()
	defer done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	decided := j.decidedMeanwhile(ctx, plans)
	answer := ""
	select {
	case a := <-j.answers():
		if a.err == nil { // end of input counts as no
			answer = a.text
		} else if !j.ask {
			fmt.Fprint(j.ErrOut, "\n\nStandard input ended without an answer: pipe yes to the command, or add --auto-approve.")
		}
	case <-stop: // Ctrl-C counts as no
	case err := <-decided:
		fmt.Fprintln(j.ErrOut)
		return false, err
	}
	fmt.Fprintln(j.ErrOut)
	return strings.TrimSpace(answer) == "yes", nil
}

// decidedMeanwhile sends an error if one of the plans stops waiting for a decision, because another plan superseded it
// or another user decided.
func (j *planAndApply) decidedMeanwhile(ctx context.Context, plans []*v1alpha1.Plan) <-chan error {
	decided := make(chan error, len(plans))
	for _, p := range plans {
		go func() {
			for e := range j.watchPlan(ctx, p) {
				if e.err != nil {
					return // the approval will detect it
				}
				if err := noLongerWaits(e.plan); err != nil {
					decided <- err
					return
				}
			}
		}()
	}
	return decided
}

// noLongerWaits returns an error with the reason why a plan no longer waits for a decision, or nil if it waits.
func noLongerWaits(p *v1alpha1.Plan) error {
	text, code, who := "", ExitStale, "another user"
	if a := p.Status.Approval; a != nil && a.By != nil {
		who = fmt.Sprintf("user %q", a.By)
	}
	switch a := p.Status.Approval; {
	case waiting(p):
		return nil
	case discarded(p):
		text, code = "it was discarded by "+who, ExitError
	case a != nil:
		text, code = fmt.Sprintf("it was approved by %s. Watch it: kubectl hykube status %s -n %s --watch", who, p.Name, p.Namespace), ExitError
	default:
		text = diff.Clean(why(p), true)
	}
	return &exitError{code, fmt.Errorf("plan %q no longer waits for an answer: %s", p.Name, text)}
}

// declined discards plans after the answer no, so that no user approves them later by mistake.
func (j *planAndApply) declined(ctx context.Context, plans []*v1alpha1.Plan) error {
	if err := j.discardAll(ctx, plans, "declined at the prompt"); err != nil {
		return err
	}
	if j.takeBack == nil {
		fmt.Fprintln(j.Out, "Discarded. This command changed no infrastructure; the objects stay recorded.")
		return silent(ExitError)
	}
	fmt.Fprintln(j.Out, "Discarded. No infrastructure was changed.")
	if err := j.takeBack(ctx); err != nil {
		return err
	}
	return silent(ExitError)
}

// discardAll discards plans. It prints a line for a plan that the user may not discard.
func (j *planAndApply) discardAll(ctx context.Context, plans []*v1alpha1.Plan, message string) error {
	for _, p := range plans {
		if _, err := j.decide(ctx, p, v1alpha1.PlanApproval{Decision: v1alpha1.DecisionDiscarded, Digest: p.Status.Digest, Message: message}); err != nil {
			if !apierrors.IsForbidden(err) {
				return err
			}
			fmt.Fprintf(j.Out, "Plan %q still waits for approval: you may not discard it.\n", p.Name)
		}
	}
	return nil
}
