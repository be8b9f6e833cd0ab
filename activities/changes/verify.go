package changes

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"

	"github.com/zclconf/go-cty/cty"
)

// CheckMovedFrom returns a *StaleError if the files of a Module no longer have the move to its resource r, or if the
// old object of a move is no longer marked for deletion: both objects would then manage the same infrastructure.
func CheckMovedFrom(ctx context.Context, objects store.Objects, c *ledger.Change, r *resource.Resource,
	rec *ledger.Instance) error {
	if !rec.Living() && v1alpha1.InModule(r.Ref.Name) && moveTo(r) != c.PreviousAddress {
		return Stale(v1alpha1.StaleObjectChanged, "the resource no longer moves from %s", c.PreviousAddress)
	}
	obj, err := objects.Get(ctx, *c.Preconditions.From)
	switch {
	case errors.Is(err, store.ErrGone):
		return nil
	case err != nil:
		return err
	case obj.GetDeletionTimestamp() == nil:
		return Stale(v1alpha1.StaleUndeleted, "the deletion of %s was taken back after the plan was made",
			c.PreviousAddress)
	}
	return nil
}

// This file checks, before the apply of a plan, whether its changes are still the planned ones.

// Verification lists the changes that an approval would and would not apply now.
type Verification struct {
	// Blocked lists the changes that lifecycle.preventDestroy forbids. Stale lists those whose preconditions no longer
	// hold.
	Blocked, Stale []Obstacle
	// Dependants is the number of other changes that depend on one of these. Remaining is the number of changes that
	// can be applied without them.
	Dependants, Left int
	// Out has the indexes of the changes that a partial approval leaves out: the blocked and stale ones, and their
	// dependants.
	Out []int32
	// Rights yields the rights that an approver needs for the remaining changes; nil for none.
	Rights iter.Seq2[store.Right, error]
	// Person is why a person must approve a plan that would approve itself; empty if none must.
	Person string
}

// Obstacle is a change that cannot be applied, and the reason.
type Obstacle struct {
	Address string
	Why     string
	// Stale is the reason of a stale change; "" for others.
	Stale v1alpha1.StaleReason
}

// Verify checks the changes of a plan that waits for approval.
func Verify(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan) (Verification, error) {
	w, err := Load(ctx, src.Ledger, po.UID)
	if err != nil {
		return Verification{}, err
	}
	v, moved, err := verifyAll(ctx, src, po, w)
	if err != nil {
		return Verification{}, err
	}
	var found Verification
	if po.ApprovesItself() {
		if found.Person, err = w.SelfApprovalOf(ctx, src, po); err != nil {
			return Verification{}, err
		}
		for i, rights := range v.ownerRights {
			if len(rights) > 0 && found.Person == "" {
				found.Person = WhyPerson([]PersonFact{{For: ForOtherOwner, Address: w.Changes[i].Address}})
			}
		}
	}
	var left []int
	held := plan.Held(w.Planned, w.blockedOrStale(moved))
	for i := range w.Changes {
		c := &w.Changes[i]
		if c.Prevented {
			found.Blocked = append(found.Blocked, Obstacle{Address: c.Address, Why: c.Blocked})
		}
		if !c.NoSteps && (c.Blocked != "" || moved[i] != nil || held[i].Reason != plan.NotHeld) {
			found.Out = append(found.Out, int32(i))
		}
		if moved[i] != nil {
			found.Stale = append(found.Stale, Obstacle{c.Address, moved[i].Message, moved[i].Reason})
		}
		switch {
		case c.NoSteps, c.Prevented, moved[i] != nil:
		case held[i].Reason == plan.NotHeld:
			left = append(left, i)
		default:
			found.Dependants++
		}
	}
	found.Left = len(left)
	found.Rights = func(yield func(store.Right, error) bool) {
		for _, i := range left {
			rights, err := rightsTo(ctx, src, po, &w.Changes[i])
			if err != nil {
				yield(store.Right{}, err)
				return
			}
			for _, right := range append(rights, v.ownerRights[int32(i)]...) {
				if !yield(right, nil) {
					return
				}
			}
		}
	}
	return found, nil
}

