package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/workflows"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
)

// smallPlan is the number of steps up to which each is an activity of its own, which the Web UI shows one by one. Beyond
// it a lane works through them: a history holds some thousand activities at most.
const smallPlan = 200

// Begin checks that a plan may be applied as it stands, and puts its steps in order.
func (a *Activities) Begin(ctx context.Context, p workflows.Plan) (workflows.Begun, error) {
	defer heartbeat(ctx)()
	po, err := a.plan(ctx, p)
	if err != nil {
		return workflows.Begun{}, err
	}
	var work *work
	err = a.guard("order the steps of plan "+p.Name, func() (err error) {
		work, err = a.loadWork(ctx, po.UID)
		return err
	})
	if bug, ok := errors.AsType[*bugError](err); ok {
		return workflows.Begun{Refused: bug.Error()}, a.refuseApply(ctx, p, bug.Error()+". Nothing was changed.")
	}
	if err != nil {
		return workflows.Begun{}, err
	}
	if why, err := a.refusal(ctx, po, work); err != nil {
		return workflows.Begun{}, err
	} else if why != "" {
		if err := a.refuseApply(ctx, p, why); err != nil {
			return workflows.Begun{}, err
		}
		return workflows.Begun{Refused: why}, a.Settle(ctx, p)
	}
	if po.Status.Progress == nil { // otherwise an earlier run began, and checked this already
		if po.Status.Cancel != nil {
			return workflows.Begun{Refused: "The plan was cancelled before it was begun."}, nil
		}
		stale, err := a.hold(ctx, po, work)
		if err != nil {
			return workflows.Begun{}, err
		}
		if stale > 0 && !po.Status.Approval.Partial {
			return workflows.Begun{Refused: fmt.Sprintf("%s after the plan was made.", counted(stale, "change moved", "changes moved"))}, nil
		}
		if work, err = a.loadWork(ctx, po.UID); err != nil {
			return workflows.Begun{}, err
		}
		for _, c := range work.changes {
			if err := a.keepRefreshed(ctx, po.UID, c); err != nil {
				return workflows.Begun{}, err
			}
		}
	}
	a.progress.begin(p, work.progress())
	err = a.Plans.UpdateStatus(ctx, p.Namespace, p.Name, uidOf(p), func(s *v1alpha1.PlanStatus) {
		s.Progress = new(work.progress())
		condition.Reconciling(&s.Conditions, po.Generation, v1alpha1.ReasonApplying, "The plan is being applied.")
	})
	if err != nil {
		return workflows.Begun{}, err
	}
	begun := workflows.Begun{Total: len(work.steps), Providers: work.providers()}
	if len(work.steps) <= smallPlan {
		for _, s := range work.steps {
			begun.Steps = append(begun.Steps, workflows.Step{Step: s, Title: title(work.changes[s.Change], s.Destroy)})
		}
	}
	return begun, nil
}

// hold leaves out what cannot be made: the changes that are blocked, those that moved after the plan was made, and what needs either.
// It returns how many moved. None of the plan was begun yet.
func (a *Activities) hold(ctx context.Context, po *v1alpha1.Plan, w *work) (stale int, err error) {
	moved, err := a.moved(ctx, po, w)
	if err != nil {
		return 0, err
	}
	var stopped []int
	for i, c := range w.changes {
		if c.Held && c.State == v1alpha1.ChangeStale { // an earlier attempt found that, and it counts, whatever moved back since
			moved[i] = c.Message
		}
		if moved[i] != "" {
			stale++
			stopped = append(stopped, i)
		}
	}
	heldByStale := plan.Held(w.planned, stopped)
	for i, c := range w.changes {
		switch {
		case changesNothing(c):
			continue
		case moved[i] != "":
			c.State, c.Message = v1alpha1.ChangeStale, moved[i]
		case heldByStale[i].Reason != plan.NotHeld:
			c.State, c.Message = v1alpha1.ChangeSkipped, because(heldByStale[i], w.changes, "stale")
		case c.Blocked != "":
			c.State, c.Message = v1alpha1.ChangeSkipped, c.Blocked
		default:
			continue
		}
		if stale > 0 && !po.Status.Approval.Partial && moved[i] == "" {
			c.State, c.Message = v1alpha1.ChangePending, "" // Finish says what comes of the rest
			continue
		}
		c.Held, c.FinishedAt = true, now()
		if err := a.reportHeld(ctx, c); err != nil {
			return 0, err
		}
		if err := a.Ledger.SaveChange(ctx, po.UID, c); err != nil {
			return 0, err
		}
	}
	return stale, nil
}

