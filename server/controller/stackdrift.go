package controller

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/activities/planning"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cron"
	"github.com/hykube/hykube/internal/store"
)

// This file runs the drift checks of stacks. A check is a series of refresh-only plans with automatic approval, to
// which policies apply. Each reads a page of the resources. Between two plans, a check can pause or end, and it
// continues after a crash.

const (
	// maxPage is the maximum number of resources that one plan of a check reads.
	maxPage = 10_000
	// pageTime is about the longest time that one plan of a check takes if the budget limits its reads per second.
	pageTime = 10 * time.Minute
	// minRest is the minimum time before the end of a window for a further plan of a check.
	minRest = 10 * time.Second
	// keptChecks is the number of plans of ended checks that the server keeps for each stack. Checks may fail often.
	keptChecks = 10
)

// isCheck reports whether a plan is one of a drift check.
func isCheck(p *v1alpha1.Plan) bool {
	return p.Status.Stack != nil && p.Status.Stack.Trigger == v1alpha1.TriggerDriftCheck
}

// endedChecks returns the plans of the drift checks of a stack, except those of the check that runs.
func endedChecks(s *v1alpha1.Stack, plans []*v1alpha1.Plan) (out []*v1alpha1.Plan) {
	running := ""
	if d := s.Status.Drift; d != nil && d.Running != nil {
		running = d.Running.ID
	}
	for _, p := range plans {
		if isCheck(p) && p.Status.Stack.StackUID == s.UID && p.Status.Stack.Request != running {
			out = append(out, p)
		}
	}
	return out
}

// driftCheck is the drift check of a stack that runs.
type driftCheck struct {
	*Stacks
	stack  *v1alpha1.Stack
	stacks []*v1alpha1.Stack
	status *v1alpha1.StackDriftStatus
	now    time.Time
	// unneeded is a plan without changes, which the server removes; nil if there is none.
	unneeded *v1alpha1.Plan
}

// checkDrift takes the next step of the drift check of a stack, and writes the state of the check.
func (c *Stacks) checkDrift(ctx context.Context, s *v1alpha1.Stack, stacks []*v1alpha1.Stack) error {
	if s.Status.Drift == nil || !s.Status.Drift.Busy() {
		return nil
	}
	// Read the status from the server: with an old one of the cache, the check would make an earlier plan again.
	fresh := &v1alpha1.Stack{}
	err := c.Client.Get().Namespace(s.Namespace).Resource("stacks").Name(s.Name).Do(ctx).Into(fresh)
	if apierrors.IsNotFound(err) ||
		err == nil && (fresh.UID != s.UID || fresh.Status.Drift == nil || !fresh.Status.Drift.Busy()) {
		return nil
	}
	if err != nil {
		return err
	}
	s = fresh
	d := &driftCheck{Stacks: c, stack: s, stacks: stacks, status: s.Status.Drift.DeepCopy(), now: time.Now()}
	if err := d.replace(ctx); err != nil {
		return err
	}
	if d.status.Running == nil {
		d.status.Running = &v1alpha1.DriftCheck{ID: d.status.Requested.ID, StartedAt: d.status.Requested.At,
			ReadAfter: d.status.ReadAfter}
	}
	after, err := d.advance(ctx)
	if err != nil {
		return err
	}
	if after > 0 {
		c.queue.work.AddAfter(cache.NewObjectName(s.Namespace, s.Name), after)
	}
	if equality.Semantic.DeepEqual(d.status, s.Status.Drift) {
		return nil
	}
	if err := c.Update(ctx, s.Namespace, s.Name, s.UID, func(status *v1alpha1.StackStatus) {
		if status.Drift != nil {
			d.status.Requested = status.Drift.Requested // it may be newer
		}
		status.Drift = d.status
	}); err != nil {
		return err
	}
	if d.unneeded != nil {
		return d.removePlan(ctx, d.unneeded)
	}
	return nil
}

