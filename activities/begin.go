package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/instance"
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
	if po.Status.Progress == nil { // else an earlier run began, and what has moved since moved under it
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

// plannedChanges is what the order of a plan's steps is made of.
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

// Finish records how the applying of a plan ended, for the plan and for the changes that were not tried.
func (a *Activities) Finish(ctx context.Context, f workflows.Finish) (workflows.Finished, error) {
	defer heartbeat(ctx)()
	a.progress.end(f.Plan)
	po, err := a.plan(ctx, f.Plan)
	if err != nil {
		return workflows.Finished{}, err
	}
	if po.Ended() && po.Status.Progress == nil {
		return workflows.Finished{Outcome: workflows.OutcomeRefused}, nil
	}
	work, err := a.loadWork(ctx, po.UID)
	if err != nil {
		return workflows.Finished{}, err
	}
	// A lane hears of a cancel through the object, which may be before the workflow gets the signal.
	cancelled := f.Cancelled || po.Status.Cancel != nil
	begun := slices.ContainsFunc(work.changes, func(c *ledger.Change) bool { return c.StartedAt != nil })
	var stale []Obstacle
	for _, c := range work.changes {
		if changesNothing(c) {
			continue
		}
		if c.State == v1alpha1.ChangePending || c.State == v1alpha1.ChangeRunning {
			if err := a.skip(ctx, po, c, work, cancelled); err != nil {
				return workflows.Finished{}, err
			}
		}
		if c.State == v1alpha1.ChangeStale {
			stale = append(stale, Obstacle{c.Address, c.Message})
		}
	}
	counts := work.progress()
	finished := workflows.Finished{Done: int(counts.Done), Failed: int(counts.Failed), Skipped: int(counts.Skipped)}
	err = a.Plans.UpdateStatus(ctx, f.Plan.Namespace, f.Plan.Name, uidOf(f.Plan), func(s *v1alpha1.PlanStatus) {
		c := &s.Conditions
		g := po.Generation
		s.Progress = &counts
		if s.FinishedAt == nil { // or an earlier attempt got as far as this
			s.FinishedAt = now()
		}
		if len(stale) > 0 {
			condition.Set(c, g, v1alpha1.ConditionStale, true, v1alpha1.ReasonStale, someOf(stale))
		}
		var reason, message string
		switch {
		case counts.Failed == 0 && counts.Skipped == 0:
			finished.Outcome = workflows.OutcomeApplied
			reason, message = v1alpha1.ReasonApplied, fmt.Sprintf("%d of %d changes were made.", counts.Done, counts.Total)
			if counts.Blocked > 0 {
				reason = v1alpha1.ReasonAppliedInPart
				message = fmt.Sprintf("Applied in part: %d of %d changes were made. %s left out, as the approval says.",
					counts.Done, counts.Total+counts.Blocked, counted(int(counts.Blocked), "is blocked and was", "are blocked and were"))
			}
			condition.Set(c, g, v1alpha1.ConditionApplied, true, reason, message)
			condition.Ready(c, g, reason, message)
			return
		case cancelled && len(stale) == 0:
			// What failed may have failed because the provider was asked to stop; the message counts it.
			finished.Outcome, reason = workflows.OutcomeCancelled, v1alpha1.ReasonCancelled
		case len(stale) == int(counts.Failed):
			finished.Outcome, reason = workflows.OutcomeStale, v1alpha1.ReasonStale
		default:
			finished.Outcome, reason = workflows.OutcomeFailed, v1alpha1.ReasonApplyFailed
		}
		switch {
		case !begun && len(stale) > 0:
			message = fmt.Sprintf("Nothing was applied: %s. Make a new plan.", someOf(stale))
		default:
			message = fmt.Sprintf("%d of %d changes were made, %d failed, %d were not tried.%s%s Make a new plan for the rest.",
				counts.Done, counts.Total, counts.Failed, counts.Skipped, halfReplaced(work), failures(work))
		}
		condition.Set(c, g, v1alpha1.ConditionApplied, false, reason, message)
		condition.Stalled(c, g, reason, message)
	})
	return finished, err
}

// maxNamed is how many changes a condition names.
const maxNamed = 5

// keepRefreshed records what was read of a resource that the plan leaves alone, as the apply of a Terraform plan does: what
// refers to it was planned with that, and every refresh would find the same drift anew.
func (a *Activities) keepRefreshed(ctx context.Context, planUID types.UID, c *ledger.Change) error {
	if !recordsRefresh(c) {
		return nil
	}
	rec, err := a.Ledger.Instance(ctx, c.Object)
	if err != nil || rec.Intent != nil || rec.Digest() != c.Preconditions.State {
		return err // somebody knows more by now
	}
	rec.State, rec.Plan = *c.Refreshed, planUID
	if err := a.Ledger.Save(ctx, rec); err != nil {
		if errors.Is(err, ledger.ErrConflict) {
			return nil
		}
		return err
	}
	obj, err := a.Objects.Get(ctx, c.Object)
	if err != nil {
		if errors.Is(err, ErrGone) {
			return nil
		}
		return err
	}
	r, err := resourceOf(obj, a.Catalog)
	if err != nil {
		return err
	}
	v, err := instance.Recorded(&rec.State, r.schema)
	if err != nil {
		return err
	}
	return a.writeStatus(ctx, c.Object, func(s *status) {
		s.attributes = plan.Attributes(r.schema.Block, v)
		meta.RemoveStatusCondition(&s.conditions, v1alpha1.ConditionDrifted)
	})
}

// recordsRefresh says whether all that the apply does about a change is to record what was read.
func recordsRefresh(c *ledger.Change) bool {
	return changesNothing(c) && c.Mode == "" && c.State == v1alpha1.ChangePending && c.Refreshed.Exists()
}

// failures names what failed, the first few in full.
func failures(w *work) string {
	var text []Obstacle
	for _, c := range w.changes {
		switch c.State {
		case v1alpha1.ChangeFailed, v1alpha1.ChangeStale, v1alpha1.ChangeUnknown:
			if !halfMade(c) {
				text = append(text, Obstacle{c.Address, whyFailed(c)})
			}
		}
	}
	if len(text) == 0 {
		return ""
	}
	return " " + someOf(text) + "."
}

// halfReplaced names the replacements that ended between their destroy and their create.
func halfReplaced(w *work) string {
	var destroyed, created []Obstacle
	for _, c := range w.changes {
		switch {
		case !halfMade(c):
		case c.CreateBeforeDestroy:
			created = append(created, Obstacle{c.Address, whyFailed(c)})
		default:
			destroyed = append(destroyed, Obstacle{c.Address, whyFailed(c)})
		}
	}
	text := ""
	if n := len(destroyed); n > 0 {
		text += fmt.Sprintf(" %d destroyed and not created again: %s; the next plan creates %s.", n, someOf(destroyed), pronoun(n))
	}
	if n := len(created); n > 0 {
		text += fmt.Sprintf(" %d replaced with the old instance left: %s; the next plan destroys %s.", n, someOf(created), pronoun(n))
	}
	return text
}

func pronoun(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// halfMade says whether a replacement ended between its destroy and its create.
func halfMade(c *ledger.Change) bool { return c.HalfDone && c.State == v1alpha1.ChangeFailed }

func whyFailed(c *ledger.Change) string {
	why := c.Message
	if c.State == v1alpha1.ChangeFailed {
		why = cmp.Or(describe(c.Diagnostics), why)
	}
	return strings.TrimSuffix(why, ".")
}

// blocker finds a change that kept another from being tried, preferring one that was tried itself.
func (w *work) blocker(c *ledger.Change) (blocker *ledger.Change) {
	for _, i := range w.stepsOf[c.Index] {
		for _, d := range w.steps[i].DependsOn {
			dep := w.changes[w.steps[d].Change]
			switch {
			case dep == c || dep.State == v1alpha1.ChangeDone:
			case blocker == nil || dep.State != v1alpha1.ChangeSkipped && dep.State != v1alpha1.ChangePending:
				blocker = dep
			}
		}
	}
	return blocker
}

// skip records that a change was not tried, or not tried to its end.
func (a *Activities) skip(ctx context.Context, po *v1alpha1.Plan, c *ledger.Change, w *work, cancelled bool) error {
	c.State, c.FinishedAt = v1alpha1.ChangeSkipped, now()
	reason := v1alpha1.ReasonSkipped
	blocker := w.blocker(c)
	switch {
	case cancelled:
		reason, c.Message = v1alpha1.ReasonCancelled, "the plan was cancelled before it was tried"
	case blocker != nil && slices.Contains(blocker.Requires, c.Address):
		c.Message = fmt.Sprintf("%s refers to it and must go first, and was not done", blocker.Address)
	case blocker != nil:
		c.Message = fmt.Sprintf("it has to wait for %s, which was not done", blocker.Address)
	case po.Status.Progress == nil:
		c.Message = "nothing of the plan was applied"
	default:
		c.Message = "something that it depends on was not done"
	}
	text := "Not tried: " + c.Message + "."
	if c.HalfDone {
		if cancelled {
			c.Message = "the plan was cancelled"
		}
		c.State, reason, text = v1alpha1.ChangeFailed, v1alpha1.ReasonReplaceIncomplete, halfText(c, c.Message+".")
	}
	if err := a.Ledger.SaveChange(ctx, po.UID, c); err != nil {
		return err
	}
	return a.writeStatus(ctx, c.Object, func(s *status) {
		if !s.good() {
			s.stall(c.Object.Generation, reason, text)
		}
	})
}

// halfText says what there is after a replacement of which only the first half was made.
func halfText(c *ledger.Change, why string) string {
	if c.CreateBeforeDestroy {
		return fmt.Sprintf("The new instance was created, and the old one (deposed %s) is still there; the next plan destroys it. %s", c.DeposedKey, why)
	}
	return "The old instance was destroyed, and the new one was not created; the next plan creates it. " + why
}