// reportHeld says on an object that is not what its spec asks for why a change of it was left out.
func (a *Activities) reportHeld(ctx context.Context, c *ledger.Change) error {
	reason := v1alpha1.ReasonSkipped
	switch {
	case c.Blocked != "":
		return a.writeStatus(ctx, c.Object, func(s *status) { s.pending = "" }) // why stands there since the plan was made
	case c.Deposed != "":
		return nil
	case c.State == v1alpha1.ChangeStale:
		reason = v1alpha1.ReasonStale
	}
	return a.writeStatus(ctx, c.Object, func(s *status) {
		if !s.good() {
			s.stall(c.Object.Generation, reason, "Not applied: "+c.Message+".")
		}
	})
}

// title is what the Web UI calls a step.
func title(c *ledger.Change, destroy bool) string {
	verb := strings.ToLower(string(c.Action))
	switch {
	case c.Deposed != "":
		return "delete " + c.Address + " (deposed " + c.Deposed + ")"
	case c.Action == v1alpha1.ActionReplace && destroy:
		verb = "destroy (replace)"
	case c.Action == v1alpha1.ActionReplace:
		verb = "create (replace)"
	case c.Action == v1alpha1.ActionNoOp && c.Importing != nil, c.Importing != nil && c.Action == v1alpha1.ActionUpdate:
		verb = "import"
	case c.Action == v1alpha1.ActionNoOp && c.PreviousAddress != "":
		verb = "move"
	case c.Action == v1alpha1.ActionNoOp:
		verb = "check"
	}
	return verb + " " + c.Address
}

// work is a stored plan, ready to be applied.
type work struct {
	changes []*ledger.Change
	// planned is what the order of the steps is made of, with the changes that are left out.
	planned []plan.Planned
	steps   []plan.Step
	// stepsOf are the numbers of the steps of each change.
	stepsOf [][]int
	digest  string
}

func (a *Activities) loadWork(ctx context.Context, uid types.UID) (*work, error) {
	w := &work{}
	d := newDigest()
	for c, err := range a.Ledger.Changes(ctx, uid, 0) {
		if err != nil {
			return nil, err
		}
		w.changes = append(w.changes, c)
		d.add(c)
	}
	w.planned = plannedChanges(w.changes)
	made := slices.Clone(w.planned)
	for i, c := range w.changes {
		if c.Held {
			made[i] = plan.Planned{Action: v1alpha1.ActionNoOp, Of: -1}
		}
	}
	w.steps, w.digest = plan.Steps(made), d.String()
	w.stepsOf = make([][]int, len(w.changes))
	for i, s := range w.steps {
		w.stepsOf[s.Change] = append(w.stepsOf[s.Change], i)
	}
	return w, nil
}