// replace ends a check whose plan waits for an approval, if a later check was requested.
func (d *driftCheck) replace(ctx context.Context) error {
	check := d.status.Running
	if check == nil || d.status.Requested == nil || check.ID == d.status.Requested.ID {
		return nil
	}
	if check.Plan != nil {
		plan, err := d.plans.Status.Get(ctx, d.stack.Namespace, check.Plan.Name, check.Plan.UID)
		if err != nil || !waits(plan) {
			return store.IgnoreGone(err) // the check ends with its plan, and the later one follows
		}
		if err := d.plans.discard(ctx, plan,
			"Discarded, because the next drift check of the stack began."); err != nil {
			return err
		}
	}
	d.end(v1alpha1.DriftFailed, "The next check began before a user approved the plan.")
	return nil
}

// advance continues the check. It returns the time after which it must be called again, even if nothing changes; 0
// means never.
func (d *driftCheck) advance(ctx context.Context) (after time.Duration, err error) {
	check := d.status.Running
	check.Message, check.AwaitsApproval = "", false
	if check.Plan != nil {
		ended, err := d.readPlan(ctx)
		if !ended || err != nil || d.status.Running == nil {
			return 0, err
		}
	}
	drift := d.stack.Spec.Drift
	if drift == nil {
		d.end(v1alpha1.DriftFailed, "spec.drift was removed from the stack.")
		return 0, nil
	}
	if d.stack.Spec.Suspend {
		check.Message = "The check pauses, because spec.suspend is true."
		return 0, nil
	}
	window, err := cron.ParseWindow(drift.Window, drift.TimeZone)
	if err != nil {
		d.end(v1alpha1.DriftFailed, fmt.Sprintf("spec.drift.window: %v.", err)) // a stack of a later version
		return 0, nil
	}
	wait := window.Until(d.now)
	if left := window.Left(d.now); wait == 0 && window != nil && left < minRest {
		wait = left + window.Until(d.now.Add(left))
	}
	if wait > 0 {
		check.Message = fmt.Sprintf("The check pauses until the window %s (%s) begins.", drift.Window,
			cmp.Or(drift.TimeZone, "UTC"))
		return wait, nil
	}
	return 0, d.makePlan(ctx, window)
}

// readPlan adds the counts of the last plan of the check. It ends the check after the last page, or if the plan failed.
// ended is false if the plan has not ended.
func (d *driftCheck) readPlan(ctx context.Context) (ended bool, err error) {
	check := d.status.Running
	plan, err := d.plans.Status.Get(ctx, d.stack.Namespace, check.Plan.Name, check.Plan.UID)
	if errors.Is(err, store.ErrGone) {
		d.end(v1alpha1.DriftFailed, fmt.Sprintf("Plan %s was deleted before it ended.", check.Plan.Name))
		return true, nil
	}
	if err != nil {
		return false, err
	}
	reason, message := readyOf(plan)
	if !plan.Ended() {
		switch {
		case !waits(plan):
		case plan.Status.StalledFor() != "":
			d.end(v1alpha1.DriftFailed, fmt.Sprintf("Plan %s: %s", plan.Name, message))
			return true, d.plans.discard(ctx, plan, "Discarded, because it cannot be applied: "+message)
		default:
			check.Message, check.AwaitsApproval = fmt.Sprintf("The drift check waits for an approval of plan %s: %s",
				plan.Name, message), true
		}
		return false, nil
	}
	found := plan.Status.Summary
	if reason != v1alpha1.ReasonApplied && reason != v1alpha1.ReasonNoChanges || found == nil {
		d.end(v1alpha1.DriftFailed, fmt.Sprintf("Plan %s: %s", plan.Name, message))
		return true, nil
	}
	check.Plan = nil
	check.Read += found.Resources
	check.Drifted += found.Drifted
	check.ReadAfter = plan.Status.ReadTo
	if reason == v1alpha1.ReasonNoChanges {
		d.unneeded = plan
	}
	if budget := d.budget(); check.ReadAfter == "" || budget.MaxReads > 0 && check.Read >= budget.MaxReads {
		return true, d.endGood(ctx)
	}
	return true, nil
}

