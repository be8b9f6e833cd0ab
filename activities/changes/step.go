package changes

import (
	"context"
	"errors"
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
)

// StaleError says that what a change is bound to moved after the plan was made.
type StaleError struct{ What string }

func (e *StaleError) Error() string { return e.What + "; make a new plan" }

// Stale returns a *StaleError.
func Stale(format string, args ...any) error { return &StaleError{What: fmt.Sprintf(format, args...)} }

// Step is one step of a change: all of it, or one half of a replace.
type Step struct {
	Plan   *v1alpha1.Plan
	Change *ledger.Change
	// Destroy is true for the half of a replace that destroys, and for a delete.
	Destroy bool
	// Begun is true when an earlier attempt began the change, and did not record how it ended.
	Begun bool
}

// CheckStale checks what the change is bound to; rec is nil for what has no state to be bound to.
func (s Step) CheckStale(r *resource.Resource, rec *ledger.Instance) error {
	c := s.Change
	state := c.Preconditions.State
	switch {
	case rec == nil:
	case c.Action == v1alpha1.ActionReplace && !s.Destroy && rec.Plan == s.Plan.UID && !rec.Exists():
		// The first half took it away.
	case s.AttemptRecorded(rec), rec.Plan == s.Plan.UID && rec.MovedFrom != "" && c.Preconditions.From != nil:
		// It was this step that moved it.
	default:
		state = rec.Digest()
	}
	switch {
	// A deletion is told before the generation, which it raises.
	case !r.Deleting && c.Preconditions.Deleting:
		return Stale("the deletion of the object was taken back after the plan was made")
	case r.Deleting != c.Preconditions.Deleting:
		return Stale("the object was marked for deletion after the plan was made")
	case r.Ref.Generation != c.Object.Generation:
		return Stale("the object was changed after the plan was made (generation %d, planned %d)", r.Ref.Generation, c.Object.Generation)
	// Another plan may have recorded what this one read, and was made from.
	case state != c.Preconditions.State && (c.Refreshed == nil || state != c.Refreshed.Digest() || c.Preconditions.From != nil):
		return Stale("the recorded state changed after the plan was made")
	case r.Entry.Package.Version != c.ProviderVersion:
		return Stale("the provider is now version %s, and the plan was made with %s", r.Entry.Package.Version, c.ProviderVersion)
	}
	return nil
}

// OutcomeRecorded says whether an earlier attempt made the step and recorded its outcome, and only the change does not know.
func (s Step) OutcomeRecorded(rec *ledger.Instance) bool {
	if s.Begun && Removes(s.Change) && !rec.Exists() && rec.Intent == nil {
		return true // nothing is recorded of what was destroyed, not even by whom
	}
	return rec.Intent == nil && rec.LastOutcome.Of(s.Plan.UID, s.Change.Index, s.Destroy) && !rec.LastOutcome.Failed
}

// FailureRecorded says whether an earlier attempt ended in an error and left something of what it was to create.
func (s Step) FailureRecorded(rec *ledger.Instance) bool {
	return rec.Intent == nil && rec.LastOutcome.Of(s.Plan.UID, s.Change.Index, s.Destroy) && rec.LastOutcome.Failed
}

// AttemptRecorded says whether an earlier attempt recorded something that no generation of the spec asked for: what a call that
// failed left, or what was read while planning.
func (s Step) AttemptRecorded(rec *ledger.Instance) bool {
	return s.Begun && rec.Plan == s.Plan.UID && rec.Object.Generation == 0
}

// TakesOverIntent says whether the step goes on where another plan gave up: what that left is looked at before anything is done. A
// create can't be, and stays with the person who deleted the object.
func (s Step) TakesOverIntent(ctx context.Context, l *ledger.Ledger, rec *ledger.Instance) (bool, error) {
	over, err := IntentAbandoned(ctx, l, rec.Intent)
	if err != nil {
		return false, err
	}
	if over && (rec.Intent.Action != v1alpha1.ActionCreate || s.Change.Importing != nil || s.Change.Action == v1alpha1.ActionDelete || s.Change.Action == v1alpha1.ActionForget) {
		return true, nil
	}
	if over {
		return false, Stale("another plan left the outcome of its create unknown; see the conditions of the object")
	}
	return false, Stale("another plan is changing this resource")
}

// IntentAbandoned reports whether the plan that left an intent behind has ended: its outcome is unknown, and no step works on it.
func IntentAbandoned(ctx context.Context, l *ledger.Ledger, i *ledger.Intent) (bool, error) {
	c, err := l.Change(ctx, i.Plan, i.Change)
	if errors.Is(err, ledger.ErrNotFound) {
		return true, nil // the plan was deleted
	}
	return err == nil && c.State != v1alpha1.ChangePending && c.State != v1alpha1.ChangeRunning, err
}

// Removes says whether the instance of a change has no record once the change is made.
func Removes(c *ledger.Change) bool {
	foundGone := c.Action == v1alpha1.ActionRead && c.Mode == "" && c.Refreshed != nil && !c.Refreshed.Exists()
	return foundGone || c.Action == v1alpha1.ActionDelete || c.Action == v1alpha1.ActionForget
}

// ConfigChanged returns the *StaleError of a ProviderConfig that says something else than when the plan was made.
func ConfigChanged(name string) error {
	return Stale("the ProviderConfig %q, or a ConfigMap or Secret that it refers to, was changed after the plan was made", name)
}
