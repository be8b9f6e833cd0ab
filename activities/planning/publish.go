package planning

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Publish writes the summary of a plan to its Plan object, which then waits for approval unless there are no changes.
func (a *Planner) Publish(ctx context.Context, in workflows.Publish) (workflows.Published, error) {
	p := in.Plan
	po, err := a.readPlan(ctx, p)
	if err != nil {
		return workflows.Published{}, err
	}
	if published(po) || po.PlanFailed() {
		// An earlier attempt, or the survey, has written the status.
		return publishedOf(po), a.dropDocuments(ctx, po)
	}
	if po.Status.Cancel != nil {
		return workflows.Published{Summary: "cancelled"},
			errors.Join(a.abandon(ctx, p, po.Generation), a.dropDocuments(ctx, po))
	}
	if po.ApprovalFollows() { // an earlier attempt has ended between the status and the approval
		return publishedOf(po), errors.Join(a.approve(ctx, p, po, po.Status.Digest), a.dropDocuments(ctx, po))
	}
	if a, err = a.withOverlay(ctx, po); err != nil {
		return workflows.Published{}, err
	}
	key, err := a.Ledger.ContentsKey(ctx)
	if err != nil {
		return workflows.Published{}, err
	}
	t, briefs, person := newTotals(key), changes.NewBriefWriter(a.Ledger, po.UID),
		changes.NewSelfApproval(a.Sources, po)
	for c, err := range t.hashed(a.Ledger.Changes(ctx, po.UID, 0)) {
		if err == nil {
			t.add(c)
			err = briefs.Add(ctx, c.Change, c.covered)
		}
		if err == nil && po.ApprovesItself() {
			err = person.Add(ctx, new(changes.BriefOf(c.Change)))
		}
		if err != nil {
			return workflows.Published{}, err
		}
	}
	if err := briefs.Finish(ctx, t.digest.String()); err != nil {
		return workflows.Published{}, err
	}
	if diags := t.diagnostics(); diag.HasErrors(t.diags) {
		return notPlanned(diags), errors.Join(a.failPlan(ctx, p, diag.Summarize(diags), diags),
			a.dropDocuments(ctx, po))
	}
	if t.waiting, err = a.waiting(ctx, po); err != nil {
		return workflows.Published{}, err
	}
	t.summarize(in)
	t.noteContributors(&po.Status)
	if t.person, err = person.Why(ctx); err != nil {
		return workflows.Published{}, err
	}
	if err := t.findRollouts(ctx, a.Sources); err != nil {
		return workflows.Published{}, err
	}
	if t.outputs, err = a.outputs(ctx, po, t.planned); err != nil {
		return workflows.Published{}, err
	}
	if t.verdict, err = changes.Judge(ctx, a.Sources, po, changes.Judged{}); err != nil {
		return workflows.Published{}, err
	}
	if t.steps == 0 && !po.Spec.Speculative {
		// No approval follows. The plan ends here and records that the resources need no change.
		if err := changes.RecordUnchanged(ctx, a.Sources, po, a.Ledger.Changes(ctx, po.UID, 0)); err != nil {
			return workflows.Published{}, err
		}
	}
	cancelled := false
	err = a.Plans.UpdateStatus(ctx, p.Namespace, p.Name, workflows.ObjectUID(p), func(s *v1alpha1.PlanStatus) {
		cancelled = s.Cancel != nil
		t.writeStatus(po, s)
		s.ReadTo = in.ReadTo
	})
	if err == nil && !cancelled && t.steps > 0 && t.summary.Blocked == 0 && po.ApprovesItself() && t.manual(po) == "" {
		err = a.approve(ctx, p, po, t.digest.String())
	}
	if err == nil {
		err = a.dropDocuments(ctx, po)
	}
	return workflows.Published{Summary: t.summary.Text, Empty: t.steps == 0}, err
}

// waiting returns the reasons why the plan leaves out objects, and blocks of Modules, by their addresses.
func (a *Planner) waiting(ctx context.Context, po *v1alpha1.Plan) (map[string]string, error) {
	recorded, err := a.Index.Waiting(ctx, po.Namespace)
	o, ok := a.Objects.(*overlay)
	if err != nil || po.Spec.Destroy || po.Spec.RefreshOnly || len(recorded) == 0 && (!ok || len(o.modules) == 0) {
		return recorded, err
	}
	view, unready, err := a.view(ctx, po)
	if err != nil || len(unready) > 0 {
		return recorded, err
	}
	return view.Waiting, nil
}

// published reports whether a plan is published and, with automatic approval, approved.
func published(po *v1alpha1.Plan) bool {
	return po.Status.Digest != "" && (!po.ApprovesItself() || po.Status.Approval != nil)
}

