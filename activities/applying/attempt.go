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

// This file handles the results of earlier attempts: of the same step, if a server stopped, or of another plan.

// finishRecorded finishes a step whose outcome an earlier attempt recorded, with the checks that may be missing.
func (s *stepRun) finishRecorded(ctx context.Context, r *resource.Resource, rec *ledger.Instance) error {
	s.loadRecorded(rec)
	if s.Destroy || s.after == nil {
		return nil
	}
	defer s.openScope(ctx, r)()
	return s.checkPostconditions(&scope.Evaluator{Ctx: ctx, Scope: s.scope}, rec, r, *s.after)
}

// loadRecorded sets the result from the record. If the schema version has changed, the object keeps its status.
func (s *stepRun) loadRecorded(rec *ledger.Instance) {
	s.after = nil
	if !rec.Exists() {
		return
	}
	if v, err := instance.Recorded(&rec.State, s.resource.Schema); err == nil {
		s.after = &v
	}
}

// existsDespiteThrottle checks, before the retry of a throttled create, whether the instance exists nevertheless. If
// so, exists is an *unknownError. It can only check if the plan knows the identity of the new instance. Otherwise it
// relies on the API's answer.
func (s *stepRun) existsDespiteThrottle(ctx context.Context, l *scope.Lease, p *instance.Planned) (exists, err error) {
	if !s.retried || p.Identity == cty.NilVal || p.Identity.IsNull() || !p.Identity.IsWhollyKnown() {
		return nil, nil
	}
	_, _, err = l.Import(ctx, instance.ImportBy{Identity: p.Identity})
	switch {
	case err == nil:
		return &unknownError{fmt.Errorf(
			"the API throttled the create (%s), but a resource with the planned identity exists; it may be %s",
			s.Change.Message, s.Change.Address)}, nil
	case session.Transient(err):
		return nil, &RetryError{err}
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, nil // the instance does not exist, or the provider cannot tell
}