// rightsTo returns the rights that a change needs, with those to a replaced instance.
func rightsTo(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan, b *StoredChange) ([]store.Right, error) {
	if b.Action != v1alpha1.ActionReplace {
		return b.Rights(src)
	}
	c, err := src.Ledger.Change(ctx, po.UID, b.Index)
	if err != nil {
		return nil, err
	}
	rec, err := src.Ledger.Instance(ctx, c.Object)
	if err != nil {
		return nil, err
	}
	return Rights(src, c, rec)
}

// blockedOrStale returns the indexes of the blocked and stale changes.
func (w *Stored) blockedOrStale(moved []*StaleError) []int {
	var stopped []int
	for i := range w.Changes {
		if w.Changes[i].Prevented || moved[i] != nil {
			stopped = append(stopped, i)
		}
	}
	return stopped
}

// FindStale returns for each change of a plan why it is stale, or nil if it is not. Call it before any step begins.
func FindStale(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan, w *Stored) ([]*StaleError, error) {
	_, why, err := verifyAll(ctx, src, po, w)
	return why, err
}

// verifyAll is FindStale, and also returns the verifier with the rights that it found.
func verifyAll(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan,
	w *Stored) (*verifier, []*StaleError, error) {
	known := map[lang.Address]cty.Value{}
	for _, i := range w.refreshed {
		c, err := src.Ledger.Change(ctx, po.UID, i)
		if err != nil {
			return nil, nil, err
		}
		addr, value, ok, err := refreshed(ctx, src, c)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			known[addr] = value
		}
	}
	v := &verifier{Sources: src, plan: po, groups: map[alike]bool{}, ownerRights: map[int32][]store.Right{},
		configs: src.ProviderConfigs(ctx, po), actors: ActorsOf(src, po),
		terminating: sync.OnceValues(func() (bool, error) { return src.Configs.Terminating(ctx, po.Namespace) })}
	v.scope = src.NewScope(po, po.Namespace, func(addr lang.Address) (cty.Value, bool) {
		value, ok := known[addr]
		return value, ok
	})
	why, err := v.verifyStored(ctx, w)
	return v, why, err
}

// readUnchanged reports whether a change is that of a data source, or of an unchanged resource, that planning read.
func readUnchanged(c *ledger.Change) bool {
	return unchanged(c) && (c.Mode == v1alpha1.ModeData || c.Mode == "" && c.Refreshed.Exists())
}

// refreshed returns the address and the value that the apply will record for a data source, or for an unchanged
// resource, that planning read. ok is false if nothing remains to be recorded, or if the record has changed.
func refreshed(ctx context.Context, src *scope.Sources,
	c *ledger.Change) (addr lang.Address, v cty.Value, ok bool, err error) {
	if !readUnchanged(c) {
		return addr, v, false, nil
	}
	rec, err := src.Ledger.Instance(ctx, c.Object)
	if err != nil || rec.Intent != nil || rec.Digest() != c.Preconditions.State {
		return addr, v, false, err
	}
	if addr, err = lang.ParseAddress(c.Address); err != nil {
		return addr, v, false, err
	}
	block := src.Block(addr)
	if block == nil {
		return addr, v, false, nil
	}
	v, err = PlannedValue(c, block)
	return addr, v, err == nil, err
}

// verifier checks the preconditions of a plan's changes.
type verifier struct {
	*scope.Sources
	plan   *v1alpha1.Plan
	scope  *scope.Scope
	actors *Actors
	// terminating reports whether the namespace is being deleted. It reads that once.
	terminating func() (bool, error)
	// groups says for each group whether the index knows everything about its changes; see comparable.
	groups map[alike]bool

	// mu guards the following fields.
	mu      sync.Mutex
	configs *scope.ProviderConfigs
	// indexed is true after the index was refreshed.
	indexed bool
	// ownerRights holds, by the index of a change, the rights of its OtherOwners.
	ownerRights map[int32][]store.Right
}

