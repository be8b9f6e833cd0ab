package planning

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// Publish writes the summary of a plan to its Plan object, which then waits for approval unless there are no changes.
func (a *Planner) Publish(ctx context.Context, in workflows.Publish) (workflows.Published, error) {
	p := in.Plan
	po, err := a.planned(ctx, p)
	if err != nil {
		return workflows.Published{}, err
	}
	if published(po) || po.PlanFailed() {
		// An earlier attempt, or the survey, has written the status.
		return publishedOf(po), a.dropDocuments(ctx, po)
	}
	if po.Status.Cancel != nil {
		return workflows.Published{Summary: "cancelled"}, errors.Join(a.abandon(ctx, p, po.Generation), a.dropDocuments(ctx, po))
	}
	if a, err = a.withOverlay(ctx, po); err != nil {
		return workflows.Published{}, err
	}
	key, err := a.Ledger.ContentsKey(ctx)
	if err != nil {
		return workflows.Published{}, err
	}
	t := newTotals(key)
	for c, err := range a.Ledger.Changes(ctx, po.UID, 0) {
		if err != nil {
			return workflows.Published{}, err
		}
		t.add(c)
		if err := a.report(ctx, po, c); err != nil {
			return workflows.Published{}, err
		}
	}
	if diags := t.diagnostics(); diag.HasErrors(t.diags) {
		return workflows.Published{Summary: "failed", Failed: true}, errors.Join(a.failPlan(ctx, p, diag.Summarize(diags), diags), a.dropDocuments(ctx, po))
	}
	t.summarize(in)
	if t.verdict, err = changes.Judge(ctx, a.Sources, po, nil); err != nil {
		return workflows.Published{}, err
	}
	if t.steps > 0 && t.steps <= maxReported && (!po.ApprovesItself() || t.manual(po) != "") && !po.Spec.Speculative {
		if err := a.reportAwaitingApproval(ctx, po); err != nil {
			return workflows.Published{}, err
		}
	}
	cancelled := false
	err = a.Plans.UpdateStatus(ctx, p.Namespace, p.Name, workflows.ObjectUID(p), func(s *v1alpha1.PlanStatus) {
		cancelled = s.Cancel != nil
		t.writeStatus(po, s)
	})
	switch {
	case err != nil:
	case t.steps > 0 && cancelled:
		err = changes.Settle(ctx, a.Sources, p)
	case t.steps > 0 && t.summary.Blocked == 0 && po.ApprovesItself() && t.manual(po) == "":
		err = a.approve(ctx, p, po, t)
	}
	if err == nil {
		err = a.dropDocuments(ctx, po)
	}
	return workflows.Published{Summary: t.summary.Text, Empty: t.steps == 0}, err
}

// published reports whether a plan is published and, with automatic approval, approved.
func published(po *v1alpha1.Plan) bool {
	return po.Status.Digest != "" && (!po.ApprovesItself() || po.Status.Approval != nil)
}

// report writes the plan's findings to the object of a change, and records results that need no approval.
func (a *Planner) report(ctx context.Context, po *v1alpha1.Plan, c *ledger.Change) error {
	if err := a.observe(ctx, po, c); err != nil {
		return err
	}
	switch {
	case c.State == v1alpha1.ChangeFailed || c.State == v1alpha1.ChangeSkipped:
		return a.invalid(ctx, po, c)
	case c.Blocked != "":
		return a.reportBlocked(ctx, po, c)
	case c.Mode == v1alpha1.ModeData && c.Action == v1alpha1.ActionNoOp:
		return a.keepData(ctx, po.UID, c)
	case changes.HasNoSteps(c) && c.Mode == "" && !po.Spec.RefreshOnly && !po.Spec.Destroy:
		return a.confirm(ctx, po.UID, c)
	}
	return nil
}

