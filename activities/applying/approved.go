package applying

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"

	"github.com/zclconf/go-cty/cty"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
)

// This file checks that a step is the approved one.

// acquire returns a session for a call with an approved configuration. It checks the rights and the session after the
// wait for it. The caller releases the session.
func (s *stepRun) acquire(ctx context.Context, r *resource.Resource, config cty.Value) (*session.Session, error) {
	planned, err := s.planned(r)
	if err != nil {
		return nil, err
	}
	if err := checkApproved(r, planned, config); err != nil {
		return nil, err
	}
	if s.Change.Mode == v1alpha1.ModeAction { // planning refuses other secrets of a data source
		if err := s.checkOrigins(ctx, r, planned, config); err != nil {
			return nil, err
		}
	}
	configured, err := s.scope.Acquire(ctx, r, session.ApplySlotAndRate)
	if err != nil {
		return nil, s.unacquired(err)
	}
	err = s.checkAfterWait(ctx, nil)
	if err == nil {
		err = s.checkSession(ctx, configured)
	}
	if err != nil {
		configured.Release()
		return nil, err
	}
	return configured, nil
}

// unacquired returns the error of a step whose provider could not be configured.
func (s *stepRun) unacquired(err error) error {
	if other, ok := errors.AsType[*scope.OtherArgumentsError](err); ok {
		return changes.ArgumentsChanged(other.Name, other.Config)
	}
	return s.retryable(err, true)
}

// checkSecrets returns a *StaleError if the step would record what a provider returned with other Secrets than those of
// now.
func (s *stepRun) checkSecrets(ctx context.Context) error {
	return changes.CheckSecrets(ctx, s.NewScope(s.Plan, s.Change.Object.Namespace, nil), s.Change)
}

// checkApproved returns a *StaleError if the configuration contradicts the known values of the approved plan.
func checkApproved(r *resource.Resource, planned, config cty.Value) error {
	config = plan.WithoutWriteOnly(r.Schema.Block, config) // these may differ each time, and were not stored
	if errs := plan.CheckCompatible(r.Schema.Block, planned, config); len(errs) > 0 {
		return changes.Stale(v1alpha1.StaleInconsistentPlan,
			"with all values known, the arguments differ from the approved ones: %v", errors.Join(errs...))
	}
	return nil
}

// checkOrigins returns a *StaleError if an argument has a secret of an object that the approved plan did not give to
// it, and a user who caused the change, or wrote the arguments of the provider, may not read the secret. Planning does
// not know the nested attributes of a value that it does not know.
func (s *stepRun) checkOrigins(ctx context.Context, r *resource.Resource, planned, config cty.Value) error {
	further := *s.Change
	further.Discloses = changes.UnplannedOrigins(s.Change, r.Schema.Block, planned, config)
	if len(further.Discloses) == 0 {
		return nil
	}
	further.Contributors = contributor.Merge(further.Contributors, further.ProviderWriters)
	who, missing, err := changes.LackSecretRights(ctx, s.Sources, s.Plan, &further)
	if err != nil || len(missing) == 0 {
		return err
	}
	of := lang.Origin{Address: lang.Address(further.Discloses[0])}
	return changes.Stale(v1alpha1.StaleInconsistentPlan,
		"with all values known, an argument has a secret of %s, which the approved plan does not "+
			"give to it, and the user %q may not read it", of.Text(s.Change.Object.Namespace), who.Username)
}

// planned returns the planned value of the approved change, with the marks of its secrets.
func (s *stepRun) planned(r *resource.Resource) (planned cty.Value, err error) {
	planned, err = ctymsgpack.Unmarshal(s.Change.Planned, r.Schema.Block.ImpliedType())
	if err == nil {
		planned, err = instance.Remark(planned, s.Change.PlannedSensitive)
	}
	if err != nil {
		return cty.NilVal, fmt.Errorf("decode planned value of %s: %w", s.Change.Address, err)
	}
	return planned, nil
}

// prior returns the state before the step: the recorded state or the one that planning read, or the current one.
func (s *stepRun) prior(ctx context.Context, l *scope.Lease, rec *ledger.Instance,
	resumed bool) (instance.State, error) {
	if s.Change.Action == v1alpha1.ActionReplace && !s.Destroy {
		return l.Null(), nil
	}
	from := &rec.State
	if s.Change.Refreshed != nil && !s.AttemptRecorded(rec) {
		from = s.Change.Refreshed
	}
	approved, err := l.Load(ctx, from)
	s.scope.NoteSecretState(l.Schema.Block, approved)
	if err != nil {
		return approved, err
	}
	return s.current(ctx, l, &rec.State, approved, resumed)
}

// unread reports whether no read used the provider's current arguments: neither the recorded state nor the plan has
// them, as after a change of a Secret. With them, the recorded ID may name no resource, and providers report the
// destroy of a missing resource as a success.
func (s *stepRun) unread(l *scope.Lease, rec *ledger.State) bool {
	return rec.Exists() && l.HasOtherArguments(rec) && ledger.Configuration(l.Digest) != s.Change.Configuration
}

