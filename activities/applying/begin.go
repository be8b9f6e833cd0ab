package applying

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"
)

// smallPlan is the maximum number of steps that run as separate activities, which the Web UI shows one by one. A single
// Lane activity runs a larger plan, because a history can hold only some thousand activities. It also runs a plan with
// rollouts, whose steps wait for more than their dependencies.
const smallPlan = 200

// applyingText is the message of a plan that is being applied.
const applyingText = "The plan is being applied."

// Begin checks that a plan may be applied and returns its steps in order.
func (a *Applier) Begin(ctx context.Context, p workflows.Plan) (workflows.Begun, error) {
	po, err := changes.ReadPlan(ctx, a.Plans, p)
	if err != nil {
		return workflows.Begun{}, err
	}
	if !changes.Approved(po) {
		return workflows.Begun{Refused: changes.NotApproved(po)}, nil // it may still wait for its approval
	}
	if err := a.held(po); err != nil {
		return workflows.Begun{}, err
	}
	var work *changes.Stored
	err = bug.Guard(a.Logger, "order the steps of plan "+p.Name, func() (err error) {
		work, err = changes.Load(ctx, a.Ledger, po.UID)
		return err
	})
	if bug.Is(err) {
		return workflows.Begun{Refused: err.Error()}, a.refuseApply(ctx, p, err.Error()+". Nothing was changed.")
	}
	if err != nil {
		return workflows.Begun{}, err
	}
	if why := refusal(po, work); why != "" {
		if err := a.refuseApply(ctx, p, why); err != nil {
			return workflows.Begun{}, err
		}
		return workflows.Begun{Refused: why}, nil
	}
	if po.Status.Progress != nil {
		if err := a.takeOver(ctx, po, work); err != nil {
			return workflows.Begun{}, err
		}
		work.Order() // it may have held changes
	} else {
		if why, err := a.start(ctx, p, po, work); err != nil || why != "" {
			return workflows.Begun{Refused: why}, err
		}
		a.judges.of(po.UID).began()
		work.Order() // start has held changes
		if work.Unchanged {
			if err := changes.RecordUnchanged(ctx, a.Sources, po, a.Ledger.Changes(ctx, po.UID, 0)); err != nil {
				return workflows.Begun{}, err
			}
		}
	}
	a.progress.begin(p, work.Progress())
	err = a.Plans.UpdateStatus(ctx, p.Namespace, p.Name, workflows.ObjectUID(p), func(s *v1alpha1.PlanStatus) {
		s.Progress = new(work.Progress())
		condition.Reconciling(&s.Conditions, po.Generation, v1alpha1.ReasonApplying, applyingText)
	})
	if err != nil {
		return workflows.Begun{}, err
	}
	begun := workflows.Begun{Total: len(work.Steps), Providers: work.Providers()}
	if len(work.Steps) <= smallPlan && len(po.Status.Rollouts) == 0 {
		for _, s := range work.Steps {
			begun.Steps = append(begun.Steps,
				workflows.Step{Step: s, Title: title(&work.Changes[s.Change].Brief, s.Destroy)})
		}
	}
	return begun, nil
}

// start checks an approved plan before its first step, and marks the changes that the apply leaves out. It returns why
// the plan may not start, or "".
func (a *Applier) start(ctx context.Context, p workflows.Plan, po *v1alpha1.Plan,
	work *changes.Stored) (refused string, err error) {
	if po.Status.Cancel != nil {
		return "The plan was cancelled before its apply started.", nil
	}
	left, err := a.findLeftOut(ctx, po, work)
	if err != nil {
		return "", err
	}
	why, err := a.refusedByPolicy(ctx, po, left.indexes(po))
	if err == nil && why == "" {
		why, err = a.needsPerson(ctx, po, work)
	}
	if err != nil {
		return "", err
	}
	if why != "" {
		why += " Nothing was changed. Make a new plan when that has changed."
		return why, a.refuseApply(ctx, p, why)
	}
	err = a.markLeftOut(ctx, po, work, left)
	if err == nil && left.stale > 0 && !po.Status.Approval.Partial {
		refused = fmt.Sprintf("%s after the plan was made.",
			changes.Counted(left.stale, "change became stale", "changes became stale"))
	}
	return refused, err
}

// takeOver judges a plan whose apply another process began, once before its first step in this one. The other process
// may have ended long ago: before a restore, in the original of a copied database, or on another machine. The workflow
// may be that of then, and be past Begin. So each way into the steps of a plan calls takeOver.
func (a *Applier) takeOver(ctx context.Context, po *v1alpha1.Plan, work *changes.Stored) error {
	j := a.judges.of(po.UID)
	fair.Lock(ctx, &j.mu)
	defer j.mu.Unlock()
	if j.judged {
		return nil
	}
	if err := a.judgeAgain(ctx, po, work); err != nil {
		return err
	}
	j.judged = true
	return nil
}

