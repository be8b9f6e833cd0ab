package applying

import (
	"context"
	"fmt"

	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"

	"github.com/zclconf/go-cty/cty"
)

// This file has what an attempt at a step finds of earlier ones: of the same step, cut off when a server stopped, or of another
// plan.

// finishRecorded ends a step that an earlier attempt made, with what that may not have come to.
func (s *stepRun) finishRecorded(ctx context.Context, r *resource.Resource, rec *ledger.Instance) error {
	s.loadRecorded(rec)
	if s.Destroy || s.after == nil {
		return nil
	}
	defer s.openScope(ctx, r)()
	return s.checkPostconditions(&scope.Evaluator{Ctx: ctx, Scope: s.scope}, rec, r, *s.after)
}

// loadRecorded takes the outcome from the record. When its schema moved on, the object keeps what it shows.
func (s *stepRun) loadRecorded(rec *ledger.Instance) {
	s.after = nil
	if !rec.Exists() {
		return
	}
	if v, err := instance.Recorded(&rec.State, s.resource.Schema); err == nil {
		s.after = &v
	}
}

// existsDespiteThrottle looks, before a create is tried again that the provider's API is said to have turned away, whether the instance is
// there all the same; there is an *unknownError then. It can be told only where the plan knows the identity that the instance
// will have. Elsewhere what the API said has to do.
func (s *stepRun) existsDespiteThrottle(ctx context.Context, l *scope.Lease, p *instance.Planned) (there, err error) {
	if !s.retried || p.Identity == cty.NilVal || p.Identity.IsNull() || !p.Identity.IsWhollyKnown() {
		return nil, nil
	}
	_, _, err = l.Import(ctx, instance.ImportBy{Identity: p.Identity})
	switch {
	case err == nil:
		return &unknownError{fmt.Errorf("the API throttled the create (%s), but a resource with the planned identity exists; check whether it is %s before you do anything else",
			s.Change.Message, s.Change.Address)}, nil
	case session.Transient(err):
		return nil, &RetryError{err}
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, nil // there is nothing, or the provider can't tell
}
