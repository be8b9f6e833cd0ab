package activities

import (
	"context"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
)

// This file has what an attempt at a step finds of earlier ones: of the same step, cut off when a server stopped, or of another
// plan.

// madeBefore says whether an earlier attempt made the step and recorded its outcome, and only the change does not know.
func (s *stepRun) madeBefore(rec *ledger.Instance) bool {
	if s.begun && (s.change.Action == v1alpha1.ActionDelete || s.change.Action == v1alpha1.ActionForget) && !rec.Exists() && rec.Intent == nil {
		return true // nothing is recorded of what was destroyed, not even by whom
	}
	return rec.Intent == nil && rec.Made.Of(s.plan.UID, s.change.Index, s.destroy) && !rec.Made.Broken
}

// brokeBefore says whether an earlier attempt ended in an error and left something of what it was to create.
func (s *stepRun) brokeBefore(rec *ledger.Instance) bool {
	return rec.Intent == nil && rec.Made.Of(s.plan.UID, s.change.Index, s.destroy) && rec.Made.Broken
}

// remember ends a step that an earlier attempt made, with what that may not have come to.
func (s *stepRun) remember(ctx context.Context, r *resource, rec *ledger.Instance) error {
	s.recall(rec)
	if s.destroy || s.after == nil {
		return nil
	}
	scope := s.newScope(s.plan, r.ref.Namespace, nil)
	s.scope = scope
	defer func() { s.warnUnclosed(ctx, scope.close(context.WithoutCancel(ctx))) }()
	return s.fulfilled(&look{ctx: ctx, scope: scope}, rec, r, *s.after)
}

// triedBefore says whether an earlier attempt recorded something that no generation of the spec asked for: what a call that
// failed left, or what was read while planning.
func (s *stepRun) triedBefore(rec *ledger.Instance) bool {
	return s.begun && rec.Plan == s.plan.UID && rec.Object.Generation == 0
}

// recall takes the outcome from the record. When its schema moved on, the object keeps what it shows.
func (s *stepRun) recall(rec *ledger.Instance) {
	s.after = nil
	if !rec.Exists() {
		return
	}
	if v, err := instance.Recorded(&rec.State, s.resource.schema); err == nil {
		s.after = &v
	}
}

// inherits says whether the step goes on where another plan gave up: what that left is looked at before anything is done. A
// create can't be, and stays with the person who deleted the object.
func (s *stepRun) inherits(ctx context.Context, rec *ledger.Instance) (bool, error) {
	over, err := s.over(ctx, rec.Intent)
	if err != nil {
		return false, err
	}
	if over && (rec.Intent.Action != v1alpha1.ActionCreate || s.change.Importing != nil || s.change.Action == v1alpha1.ActionDelete || s.change.Action == v1alpha1.ActionForget) {
		return true, nil
	}
	return false, &staleError{"another plan is changing it, or was when the server stopped"}
}
