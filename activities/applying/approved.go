package applying

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"

	"github.com/zclconf/go-cty/cty"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
)

// checkApproved refuses a configuration that is not what the plan was approved with, as far as that was known.
func (s *stepRun) checkApproved(r *resource.Resource, config cty.Value) error {
	promised, err := ctymsgpack.Unmarshal(s.Change.Planned, r.Schema.Block.ImpliedType())
	if err == nil {
		promised, err = instance.Remark(promised, s.Change.PlannedSensitive)
	}
	if err != nil {
		return fmt.Errorf("decode planned value of %s: %w", s.Change.Address, err)
	}
	config = plan.WithoutWriteOnly(r.Schema.Block, config) // which may be another each time, and was not stored
	if errs := plan.CheckCompatible(r.Schema.Block, promised, config); len(errs) > 0 {
		return changes.Stale("with all values known, the arguments differ from the approved ones: %v", errors.Join(errs...))
	}
	return nil
}

// This file holds a step to what was approved.

// prior is the state that the step starts from: the recorded one, or what was read while planning, or, after an attempt
// whose outcome is not known, what is there now.
func (s *stepRun) prior(ctx context.Context, l *scope.Lease, rec *ledger.Instance, resumed bool) (instance.State, error) {
	if s.Change.Action == v1alpha1.ActionReplace && !s.Destroy {
		return l.Null(), nil
	}
	from := &rec.State
	if s.Change.Refreshed != nil && !s.AttemptRecorded(rec) {
		from = s.Change.Refreshed
	}
	prior, err := l.Load(ctx, from)
	s.scope.NoteSecretState(l.Schema.Block, prior)
	if err != nil || !resumed {
		return prior, err
	}
	prior, _, err = l.Read(ctx, prior)
	return prior, err
}

// planAgain asks the provider once more, now that all values are known, and refuses anything but what was approved.
func (s *stepRun) planAgain(v *scope.Evaluator, r *resource.Resource, l *scope.Lease, prior instance.State) (*instance.Planned, instance.Config, error) {
	c := s.Change
	if open, err := v.Holds(r, resource.Preconditions, cty.NilVal); err != nil || open {
		return nil, instance.Config{}, cmp.Or(err, fmt.Errorf("a value that a precondition of %s refers to is still not known", c.Address))
	}
	config, err := v.Config(r, prior)
	if err != nil {
		return nil, config, err
	}
	if plain, _ := config.Effective.UnmarkDeep(); !plain.IsWhollyKnown() {
		return nil, config, fmt.Errorf("a value that %s refers to is still not known", c.Address)
	}
	config.PlannedPrivate = c.PlannedPrivate
	prior.Tainted = false // the first half of the replace took the tainted instance away
	p, diags, err := l.Plan(v.Ctx, prior, config, false)
	if err != nil {
		return nil, config, err
	}
	s.warnings = diag.Warnings(diags)
	s.scope.NoteSecretAttributes(r.Schema.Block, p.Value)
	approved := c.Action
	if approved == v1alpha1.ActionReplace {
		approved = v1alpha1.ActionCreate
	}
	if p.Action != approved && !(approved == v1alpha1.ActionUpdate && p.Action == v1alpha1.ActionNoOp) {
		return nil, config, changes.Stale("with all values known, the provider would %s, and %s was approved", p.Action, approved)
	}
	ty := r.Schema.Block.ImpliedType()
	promised, err := ctymsgpack.Unmarshal(c.Planned, ty)
	if err != nil {
		return nil, config, fmt.Errorf("decode planned value of %s: %w", c.Address, err)
	}
	if errs := plan.CheckCompatible(r.Schema.Block, promised, p.Value); len(errs) > 0 {
		return nil, config, changes.Stale("with all values known, the provider's plan differs from the approved one: %v", errors.Join(errs...))
	}
	return p, config, nil
}

// checkSession refuses a session with another ProviderConfig than the plan was made with, or with one that was changed since: the approval
// covers the arguments of the provider, too.
func (s *stepRun) checkSession(ctx context.Context, p *session.Session) error {
	c := s.Change
	if p.ConfigName() != c.ProviderConfig {
		return changes.Stale("it would use the ProviderConfig %q, but the plan uses %q", p.ConfigName(), c.ProviderConfig)
	}
	if p.Config == nil || c.ConfigVersion == "" {
		return nil
	}
	outside, known := s.scope.ExternalVersion(ctx, catalog.References(p.Config))
	if known && scope.VersionOfConfig(p.Config, outside) != c.ConfigVersion {
		return changes.ConfigChanged(p.Config.Name)
	}
	return nil
}

// replaceable refuses to begin a replacement with a ProviderConfig that is being deleted: its new instance is something new. It is asked
// before anything is destroyed. A replacement that is under way keeps its ProviderConfig.
func (s *stepRun) replaceable(ctx context.Context) error {
	c := s.Change
	if c.Action != v1alpha1.ActionReplace || c.HalfDone || c.ProviderConfig == "" {
		return nil
	}
	cfg, err := s.Configs.Get(ctx, c.Object.Namespace, c.ProviderConfig)
	if err != nil {
		return err
	}
	if cfg == nil {
		return scope.BeingDeleted(fmt.Sprintf("the ProviderConfig %q", c.ProviderConfig))
	}
	if what, err := s.Configs.Leaving(ctx, cfg); err != nil || what != "" {
		return cmp.Or(err, scope.BeingDeleted(what))
	}
	return nil
}
