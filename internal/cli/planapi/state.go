package planapi

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
)

// Summary returns the counts of a plan's changes, or "" before planning has ended.
func Summary(s *v1alpha1.PlanSummary) string {
	if s == nil {
		return ""
	}
	return cmp.Or(s.Text, printer.Counts(*s))
}

// State returns the state of a plan in a few words.
func State(p *v1alpha1.Plan) string {
	switch {
	case Stale(p):
		return "stale"
	case Discarded(p), p.Status.StalledFor() == v1alpha1.ReasonDiscarded: // the server discards plans of stacks
		return "discarded"
	case Superseded(p):
		return "superseded"
	case NothingToDo(p):
		return "nothing to do"
	case p.Spec.Speculative && Ready(p):
		return "speculative: it cannot be approved"
	case AppliedInPart(p):
		return "applied in part: " + Progress(p.Status.Progress, "")
	case Ready(p):
		return "applied"
	case p.PlanFailed():
		return "failed to plan"
	case p.Status.Cancel != nil && (Stalled(p) || ApplyFailed(p)):
		return "cancelled"
	case Stalled(p), ApplyFailed(p):
		return "failed"
	case Blocked(p):
		return "blocked"
	case Denied(p):
		return "refused by a policy"
	case Waiting(p) && Outdated(p):
		return "stale"
	case Waiting(p):
		return "waits for approval"
	case p.Status.Cancel != nil:
		return "cancelling"
	case pausedByServer(p):
		return "approved, and held"
	case p.Status.Approval != nil:
		return "applying"
	case !Planned(p):
		return "planning"
	}
	return "applying"
}

// Cancelling reports whether a plan was cancelled and has not ended yet.
func Cancelling(p *v1alpha1.Plan) bool { return p.Status.Cancel != nil && !p.Ended() }

// WhyCancelling returns the server's message about what a cancelled plan waits for.
func WhyCancelling(p *v1alpha1.Plan) string {
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReconciling); c != nil &&
		c.Reason == v1alpha1.ReasonCancelling {
		return c.Message
	}
	return ""
}

// pausedByServer reports whether the server applies no change of an approved plan, because its database is a copy or
// was restored.
func pausedByServer(p *v1alpha1.Plan) bool {
	c := readyCondition(p)
	return c.Reason == v1alpha1.ReasonServerFrozen || c.Reason == v1alpha1.ReasonServerCopied
}

// PausedText returns the server's message about the pause of a rollout or of the server; "" if none pauses.
func PausedText(p *v1alpha1.Plan) string {
	c := readyCondition(p)
	if c.Reason != v1alpha1.ReasonRolloutPaused && !pausedByServer(p) {
		return ""
	}
	return diff.Clean(c.Message, true)
}

// WaitsFor returns a text such as "cancelling: waiting for 2 running calls (sim_instance.web, 40s; sim_disk.data,
// 12s)".
func WaitsFor(p *v1alpha1.Plan, running []*v1alpha1.PlanChange) string {
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
			name += ", " + printer.ElapsedSeconds(time.Since(c.StartedAt.Time))
		}
		names = append(names, name)
	}
	if len(names) > 0 {
		text += " (" + strings.Join(names, "; ") + ")"
	}
	return text
}

// Progress returns the counts of a plan's changes by progress. With the outcome Stale, the failed ones are called
// stale.
func Progress(g *v1alpha1.PlanProgress, outcome string) string {
	failed := "failed"
	if outcome == v1alpha1.ReasonStale {
		failed = "stale"
	}
	text := fmt.Sprintf("%s of %s made", diff.Count(int(g.Done)), diff.Count(int(g.Total+g.Blocked)))
	for _, x := range []struct {
		n    int32
		what string
	}{{g.Running, "running"}, {g.Failed - g.HalfDone, failed}, {g.HalfDone, "half done"}, {g.Skipped, "not tried"},
		{g.Blocked, "blocked"}} {
		if x.n > 0 {
			text += fmt.Sprintf(", %s %s", diff.Count(int(x.n)), x.what)
		}
	}
	return text
}

// WhyNotAutomatic returns why a plan that could have approved itself waits for a person; "" if it does not wait.
func WhyNotAutomatic(p *v1alpha1.Plan) string {
	if a := p.Status.AutomaticApproval; a != nil && !a.Granted && Waiting(p) {
		return printer.Flat(a.Message)
	}
	return ""
}

// CancellingText returns the text about the wait of a cancelled plan.
func CancellingText(ctx context.Context, s *session.Session, p *v1alpha1.Plan) string {
	var running []*v1alpha1.PlanChange
	if p.Status.Progress != nil {
		for c, err := range Changes(ctx, s, p) {
			if err != nil {
				break // the plan's status has the counts, too
			}
			if c.State == v1alpha1.ChangeRunning {
				running = append(running, c)
			}
		}
	}
	return WaitsFor(p, running)
}

// NextStep returns what a user can do about a plan; "" if nothing.
func NextStep(ctx context.Context, s *session.Session, p *v1alpha1.Plan) string {
	switch {
	case NothingToDo(p):
		return ReadyMessage(p)
	case Blocked(p), Denied(p):
		return diff.Clean(Why(p), true)
	case Waiting(p) && Outdated(p):
		return ReadyMessage(p)
	case Waiting(p) && !MayApprove(ctx, s, p.Namespace):
		return ApprovedSoFar(p) + CannotApproveText(p)
	case Waiting(p) && !ApprovalCounts(ctx, s, p):
		return ReadyMessage(p) + "\n" + AnotherApproves(p)
	case Waiting(p) && len(p.Status.Approvals) == 0 && RequiresApprovals(p):
		return ReadyMessage(p)
	case Waiting(p):
		return ApprovedSoFar(p) + fmt.Sprintf("Next: kubectl hykube show %s -n %s, then approve or discard it.", p.Name,
			p.Namespace)
	case Stalled(p) && !Discarded(p):
		if m := Why(p); m != "" {
			return diff.Clean(m, true)
		}
	case Cancelling(p):
		return diff.Clean(WhyCancelling(p), true)
	case waitsForOthers(p) != "":
		return diff.Clean(waitsForOthers(p), true)
	case !p.Ended():
		return fmt.Sprintf("Watch it: kubectl hykube status %s -n %s --watch", p.Name, p.Namespace)
	}
	return ""
}

// waitsForOthers says that a plan waits for other plans, or for a provider for longer than usual. It returns "" for
// other plans.
func waitsForOthers(p *v1alpha1.Plan) string {
	if ready := readyCondition(p); ready.Reason == v1alpha1.ReasonQueued ||
		ready.Reason == v1alpha1.ReasonAwaitingProvider {
		return ready.Message
	}
	return ""
}
