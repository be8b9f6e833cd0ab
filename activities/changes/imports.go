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

// This file checks whether an import may take a resource, if another object manages one with the same ID or identity.

// OtherOwner is another object that manages a resource with the ID or identity of an import.
type OtherOwner struct {
	Object v1alpha1.ObjectReference
	// Right is that of RightToShare; nil if no right permits the import.
	Right *store.Right
}

// OtherOwners returns the other objects that manage a resource with the ID or identity of a change's import.
func OtherOwners(ctx context.Context, src *scope.Sources, c *ledger.Change, r *resource.Resource, owners *query.Owners) (others []OtherOwner, err error) {
	for _, own := range SimilarOwners(c, owners) {
		if own.Object.UID == c.Preconditions.Owner {
			continue
		}
		right, err := RightToShare(ctx, src, c, r.Entry, own)
		if err != nil {
			return nil, err
		}
		others = append(others, OtherOwner{own.Object, right})
	}
	return others, nil
}

// SimilarOwners returns the other objects whose resource has the ID or identity of a change's import. One ProviderConfig
// tells resources with the same ID apart by their identity; two ProviderConfigs may name one resource differently.
func SimilarOwners(c *ledger.Change, owners *query.Owners) []query.Owner {
	identity, id := query.IdentityIn(c.Refreshed)
	return slices.DeleteFunc(owners.FindSimilar(identity, id), func(own query.Owner) bool {
		sameConfig := own.Object.Namespace == c.Object.Namespace && own.Config == c.ProviderConfig
		return own.Object.UID == c.Object.UID || sameConfig && own.OtherIdentity(identity)
	})
}

// RightToShare returns the right that an import needs if another object manages a resource with the same ID or identity:
// the right to update that object. The resource may be the same even if the ProviderConfigs or identities differ, because
// the writers of ProviderConfigs choose the arguments, such as a region that is in the identity. RightToShare returns nil
// if the identities do not differ and the ProviderConfigs may reach the same account; see query.SameAccount. No right
// permits the import then.
func RightToShare(ctx context.Context, src *scope.Sources, c *ledger.Change, e catalog.Entry, own query.Owner) (*store.Right, error) {
	if identity, _ := query.IdentityIn(c.Refreshed); !own.OtherIdentity(identity) {
		same, err := query.SameAccount(ctx, src, e, c.Object.Namespace, c.ProviderConfig, own.Object.Namespace, own.Config)
		if err != nil || same {
			return nil, err
		}
	}
	right, err := RightTo(src.Objects, own.Object)
	right.Verb, right.Unnamed = store.VerbUpdate, true
	return &right, err
}

// CheckOther returns a *StaleError if an import may not take the resource because of another object, or if the plan's
// requester or an approver lacks the right to that object.
func (a *Actors) CheckOther(ctx context.Context, c *ledger.Change, other OtherOwner) error {
	if other.Right == nil {
		return importedMeanwhile(c, other.Object)
	}
	return a.require(ctx, []store.Right{*other.Right})
}

// importedMeanwhile returns the *StaleError for an import of a resource that another object took over after planning. It
// does not name an object of another namespace, which the readers of the plan may not be able to read.
func importedMeanwhile(c *ledger.Change, own v1alpha1.ObjectReference) error {
	who := "an object of another namespace"
	if own.Namespace == c.Object.Namespace {
		who = lang.Address{Type: c.Type, Name: own.Name}.String()
	}
	return Stale("%s imported the same resource after the plan was made", who)
}

// verifyImport returns a *StaleError if another object does not permit an import; see CheckOther.
func (v *verifier) verifyImport(ctx context.Context, c *ledger.Change, r *resource.Resource) error {
	if c.Importing == nil || !c.Refreshed.Exists() {
		return nil
	}
	fair.Lock(ctx, &v.mu)
	defer v.mu.Unlock()
	t := instance.NewType(r.Entry.Schema, r.Address.Type)
	owners, err := v.owners.Of(ctx, v.Sources, r.Entry.Name, &t)
	if err != nil {
		return err
	}
	others, err := OtherOwners(ctx, v.Sources, c, r, owners)
	if err != nil {
		return err
	}
	for _, other := range others {
		if err := v.actors.CheckOther(ctx, c, other); err != nil {
			return err
		}
		v.sharing[c.Index] = append(v.sharing[c.Index], *other.Right)
	}
	return nil
}