// verify returns a *StaleError if a change's preconditions no longer hold.
func (v *verifier) verify(ctx context.Context, c *ledger.Change) error {
	obj, err := v.Objects.GetSpec(ctx, c.Object)
	if errors.Is(err, store.ErrGone) {
		return ErrObjectDeleted
	}
	if err != nil {
		return err
	}
	r, err := resource.Of(obj, v.Catalog)
	if err != nil {
		return Stale(v1alpha1.StaleProviderChanged, "%s", err.Error())
	}
	rec := &ledger.Instance{Object: r.Ref}
	s := Step{Plan: v.plan, Change: c, Destroy: true}
	if r.Mode == v1alpha1.ModeManaged {
		if rec, err = v.Ledger.Instance(ctx, c.Object); err != nil {
			return err
		}
		if rec.Intent != nil {
			if _, err := s.TakesOverIntent(ctx, v.Ledger, rec); err != nil {
				return err
			}
		}
	}
	if err := v.actors.Check(ctx, c, rec); err != nil {
		return err
	}
	if err := CheckNamespace(c, v.terminating); err != nil {
		return err
	}
	switch {
	case c.Deposed != "":
		return v.verifyDeposed(ctx, c, r, rec)
	case r.Mode != v1alpha1.ModeManaged:
		err = s.CheckStale(r, nil)
	default:
		if err = s.CheckStale(r, rec); err == nil {
			err = v.verifyMove(ctx, c, r, rec)
		}
		if err == nil {
			err = v.verifyNamespace(c)
		}
		if err == nil {
			err = v.verifyOwners(ctx, c, r, &rec.State)
		}
	}
	records := c.Action == v1alpha1.ActionForget || c.Action == v1alpha1.ActionRead && c.Mode == ""
	if err != nil || records && len(c.Preconditions.Arguments) == 0 {
		// a change that only records something does not need the provider, unless it records what the provider found
		return err
	}
	wanted := !r.Deleting && !v.plan.Spec.Destroy && c.Deposed == ""
	config, err := v.verifyConfig(ctx, c, r, rec, wanted)
	if err == nil {
		err = CheckSecrets(ctx, v.scope, c)
	}
	if err != nil || records || !wanted || len(c.Referred) == 0 {
		return err
	}
	return v.verifyReferred(ctx, c, Referred(r.Parse().References, config))
}

// verifyNamespace returns a *StaleError for a destroy or forget that was planned because of the namespace's deletion,
// if that deletion was reverted. Such a change was planned before its object was marked.
func (v *verifier) verifyNamespace(c *ledger.Change) error {
	if c.Action != v1alpha1.ActionDelete && c.Action != v1alpha1.ActionForget || c.Preconditions.Deleting ||
		v.plan.Spec.Destroy || v.plan.Spec.RefreshOnly {
		return nil
	}
	terminating, err := v.terminating()
	if err == nil && !terminating {
		err = Stale(v1alpha1.StaleUndeleted, "the deletion of the namespace was taken back after the plan was made")
	}
	return err
}

// CheckNamespace returns a *StaleError if the namespace was deleted after planning. This applies to changes that give
// infrastructure to an object, or run an action. The deletion of a namespace marks only objects with infrastructure.
// terminating reports whether the namespace is being deleted.
func CheckNamespace(c *ledger.Change, terminating func() (bool, error)) error {
	if c.Action != v1alpha1.ActionCreate && c.Action != v1alpha1.ActionInvoke && c.Importing == nil {
		return nil
	}
	deleted, err := terminating()
	if err == nil && deleted {
		err = Stale(v1alpha1.StaleObjectDeleted, "its namespace was marked for deletion after the plan was made")
	}
	return err
}

// verifyDeposed checks the change of a deposed instance.
func (v *verifier) verifyDeposed(ctx context.Context, c *ledger.Change, r *resource.Resource,
	rec *ledger.Instance) error {
	old := rec.FindDeposed(c.Deposed)
	switch {
	case old == nil:
		return Stale(v1alpha1.StaleStateChanged, "another plan destroyed it")
	case old.Digest() != c.Preconditions.State:
		return ErrStateChanged
	}
	if err := CheckProvider(c, r); err != nil {
		return err
	}
	if err := CheckSecrets(ctx, v.scope, c); err != nil || c.Action == v1alpha1.ActionForget {
		return err
	}
	if err := v.verifyOwners(ctx, c, r, &old.State); err != nil {
		return err
	}
	return v.verifyConfigExists(ctx, old.ProviderConfig)
}

// verifyMove checks the record that a change moves.
func (v *verifier) verifyMove(ctx context.Context, c *ledger.Change, r *resource.Resource, rec *ledger.Instance) error {
	if c.Preconditions.From == nil {
		return nil
	}
	from, err := v.Ledger.Instance(ctx, *c.Preconditions.From)
	if err != nil {
		return err
	}
	if from.Digest() != c.Preconditions.FromState || from.Intent != nil {
		return Stale(v1alpha1.StaleStateChanged, "the state of %s changed after the plan was made", c.PreviousAddress)
	}
	return CheckMovedFrom(ctx, v.Objects, c, r, rec)
}