// approve approves a plan with automatic approval on behalf of its creator. If a change has become stale, it ends the
// plan.
func (a *Planner) approve(ctx context.Context, p workflows.Plan, po *v1alpha1.Plan, digest string) error {
	err := a.Plans.Approve(ctx, p.Namespace, p.Name, workflows.ObjectUID(p), v1alpha1.PlanApproval{
		Decision: v1alpha1.DecisionApproved, Digest: digest, By: po.Status.RequestedBy,
		Message: "approved automatically: spec.approval is Automatic",
	})
	if apierrors.IsForbidden(err) {
		return a.requireUserApproval(ctx, p, po, err)
	}
	if !apierrors.IsConflict(err) {
		return err
	}
	found, verr := changes.Verify(ctx, a.Sources, po)
	if verr != nil || len(found.Stale) == 0 {
		return errors.Join(err, verr)
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
func (a *Planner) requireUserApproval(ctx context.Context, p workflows.Plan, po *v1alpha1.Plan, refused error) error {
	return a.Plans.UpdateStatus(ctx, p.Namespace, p.Name, workflows.ObjectUID(p), func(s *v1alpha1.PlanStatus) {
		text := fmt.Sprintf("The plan waits for an approval although spec.approval is Automatic: %v", refused)
		s.AutomaticApproval = &v1alpha1.AutomaticApproval{Message: text, ByPolicy: po.Status.AutomaticApproval.ByPolicy}
		condition.Waiting(&s.Conditions, po.Generation, v1alpha1.ReasonAwaitingApproval, text)
	})
}

// blockedText returns the message with the blocked changes and the remedy.
func blockedText(po *v1alpha1.Plan, digest string, obstacles []changes.Obstacle, blocked, steps int) string {
	text := fmt.Sprintf("%s.", changes.ListObstacles(obstacles))
	if with := blocked - len(obstacles); with > 0 {
		text += fmt.Sprintf(" %s.", changes.Counted(with, "change that needs it is blocked, too",
			"changes that need it are blocked, too"))
	}
	text += " Remove preventDestroy, or undo what forces the destroy, and make a new plan."
	if steps > blocked {
		text += fmt.Sprintf(" To apply only %s: %s --partial.",
			changes.Counted(steps-blocked, "other change", "other changes"),
			v1alpha1.ApproveCommand(po.Name, po.Namespace, digest))
	}
	return text
}

// mergeConfigDiagnostics merges equal diagnostics about a ProviderConfig into one with the number of affected
// resources.
func mergeConfigDiagnostics(diags diag.Diagnostics) diag.Diagnostics {
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
		d.Detail = strings.TrimSpace(d.Detail + "\n" + changes.Counted(n, "resource of the plan uses it.",
			"resources of the plan use it."))
		out = append(out, d)
	}
	return out
}

// abandon ends a plan that was cancelled during planning.
func (a *Planner) abandon(ctx context.Context, p workflows.Plan, generation int64) error {
	err := a.Plans.UpdateStatus(ctx, p.Namespace, p.Name, workflows.ObjectUID(p),
		func(s *v1alpha1.PlanStatus) { abandoned(s, generation) })
	return store.IgnoreGone(err)
}

func abandoned(s *v1alpha1.PlanStatus, generation int64) {
	s.ObservedGeneration, s.FinishedAt = generation, changes.Now()
	condition.Stalled(&s.Conditions, generation, v1alpha1.ReasonCancelled,
		"The plan was cancelled during planning. Make a new plan.")
}

func publishedOf(po *v1alpha1.Plan) workflows.Published {
	if po.Status.Summary == nil {
		return notPlanned(po.Status.Diagnostics)
	}
	return workflows.Published{Summary: po.Status.Summary.Text}
}

// notPlanned returns the result of a plan that failed with the diagnostics. It names resources, and has no text of a
// provider.
func notPlanned(diags diag.Diagnostics) workflows.Published {
	failed := workflows.Published{Summary: "failed", Failed: true}
	seen := map[string]bool{}
	for _, d := range diags {
		switch {
		case d.Severity != v1alpha1.SeverityError || d.Address == "" || seen[d.Address]:
			continue
		case len(failed.NotPlanned) == workflows.MaxNotMade:
			failed.NotPlannedMore++
		default:
			failed.NotPlanned = append(failed.NotPlanned, d.Address)
		}
		seen[d.Address] = true
	}
	return failed
}

// Fail records why planning failed.
func (a *Planner) Fail(ctx context.Context, f workflows.Failure) error {
	po, err := a.readPlan(ctx, f.Plan)
	if err != nil {
		return err
	}
	switch {
	case published(po):
		return alreadyPlanned(f.Plan)
	case po.Ended(): // an earlier attempt recorded the reason, or the plan was cancelled
		return a.dropDocuments(ctx, po)
	}
	err = a.failPlan(ctx, f.Plan, f.Message,
		diag.Diagnostics{{Severity: v1alpha1.SeverityError, Summary: "Plan could not be made", Detail: f.Message}})
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

// summaryText returns the counts of a plan as text. gone is the number of forgets of resources that do not exist.
func summaryText(s *v1alpha1.PlanSummary, gone int32) string {
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
	add(s.Forget-gone, "%d to forget")
	add(gone, "%d to remove from the records")
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