// removePlan removes a plan without changes, so that the history of the stack contains only plans with changes.
func (d *driftCheck) removePlan(ctx context.Context, plan *v1alpha1.Plan) error {
	opts := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(plan.UID)}}
	err := d.Client.Delete().Namespace(plan.Namespace).Resource("plans").Name(plan.Name).Body(&opts).Do(ctx).Error()
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// endGood ends the check after its last page.
func (d *driftCheck) endGood(ctx context.Context) error {
	selected, err := d.selection(ctx, d.stack, d.stacks)
	if err != nil {
		return err
	}
	if d.status.Running.Drifted > 0 || len(selected.Drifted) > 0 {
		d.end(v1alpha1.DriftFound, "")
	} else {
		d.end(v1alpha1.DriftNone, "")
	}
	return nil
}

func (d *driftCheck) end(outcome v1alpha1.DriftOutcome, message string) {
	check := d.status.Running
	check.EndedAt, check.Outcome, check.Message, check.Plan, check.AwaitsApproval = &metav1.Time{Time: d.now}, outcome,
		message, nil, false
	d.status.ReadAfter = check.ReadAfter
	d.status.Last, d.status.Running = check, nil
}

// budget returns the limits of a check.
func (d *driftCheck) budget() v1alpha1.ReadBudget {
	if drift := d.stack.Spec.Drift; drift != nil && drift.Budget != nil {
		return *drift.Budget
	}
	return v1alpha1.ReadBudget{}
}

// page returns the budget of the next plan. It exceeds neither the rest of the check's budget nor the time that is left
// in the window.
func (d *driftCheck) page(window *cron.Window) *v1alpha1.ReadBudget {
	budget := d.budget()
	most := int32(maxPage)
	if budget.MaxReads > 0 {
		most = min(most, budget.MaxReads-d.status.Running.Read)
	}
	if perSecond := budget.ReadsPerSecond; perSecond > 0 {
		time := pageTime
		if left := window.Left(d.now); left > 0 {
			time = min(time, left)
		}
		most = min(most, max(1, int32(time.Seconds()*float64(perSecond))))
	}
	return &v1alpha1.ReadBudget{ReadsPerSecond: budget.ReadsPerSecond, MaxReads: most}
}

// makePlan makes the next plan of the check. Its name has the ID of the check, so that an attempt after a crash finds
// the plan of the first one.
func (d *driftCheck) makePlan(ctx context.Context, window *cron.Window) error {
	check, s := d.status.Running, d.stack
	spec := planSpec(s, d.stacks, &planning.Selection{})
	if spec.Selector == nil && slices.ContainsFunc(d.stacks,
		func(other *v1alpha1.Stack) bool { return other.Spec.Selector != nil }) {
		d.end(v1alpha1.DriftFailed, "The stack needs a selector for drift checks, because another stack has a selector of several labels.")
		return nil
	}
	spec.Targets, spec.Refresh, spec.RefreshOnly, spec.Approval = nil, v1alpha1.RefreshAll, true,
		v1alpha1.ApprovalAutomatic
	spec.ReadBudget, spec.ReadAfter = d.page(window), check.ReadAfter
	sum := sha256.Sum256([]byte(check.ID))
	p := &v1alpha1.Plan{Spec: spec}
	p.Name = fmt.Sprintf("%s-drift-%s-%d", s.Name, hex.EncodeToString(sum[:4]), check.Plans+1)
	p.Status.Stack = &v1alpha1.PlanStack{Trigger: v1alpha1.TriggerDriftCheck, Request: check.ID,
		Number: int64(check.Plans) + 1}
	made, err := d.create(ctx, s, p)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		d.end(v1alpha1.DriftFailed, "The server refused the plan of the check: "+err.Error())
		return nil
	case err != nil:
		return fmt.Errorf("make a plan of the drift check of stack %q: %w", s.Name, err)
	case made == nil:
		d.end(v1alpha1.DriftFailed, fmt.Sprintf("A plan that the stack did not make has the name %s: delete it.",
			p.Name))
		return nil
	}
	check.Plans++
	check.Plan = &v1alpha1.PlanReference{Name: made.Name, UID: made.UID}
	return nil
}
