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
	for _, c := range work.changes {
		if err := a.keepRefreshed(ctx, po.UID, c); err != nil {
			return workflows.Begun{}, err
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
	steps   []plan.Step
	// stepsOf are the numbers of the steps of each change.
	stepsOf [][]int
	digest  string
}

func (a *Activities) loadWork(ctx context.Context, uid types.UID) (*work, error) {
	w := &work{}
	d := newDigest()
	index := map[string][]int{}
	for c, err := range a.Ledger.Changes(ctx, uid, 0) {
		if err != nil {
			return nil, err
		}
		addresses := []string{c.Address}
		if c.PreviousAddress != "" {
			addresses = append(addresses, c.PreviousAddress) // what was recorded knows it under that name
		}
		for _, addr := range addresses {
			index[addr] = append(index[addr], len(w.changes))
		}
		w.changes = append(w.changes, c)
		d.add(c)
	}
	planned := make([]plan.Planned, len(w.changes))
	for i, c := range w.changes {
		planned[i] = plan.Planned{
			Action: c.Action, CreateBeforeDestroy: c.CreateBeforeDestroy || c.Action == v1alpha1.ActionDelete && c.CreatesFirst, Forget: c.Forget || keepsOld(c), Record: records(c),
			Deposed: c.Deposed != "", Of: -1, DependsOn: ints(c.DependsOn),
		}
		for _, addr := range c.Requires {
			planned[i].Requires = append(planned[i].Requires, index[addr]...)
		}
		for _, j := range index[c.Address] {
			if c.Deposed != "" && w.changes[j].Deposed == "" {
				planned[i].Of = j
			}
		}
	}
	w.steps, w.digest = plan.Steps(planned), d.String()
	w.stepsOf = make([][]int, len(w.changes))
	for i, s := range w.steps {
		w.stepsOf[s.Change] = append(w.stepsOf[s.Change], i)
	}
	return w, nil
}

// records says whether a change leaves something to write down although it does nothing.
func records(c *ledger.Change) bool { return c.Importing != nil || c.PreviousAddress != "" || c.Checks }

// keepsOld says whether a replace ends with the create, and leaves the old instance to a later plan.
func keepsOld(c *ledger.Change) bool { return c.KeepsOld && c.CreateBeforeDestroy }

// idle says whether a change has no steps.
func idle(c *ledger.Change) bool { return c.Action == v1alpha1.ActionNoOp && !records(c) }

// progress counts the changes that have steps.
func (w *work) progress() v1alpha1.PlanProgress {
	var p v1alpha1.PlanProgress
	for _, c := range w.changes {
		if idle(c) {
			continue
		}
		p.Total++
		tallyState(&p, c.State, 1)
	}
	return p
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
	if po.Status.FinishedAt != nil && po.Status.Progress == nil {
		return workflows.Finished{Outcome: "Refused"}, nil
	}
	work, err := a.loadWork(ctx, po.UID)
	if err != nil {
		return workflows.Finished{}, err
	}
	// A lane hears of a cancel through the object, which may be before the workflow gets the signal.
	cancelled := f.Cancelled || po.Status.Cancel != nil
	var stale []string
	stales := 0
	for _, c := range work.changes {
		if idle(c) {
			continue
		}
		if c.State == v1alpha1.ChangePending || c.State == v1alpha1.ChangeRunning {
			if err := a.skip(ctx, po.UID, c, work, cancelled); err != nil {
				return workflows.Finished{}, err
			}
		}
		if c.State == v1alpha1.ChangeStale {
			if stales++; stales <= mostNamed {
				stale = append(stale, c.Address+": "+c.Message)
			}
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
		if stales > mostNamed {
			stale = append(stale[:mostNamed:mostNamed], fmt.Sprintf("and %d more", stales-mostNamed))
		}
		if stales > 0 {
			condition.Set(c, g, v1alpha1.ConditionStale, true, v1alpha1.ReasonStale, strings.Join(stale, "\n"))
		}
		var reason, message string
		switch {
		case counts.Failed == 0 && counts.Skipped == 0:
			finished.Outcome = "Applied"
			message = fmt.Sprintf("%d of %d changes were made.", counts.Done, counts.Total)
			condition.Set(c, g, v1alpha1.ConditionApplied, true, v1alpha1.ReasonApplied, message)
			condition.Ready(c, g, v1alpha1.ReasonApplied, message)
			return
		case cancelled && stales == 0:
			// What failed may have failed because the provider was asked to stop; the message counts it.
			finished.Outcome, reason = "Cancelled", v1alpha1.ReasonCancelled
		case stales == int(counts.Failed):
			finished.Outcome, reason = "Stale", v1alpha1.ReasonStale
		default:
			finished.Outcome, reason = "Failed", v1alpha1.ReasonApplyFailed
		}
		message = fmt.Sprintf("%d of %d changes were made, %d failed, %d were not tried.%s Make a new plan for the rest.",
			counts.Done, counts.Total, counts.Failed, counts.Skipped, failures(work))
		condition.Set(c, g, v1alpha1.ConditionApplied, false, reason, message)
		condition.Stalled(c, g, reason, message)
	})
	return finished, err
}

// mostNamed is how many changes a condition names.
const mostNamed = 5

// keepRefreshed records what was read of a resource that the plan leaves alone, as the apply of a Terraform plan does: what
// refers to it was planned with that, and every refresh would find the same drift anew.
func (a *Activities) keepRefreshed(ctx context.Context, planUID types.UID, c *ledger.Change) error {
	if !recordsRefresh(c) {
		return nil
	}
	rec, err := a.Ledger.Instance(ctx, c.Object)
	if err != nil || rec.Intent != nil || rec.Digest() != c.Bound.State {
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
	return idle(c) && c.Mode == "" && c.State == v1alpha1.ChangePending && c.Refreshed.Exists()
}

// failures names what failed, the first few in full.
func failures(w *work) string {
	var text []string
	n := 0
	for _, c := range w.changes {
		switch c.State {
		case v1alpha1.ChangeFailed, v1alpha1.ChangeStale, v1alpha1.ChangeUnknown:
			why := c.Message
			if c.State == v1alpha1.ChangeFailed {
				why = cmp.Or(describe(c.Diagnostics), why)
			}
			if n++; n <= mostNamed {
				text = append(text, c.Address+": "+strings.TrimSuffix(why, "."))
			}
		}
	}
	if n > mostNamed {
		text = append(text, fmt.Sprintf("and %d more", n-mostNamed))
	}
	if n == 0 {
		return ""
	}
	return " " + strings.Join(text, "; ") + "."
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

// skip records that a change was not tried.
func (a *Activities) skip(ctx context.Context, uid types.UID, c *ledger.Change, w *work, cancelled bool) error {
	c.State, c.FinishedAt = v1alpha1.ChangeSkipped, now()
	reason := v1alpha1.ReasonSkipped
	c.Message = "something that it depends on was not done"
	if blocker := w.blocker(c); blocker != nil {
		c.Message = fmt.Sprintf("it has to wait for %s, which was not done", blocker.Address)
		if slices.Contains(blocker.Requires, c.Address) {
			c.Message = fmt.Sprintf("%s refers to it and must go first, and was not done", blocker.Address)
		}
	}
	if cancelled {
		reason, c.Message = v1alpha1.ReasonCancelled, "the plan was cancelled before it was tried"
	}
	what := "Not tried: "
	if c.HalfDone && c.CreateBeforeDestroy {
		c.Message = "the new instance was created; the old one is left until the next plan: " + c.Message
		what = "Half done: "
	}
	if err := a.Ledger.SaveChange(ctx, uid, c); err != nil {
		return err
	}
	return a.writeStatus(ctx, c.Object, func(s *status) {
		if !s.good() {
			s.stall(c.Object.Generation, reason, what+c.Message+".")
		}
	})
}
