package changes

import (
	"context"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/query"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
)

// This file checks whether a change may touch a resource although another object manages one with the same ID or
// identity. An import names a resource by its ID. A ProviderConfig with other arguments than before may reach another
// account, in which the recorded ID belongs to another resource.

// OtherOwner is another object that manages a resource with the ID or identity of a change's resource.
type OtherOwner struct {
	query.Owner
	// Same is true if both resources have the same type; see query.Owner.Is.
	Same bool
	// Creating is true if the other object may have created the resource; see Creators.
	Creating bool
	// Shared is true if other resources of the other object's namespace have the same ID, too; see query.Sharing.
	Shared bool
	// Right is the right that the change needs because of the other object: to update it. It is nil for an import that
	// no right permits.
	Right *store.Right
}

// OtherOwners returns the other objects that manage a resource with the ID or identity in a state. They forbid a
// change, or the change needs a right to them. state is that of the import, or the recorded one if the ProviderConfig
// has other arguments than before. pending are owners that are not recorded yet. The caller refreshes the index before.
func OtherOwners(ctx context.Context, src *scope.Sources, c *ledger.Change, e catalog.Entry, state *ledger.State,
	pending ...query.Owner) ([]OtherOwner, error) {
	if query.ReachesNothing(e) {
		return nil, nil // its resources are only values, and two objects may have the same one
	}
	identity, id := state.IdentityText(), state.ID()
	own := func(ref v1alpha1.ObjectReference) bool {
		return ref.UID == c.Object.UID || ref.UID == c.Preconditions.Owner ||
			c.Preconditions.From != nil && ref.UID == c.Preconditions.From.UID
	}
	var others []OtherOwner
	var err error
	if made := Found(c); made.Exists() { // before FindOwners, which then finds those whose create has ended
		if others, err = Creators(ctx, src, c, e, made); err != nil {
			return nil, err
		}
	}
	found, err := query.FindOwners(ctx, src, e, identity, id, own)
	if err != nil {
		return nil, err
	}
	for _, p := range pending {
		if p.Has(identity, id) && !own(p.Object) {
			found = append(found, p)
		}
	}
	for _, own := range found {
		other, err := compare(ctx, src, c, e, state, own, found)
		if err != nil {
			return nil, err
		}
		if other != nil {
			others = append(others, *other)
		}
	}
	return others, nil
}

// compare returns the OtherOwner of an owner, or nil if the owner's resource is surely another one.
//
// The resource may be the same even if the ProviderConfigs or the identities differ. The writers of ProviderConfigs
// choose the arguments, such as a region that is in the identity. An import therefore needs a right to each object with
// a resource of the same type. Many resources of different types have the same ID, such as objects with the same name
// in different clusters. So a resource of another type, and a recorded one, are only compared with those that the
// arguments may reach; see query.SameAccount. If the provider gets credentials from the server's environment, different
// arguments prove nothing. all are the owners of the ID or identity, which may prove that an ID identifies nothing.
func compare(ctx context.Context, src *scope.Sources, c *ledger.Change, e catalog.Entry, state *ledger.State,
	own query.Owner, all []query.Owner) (*OtherOwner, error) {
	identity, importing := state.IdentityText(), c.Importing != nil
	sameConfig := own.Object.Namespace == c.Object.Namespace && own.Config == c.ProviderConfig
	if sameConfig && own.OtherIdentity(identity) {
		return nil, nil // one configuration tells resources with the same ID apart by their identity
	}
	if !importing && state.Configuration.Same(own.Configuration) {
		return nil, nil // the resources already differed when the arguments were the same
	}
	if importing && own.NamedOtherwise(e, state) {
		return nil, nil
	}
	sameAccount, err := query.SameAccount(ctx, src, e, c.Object.Namespace, c.ProviderConfig, own.Object.Namespace,
		own.Config)
	if err != nil {
		return nil, err
	}
	other := &OtherOwner{Owner: own, Same: own.Is(e, c.Type)}
	switch {
	case importing && other.Same && sameAccount && !own.OtherIdentity(identity) && own.HasExactly(identity, state.ID()):
		if other.Shared = shared(state, own, all); !other.Shared {
			return other, nil
		}
		if differs(e, state, own) {
			return nil, nil
		}
	case !(importing && other.Same) && !sameAccount && len(e.Package.Grants.Environment) == 0:
		return nil, nil
	}
	other.Right, err = rightToUpdate(src, own)
	return other, err
}