// judgeAgain judges a plan whose apply has begun. If policies refuse it now, or a person must approve it, the apply
// leaves out the changes that have not begun.
func (a *Applier) judgeAgain(ctx context.Context, po *v1alpha1.Plan, work *changes.Stored) error {
	if po.Status.Cancel != nil {
		return nil
	}
	why, err := a.refusedByPolicy(ctx, po, nil)
	if err == nil && why == "" {
		why, err = a.needsPerson(ctx, po, work)
	}
	if err != nil || why == "" {
		return err
	}
	out := leftOutChange{v1alpha1.ChangeStale, v1alpha1.StalePolicyDenied,
		"when the apply went on, the server judged the plan again. " + strings.TrimSuffix(why, ".")}
	left := leftOut{why: map[int]leftOutChange{}}
	for i := range work.Changes {
		if c := &work.Changes[i]; c.State == v1alpha1.ChangePending && !c.HalfDone && !c.NoSteps && !c.Held {
			left.why[i] = out
			left.stale++
		}
	}
	return a.markLeftOut(ctx, po, work, left)
}

// leftOut has the changes that an apply leaves out, by their indexes.
type leftOut struct {
	why map[int]leftOutChange
	// stale is the number of stale changes.
	stale int
}

// leftOutChange says why an apply leaves out a change.
type leftOutChange struct {
	state   v1alpha1.ChangeState
	reason  v1alpha1.StaleReason
	message string
}

// indexes returns the indexes of the changes that policies do not see. Without a partial approval, they see all.
func (l leftOut) indexes(po *v1alpha1.Plan) map[int32]bool {
	if !po.Status.Approval.Partial {
		return nil
	}
	out := map[int32]bool{}
	for i := range l.why {
		out[int32(i)] = true
	}
	return out
}

// findLeftOut finds the changes that the apply leaves out: blocked and stale ones, those that depend on them, and those
// that an approval left out. Call it before any step of the plan begins.
func (a *Applier) findLeftOut(ctx context.Context, po *v1alpha1.Plan, w *changes.Stored) (leftOut, error) {
	left := leftOut{why: map[int]leftOutChange{}}
	outdated, err := changes.FindStale(ctx, a.Sources, po, w)
	if err != nil {
		return left, err
	}
	notApproved, err := changes.NotApprovedIndexes(po.AllApprovals())
	if err != nil {
		return left, err
	}
	var stopped []int
	for i := range w.Changes {
		c := &w.Changes[i]
		// an earlier attempt found it stale, which stays valid even if the cause was reverted
		if c.Held && c.State == v1alpha1.ChangeStale {
			outdated[i] = &changes.StaleError{Reason: c.StaleReason, Message: c.Message}
		}
		if outdated[i] != nil {
			left.stale++
			stopped = append(stopped, i)
		}
	}
	heldByStale := plan.Held(w.Planned, stopped)
	for i := range w.Changes {
		c := &w.Changes[i]
		out := leftOutChange{state: v1alpha1.ChangeSkipped, reason: c.StaleReason}
		switch {
		case c.NoSteps:
			continue
		case outdated[i] != nil:
			out.state, out.reason, out.message = v1alpha1.ChangeStale, outdated[i].Reason, outdated[i].Message
		case heldByStale[i].Reason != plan.NotHeld:
			out.message = changes.HoldText(heldByStale[i], w.Address, "stale")
		case c.Blocked != "":
			out.message = c.Blocked
		case notApproved[int32(i)]:
			out.message = "the approval leaves it out"
		default:
			continue
		}
		left.why[i] = out
	}
	return left, nil
}

