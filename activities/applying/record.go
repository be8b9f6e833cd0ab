package applying

import (
	"context"
	"errors"
	"slices"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
)

// This file has the steps that change records: moves, imports, deposed instances and forgets.

// moveRecord checks the rights of a move, and moves the record of another object to this one. It writes the new record
// before it removes the old one. Between these writes, both describe the same infrastructure, and rec.MovedFrom shows
// that the new one is valid. An earlier attempt or plan may have stopped there.
func (s *stepRun) moveRecord(ctx context.Context, rec *ledger.Instance) error {
	c := s.Change
	if !s.Begun {
		if err := s.checkRights(ctx, rec); err != nil {
			return err
		}
	}
	from, err := s.Ledger.Instance(ctx, *c.Preconditions.From)
	if err != nil {
		return err
	}
	if began := rec.MovedFrom == c.Preconditions.From.UID && rec.Plan == s.Plan.UID; !began && !rec.Living() {
		switch {
		case rec.Intent != nil:
			return changes.ErrPlanRunning
		case from.Digest() != c.Preconditions.FromState || from.Intent != nil:
			return changes.Stale(v1alpha1.StaleStateChanged, "the state of %s changed after the plan was made",
				c.PreviousAddress)
		}
		if err := changes.CheckMovedFrom(ctx, s.Objects, c, s.resource, rec); err != nil {
			return err
		}
		if err := s.addFinalizer(ctx); err != nil {
			return err
		}
		rec.State, rec.Deposed = from.State, from.Deposed
		if c.Refreshed != nil {
			rec.State = *c.Refreshed
			rec.Dependencies, rec.CreateBeforeDestroy = from.Dependencies, from.CreateBeforeDestroy
		}
		rec.Object, rec.Provider, rec.MovedFrom, rec.Plan = c.Object, s.resource.Entry.Name, c.Preconditions.From.UID,
			s.Plan.UID
		rec.ProviderConfig, rec.ProviderVersion = c.ProviderConfig, c.ProviderVersion
		rec.Causes = changes.CausesOf(s.Plan, c)
		rec.Object.Generation = 0 // no generation was applied yet
		if err := s.Ledger.Save(ctx, rec); err != nil {
			return s.conflict(err)
		}
	}
	switch {
	case rec.MovedFrom != c.Preconditions.From.UID:
		return changes.Stale(v1alpha1.StaleStateChanged,
			"the object got infrastructure of its own after the plan was made")
	case from.Intent != nil:
		return changes.Stale(v1alpha1.StalePlanRunning,
			"another plan is changing %s, or left the outcome of a change unknown", c.PreviousAddress)
	}
	if err := s.Ledger.Forget(ctx, from); err != nil {
		return s.conflict(err)
	}
	return s.Objects.RemoveFinalizer(ctx, *c.Preconditions.From)
}

// recordImport records the state that planning imported.
func (s *stepRun) recordImport(ctx context.Context, r *resource.Resource, rec *ledger.Instance) error {
	c := s.Change
	if c.Refreshed == nil {
		return changes.Stale(v1alpha1.StaleStateChanged, "the plan has no recorded state of the resource to import")
	}
	release, err := s.claimImport(ctx, r)
	if err != nil {
		return err
	}
	defer release()
	if err := s.addFinalizer(ctx); err != nil {
		return err
	}
	rec.State = *c.Refreshed
	rec.Object, rec.Provider, rec.Plan, rec.Causes = c.Object, r.Entry.Name, s.Plan.UID, changes.CausesOf(s.Plan, c)
	rec.Type, rec.ProviderConfig, rec.ProviderVersion = r.Address.Type, c.ProviderConfig, c.ProviderVersion
	rec.Dependencies, rec.CreateBeforeDestroy = c.Dependencies, c.CreatesFirst
	rec.Object.Generation = 0 // no generation was applied yet
	rec.Intent = nil          // the import has found what the lost create left
	s.Begun = true
	return s.conflict(s.Ledger.Save(ctx, rec))
}

