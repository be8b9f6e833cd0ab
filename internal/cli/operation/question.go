package operation

import (
	"context"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/diff"
)

// Confirm asks the user about plans. It returns an error if one of them stops waiting for a decision before the answer.
func (j *Operation) Confirm(ctx context.Context, plans ...*v1alpha1.Plan) (bool, error) {
	fmt.Fprintf(j.ErrOut, "%s\n  Only 'yes' will be accepted.\n\n  %s ", j.Style.Bold(j.Question),
		j.Style.Bold("Enter a value:"))
	stop, done := j.Interrupts()
	defer done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	decided := j.decidedMeanwhile(ctx, plans)
	answer := ""
	select {
	case a := <-j.Answers():
		if a.Err == nil { // end of input counts as no
			answer = a.Text
		} else if !j.Ask {
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

// Require asks a question that is not about a plan, unless --auto-approve is set. After another answer than yes, it
// prints to w what holds then, and returns the error that ends the command.
func (j *Operation) Require(ctx context.Context, question string, w io.Writer, otherwise string) error {
	if j.AutoApprove {
		return nil
	}
	asked := *j
	asked.Question = question
	yes, err := asked.Confirm(ctx)
	if err == nil && !yes {
		fmt.Fprintln(w, otherwise)
		err = exit.Silent(exit.Failed)
	}
	return err
}

// decidedMeanwhile sends an error if one of the plans stops waiting for a decision, because another plan superseded it
// or another user decided.
func (j *Operation) decidedMeanwhile(ctx context.Context, plans []*v1alpha1.Plan) <-chan error {
	decided := make(chan error, len(plans))
	for _, p := range plans {
		go func() {
			for e := range planapi.Watch(ctx, j.Session, p) {
				if e.Err != nil {
					return // the approval will detect it
				}
				if err := noLongerWaits(e.Plan); err != nil {
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
	text, code, who := "", exit.Stale, "another user"
	if a := p.Status.Approval; a != nil && a.By != nil {
		who = fmt.Sprintf("user %q", a.By)
	}
	switch a := p.Status.Approval; {
	case planapi.Waiting(p):
		return nil
	case planapi.Discarded(p):
		text, code = "it was discarded by "+who, exit.Failed
	case a != nil:
		text, code = fmt.Sprintf("it was approved by %s. Watch it: kubectl hykube status %s -n %s --watch", who, p.Name,
			p.Namespace), exit.Failed
	default:
		text = diff.Clean(planapi.Why(p), true)
	}
	return &exit.Error{Code: code, Cause: fmt.Errorf("plan %q no longer waits for an answer: %s", p.Name, text)}
}

// declined discards plans after the answer no, so that no user approves them later by mistake.
func (j *Operation) declined(ctx context.Context, plans []*v1alpha1.Plan) error {
	if err := j.DiscardAll(ctx, plans, "declined at the prompt"); err != nil {
		return err
	}
	if j.TakeBack == nil {
		fmt.Fprintln(j.Out, "Discarded. This command changed no infrastructure; the objects stay recorded.")
		return exit.Silent(exit.Failed)
	}
	fmt.Fprintln(j.Out, "Discarded. No infrastructure was changed.")
	if err := j.TakeBack(ctx); err != nil {
		return err
	}
	return exit.Silent(exit.Failed)
}

// DiscardAll discards plans. It prints a line for a plan that the user may not discard.
func (j *Operation) DiscardAll(ctx context.Context, plans []*v1alpha1.Plan, message string) error {
	for _, p := range plans {
		if _, err := planapi.Decide(ctx, j.Session, p,
			v1alpha1.PlanApproval{Decision: v1alpha1.DecisionDiscarded, Digest: p.Status.Digest,
				Message: message}); err != nil {
			if !apierrors.IsForbidden(err) {
				return err
			}
			fmt.Fprintf(j.Out, "Plan %q still waits for approval: you may not discard it.\n", p.Name)
		}
	}
	return nil
}
