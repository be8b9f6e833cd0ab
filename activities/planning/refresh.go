package planning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/query"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/shell"

	"golang.org/x/time/rate"
)

// This file determines the state before a change: recorded, read or imported.

// currentState returns the recorded and the current state. If the new provider configuration is unknown, it reads with
// the recorded one. missed is true if the provider does not find the resource with other arguments than before.
func (pr *proposal) currentState(ctx context.Context, c *ledger.Change, r *resource.Resource, l *scope.Lease,
	state *ledger.State) (recorded, now instance.State, missed bool, err error) {
	reader := l
	if !l.Known && state.Exists() {
		if reader, err = pr.past.Lease(ctx, r, state, false, session.RateOnly); err != nil {
			return recorded, now, false, err
		}
		defer reader.Release()
		if reader.ConfigName() != l.ConfigName() {
			bind(c, reader.Session)
		}
		ctx = pr.withAnswers(ctx, c, r, reader.Session)
	}
	var from *ledger.Instance
	basis := state
	if c.Preconditions.From != nil && !state.Exists() {
		if from, err = pr.movedFrom(ctx, c, r); err != nil {
			return recorded, now, false, err
		}
		basis = &from.State
	}
	if err = pr.checkReconfigured(ctx, c, r, reader, basis); err != nil {
		return recorded, now, false, err
	}
	others := basis.Exists() && reader.HasOtherArguments(basis)
	if recorded, err = pr.recordedState(ctx, c, r, reader, basis, from); err == nil {
		pr.scope.NoteSecretState(r.Schema.Block, recorded)
		now, err = pr.refresh(ctx, c, reader, state, recorded, others)
	}
	if err == nil {
		err = pr.checkRead(ctx, c, r)
	}
	gone := slices.Contains(c.Drift, v1alpha1.DriftRemoved)
	c.AccountChanged = basis.Exists() && (len(c.Drift) > 0 && reader.MayBeElsewhere(basis) ||
		gone && reader.Reconfigured(basis))
	if err == nil && c.AccountChanged {
		err = pr.accountChanged(c, r, reader)
	}
	return recorded, now, others && gone, err
}

// accountChanged handles a resource that the provider found changed, or did not find, with other arguments than before.
// A drift check records nothing about it: the answer may be that of another account, and no person sees it first. A
// person who approves another plan reads the warning.
func (pr *proposal) accountChanged(c *ledger.Change, r *resource.Resource, l *scope.Lease) error {
	d := lang.Problem(r.Address, "", summaryAccountChanged, fmt.Sprintf(
		"The arguments of the ProviderConfig %q, or the Secrets that they come from, are not those with which Hykube last saw %s. With the new ones, the provider %s. It may be another account.",
		l.ConfigName(), r.Address, foundText(c)))
	d.Severity = v1alpha1.SeverityWarning
	if pr.plan.Spec.RefreshOnly && pr.plan.Status.Stack != nil {
		d.Detail += fmt.Sprintf(" The drift check records nothing about it. Restore the arguments. If they are right, record what the provider found: kubectl hykube refresh %s -n %s.", shell.Word(r.Address.String()), r.Ref.Namespace)
		return &elsewhereError{d}
	}
	if !slices.Contains(c.Drift, v1alpha1.DriftRemoved) { // otherwise notFound warns
		c.Diagnostics = append(c.Diagnostics, d)
	}
	return nil
}

// foundText returns what the provider found of a resource that drifted.
func foundText(c *ledger.Change) string {
	if slices.Contains(c.Drift, v1alpha1.DriftRemoved) {
		return "does not find it"
	}
	return "finds other values: " + strings.Join(c.Unsettled, ", ")
}

// movedFrom returns the record that moves to a resource.
func (pr *proposal) movedFrom(ctx context.Context, c *ledger.Change, r *resource.Resource) (*ledger.Instance, error) {
	from, err := pr.Ledger.Instance(ctx, *c.Preconditions.From)
	if err != nil {
		return nil, err
	}
	if from.Digest() != c.Preconditions.FromState {
		return nil, fmt.Errorf("%s: %w", c.PreviousAddress, errObjectChanged)
	}
	if from.Intent != nil {
		return nil, &diag.Failure{Operation: "move",
			Diagnostics: diag.Diagnostics{lang.Problem(r.Address, "lifecycle.moved.from", "Resource is being changed",
				fmt.Sprintf("A change of %s is running, or its outcome is unknown. See the conditions of that object, and plan again when the change has ended.", c.PreviousAddress))}}
	}
	return from, nil
}