// configured returns a *StaleError if the ProviderConfig of an applied instance no longer exists.
func (v *verifier) verifyConfigExists(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	cfg, err := v.Configs.Get(ctx, v.plan.Namespace, name)
	if err == nil && cfg == nil {
		err = Stale(v1alpha1.StaleProviderConfigChanged,
			"the ProviderConfig %q, which the resource was applied with, no longer exists", name)
	}
	return err
}

// verifyConfig checks the ProviderConfig of a change and, for a replace, that of the old instance. It returns the
// ProviderConfig of the change, or nil.
func (v *verifier) verifyConfig(ctx context.Context, c *ledger.Change, r *resource.Resource, rec *ledger.Instance,
	wanted bool) (*scope.ProviderConfigRef, error) {
	fair.Lock(ctx, &v.mu)
	found, err := v.configs.ForResource(r, rec, wanted)
	v.mu.Unlock()
	if err != nil {
		return nil, err
	}
	name := ""
	if found != nil && found.Cfg != nil {
		name = found.Cfg.Name
	}
	switch {
	case name == "" && c.ProviderConfig != "":
		return nil, Stale(v1alpha1.StaleProviderConfigChanged,
			"the ProviderConfig %q, which the plan uses, no longer exists", c.ProviderConfig)
	case name != c.ProviderConfig:
		return nil, CheckConfigName(c, name)
	case found != nil && found.Comparable && c.ConfigVersion != "" && found.Version != c.ConfigVersion:
		return nil, ConfigChanged(name)
	case c.Action == v1alpha1.ActionReplace && rec.Exists():
		return found, v.verifyConfigExists(ctx, rec.ProviderConfig)
	}
	return found, nil
}

// verifyReferred checks the referenced values that the plan itself does not change.
func (v *verifier) verifyReferred(ctx context.Context, c *ledger.Change, refs map[lang.Address][]lang.Reference) error {
	for _, addr := range slices.SortedFunc(maps.Keys(refs), lang.Address.Compare) {
		planned, ok := c.Referred[addr.String()]
		if !ok {
			continue
		}
		now, err := v.scope.DigestOf(ctx, addr, refs[addr])
		_, absent := errors.AsType[*scope.AbsentError](err)
		_, forbidden := errors.AsType[*scope.ForbiddenError](err)
		switch {
		case forbidden:
			return Stale(v1alpha1.StaleMissingRights, "%s", err.Error())
		case absent:
			return Stale(v1alpha1.StaleReferenceChanged, "%s", err.Error())
		case err != nil:
			return err
		case now == "":
			return Stale(v1alpha1.StaleReferenceChanged, "%s, which it refers to, no longer exists", addr)
		case now != planned:
			return Stale(v1alpha1.StaleReferenceChanged, "%s, which it refers to, was changed after the plan was made",
				addr)
		}
	}
	return nil
}

// Referred returns the references of a resource and of its ProviderConfig, which may be nil, whose values are recorded.
func Referred(all []lang.Reference, config *scope.ProviderConfigRef) map[lang.Address][]lang.Reference {
	refs := map[lang.Address][]lang.Reference{}
	if config != nil {
		all = slices.Concat(all, config.References)
	}
	for _, ref := range all {
		if ref.Mode == v1alpha1.ModeData || ref.Mode == v1alpha1.ModeManaged || ref.Mode == "" || ref.IsModuleOutput() {
			refs[ref.Address] = append(refs[ref.Address], ref)
		}
	}
	return refs
}

// Each calls work for the changes that a tracker returns, at most width concurrently; see graph.Run. Each call needs a
// slot of the processors, as the caller does. A panic of a call is its error.
func Each(ctx context.Context, tracker graph.Source, width int,
	work func(ctx context.Context, i int) (ok bool, err error)) error {
	defer fair.Pause(ctx)()
	return graph.Run(ctx, tracker, width, func(ctx context.Context, i int) (ok bool, err error) {
		ctx, done, err := fair.TakeToo(ctx)
		if err != nil {
			return false, err
		}
		defer done()
		err = bug.Catch(func() (err error) {
			ok, err = work(ctx, i)
			return err
		})
		return ok && err == nil, err
	})
}