// markLeftOut marks the changes that the apply leaves out. Call it before any step of the plan begins.
func (a *Applier) markLeftOut(ctx context.Context, po *v1alpha1.Plan, w *changes.Stored, left leftOut) error {
	for i := range w.Changes {
		out, ok := left.why[i]
		if !ok || left.stale > 0 && !po.Status.Approval.Partial && out.state != v1alpha1.ChangeStale {
			continue // Finish reports the outcome of the others
		}
		if err := a.reportLeftOut(ctx, &w.Changes[i], out.state, out.message); err != nil {
			return err
		}
		_, err := w.Edit(ctx, a.Ledger, po.UID, i, func(c *ledger.Change) {
			c.State, c.StaleReason, c.Message, c.Held, c.FinishedAt = out.state, out.reason, out.message, true,
				changes.Now()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reportLeftOut writes to an object why its change was left out.
func (a *Applier) reportLeftOut(ctx context.Context, c *changes.StoredChange, state v1alpha1.ChangeState,
	message string) error {
	reason := v1alpha1.ReasonSkipped
	switch {
	case c.Blocked != "":
		reason = v1alpha1.ReasonBlocked
	case c.Deposed != "":
		return nil
	case state == v1alpha1.ChangeStale:
		reason = v1alpha1.ReasonStale
	}
	return a.stall(ctx, c, reason, "Not applied: "+message+".")
}

// stall writes to an object that does not match its spec why its change was not made.
func (a *Applier) stall(ctx context.Context, c *changes.StoredChange, reason, text string) error {
	reason, text, err := changes.WhyStalled(ctx, a.Ledger, c.Object, c.Address, reason, text)
	if err != nil {
		return err
	}
	return resource.WriteStatus(ctx, a.Objects, c.Object, nil, func(s *resource.Status) {
		if !s.Good() {
			s.Stall(c.Object.Generation, reason, text)
		}
	})
}

// title returns the title of a step in the Web UI.
func title(c *changes.Brief, destroy bool) string {
	verb := strings.ToLower(string(c.Action))
	switch {
	case c.Deposed != "":
		return "delete " + c.Address + " (deposed " + c.Deposed + ")"
	case c.Action == v1alpha1.ActionReplace && destroy:
		verb = "destroy (replace)"
	case c.Action == v1alpha1.ActionReplace:
		verb = "create (replace)"
	case c.Action == v1alpha1.ActionNoOp && c.Imports, c.Imports && c.Action == v1alpha1.ActionUpdate:
		verb = "import"
	case c.Action == v1alpha1.ActionNoOp && c.PreviousAddress != "":
		verb = "move"
	case c.Action == v1alpha1.ActionNoOp:
		verb = "check"
	}
	return verb + " " + c.Address
}

// refusal returns the reason why a plan may not be applied, or "" if it may.
func refusal(po *v1alpha1.Plan, w *changes.Stored) string {
	switch why := w.NotApproved(po); {
	case why != "":
		return why
	case !po.Status.Approval.Partial && slices.ContainsFunc(w.Changes,
		func(c changes.StoredChange) bool { return c.Blocked != "" }):
		return "Changes of the plan are blocked, and the approval is not partial."
	}
	return ""
}

// refusedByPolicy returns the reason why the current policies forbid the apply of an approved plan; "" if they permit
// it. It counts the plan's approvals again. out has the indexes of the changes that the apply leaves out.
func (a *Applier) refusedByPolicy(ctx context.Context, po *v1alpha1.Plan, out map[int32]bool) (string, error) {
	approvals := countedApprovals(po)
	verdict, err := changes.Judge(ctx, a.Sources, po, changes.Judged{Approvals: approvals, Out: out})
	if err != nil {
		return "", err
	}
	switch why := verdict.Denied(); {
	case why != "":
		return "A policy refuses the plan. " + diag.Sentence(why), nil
	case changes.ApprovedItself(po):
		if why := verdict.Manual(po.Status.RequestedBy, po.Status.AutomaticApproval.ByPolicy); why != "" {
			return "The plan may not be applied automatically any more. " + diag.Sentence(why), nil
		}
		return "", nil
	}
	if why := verdict.Missing(po.Status.RequestedBy, approvals); why != "" {
		return "Approvals are missing. " + diag.Sentence(why), nil
	}
	return "", nil
}

// countedApprovals returns the approvals of a plan by users. A plan that the server approved has none.
func countedApprovals(po *v1alpha1.Plan) []v1alpha1.PlanApproval {
	if changes.ApprovedItself(po) {
		return nil
	}
	return po.AllApprovals()
}

// needsPerson returns the reason why a plan that approved itself needs the approval of a person now; "" for any other
// plan.
func (a *Applier) needsPerson(ctx context.Context, po *v1alpha1.Plan, work *changes.Stored) (string, error) {
	if !changes.ApprovedItself(po) {
		return "", nil
	}
	why, err := work.SelfApprovalOf(ctx, a.Sources, po)
	if err != nil || why == "" {
		return "", err
	}
	return "A person must approve the plan: " + why + ".", nil
}

func (a *Applier) refuseApply(ctx context.Context, p workflows.Plan, why string) error {
	err := a.Plans.UpdateStatus(ctx, p.Namespace, p.Name, workflows.ObjectUID(p), func(s *v1alpha1.PlanStatus) {
		c := &s.Conditions
		s.FinishedAt = changes.Now()
		condition.Set(c, 1, v1alpha1.ConditionApplied, false, v1alpha1.ReasonApplyFailed, why)
		condition.Stalled(c, 1, v1alpha1.ReasonApplyFailed, why)
	})
	return store.IgnoreGone(err)
}