// approve approves a plan with automatic approval on behalf of its creator. If a change has become stale, it ends the
// plan.
func (a *Planner) approve(ctx context.Context, p workflows.Plan, po *v1alpha1.Plan, t *totals) error {
	err := a.Plans.Approve(ctx, p.Namespace, p.Name, workflows.ObjectUID(p), v1alpha1.PlanApproval{
		Decision: v1alpha1.DecisionApproved, Digest: t.digest.String(), By: po.Status.RequestedBy, Message: "approved automatically: spec.approval is Automatic",
	})
	if apierrors.IsForbidden(err) {
		return a.requireUserApproval(ctx, p, po, t, err)
	}
	if !apierrors.IsConflict(err) {
		return err
	}
	found, verr := changes.Verify(ctx, a.Sources, po)
	if verr != nil || len(found.Stale) == 0 {
		return errors.Join(err, verr)
	}
	if err := changes.Settle(ctx, a.Sources, p); err != nil {
		return err
	}
	return a.Plans.UpdateStatus(ctx, p.Namespace, p.Name, workflows.ObjectUID(p), func(s *v1alpha1.PlanStatus) {
		text := "Nothing was applied: " + changes.ListObstacles(found.Stale) + ". Make a new plan."
		s.FinishedAt = changes.Now()
		condition.Set(&s.Conditions, po.Generation, v1alpha1.ConditionStale, true, v1alpha1.ReasonStale, text)
		condition.Stalled(&s.Conditions, po.Generation, v1alpha1.ReasonStale, text)
	})
}

// requireUserApproval withdraws the automatic approval of a plan, because its creator has lost a right. The plan then
// waits for a user's approval.
func (a *Planner) requireUserApproval(ctx context.Context, p workflows.Plan, po *v1alpha1.Plan, t *totals, refused error) error {
	if t.steps <= maxReported {
		if err := a.reportAwaitingApproval(ctx, po); err != nil {
			return err
		}
	}
	return a.Plans.UpdateStatus(ctx, p.Namespace, p.Name, workflows.ObjectUID(p), func(s *v1alpha1.PlanStatus) {
		text := fmt.Sprintf("The plan waits for a person although spec.approval is Automatic: %v", refused)
		s.AutomaticApproval = &v1alpha1.AutomaticApproval{Message: text, ByPolicy: po.Status.AutomaticApproval.ByPolicy}
		condition.Waiting(&s.Conditions, po.Generation, v1alpha1.ReasonAwaitingApproval, text)
	})
}

// blockedText returns the message with the blocked changes and the remedy.
func blockedText(po *v1alpha1.Plan, obstacles []changes.Obstacle, blocked, steps int) string {
	text := fmt.Sprintf("%s.", changes.ListObstacles(obstacles))
	if with := blocked - len(obstacles); with > 0 {
		text += fmt.Sprintf(" %s.", changes.Counted(with, "change that needs it is blocked, too", "changes that need it are blocked, too"))
	}
	text += " Remove preventDestroy, or undo what forces the destroy, and make a new plan."
	if steps > blocked {
		text += fmt.Sprintf(" To apply only %s: kubectl hykube approve %s -n %s --partial.", changes.Counted(steps-blocked, "other change", "other changes"), po.Name, po.Namespace)
	}
	return text
}

// reportBlocked writes to an object that does not match its spec why the plan cannot change it. An object that matches its
// spec may have the failure of an earlier plan; a blocked destroy leaves it as it is, so it is ready.
func (a *Planner) reportBlocked(ctx context.Context, po *v1alpha1.Plan, c *ledger.Change) error {
	if po.Spec.Speculative {
		return nil
	}
	rec, err := a.Ledger.Instance(ctx, c.Object)
	if err != nil || rec.Intent != nil {
		return err
	}
	return resource.WriteStatus(ctx, a.Objects, c.Object, func(s *resource.Status) {
		switch {
		case s.Good():
			return
		case po.Spec.Destroy && s.Matches(rec):
			s.Ready(c.Object.Generation, v1alpha1.MessageApplied)
			return
		}
		text := "Not applied: " + c.Blocked + "."
		if c.Prevented {
			text = diag.Describe(diag.Diagnostics{prevented(c.Address)})
		}
		s.Stall(c.Object.Generation, v1alpha1.ReasonBlocked, text)
		s.Pending = po.Name
	})
}

// once merges equal diagnostics about a ProviderConfig into one with the number of affected resources.
func once(diags diag.Diagnostics) diag.Diagnostics {
	users := map[v1alpha1.Diagnostic]int{}
	for _, d := range diags {
		users[d]++
	}
	var out diag.Diagnostics
	for _, d := range diags {
		if !strings.HasPrefix(d.Address, scope.ProviderConfigAddress) {
			out = append(out, d)
			continue
		}
		n := users[d]
		if n == 0 {
			continue
		}
		users[d] = 0
		d.Detail = strings.TrimSpace(d.Detail + "\n" + changes.Counted(n, "resource of the plan uses it.", "resources of the plan use it."))
		out = append(out, d)
	}
	return out
}

