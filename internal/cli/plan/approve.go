package plan

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
)

type approveOptions struct {
	session.PlanArgument
	digest  string
	message string
	partial bool
	noWait  bool
	lines   operation.JSONFlag
}

// NewApprove returns the command approve.
func NewApprove(s *session.Session) *cobra.Command {
	o := &approveOptions{PlanArgument: session.PlanArgument{Session: s}}
	cmd := &cobra.Command{
		Use:   "approve PLAN",
		Short: "Approve a plan and watch its apply",
		Long: `Approve a plan and watch its apply.

The approval names the digest of the plan's changes, so that the server applies exactly the changes that you read. Commands
print it: "kubectl hykube show" ends with the whole command. In a terminal, the command asks without --digest, and shows what
the plan changes and its digest. Elsewhere it needs --digest: another plan may have got the name since you read it.
Approving needs the verb "approve" on plans.

A policy can require several approvals. The server applies the plan after the last of them. The command exits with 3 if a
policy refuses the plan, or does not count your approval.

The server refuses the approval if lifecycle.preventDestroy blocks a change, or if a change is stale. The command then
exits with 3 or 4. --partial applies the other changes, without those that need a blocked or stale one.`,
		Example: `  # in a terminal: show the digest, and ask
  kubectl hykube approve plan-x7k2d

  kubectl hykube approve plan-x7k2d --digest sha256:3f8a... --partial
  kubectl hykube approve plan-x7k2d --digest sha256:3f8a... -m "reviewed in change 4711" --no-wait`,
		Args:              onePlan,
		ValidArgsFunction: planapi.Complete(s, planapi.Waiting),
		RunE:              session.Run(o),
	}
	fs := cmd.Flags()
	fs.StringVar(&o.digest, "digest", "",
		"Digest of the changes that you read; any other plan is refused. Required outside of a terminal")
	fs.StringVarP(&o.message, "message", "m", "", "Reason for the decision, which the plan keeps")
	operation.PartialFlag(fs, &o.partial)
	o.lines.Add(cmd, "Print lines of JSON, as terraform apply -json does")
	fs.BoolVar(&o.noWait, "no-wait", false, "Return as soon as the plan is approved")
	return cmd
}

// digestForm is the form of a digest. The server compares the whole text.
var digestForm = regexp.MustCompile(`^sha256:[0-9a-z]+$`)

func (o *approveOptions) Run(ctx context.Context) error {
	return o.lines.Run(ctx, o.Session, o.approve)
}

func (o *approveOptions) approve(ctx context.Context) error {
	began := time.Now()
	p, err := planapi.Get(ctx, o.Session, o.Namespace, o.Name)
	if err != nil {
		return err
	}
	switch {
	case !planapi.Planned(p):
		return fmt.Errorf("plan %q is still being made; there is nothing to approve yet", p.Name)
	case p.Spec.Speculative:
		return &exit.Error{Code: exit.Refused,
			Cause: fmt.Errorf("plan %q is speculative: its objects were never recorded, so it cannot be approved. Record and apply them: kubectl hykube apply -f PATH -n %s", p.Name, p.Namespace)}
	case planapi.NothingToDo(p):
		fmt.Fprintf(o.Out, "Plan %q has no changes, so there is nothing to approve.\n", p.Name)
		return nil
	case p.Status.Approval != nil:
		return fmt.Errorf("plan %q was %s already%s", p.Name, planapi.DecisionWord(p.Status.Approval.Decision),
			planapi.By(p.Status.Approval))
	case planapi.Stalled(p):
		return operation.Failure(o.Session, p)
	}
	digest := o.digest
	if digest == "" {
		if digest, err = o.askDigest(ctx, p); err != nil {
			return err
		}
	}
	if strings.HasPrefix(p.Status.Digest, digest) && digest != p.Status.Digest || !digestForm.MatchString(digest) {
		return fmt.Errorf("--digest %q is not a whole digest, such as sha256:3f8a... with all its digits: copy it from kubectl hykube show %s -n %s", digest, p.Name, p.Namespace)
	}
	if digest != p.Status.Digest {
		return &exit.Error{Code: exit.Stale,
			Cause: fmt.Errorf("plan %q has the digest %s, not %s: it isn't the plan that you read. Read it again: kubectl hykube show %s -n %s", p.Name, p.Status.Digest, digest, p.Name, p.Namespace)}
	}
	defer operation.HoldInterrupts(o.Session)()
	if p, err = planapi.Decide(ctx, o.Session, p,
		v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, Digest: digest, Partial: o.partial,
			Message: o.message}); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "plan.%s/%s approved\n", v1alpha1.GroupName, p.Name)
	o.Printed = map[v1alpha1.Diagnostic]bool{} // the user read the plan with its warnings
	for _, d := range p.Status.Diagnostics {
		o.Printed[d] = true
	}
	if p.Status.Approval == nil {
		fmt.Fprintf(o.Out, "It is not applied yet. %s\n", planapi.ReadyMessage(p))
		return nil
	}
	if o.noWait {
		return nil
	}
	if _, err = operation.FollowToEnd(ctx, o.Session, p, began); errors.Is(err, operation.ErrDetached) {
		return operation.Detached(o.Session, []*v1alpha1.Plan{p})
	}
	return err
}

// askDigest shows what a plan changes, and its digest, and returns the digest if the user approves it. It returns an
// error outside of a terminal, and for a user whose approval the server would refuse.
func (o *approveOptions) askDigest(ctx context.Context, p *v1alpha1.Plan) (string, error) {
	switch {
	case !planapi.MayApprove(ctx, o.Session, p.Namespace):
		return "", &exit.Error{Code: exit.Refused, Cause: errors.New(planapi.CannotApproveText(p))}
	case !planapi.ApprovalCounts(ctx, o.Session, p):
		return "", &exit.Error{Code: exit.Refused, Cause: errors.New(planapi.AnotherApproves(p))}
	case !o.Ask:
		return "", fmt.Errorf("approve plan %q: name the digest of the changes that you read, because another plan may have got the name since: --digest DIGEST. It is the last line of: kubectl hykube show %s -n %s",
			p.Name, p.Name, p.Namespace)
	}
	text := ""
	if s := p.Status.Summary; s != nil {
		text = s.Text
	}
	fmt.Fprintf(o.ErrOut, "Plan %s in namespace %s: %s.\nDigest: %s\nTo read it: kubectl hykube show %s -n %s\n\n%s\n  Only 'yes' will be accepted to approve.\n\n  %s ",
		p.Name, p.Namespace, diff.Clean(text, false), p.Status.Digest, p.Name, p.Namespace,
		o.Style.Bold("Do you want to approve these changes?"), o.Style.Bold("Enter a value:"))
	answer := <-o.Answers()
	fmt.Fprintln(o.ErrOut)
	if strings.TrimSpace(answer.Text) != "yes" {
		return "", fmt.Errorf("plan %q was not approved, and still waits", p.Name)
	}
	return p.Status.Digest, nil
}
