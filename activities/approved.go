package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"

	"github.com/zclconf/go-cty/cty"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"
)

// This file holds a step to what was approved.

// checkStale checks what the change is bound to; rec is nil for what has no state to be bound to.
func (s *stepRun) checkStale(r *resource, rec *ledger.Instance) error {
	c := s.change
	state := c.Preconditions.State
	switch {
	case rec == nil:
	case c.Action == v1alpha1.ActionReplace && !s.destroy && rec.Plan == s.plan.UID && !rec.Exists():
		// The first half took it away.
	case s.attemptRecorded(rec), rec.Plan == s.plan.UID && rec.MovedFrom != "" && c.Preconditions.From != nil:
		// It was this step that moved it.
	default:
		state = rec.Digest()
	}
	switch {
	// A deletion is told before the generation, which it raises.
	case !r.deleting && c.Preconditions.Deleting:
		return &staleError{"the deletion of the object was taken back after the plan was made"}
	case r.deleting != c.Preconditions.Deleting:
		return &staleError{"the object was marked for deletion after the plan was made"}
	case r.ref.Generation != c.Object.Generation:
		return &staleError{fmt.Sprintf("the object was changed after the plan was made (generation %d, planned %d)", r.ref.Generation, c.Object.Generation)}
	// Another plan may have recorded what this one read, and was made from.
	case state != c.Preconditions.State && (c.Refreshed == nil || state != c.Refreshed.Digest() || c.Preconditions.From != nil):
		return &staleError{"the recorded state moved after the plan was made"}
	case r.entry.Package.Version != c.ProviderVersion:
		return &staleError{fmt.Sprintf("the provider is now version %s, and the plan was made with %s", r.entry.Package.Version, c.ProviderVersion)}
	}
	return nil
}

// prior is the state that the step starts from: the recorded one, or what was read while planning, or, after an attempt
// whose outcome is not known, what is there now.
func (s *stepRun) prior(ctx context.Context, l *lease, rec *ledger.Instance, resumed bool) (instance.State, error) {
	if s.change.Action == v1alpha1.ActionReplace && !s.destroy {
		return l.Null(), nil
	}
	from := &rec.State
	if s.change.Refreshed != nil && !s.attemptRecorded(rec) {
		from = s.change.Refreshed
	}
	prior, err := l.Load(ctx, from)
	s.scope.noteSecretState(l.Schema.Block, prior)
	if err != nil || !resumed {
		return prior, err
	}
	prior, _, err = l.Read(ctx, prior)
	return prior, err
}

// planAgain asks the provider once more, now that all values are known, and refuses anything but what was approved.
func (s *stepRun) planAgain(v *evaluator, r *resource, l *lease, prior instance.State) (*instance.Planned, instance.Config, error) {
	c := s.change
	if open, err := v.holds(r, preconditions, cty.NilVal); err != nil || open {
		return nil, instance.Config{}, cmp.Or(err, fmt.Errorf("a value that a precondition of %s refers to is still not known", c.Address))
	}
	config, err := v.evaluate(r, prior)
	if err != nil {
		return nil, config, err
	}
	if plain, _ := config.Effective.UnmarkDeep(); !plain.IsWhollyKnown() {
		return nil, config, fmt.Errorf("a value that %s refers to is still not known", c.Address)
	}
	config.PlannedPrivate = c.PlannedPrivate
	prior.Tainted = false // the first half of the replace took the tainted instance away
	p, diags, err := l.Plan(v.ctx, prior, config, false)
	if err != nil {
		return nil, config, err
	}
	s.warnings = warningsOf(diags)
	s.scope.noteSecretAttributes(r.schema.Block, p.Value)
	approved := c.Action
	if approved == v1alpha1.ActionReplace {
		approved = v1alpha1.ActionCreate
	}
	if p.Action != approved && !(approved == v1alpha1.ActionUpdate && p.Action == v1alpha1.ActionNoOp) {
		return nil, config, &staleError{fmt.Sprintf("with all values known the provider would %s, and %s was approved", p.Action, approved)}
	}
	ty := r.schema.Block.ImpliedType()
	promised, err := ctymsgpack.Unmarshal(c.Planned, ty)
	if err != nil {
		return nil, config, fmt.Errorf("decode planned value of %s: %w", c.Address, err)
	}
	if errs := plan.CheckCompatible(r.schema.Block, promised, p.Value); len(errs) > 0 {
		return nil, config, &staleError{fmt.Sprintf("with all values known the provider plans something other than was approved: %v", errors.Join(errs...))}
	}
	return p, config, nil
}