// forget removes the record of a resource that Hykube stops managing, or that does not exist.
func (s *stepRun) forget(ctx context.Context, rec *ledger.Instance) error {
	rec.State = ledger.State{Type: rec.Type}
	rec.Intent, rec.Plan = nil, s.Plan.UID
	if rec.Living() {
		return s.conflict(s.Ledger.Save(ctx, rec))
	}
	return s.conflict(s.Ledger.Forget(ctx, rec))
}

// vacate makes room in the record for the instance that a create makes. For a replace that creates first, the current
// instance becomes a deposed one. For a resource that planning found gone, its old state goes, because after the create
// nothing may look like its answer. The caller saves the record together with the intent of the create.
func (s *stepRun) vacate(rec *ledger.Instance) error {
	c := s.Change
	switch {
	case !rec.Exists():
		return nil
	case c.Action == v1alpha1.ActionCreate:
		rec.State = ledger.State{Type: rec.Type}
		return nil
	case c.DeposedKey == "":
		return nil
	case rec.FindDeposed(c.DeposedKey) != nil:
		return changes.Stale(v1alpha1.StaleStateChanged, "the record already has a deposed instance with the key %s",
			c.DeposedKey)
	}
	old := rec.State
	if c.Refreshed != nil {
		old = *c.Refreshed
	}
	rec.Deposed = append(rec.Deposed, ledger.Deposed{Key: c.DeposedKey, State: old})
	rec.State = ledger.State{Type: rec.Type}
	return nil
}

func dropDeposed(rec *ledger.Instance, key string) {
	rec.Deposed = slices.DeleteFunc(rec.Deposed, func(d ledger.Deposed) bool { return d.Key == key })
}

// deposedKey returns the key of the step's deposed instance, or "" if the step is about the current one.
func (s *stepRun) deposedKey() string {
	c := s.Change
	if c.Deposed == "" && s.Destroy && c.Action == v1alpha1.ActionReplace && c.CreateBeforeDestroy {
		return c.DeposedKey
	}
	return c.Deposed
}

// destroyDeposed destroys or forgets a deposed instance.
func (s *stepRun) destroyDeposed(ctx context.Context, r *resource.Resource, rec *ledger.Instance, key string) error {
	c := s.Change
	old := rec.FindDeposed(key)
	if old == nil {
		if s.Begun || c.Deposed == "" {
			return nil // an earlier attempt destroyed it
		}
		return changes.Stale(v1alpha1.StaleStateChanged, "another plan destroyed it")
	}
	resumed, err := s.checkDeposed(ctx, r, rec, old)
	if err == nil {
		err = s.checkRights(ctx, rec)
	}
	if err != nil {
		return err
	}
	if c.Action == v1alpha1.ActionForget {
		if err := s.checkSecrets(ctx); err != nil {
			return err
		}
		return s.saveDeposed(ctx, rec, key)
	}
	ctx, done := s.active.withCancel(ctx)
	defer done()
	defer s.openScope(ctx, r)()
	l, err := s.scope.Lease(ctx, r, &old.State, false, session.ApplySlotAndRate)
	if err != nil {
		return s.unacquired(err)
	}
	defer l.Release()
	if err := s.checkAfterWait(ctx, rec); err != nil {
		return err
	}
	if err := s.checkReconfigured(ctx, l, &old.State); err != nil {
		return err
	}
	prior, err := s.priorDeposed(ctx, r, l, old, resumed)
	if err != nil {
		return s.retryable(err, true)
	}
	if !prior.Exists() {
		return s.saveDeposed(ctx, rec, key)
	}
	return s.destroyLoaded(ctx, l, rec, key, prior)
}

// priorDeposed returns the state of a deposed instance before its destroy.
func (s *stepRun) priorDeposed(ctx context.Context, r *resource.Resource, l *scope.Lease, old *ledger.Deposed,
	resumed bool) (instance.State, error) {
	c := s.Change
	from := &old.State
	if c.Deposed != "" && c.Refreshed != nil && !s.Begun {
		from = c.Refreshed
	}
	approved, err := l.Load(ctx, from)
	s.scope.NoteSecretState(r.Schema.Block, approved)
	if err != nil {
		return approved, err
	}
	return s.current(ctx, l, &old.State, approved, resumed)
}