// recordedState returns the recorded state of the resource, or of the one whose record moves to it; from is nil for no
// move.
func (pr *proposal) recordedState(ctx context.Context, c *ledger.Change, r *resource.Resource, l *scope.Lease,
	state *ledger.State, from *ledger.Instance) (instance.State, error) {
	if from == nil || from.Type == r.Address.Type {
		return l.Load(ctx, state)
	}
	source := from.Provider
	if e, ok := pr.Catalog.Get(from.Provider); ok {
		source = e.Package.Source.String()
	}
	moved, diags, err := l.Move(ctx,
		instance.MoveSource{ProviderAddress: source, TypeName: from.Type, State: &from.State})
	if err != nil {
		return instance.State{}, err
	}
	c.Diagnostics = append(c.Diagnostics, lang.WithAddress(diags, r.Address)...)
	c.Refreshed = &ledger.State{}
	return moved, l.Record(c.Refreshed, moved)
}

// importState imports the resource in lifecycle.import. If an earlier plan applied the same import and the
// infrastructure is gone, importState returns no state: the plan then creates the resource.
func (pr *proposal) importState(ctx context.Context, c *ledger.Change, r *resource.Resource, l *scope.Lease,
	rec *ledger.Instance) (instance.State, error) {
	v := &scope.Evaluator{Ctx: ctx, Scope: pr.scope.WrittenBy(c.Contributors)}
	at, err := pr.scope.EvaluationContext(ctx, r)
	if err != nil {
		return instance.State{}, err
	}
	by, shown, err := resource.Importing(r, &l.Type, at, v.Resolve)
	if err != nil || v.Err != nil {
		return instance.State{}, cmp.Or(v.Err, err)
	}
	found, diags, err := l.Import(ctx, by)
	if err != nil {
		refused, ok := importRefused(r, rec.Intent != nil, err)
		if ok && rec.Intent == nil && importApplied(r, shown) {
			c.Diagnostics = append(c.Diagnostics, importedGoneWarning(r.Address, refused))
			return l.Null(), nil
		}
		return instance.State{}, refused
	}
	c.Diagnostics = append(c.Diagnostics, lang.WithAddress(diags, r.Address)...)
	shown, secret := resource.MaskImport(shown, plan.SecretTexts(r.Schema.Block, found.Value))
	if secret {
		c.Diagnostics = append(c.Diagnostics, secretImportWarning(r))
	}
	pr.scope.NoteSecretState(r.Schema.Block, found)
	c.Importing, c.Refreshed = shown, &ledger.State{}
	if err := l.Record(c.Refreshed, found); err != nil {
		return instance.State{}, err
	}
	if c.Refreshed.NamedBy, err = pr.namedBy(ctx, r, l, by, c.Refreshed); err != nil {
		return instance.State{}, err
	}
	if err := pr.checkDeposed(ctx, c, r, rec); err != nil {
		return instance.State{}, err
	}
	return found, pr.checkOwned(ctx, c, r)
}

// namedBy returns the attribute by which the provider names an imported resource, or "" if its ID may name it. It makes
// the provider import the ID itself; see query.NamedBy.
func (pr *proposal) namedBy(ctx context.Context, r *resource.Resource, l *scope.Lease, by instance.ImportBy,
	imported *ledger.State) (string, error) {
	attribute := query.NamedBy(r.Entry, r.Address.Type, by.ID, imported)
	if attribute == "" {
		return "", nil
	}
	found, _, err := l.Import(ctx, instance.ImportBy{ID: imported.ID()})
	if session.Transient(err) || ctx.Err() != nil {
		return "", err
	}
	if err != nil {
		return "", nil // the provider imports no other resource by this ID
	}
	pr.scope.NoteSecretState(r.Schema.Block, found)
	var byID ledger.State
	if err := l.Record(&byID, found); err != nil || !query.Names(attribute, imported.ID(), &byID) {
		return "", err
	}
	return attribute, nil
}

// importRefused adds to a failed import the remedy for a user who wants no import: an applied lifecycle.import becomes
// effective again when its resource is destroyed. lost is true if an unknown outcome prevents the next create. ok is
// false if the provider did not refuse the import.
func importRefused(r *resource.Resource, lost bool, err error) (_ error, ok bool) {
	f, is := errors.AsType[*diag.Failure](err)
	if _, nothing := errors.AsType[*instance.NothingFoundError](err); nothing {
		f, is = &diag.Failure{Kind: diag.Refused, Operation: "import",
			Diagnostics: diag.Diagnostics{lang.Problem(r.Address, "lifecycle.import", "There is nothing to import",
				err.Error())}}, true
	}
	if !is || f.Kind != diag.Refused || len(f.Diagnostics) == 0 {
		return err, false
	}
	refused := *f
	refused.Diagnostics = slices.Clone(f.Diagnostics)
	last := &refused.Diagnostics[len(refused.Diagnostics)-1]
	last.Detail = strings.TrimSpace(last.Detail + "\n" + createInstead(r, lost))
	return &refused, true
}