// shared reports whether the owners in the namespace of an owner prove that several resources have its ID in the
// account that a state is from. Those who write in another namespace cannot prove it.
func shared(state *ledger.State, own query.Owner, all []query.Owner) bool {
	if state.IdentityText() != "" || !state.Configuration.Same(own.Configuration) {
		return false
	}
	sharing := query.NewSharing(own.State)
	return slices.ContainsFunc(all,
		func(o query.Owner) bool { return o.Object.Namespace == own.Object.Namespace && sharing.Proves(o) })
}

// differs reports whether a required argument shows that an owner's resource is not the imported one.
func differs(e catalog.Entry, state *ledger.State, own query.Owner) bool {
	of := e.Schema.Resources[own.Type]
	if of == nil || own.Type != state.Type {
		return false
	}
	theirs, err := instance.Recorded(own.State, of)
	if err != nil {
		return false
	}
	ours, err := instance.Recorded(state, of)
	return err == nil && provesDifferent(of.Block, nil, theirs, ours)
}

// rightToUpdate returns the right to update an owner's object, whose name messages omit.
func rightToUpdate(src *scope.Sources, own query.Owner) (*store.Right, error) {
	right, err := RightTo(src.Objects, own.Object)
	right.Verb, right.Unnamed = store.VerbUpdate, true
	return &right, err
}

// CheckOther returns a *StaleError if another object forbids a change of its resource. It also returns one if the
// plan's requester or an approver lacks the right to that object.
func (a *Actors) CheckOther(ctx context.Context, c *ledger.Change, other OtherOwner) error {
	if other.Right == nil {
		return importedMeanwhile(c, other.Owner)
	}
	if a.automatic {
		return Stale(v1alpha1.StaleMissingRights,
			"the plan approved itself, and another object may manage the same infrastructure: a person must approve this change")
	}
	return a.require(ctx, []store.Right{*other.Right})
}

// importedMeanwhile returns the *StaleError for an import of a resource that another object took over after planning.
// It does not name an object of another namespace, which the readers of the plan may not be able to read.
func importedMeanwhile(c *ledger.Change, own query.Owner) error {
	who := "an object of another namespace"
	if own.Object.Namespace == c.Object.Namespace {
		who = lang.AddressOf("", own.Type, own.Object.Name).String()
	}
	return Stale(v1alpha1.StaleImportedElsewhere, "%s imported the same resource after the plan was made", who)
}

// verifyOwners returns a *StaleError if another object does not permit a change; see CheckOther. rec is the recorded
// instance that the change is about.
func (v *verifier) verifyOwners(ctx context.Context, c *ledger.Change, r *resource.Resource, rec *ledger.State) error {
	state := rec
	switch from := c.Preconditions.From; {
	case c.Importing != nil:
		state = c.Refreshed
	case !c.Reconfigured:
		return nil
	case from != nil && !rec.Exists():
		moved, err := v.Ledger.Instance(ctx, *from)
		if err != nil {
			return err
		}
		state = &moved.State
	}
	if !state.Exists() {
		return nil
	}
	fair.Lock(ctx, &v.mu)
	defer v.mu.Unlock()
	if !v.indexed {
		if err := v.Index.Refresh(ctx); err != nil {
			return err
		}
		v.indexed = true
	}
	others, err := OtherOwners(ctx, v.Sources, c, r.Entry, state)
	if err != nil {
		return err
	}
	for _, other := range others {
		if err := v.actors.CheckOther(ctx, c, other); err != nil {
			return err
		}
		v.ownerRights[c.Index] = append(v.ownerRights[c.Index], *other.Right)
	}
	return nil
}
