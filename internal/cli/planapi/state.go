package planapi

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/printer"
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
	case heldByServer(p):
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

// PausedText returns the server's message about the pause of a rollout or of the server; "" if none pauses.
func PausedText(p *v1alpha1.Plan) string {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.Reason != v1alpha1.ReasonRolloutPaused && !heldByServer(p) {
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
	}{{g.Running, "running"}, {g.Failed - g.HalfDone, failed}, {g.HalfDone, "half done"}, {g.Skipped, "not tried"}, {g.Blocked, "blocked"}} {
		if x.n > 0 {
			text += fmt.Sprintf(", %s %s", diff.Count(int(x.n)), x.what)
		}
	}
	return text
}
