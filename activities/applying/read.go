package applying

import (
	"context"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
)

// readData reads a data source that planning could not read.
func (s *stepRun) readData(ctx context.Context) error {
	c, r := s.Change, s.resource
	ctx, done := s.active.withCancel(ctx)
	defer done()
	defer s.openScope(ctx, r)()
	evaluator := &scope.Evaluator{Ctx: ctx, Scope: s.scope}
	config, _, err := evaluator.Arguments(r)
	if err != nil {
		return s.retryable(err, true)
	}
	configured, err := s.acquire(ctx, r, (&instance.DataSource{Schema: r.Schema}).Unread(config))
	if err != nil {
		return err
	}
	defer configured.Release()
	source, err := s.scope.DataSource(ctx, configured, r)
	if err != nil {
		return err
	}
	source.Deferral = false // the apply cannot defer it further
	v, diags, err := source.Read(ctx, config)
	s.warnings = append(s.warnings, diag.Warnings(diags)...)
	if err != nil {
		return s.retryable(err, true)
	}
	if _, err := evaluator.Holds(r, resource.Postconditions, lang.MarkSensitive(r.Schema.Block, v)); err != nil {
		return err // its dependants are skipped
	}
	if err := s.judge(ctx, v); err != nil {
		return err
	}
	if err := changes.RecordData(ctx, s.Sources, s.Plan, c, r, v); err != nil {
		return err
	}
	s.after = &v
	return nil
}