// plannedChanges converts changes to the form that plan.Steps orders.
func plannedChanges(changes []*ledger.Change) []plan.Planned {
	index := make(map[string][]int, len(changes)) // old instances with the current one: it may stand on either
	for i, c := range changes {
		index[c.Address] = append(index[c.Address], i)
		if c.PreviousAddress != "" {
			index[c.PreviousAddress] = append(index[c.PreviousAddress], i) // what was recorded knows it under that name
		}
	}
	planned := make([]plan.Planned, len(changes))
	for i, c := range changes {
		planned[i] = plan.Planned{
			Action: c.Action, CreateBeforeDestroy: c.CreateBeforeDestroy || c.Action == v1alpha1.ActionDelete && c.CreatesFirst, Forget: c.Forget || leavesDeposed(c), Record: needsRecording(c),
			Deposed: c.Deposed != "", Of: -1, Requested: c.Requested, DependsOn: ints(c.DependsOn),
		}
		for _, addr := range c.Requires {
			planned[i].Requires = append(planned[i].Requires, index[addr]...)
		}
		for _, j := range index[c.Address] {
			if c.Deposed != "" && changes[j].Deposed == "" {
				planned[i].Of = j
			}
		}
	}
	return planned
}

// needsRecording says whether a change leaves something to write down although it does nothing.
func needsRecording(c *ledger.Change) bool {
	return c.Importing != nil || c.PreviousAddress != "" || c.Checks
}

// leavesDeposed says whether a replace ends with the create, and leaves the old instance to a later plan.
func leavesDeposed(c *ledger.Change) bool { return c.LeaveDeposed && c.CreateBeforeDestroy }

// changesNothing says whether a change has no steps.
func changesNothing(c *ledger.Change) bool {
	return c.Action == v1alpha1.ActionNoOp && !needsRecording(c)
}

// progress counts the changes that have steps. What is blocked was left out of the plan when it was approved.
func (w *work) progress() v1alpha1.PlanProgress {
	var p v1alpha1.PlanProgress
	for _, c := range w.changes {
		if changesNothing(c) {
			continue
		}
		if leftOut(c) {
			p.Blocked++
			continue
		}
		p.Total++
		tallyState(&p, c.State, 1)
		if c.HalfDone && c.State == v1alpha1.ChangeFailed {
			p.HalfDone++
		}
	}
	return p
}

// leftOut says whether a change is blocked, and was left out by a partial approval.
func leftOut(c *ledger.Change) bool {
	return c.Held && c.Blocked != "" && c.State == v1alpha1.ChangeSkipped
}

func (w *work) providers() []string {
	var names []string
	for _, c := range w.changes {
		group, _, _ := strings.Cut(c.Object.APIVersion, "/")
		if name, ok := v1alpha1.ProviderOfGroup(group); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// refusal says why a plan may not be applied; empty when it may.
func (a *Activities) refusal(ctx context.Context, po *v1alpha1.Plan, w *work) (string, error) {
	approval := po.Status.Approval
	switch {
	case !meta.IsStatusConditionTrue(po.Status.Conditions, v1alpha1.ConditionApproved), approval == nil, approval.Decision != v1alpha1.DecisionApproved:
		return "The plan is not approved.", nil
	case approval.Digest != po.Status.Digest, w.digest != po.Status.Digest:
		return "The approval is about other changes than those that are stored. Make a new plan.", nil
	case !approval.Partial && slices.ContainsFunc(w.changes, func(c *ledger.Change) bool { return c.Blocked != "" }):
		return "Changes of the plan are blocked, and the approval is not partial.", nil
	}
	configs := map[string]bool{}
	for _, c := range w.changes {
		if c.ProviderConfig != "" {
			configs[c.ProviderConfig] = true
		}
	}
	for name := range configs {
		if err := a.mayUse(ctx, po.Status.RequestedBy, po.Namespace, name); err != nil {
			return err.Error(), nil
		}
	}
	return "", nil
}

func (a *Activities) refuseApply(ctx context.Context, p workflows.Plan, why string) error {
	err := a.Plans.UpdateStatus(ctx, p.Namespace, p.Name, uidOf(p), func(s *v1alpha1.PlanStatus) {
		c := &s.Conditions
		s.FinishedAt = now()
		condition.Set(c, 1, v1alpha1.ConditionApplied, false, v1alpha1.ReasonApplyFailed, why)
		condition.Stalled(c, 1, v1alpha1.ReasonApplyFailed, why)
	})
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}