// createInstead tells users who want no import how to create the resource. lost is true if an unknown outcome prevents
// the create.
func createInstead(r *resource.Resource, lost bool) string {
	if lost {
		return fmt.Sprintf("To create the resource instead, %s, run %s --retry, and plan again.",
			changes.RemoveImport(r.Ref), changes.ResolveCommand(r.Ref))
	}
	return fmt.Sprintf("To create the resource instead, %s and plan again.", changes.RemoveImport(r.Ref))
}

// importApplied reports whether an earlier plan applied this import and no plan destroyed the resource since.
func importApplied(r *resource.Resource, by *v1alpha1.PlanImport) bool {
	return resource.SameImport(by, resource.StatusOf(r.Object).Imported)
}

// secretImportWarning returns the warning for an import whose ID, as the spec has it, is a secret of the resource.
func secretImportWarning(r *resource.Resource) v1alpha1.Diagnostic {
	d := lang.Problem(r.Address, "lifecycle.import.id", "The ID of the import is a secret",
		fmt.Sprintf("The ID is a sensitive value of the imported resource. Every user who may get the %s sees it in lifecycle.import, and so does its history in Git. "+
			"Write it in a Secret and refer to that, as in ${secret.NAME.KEY}, or %s after the import.", r.Ref.Kind,
			changes.RemoveImport(r.Ref)))
	d.Severity = v1alpha1.SeverityWarning
	return d
}

// importedGoneWarning returns the warning for the create of a resource that an earlier plan imported.
func importedGoneWarning(addr lang.Address, refused error) v1alpha1.Diagnostic {
	d := lang.Problem(addr, "lifecycle.import", "Imported resource is gone",
		fmt.Sprintf("An earlier plan imported this resource, and it no longer exists, so the plan creates a new one. The provider's answer to the import: %v", refused))
	d.Severity = v1alpha1.SeverityWarning
	return d
}

// refresh reads the resource if the plan's refresh mode requires it, and stores differences in the change. If the
// provider has other arguments than before, it always reads: with these, the recorded ID may name no resource, and a
// provider reports the destroy of a missing resource as a success.
func (pr *proposal) refresh(ctx context.Context, c *ledger.Change, l *scope.Lease, state *ledger.State,
	recorded instance.State, otherArguments bool) (instance.State, error) {
	mode := pr.plan.Spec.Refresh
	if !recorded.Exists() || mode == v1alpha1.RefreshNone && !pr.plan.Spec.RefreshOnly && !otherArguments {
		return recorded, nil
	}
	if err := pr.awaitRead(ctx); err != nil {
		return instance.State{}, err
	}
	found, diags, err := l.Read(ctx, recorded)
	if err != nil {
		return instance.State{}, err
	}
	c.Diagnostics, c.Read = append(c.Diagnostics, diags...), true
	before, _ := recorded.Value.UnmarkDeep()
	after, _ := found.Value.UnmarkDeep()
	switch {
	case !found.Exists():
		c.Drift = []string{v1alpha1.DriftRemoved}
	default:
		c.Drift = plan.Drift(lang.MarkSensitive(l.Schema.Block, recorded.Value),
			lang.MarkSensitive(l.Schema.Block, found.Value))
		c.Unsettled = plan.Drifted(recorded.Value, found.Value)
	}
	same := before.RawEquals(after)         // the states may differ without drift, such as null and an empty list
	if !same && !pr.plan.Spec.RefreshOnly { // for a refresh-only plan, before and after show it
		rendered, err := plan.Render(l.Schema.Block, recorded.Value, found.Value)
		if err != nil {
			return instance.State{}, fmt.Errorf("render drift of %s: %w", c.Address, err)
		}
		c.Recorded, c.RecordedSensitive = rendered.Before, rendered.BeforeSensitive
	}
	if same && string(recorded.Private) == string(found.Private) {
		return found, nil
	}
	refreshed := *state
	if c.Refreshed != nil { // the record comes from another type
		refreshed = *c.Refreshed
	}
	if err := l.Record(&refreshed, found); err != nil {
		return instance.State{}, err
	}
	c.Refreshed = &refreshed
	return found, nil
}

// readLimiter returns the limiter of the reads of a plan; nil means no limit.
func readLimiter(spec *v1alpha1.PlanSpec) *rate.Limiter {
	if b := spec.ReadBudget; b != nil && b.ReadsPerSecond > 0 {
		return rate.NewLimiter(rate.Limit(b.ReadsPerSecond), 1)
	}
	return nil
}

// awaitRead waits until the read budget of the plan allows another read.
func (pr *proposal) awaitRead(ctx context.Context) error {
	if pr.reads == nil {
		return nil
	}
	defer fair.Pause(ctx)()
	return pr.reads.Wait(ctx)
}

// retryTransient retries a read-only call after transient errors.
func retryTransient(ctx context.Context, call func() error) error {
	pause := 500 * time.Millisecond
	for attempt := 1; ; attempt++ {
		err := call()
		if err == nil || attempt == session.Attempts || !session.Transient(err) {
			return err
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return err
		}
	}
}
