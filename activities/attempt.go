package activities

import (
	"context"
	"errors"
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"

	"github.com/zclconf/go-cty/cty"
)

// This file has what an attempt at a step finds of earlier ones: of the same step, cut off when a server stopped, or of another
// plan.

// outcomeRecorded says whether an earlier attempt made the step and recorded its outcome, and only the change does not know.
func (s *stepRun) outcomeRecorded(rec *ledger.Instance) bool {
	if s.begun && removes(s.change) && !rec.Exists() && rec.Intent == nil {
		return true // nothing is recorded of what was destroyed, not even by whom
	}
	return rec.Intent == nil && rec.LastOutcome.Of(s.plan.UID, s.change.Index, s.destroy) && !rec.LastOutcome.Failed
}

// failureRecorded says whether an earlier attempt ended in an error and left something of what it was to create.
func (s *stepRun) failureRecorded(rec *ledger.Instance) bool {
	return rec.Intent == nil && rec.LastOutcome.Of(s.plan.UID, s.change.Index, s.destroy) && rec.LastOutcome.Failed
}

// finishRecorded ends a step that an earlier attempt made, with what that may not have come to.
func (s *stepRun) finishRecorded(ctx context.Context, r *resource, rec *ledger.Instance) error {
	s.loadRecorded(rec)
	if s.destroy || s.after == nil {
		return nil
	}
	defer s.openScope(ctx, r)()
	return s.checkPostconditions(&evaluator{ctx: ctx, scope: s.scope}, rec, r, *s.after)
}

// attemptRecorded says whether an earlier attempt recorded something that no generation of the spec asked for: what a call that
// failed left, or what was read while planning.
func (s *stepRun) attemptRecorded(rec *ledger.Instance) bool {
	return s.begun && rec.Plan == s.plan.UID && rec.Object.Generation == 0
}

// loadRecorded takes the outcome from the record. When its schema moved on, the object keeps what it shows.
func (s *stepRun) loadRecorded(rec *ledger.Instance) {
	s.after = nil
	if !rec.Exists() {
		return
	}
	if v, err := instance.Recorded(&rec.State, s.resource.schema); err == nil {
		s.after = &v
	}
}

// takesOverIntent says whether the step goes on where another plan gave up: what that left is looked at before anything is done. A
// create can't be, and stays with the person who deleted the object.
func (s *stepRun) takesOverIntent(ctx context.Context, rec *ledger.Instance) (bool, error) {
	over, err := s.over(ctx, rec.Intent)
	if err != nil {
		return false, err
	}
	if over && (rec.Intent.Action != v1alpha1.ActionCreate || s.change.Importing != nil || s.change.Action == v1alpha1.ActionDelete || s.change.Action == v1alpha1.ActionForget) {
		return true, nil
	}
	return false, &staleError{"another plan is changing it, or was when the server stopped"}
}

// existsDespiteThrottle looks, before a create is tried again that the provider's API is said to have turned away, whether the instance is
// there all the same; there is an *unknownError then. It can be told only where the plan knows the identity that the instance
// will have. Elsewhere what the API said has to do.
func (s *stepRun) existsDespiteThrottle(ctx context.Context, l *lease, p *instance.Planned) (there, err error) {
	if !s.retried || p.Identity == cty.NilVal || p.Identity.IsNull() || !p.Identity.IsWhollyKnown() {
		return nil, nil
	}
	_, _, err = l.Import(ctx, instance.ImportBy{Identity: p.Identity})
	switch {
	case err == nil:
		return &unknownError{fmt.Errorf("the provider said that its create was turned away (%s), and yet something with that identity exists; look whether it is %s before anything else is done",
			s.change.Message, s.change.Address)}, nil
	case transient(err):
		return nil, &retryError{err}
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, nil // there is nothing, or the provider can't tell
}

// over reports whether the plan that left an intent behind has ended: its outcome is unknown, and no step works on it.
func (a *Activities) over(ctx context.Context, i *ledger.Intent) (bool, error) {
	c, err := a.Ledger.Change(ctx, i.Plan, i.Change)
	if errors.Is(err, ledger.ErrNotFound) {
		return true, nil // the plan was deleted
	}
	return err == nil && c.State != v1alpha1.ChangePending && c.State != v1alpha1.ChangeRunning, err
}
