package applying

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/store"

	"github.com/zclconf/go-cty/cty"
)

// This file writes the outcome of a step to its object.

// publish writes the outcome of the step to its object.
func (s *stepRun) publish(ctx context.Context) error {
	if removed, err := s.releaseObject(ctx); err != nil || removed {
		return err
	}
	c := s.Change
	if c.Deposed != "" {
		return s.publishDeposed(ctx)
	}
	reason, text := v1alpha1.ReasonApplyFailed, s.failureText()
	if c.State == v1alpha1.ChangeStale {
		reason, text = v1alpha1.ReasonStale, "Not applied: "+c.Message+"."
	}
	if c.State == v1alpha1.ChangeFailed || c.State == v1alpha1.ChangeStale {
		var err error
		if reason, text, err = changes.WhyStalled(ctx, s.Ledger, c.Object, c.Address, reason, text); err != nil {
			return err
		}
	}
	if s.recordLost {
		reason = v1alpha1.ReasonRecordLost
	}
	return resource.WriteStatus(ctx, s.Objects, c.Object, s.object, s.statusOf(reason, text))
}

// failureText describes the errors of the step, for the status of its object and the Event about that. The error of an
// expression of an instance may quote its template, a ConfigMap or another object, so the details are in the plan
// alone, which knows its reader.
func (s *stepRun) failureText() string {
	c := s.Change
	if !c.Unevaluated || c.Object.Set == "" {
		return diag.Describe(c.Diagnostics)
	}
	return fmt.Sprintf("%s. To see why: kubectl hykube status %s -n %s.", diag.Outline(c.Diagnostics), s.Plan.Name,
		s.Plan.Namespace)
}

// statusOf returns the change of the object's status by the step. reason and text are those of a step that did not
// succeed.
func (s *stepRun) statusOf(reason, text string) func(*resource.Status) {
	c, g := s.Change, s.Change.Object.Generation
	return func(st *resource.Status) {
		if s.after != nil && s.resource != nil && s.resource.Mode != v1alpha1.ModeAction {
			st.Attributes = plan.Attributes(s.resource.Schema.Block, *s.after)
		}
		s.noteOrigin(st)
		s.noteCreate(st)
		switch c.State {
		case v1alpha1.ChangeRunning:
			what := "The old instance was destroyed; the new one is about to be created."
			if !c.CreateBeforeDestroy {
				st.Applied = 0 // no infrastructure is left, and no record
			} else {
				what = "The new instance was created; the old one is about to be destroyed."
			}
			st.Reconcile(g, what)
		case v1alpha1.ChangeDone:
			s.succeed(st)
			if appliesSpec(c) && !impure(s.resource) {
				st.Contributors = contributor.Without(contributor.TakeBack(st.Contributors, c.TakenBack),
					c.Contributors)
			}
		case v1alpha1.ChangeStale:
			if !st.Good() {
				st.Stall(g, reason, text)
			}
		case v1alpha1.ChangeUnknown:
			text := diag.Describe(c.Diagnostics)
			if c.Action != v1alpha1.ActionInvoke {
				text = strings.TrimSuffix(text, ".") + ". " + changes.AfterLostCreate(c.Object)
			}
			st.Stall(g, v1alpha1.ReasonCreateUnknown, text)
		default:
			switch {
			case !halfFailed(c.HalfDone, c.State):
				st.Stall(g, reason, text)
			case c.Left != "":
				st.Stall(g, reason, "The old instance was destroyed, and the new one "+newInstanceText(c.Left)+". "+
					text)
			default:
				if !c.CreateBeforeDestroy {
					st.Applied = 0
				}
				st.Stall(g, v1alpha1.ReasonReplaceIncomplete,
					replaceIncompleteText(c.CreateBeforeDestroy, c.DeposedKey, s.failureText()))
			}
		}
	}
}

// appliesSpec reports whether a change that succeeded has applied what the contributors of its object wrote. A recorded
// drift leaves the spec for a later plan, and so does the removal of what an object still declares. Data sources are
// read without an approval.
func appliesSpec(c *ledger.Change) bool {
	return c.Mode == "" && c.Action != v1alpha1.ActionRead && !changes.Removes(c)
}

