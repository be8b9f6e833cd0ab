package applying

import (
	"context"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
)

// readData reads a data source that could not be read when the plan was made.
func (s *stepRun) readData(ctx context.Context) error {
	c, r := s.Change, s.resource
	ctx, done := s.active.withCancel(ctx)
	defer done()
	defer s.openScope(ctx, r)()
	look := &scope.Evaluator{Ctx: ctx, Scope: s.scope}
	config, _, err := look.Arguments(r)
	if err != nil {
		return s.retryable(err, true)
	}
	if err := s.checkApproved(r, (&instance.DataSource{Schema: r.Schema}).Unread(config)); err != nil {
		return err
	}
	loan, err := s.scope.Acquire(ctx, r, session.SlotAndRate)
	if err != nil {
		return s.retryable(err, true)
	}
	defer loan.Release()
	if loan.ConfigName() != c.ProviderConfig {
		return changes.Stale("it would be read with the ProviderConfig %q, and the plan was made with %q", loan.ConfigName(), c.ProviderConfig)
	}
	if err := s.checkProviderConfig(ctx, loan.Config); err != nil {
		return err
	}
	source, err := s.scope.DataSource(loan, r)
	if err != nil {
		return err
	}
	source.Deferral = false // there is no later any more
	v, diags, err := source.Read(ctx, config)
	s.warnings = append(s.warnings, diag.Warnings(diags)...)
	if err != nil {
		return s.retryable(err, true)
	}
	if _, err := look.Holds(r, resource.Postconditions, lang.MarkSensitive(r.Schema.Block, v)); err != nil {
		return err // and nobody builds on it
	}
	if err := changes.RecordData(ctx, s.Sources, s.Plan.UID, c, r, v); err != nil {
		return err
	}
	s.after = &v
	return nil
}
