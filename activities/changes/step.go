package changes

import (
	"context"
	"errors"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/resourceset"
)

// Step is one step of a change: the whole change, or one half of a replace.
type Step struct {
	Plan   *v1alpha1.Plan
	Change *ledger.Change
	// Destroy is true for a delete, and for the half of a replace that destroys.
	Destroy bool
	// Begun is true if an earlier attempt began the change and did not record its outcome.
	Begun bool
}

// CheckStale checks the preconditions of the change. rec is nil for an object without recorded state.
func (s Step) CheckStale(r *resource.Resource, rec *ledger.Instance) error {
	c := s.Change
	state := c.Preconditions.State
	switch {
	case rec == nil:
	case c.Action == v1alpha1.ActionReplace && !s.Destroy && rec.Plan == s.Plan.UID && !rec.Exists():
		// The first half removed the instance.
	case s.AttemptRecorded(rec), rec.Plan == s.Plan.UID && rec.MovedFrom != "" && c.Preconditions.From != nil:
		// This step moved the record.
	default:
		state = rec.Digest()
	}
	if err := s.CheckObject(r.Deleting, r.Ref.Generation, resourceset.Content(r.Object)); err != nil {
		return err
	}
	switch {
	// Another plan may have recorded the state that this plan read.
	case state != c.Preconditions.State && (c.Refreshed == nil || state != c.Refreshed.Digest() ||
		c.Preconditions.From != nil):
		return ErrStateChanged
	}
	if err := s.checkFailedCreate(r); err != nil {
		return err
	}
	if from := moveTo(r); from != "" && c.Action == v1alpha1.ActionCreate && c.Preconditions.From == nil &&
		v1alpha1.InModule(r.Ref.Name) {
		return Stale(v1alpha1.StaleObjectChanged, "the infrastructure of %s moves to it since the plan was made", from)
	}
	return CheckProvider(c, r)
}

// moveTo returns the address from which infrastructure moves to a resource; "" if none does. For a resource of a
// Module, that depends on what is recorded, and is therefore no part of its content.
func moveTo(r *resource.Resource) string {
	if r.Lifecycle.Moved == nil {
		return ""
	}
	return r.Lifecycle.Moved.From
}

// checkFailedCreate returns a *StaleError if the change creates a resource, and another plan's create of the object
// failed after the plan was made and may have made one. The approver of this plan did not know that.
func (s Step) checkFailedCreate(r *resource.Resource) error {
	c := s.Change
	if c.Action != v1alpha1.ActionCreate && (c.Action != v1alpha1.ActionReplace || s.Destroy) {
		return nil
	}
	if failed := resource.StatusOf(r.Object).FailedCreate; failed != "" && failed != c.FailedCreate {
		return Stale(v1alpha1.StaleCreateUnknown,
			"a create of it failed %s, after this plan was made, and may nevertheless have made the resource", failed)
	}
	return nil
}

// CheckObject returns a *StaleError if the object of the change was changed, or marked for deletion, after the plan was
// made. The arguments are those of the object now; see resourceset.Content.
func (s Step) CheckObject(deleting bool, generation int64, content string) error {
	c := s.Change
	switch {
	// Report a deletion before the generation, which a deletion increments.
	case !deleting && c.Preconditions.Deleting:
		return Stale(v1alpha1.StaleUndeleted, "the deletion of the object was taken back after the plan was made")
	case deleting != c.Preconditions.Deleting:
		return Stale(v1alpha1.StaleObjectDeleted, "the object was marked for deletion after the plan was made")
	case generation != c.Object.Generation:
		return Stale(v1alpha1.StaleObjectChanged,
			"the object was changed after the plan was made (generation %d, planned %d)", generation,
			c.Object.Generation)
	case content != c.Preconditions.Content:
		return Stale(v1alpha1.StaleObjectChanged, "the %s of the object was changed after the plan was made",
			v1alpha1.OwnerKind(c.Object.Name))
	}
	return nil
}

// OutcomeRecorded reports whether an earlier attempt ran the step and recorded its outcome, but did not update the
// change.
func (s Step) OutcomeRecorded(rec *ledger.Instance) bool {
	if s.Begun && Removes(s.Change) && !rec.Exists() && rec.Intent == nil {
		return true // a destroyed instance has no record
	}
	return rec.Intent == nil && rec.LastOutcome.Of(s.Plan.UID, s.Change.Index, s.Destroy) && !rec.LastOutcome.Failed
}

// FailureRecorded reports whether an earlier attempt's create failed and left a recorded instance.
func (s Step) FailureRecorded(rec *ledger.Instance) bool {
	return rec.Intent == nil && rec.LastOutcome.Of(s.Plan.UID, s.Change.Index, s.Destroy) && rec.LastOutcome.Failed
}

// AttemptRecorded reports whether an earlier attempt recorded a state that no generation of the spec produced: the
// remainder of a failed call, or the state that planning read.
func (s Step) AttemptRecorded(rec *ledger.Instance) bool {
	return s.Begun && rec.Plan == s.Plan.UID && rec.Object.Generation == 0
}

// TakesOverIntent reports whether the step may continue an operation whose intent an ended plan left. The step then
// reads the current state first. A create cannot be read without an ID, so only an import, a delete and a forget may
// follow its intent.
func (s Step) TakesOverIntent(ctx context.Context, l *ledger.Ledger, rec *ledger.Instance) (bool, error) {
	over, err := IntentAbandoned(ctx, l, rec.Intent)
	if err != nil {
		return false, err
	}
	if over && (rec.Intent.Action != v1alpha1.ActionCreate || s.Change.Importing != nil ||
		s.Change.Action == v1alpha1.ActionDelete || s.Change.Action == v1alpha1.ActionForget) {
		return true, nil
	}
	if over {
		return false, ErrCreateUnknown
	}
	return false, ErrPlanRunning
}

// IntentAbandoned reports whether the plan that left an intent has ended, so that the outcome is unknown and no step is
// working on it.
func IntentAbandoned(ctx context.Context, l *ledger.Ledger, i *ledger.Intent) (bool, error) {
	c, err := l.Change(ctx, i.Plan, i.Change)
	if errors.Is(err, ledger.ErrNotFound) {
		return true, nil // the plan was deleted
	}
	return err == nil && c.State != v1alpha1.ChangePending && c.State != v1alpha1.ChangeRunning, err
}

// Removes reports whether the instance of a change has no record after the change.
func Removes(c *ledger.Change) bool {
	return foundGone(c) || c.Action == v1alpha1.ActionDelete || c.Action == v1alpha1.ActionForget
}

// foundGone reports whether planning did not find the recorded infrastructure of a change, which only records that.
func foundGone(c *ledger.Change) bool {
	return c.Action == v1alpha1.ActionRead && c.Mode == "" && c.Refreshed != nil && !c.Refreshed.Exists()
}