// impure reports whether the spec of a resource, which may be nil, may give another value in each evaluation, such as
// one that depends on the time. Nobody approved the later values, so those who wrote the spec go on contributing.
func impure(r *resource.Resource) bool { return r != nil && r.Parse().Impure }

// appliedExpressions returns the digests of the expressions with which a step ended; nil if it failed, because the
// infrastructure may be between two specs.
func appliedExpressions(r *resource.Resource, failure error) map[string]string {
	if r == nil || failure != nil {
		return nil
	}
	return r.TemplateDigests()
}

// noteOrigin records the import or the move of the step in the status, if the object has the infrastructure.
func (s *stepRun) noteOrigin(st *resource.Status) {
	c := s.Change
	if c.State != v1alpha1.ChangeDone && (s.after == nil || s.after.IsNull()) {
		return
	}
	if c.Importing != nil {
		st.Imported = resource.ImportText(c.Importing)
	}
	if c.Preconditions.From != nil {
		st.MovedFrom = c.PreviousAddress
	}
}

// noteCreate records in the status that the step's create failed and may nevertheless have made the resource. Once the
// object has a resource, an earlier create does not matter.
func (s *stepRun) noteCreate(st *resource.Status) {
	switch c := s.Change; {
	case c.State == v1alpha1.ChangeFailed && c.MayExist:
		st.FailedCreate = fmt.Sprintf("at %s by the plan %q", c.StartedAt.UTC().Format(time.RFC3339), s.Plan.Name)
		if c.ProviderConfig != "" {
			st.FailedCreate += fmt.Sprintf(" with the ProviderConfig %q", c.ProviderConfig)
		}
	case s.after != nil && !s.after.IsNull():
		st.FailedCreate = ""
	}
}

// releaseObject removes the finalizer of an object that has neither recorded infrastructure nor an intent. removed is
// true if the object is thereby deleted.
func (s *stepRun) releaseObject(ctx context.Context) (removed bool, err error) {
	c := s.Change
	gone := c.State == v1alpha1.ChangeDone && changes.Removes(c)
	nothingMade := c.State == v1alpha1.ChangeFailed && c.Action == v1alpha1.ActionCreate && s.after != nil &&
		s.after.IsNull()
	if !gone && !nothingMade {
		return false, nil
	}
	rec, err := s.Ledger.Instance(ctx, c.Object)
	if err != nil || rec.Living() || rec.Intent != nil {
		return false, err
	}
	return gone && c.Preconditions.Deleting, s.Objects.RemoveFinalizer(ctx, c.Object)
}

// succeed sets the status for a change that succeeded.
func (s *stepRun) succeed(st *resource.Status) {
	c, g, gone := s.Change, s.Change.Object.Generation, changes.Removes(s.Change)
	switch {
	case c.Action == v1alpha1.ActionForget && c.ActionReason == plan.ReasonNotFound:
		st.Remove(g, v1alpha1.ReasonForgotten,
			"The provider does not find the infrastructure with the new arguments of its ProviderConfig, and a plan removed its record. With the earlier arguments, the provider may still find it. "+s.nextPlanText())
	case c.Action == v1alpha1.ActionForget && c.ActionReason == plan.ReasonGone:
		st.Remove(g, v1alpha1.ReasonDestroyed,
			"The infrastructure was removed outside of Hykube, and a plan removed its record. "+s.nextPlanText())
	case c.Action == v1alpha1.ActionForget:
		st.Remove(g, v1alpha1.ReasonForgotten,
			fmt.Sprintf("Hykube no longer manages the infrastructure, which still exists. The next plan creates it again, unless %s names it. To prevent both, %s.", changes.ImportField(c.Object), toPrevent(c.Object)))
	case c.Action == v1alpha1.ActionRead && gone:
		st.Attributes, st.Applied = nil, 0
		st.Drift(g, v1alpha1.ReasonGone, "The infrastructure was removed by something other than Hykube. "+
			s.nextPlanTextIfGone(st))
	case gone:
		st.Remove(g, v1alpha1.ReasonDestroyed, "A plan destroyed the infrastructure. "+s.nextPlanText())
	case c.Action == v1alpha1.ActionRead && c.Mode == "":
		st.Drift(g, v1alpha1.ReasonDrifted,
			fmt.Sprintf("A change made outside of Hykube was recorded: %s. The next plan changes it back if the spec says otherwise.", pathsText(c.Drift)))
	case c.Action == v1alpha1.ActionInvoke:
		st.Ready(g, "The action was run.")
	case c.Mode == v1alpha1.ModeData:
		st.Ready(g, "The data source was read.")
	default:
		st.Ready(g, v1alpha1.MessageApplied)
	}
}