// current returns the state of a resource before the step. It reads the resource for a destroy, if the outcome of an
// earlier attempt is unknown, and if the provider's arguments may lead to another account than the approved ones. It
// returns a *StaleError if the resource is not the approved one.
func (s *stepRun) current(ctx context.Context, l *scope.Lease, rec *ledger.State, approved instance.State,
	resumed bool) (instance.State, error) {
	elsewhere := l.Rotated || s.unread(l, rec)
	if !approved.Exists() || !elsewhere && !resumed && !s.Destroy {
		return approved, nil
	}
	found, _, err := l.Read(ctx, approved)
	s.scope.NoteSecretState(l.Schema.Block, found)
	if err == nil && elsewhere {
		err = s.checkRead(ctx, l, approved, found)
	}
	switch {
	case err != nil:
		return found, err
	case elsewhere && !found.Exists():
		return found, changes.Stale(v1alpha1.StaleProviderConfigChanged,
			"the arguments of the ProviderConfig %q changed after the plan was made, and with the new ones the provider does not find the resource", l.ConfigName())
	case !found.Exists(), resumed && !s.Destroy: // the earlier attempt may have changed the resource
		return found, nil
	}
	compared := allAttributes
	if resumed || s.follows {
		compared = argumentsAlone
	}
	if names := compared.differences(l.Schema.Block, approved, found, s.Change.Unsettled); len(names) > 0 {
		return found, notApproved(l, names, elsewhere)
	}
	return found, nil
}

// planAgain makes the provider plan again with all values known. It returns an error if the result differs from the
// approved plan.
func (s *stepRun) planAgain(v *scope.Evaluator, r *resource.Resource, l *scope.Lease,
	prior instance.State) (*instance.Planned, instance.Config, error) {
	c := s.Change
	if open, err := v.Holds(r, resource.Preconditions, cty.NilVal); err != nil || open {
		return nil, instance.Config{},
			cmp.Or(err, fmt.Errorf("a value that a precondition of %s refers to is still not known", c.Address))
	}
	config, err := v.Config(r, prior)
	if err != nil {
		return nil, config, err
	}
	if !scope.Known(config.Effective) {
		return nil, config, fmt.Errorf("a value that %s refers to is still not known", c.Address)
	}
	marked, err := s.planned(r)
	if err != nil {
		return nil, config, err
	}
	if err := s.checkOrigins(v.Ctx, r, marked, config.Written); err != nil {
		return nil, config, err
	}
	planned := lang.WithoutMarks(marked)
	config.PlannedPrivate, config.Validated = c.PlannedPrivate, c.Validated
	if f := c.Final; f != nil && f.Configuration.Same(ledger.Configuration(l.Digest)) {
		config.Final = &instance.Planned{Action: v1alpha1.ActionCreate, Value: planned, Private: c.PlannedPrivate,
			Validated: c.Validated, Final: true}
		if config.Final.Identity, err = l.UnmarshalPlannedIdentity(f.Identity); err != nil {
			return nil, config, err
		}
	}
	prior.Tainted = false // the first half of the replace removed the tainted instance
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
		return nil, config, changes.Stale(v1alpha1.StaleInconsistentPlan,
			"with all values known, the provider would %s, and %s was approved", p.Action, approved)
	}
	if errs := plan.CheckCompatible(r.Schema.Block, planned, p.Value); len(errs) > 0 {
		return nil, config, changes.Stale(v1alpha1.StaleInconsistentPlan,
			"with all values known, the provider's plan differs from the approved one: %v", errors.Join(errs...))
	}
	s.renewed = changes.Renewed(c, planned)
	return p, config, nil
}

// checkSession returns a *StaleError if the session's ProviderConfig is not the planned one or has changed since
// planning. The approval also covers the provider's arguments.
func (s *stepRun) checkSession(ctx context.Context, p *session.Session) error {
	c := s.Change
	if err := changes.CheckConfigName(c, p.ConfigName()); err != nil {
		return err
	}
	if p.Config == nil || c.ConfigVersion == "" {
		return nil
	}
	outside, known := s.scope.ExternalVersion(ctx, scope.Lasting(catalog.References(p.Config)))
	if known && scope.VersionOfConfig(p.Config, outside) != c.ConfigVersion {
		return changes.ConfigChanged(p.Config.Name)
	}
	// A plan that approved itself because of an earlier approval of the arguments has nobody's for another value.
	if a := c.Account; a != nil && a.Approved && p.Rotated && s.creating() && changes.ApprovedItself(s.Plan) {
		return changes.ConfigChanged(p.Config.Name)
	}
	return nil
}

// checkReplaceable rejects the start of a replacement whose ProviderConfig is being deleted, because the new instance
// would be a new use. It must be called before anything is destroyed. A replacement in progress may continue.
func (s *stepRun) checkReplaceable(ctx context.Context) error {
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