// abandon ends a plan that was cancelled during planning.
func (a *Planner) abandon(ctx context.Context, p workflows.Plan, generation int64) error {
	err := a.Plans.UpdateStatus(ctx, p.Namespace, p.Name, workflows.ObjectUID(p), func(s *v1alpha1.PlanStatus) { abandoned(s, generation) })
	return store.IgnoreGone(err)
}

func abandoned(s *v1alpha1.PlanStatus, generation int64) {
	s.ObservedGeneration, s.FinishedAt = generation, changes.Now()
	condition.Stalled(&s.Conditions, generation, v1alpha1.ReasonCancelled, "The plan was cancelled during planning. Make a new plan.")
}

func publishedOf(po *v1alpha1.Plan) workflows.Published {
	if po.Status.Summary == nil {
		return workflows.Published{Summary: "failed", Failed: true}
	}
	return workflows.Published{Summary: po.Status.Summary.Text}
}

// invalid writes to an object why it could not be planned, or why the plan leaves it unchanged.
func (a *Planner) invalid(ctx context.Context, po *v1alpha1.Plan, c *ledger.Change) error {
	reason, message := v1alpha1.ReasonInvalid, diag.Describe(c.Diagnostics)
	if message == "" {
		reason, message = v1alpha1.ReasonSkipped, "Not planned: "+c.Message+"."
	}
	rec, err := a.Ledger.Instance(ctx, c.Object)
	if err != nil {
		return err
	}
	if rec.Intent != nil {
		over, err := changes.IntentAbandoned(ctx, a.Ledger, rec.Intent)
		if err != nil || !over || rec.Intent.Action == v1alpha1.ActionInvoke {
			return err // the plan that is changing it, or that lost the outcome of a run, writes a more important reason
		}
		if reason, message, err = a.unresolved(ctx, po, c, rec, reason, message); err != nil {
			return store.IgnoreGone(err)
		}
	}
	return resource.WriteStatus(ctx, a.Objects, c.Object, func(s *resource.Status) { s.Stall(c.Object.Generation, reason, message) })
}

// unresolved returns the reason and message for an object that a plan left unchanged, and whose create may have an unknown
// outcome. The message has the plan's own only if the plan was to import the resource.
func (a *Planner) unresolved(ctx context.Context, po *v1alpha1.Plan, c *ledger.Change, rec *ledger.Instance, reason, message string) (string, string, error) {
	lost, err := changes.UnknownCreate(ctx, a.Ledger, rec, c.Address)
	if err != nil || lost == "" {
		return reason, message, err
	}
	obj, err := a.Objects.Get(ctx, c.Object)
	if err != nil {
		return "", "", err
	}
	r, err := resource.Of(obj, a.Catalog)
	if err != nil {
		return "", "", err
	}
	if importsLost(po, r) {
		return changes.WhyStalled(ctx, a.Ledger, c.Object, c.Address, reason, message)
	}
	return v1alpha1.ReasonCreateUnknown, lost, nil
}