// maxPaths is the maximum number of attributes in a condition.
const maxPaths = 20

func pathsText(paths []string) string {
	if len(paths) > maxPaths {
		return strings.Join(paths[:maxPaths], ", ") + ", and more"
	}
	return strings.Join(paths, ", ")
}

// nextPlanText says what the next plan does with an object that has no infrastructure any more.
func (s *stepRun) nextPlanText() string {
	if s.resource != nil && s.resource.Lifecycle.Import != nil {
		ref := s.Change.Object
		return fmt.Sprintf("The next plan imports the resource that %s names. To create a new one instead, %s; to prevent both, %s.", changes.ImportField(ref), changes.RemoveImport(ref), toPrevent(ref))
	}
	return fmt.Sprintf("The next plan creates it again; to prevent that, %s.", toPrevent(s.Change.Object))
}

// toPrevent tells users how to prevent that a plan creates the infrastructure of an object.
func toPrevent(ref v1alpha1.ObjectReference) string {
	if ref.Set != "" && v1alpha1.OwnerKind(ref.Name) == "Module" {
		return fmt.Sprintf("remove it from the files or the inputs of the Module %q", ref.Set)
	}
	if ref.Set != "" {
		return fmt.Sprintf("remove its key from the ResourceSet %q, or lower the count", ref.Set)
	}
	return "delete the object"
}

// nextPlanTextIfGone returns what the next plan does with an object whose infrastructure a refresh did not find.
func (s *stepRun) nextPlanTextIfGone(st *resource.Status) string {
	if st.Imported != "" && s.resource != nil && s.resource.Lifecycle.Import != nil {
		ref := s.Change.Object
		return fmt.Sprintf("The next plan imports the resource that %s names if it exists again, and otherwise creates it; to prevent both, %s.", changes.ImportField(ref), toPrevent(ref))
	}
	return s.nextPlanText()
}

// publishDeposed writes to the object that a deposed instance could not be destroyed. It does not report on the current
// instance.
func (s *stepRun) publishDeposed(ctx context.Context) error {
	c := s.Change
	if c.State == v1alpha1.ChangeDone {
		rec, err := s.Ledger.Instance(ctx, c.Object)
		if err != nil {
			return err
		}
		return resource.WriteStatus(ctx, s.Objects, c.Object, nil, func(st *resource.Status) {
			if st.ReplaceIncomplete() {
				st.Settle(rec)
			}
		})
	}
	return resource.WriteStatus(ctx, s.Objects, c.Object, nil, func(st *resource.Status) {
		st.Stall(c.Object.Generation, v1alpha1.ReasonReplaceIncomplete,
			fmt.Sprintf("An old instance (deposed %s) is still there; the next plan destroys it. %s", c.Deposed,
				s.failureText()))
	})
}

// publishAgain writes the recorded outcome to the object again.
func (s *stepRun) publishAgain(ctx context.Context) error {
	obj, err := s.Objects.Get(ctx, s.Change.Object)
	if errors.Is(err, store.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.resource, err = resource.Of(obj, s.Catalog); err != nil {
		return err
	}
	if s.resource.Mode != v1alpha1.ModeManaged {
		return s.publish(ctx)
	}
	rec, err := s.Ledger.Instance(ctx, s.Change.Object)
	if err != nil {
		return err
	}
	if !rec.Exists() {
		s.after = new(cty.NullVal(s.resource.Schema.Block.ImpliedType()))
	} else {
		s.loadRecorded(rec)
	}
	return s.publish(ctx)
}