// destroyLoaded destroys a deposed instance with a known state, and records the outcome.
func (s *stepRun) destroyLoaded(ctx context.Context, l *scope.Lease, rec *ledger.Instance, key string,
	prior instance.State) error {
	c := s.Change
	var approved []byte
	if c.Action == v1alpha1.ActionDelete { // otherwise the plan's private data belong to the new instance
		approved = c.PlannedPrivate
	}
	p, _, err := l.PlanDelete(ctx, prior, approved)
	if err != nil {
		return s.retryable(err, true)
	}
	if err := s.writeIntent(ctx, rec, v1alpha1.ActionDelete, key); err != nil {
		return err
	}
	if err := s.mayCall(ctx, rec, p.Value); err != nil {
		return err
	}
	o := l.Apply(ctx, prior, p, p.Value)
	ctx, s.answered = context.WithoutCancel(ctx), true
	s.warnings = diag.Warnings(o.Diagnostics)
	if o.Err != nil && (l.Stopped() || diag.IsFailure(o.Err, diag.Lost)) {
		return &RetryError{o.Err}
	}
	old := rec.FindDeposed(key)
	if err := writeState(l, &old.State, o.State, o.Err); err != nil {
		return errors.Join(o.Err, err)
	}
	if err := s.saveDeposed(ctx, rec, key); err != nil {
		return errors.Join(o.Err, err)
	}
	return s.retryable(o.Err, true)
}

// checkDeposed returns an error if a deposed instance has changed since planning, or if another plan is changing it.
// resumed is true if an earlier attempt to destroy it has no recorded outcome.
func (s *stepRun) checkDeposed(ctx context.Context, r *resource.Resource, rec *ledger.Instance,
	old *ledger.Deposed) (resumed bool, err error) {
	c := s.Change
	resumed = rec.Intent.Of(s.Plan.UID, c.Index) && rec.Intent.Deposed == old.Key
	if rec.Intent != nil && !resumed {
		abandoned, err := changes.IntentAbandoned(ctx, s.Ledger, rec.Intent)
		if err != nil {
			return false, err
		}
		switch {
		case !abandoned:
			return false, changes.ErrPlanRunning
		case rec.Intent.Action == v1alpha1.ActionCreate:
			return false, changes.ErrCreateUnknown
		}
		resumed = true
	}
	if c.Deposed != "" && old.Digest() != c.Preconditions.State && !s.Begun {
		return false, changes.ErrStateChanged
	}
	return resumed, changes.CheckProvider(c, r)
}

// saveDeposed writes the record after a step on a deposed instance, and removes that instance if nothing remains of it.
func (s *stepRun) saveDeposed(ctx context.Context, rec *ledger.Instance, key string) error {
	if old := rec.FindDeposed(key); s.Change.Action == v1alpha1.ActionForget || !old.Exists() || !s.answered {
		dropDeposed(rec, key)
	}
	// the plan has applied the current instance
	if o := rec.LastOutcome; o != nil && o.Plan == s.Plan.UID && !o.Destroy && !o.Failed {
		s.dropContributors(rec)
	}
	rec.Intent = nil
	if !rec.Living() {
		return s.conflict(s.outcomes().Forget(ctx, rec))
	}
	return s.saveRecord(ctx, rec)
}

// saveRecord saves a record. After the provider has answered, it overwrites a concurrent change: the intent should have
// prevented that change, and the provider's answer must not be lost.
func (s *stepRun) saveRecord(ctx context.Context, rec *ledger.Instance) error {
	err := s.outcomes().Save(ctx, rec)
	if s.answered && errors.Is(err, ledger.ErrConflict) {
		s.Logger.ErrorContext(ctx, "the provider's answer overwrites a record that changed during the call",
			"plan", s.Plan.Name, "namespace", s.Plan.Namespace, "address", s.Change.Address)
		err = s.outcomes().Keep(ctx, rec)
	}
	return s.conflict(err)
}

// outcomes returns the ledger for the outcome of the step. After the provider has answered, a write waits for the
// database, because the answer is nowhere else.
func (s *stepRun) outcomes() *ledger.Ledger {
	if s.answered {
		return s.Ledger.Answers()
	}
	return s.Ledger
}