// keepData records the value of a data source that planning read.
func (a *Planner) keepData(ctx context.Context, planUID types.UID, c *ledger.Change) error {
	obj, err := a.Objects.Get(ctx, c.Object)
	if errors.Is(err, store.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	r, err := resource.Of(obj, a.Catalog)
	if err != nil {
		return err
	}
	v, err := changes.PlannedValue(c, r.Schema.Block)
	if err != nil {
		return err
	}
	return changes.RecordData(ctx, a.Sources, planUID, c, r, v)
}

// confirm records that the current generation of an object needs no change. It writes only the ledger record.
func (a *Planner) confirm(ctx context.Context, planUID types.UID, c *ledger.Change) error {
	rec, err := a.Ledger.Instance(ctx, c.Object)
	if err != nil || !rec.Exists() || rec.Intent != nil || rec.Digest() != c.Preconditions.State {
		return err // another plan is changing it, or has changed it
	}
	// If planning found drift, the actual state matches the spec but the recorded one does not, so the next plan must
	// visit it.
	recorded := c.Refreshed == nil || c.Refreshed.Digest() == rec.Digest()
	reread := c.Read && c.Configuration.Arguments != "" // the ID in the record is that of the same resource with the new arguments
	if recorded && (rec.Object.Generation != c.Object.Generation || rec.CreateBeforeDestroy != c.CreatesFirst || !slices.Equal(rec.Dependencies, c.Dependencies) || !maps.Equal(rec.DependencyVersions, c.DependencyVersions) || reread && rec.Configuration != c.Configuration) {
		rec.Object, rec.Dependencies, rec.CreateBeforeDestroy, rec.DependencyVersions, rec.Plan = c.Object, c.Dependencies, c.CreatesFirst, c.DependencyVersions, planUID
		if reread {
			rec.Configuration = c.Configuration
		}
		if err := a.Ledger.Save(ctx, rec); err != nil {
			if errors.Is(err, ledger.ErrConflict) {
				return nil // another plan has applied a newer change
			}
			return err
		}
	} else if obj, err := a.Objects.Get(ctx, c.Object); err != nil || resource.StatusOf(obj).Good() {
		return store.IgnoreGone(err)
	}
	return resource.WriteStatus(ctx, a.Objects, c.Object, func(s *resource.Status) {
		switch {
		case len(rec.Deposed) == 0:
			s.Ready(c.Object.Generation, v1alpha1.MessageApplied)
		case !s.ReplaceIncomplete() || s.Judged != c.Object.Generation:
			s.StallDeposed(c.Object.Generation, rec)
		}
	})
}

// Fail records why planning failed.
func (a *Planner) Fail(ctx context.Context, f workflows.Failure) error {
	po, err := a.planned(ctx, f.Plan)
	if err != nil {
		return err
	}
	switch {
	case published(po):
		return alreadyPlanned(f.Plan)
	case po.Ended(): // an earlier attempt recorded the reason, or the plan was cancelled
		return a.dropDocuments(ctx, po)
	}
	err = a.failPlan(ctx, f.Plan, f.Message, diag.Diagnostics{{Severity: v1alpha1.SeverityError, Summary: "Plan could not be made", Detail: f.Message}})
	return errors.Join(err, a.Ledger.DropDocuments(ctx, workflows.ObjectUID(f.Plan)))
}

func (a *Planner) failPlan(ctx context.Context, p workflows.Plan, message string, diags diag.Diagnostics) error {
	err := a.Plans.UpdateStatus(ctx, p.Namespace, p.Name, workflows.ObjectUID(p), func(s *v1alpha1.PlanStatus) {
		c := &s.Conditions
		s.ObservedGeneration = 1 // a Plan's spec is immutable
		s.Diagnostics, s.FinishedAt = diag.Limit(diag.ErrorsFirst(diags)), changes.Now()
		condition.Set(c, 1, v1alpha1.ConditionPlanned, false, v1alpha1.ReasonPlanFailed, message)
		condition.Stalled(c, 1, v1alpha1.ReasonPlanFailed, message)
	})
	return store.IgnoreGone(err)
}

func summaryText(s *v1alpha1.PlanSummary) string {
	var parts []string
	add := func(n int32, format string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, n))
		}
	}
	add(s.Import, "%d to import")
	add(s.Move, "%d to move")
	add(s.Create, "%d to create")
	add(s.Update, "%d to update")
	add(s.Replace, "%d to replace")
	add(s.Delete, "%d to delete")
	add(s.Forget, "%d to forget")
	add(s.Read, "%d to read")
	add(s.Invoke, "%d to run")
	add(s.Drifted, "%d drifted")
	add(s.RecordUpdates, "%d to record")
	add(s.Blocked, "%d blocked")
	if len(parts) == 0 {
		return "no changes"
	}
	return strings.Join(parts, ", ")
}

// noChanges returns the message for a plan without changes, with the number of resources that were not read.
func noChanges(po *v1alpha1.Plan, s *v1alpha1.PlanSummary) string {
	switch {
	case s.Resources == 0:
		return fmt.Sprintf("The namespace %q has no resources.", po.Namespace)
	case s.NotRead == 0:
		return "The infrastructure matches the objects; no changes are needed."
	default:
		return s.Unread()
	}
}
