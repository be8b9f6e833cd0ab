package query

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
)

// Owner is an object with a recorded instance, current or deposed.
type Owner struct {
	Object v1alpha1.ObjectReference
	// Type is the Terraform type of the instance.
	Type string
	// Config is the name of the instance's ProviderConfig; empty without one.
	Config string
	// Configuration identifies the arguments of the provider; see ledger.State.
	Configuration ledger.Configuration
	// State is the state of the instance.
	State        *ledger.State
	identity, id string
}

// OwnerOf returns the owner with a state of its instance.
func OwnerOf(object v1alpha1.ObjectReference, e catalog.Entry, s *ledger.State) Owner {
	own := Owner{Object: object, Type: s.Type, Config: s.ProviderConfig, Configuration: s.Configuration, State: s,
		id: s.ID()}
	if of := e.Schema.Identities[s.Type]; of != nil && of.Version == s.IdentityVersion {
		own.identity = s.IdentityText()
	}
	return own
}

// HasExactly reports whether the owner's resource has exactly this identity or ID, including upper and lower case.
func (o *Owner) HasExactly(identity, id string) bool {
	return identity != "" && o.identity == identity || id != "" && o.id == id
}

// Has reports whether the owner's resource may have an identity or an ID; see ledger.SameID. An empty one never
// matches.
func (o *Owner) Has(identity, id string) bool {
	return identity != "" && ledger.SameID(o.identity, identity) || id != "" && ledger.SameID(o.id, id)
}

// FindOwners returns the objects that manage a resource with an identity or an ID, in all namespaces. It includes
// objects of other Providers with the same source. The resources may be of any type, because a provider may have
// several types for one resource. They may differ from the resource that the caller means: two accounts may have the
// same ID, and a provider may take a part of an identity from its configuration, such as the region. FindOwners leaves
// out the objects for which omit returns true; it passes their namespaces and UIDs. The caller refreshes the index
// before.
func FindOwners(ctx context.Context, src *scope.Sources, e catalog.Entry, identity, id string,
	omit func(v1alpha1.ObjectReference) bool) ([]Owner, error) {
	var out []Owner
	for own, err := range Owners(ctx, src, e, identity, id, omit) {
		if err != nil {
			return nil, err
		}
		out = append(out, own)
	}
	return out, nil
}

// Owners is like FindOwners, but reads the records one by one.
func Owners(ctx context.Context, src *scope.Sources, e catalog.Entry, identity, id string,
	omit func(v1alpha1.ObjectReference) bool) iter.Seq2[Owner, error] {
	return func(yield func(Owner, error) bool) {
		for _, ref := range src.Index.Owners(identity, id) {
			if omit(ref) {
				continue
			}
			rec, err := src.Ledger.Instance(ctx, ref)
			if err != nil {
				yield(Owner{}, err)
				return
			}
			if !src.Catalog.SameSource(rec.Provider, e.Name) {
				continue
			}
			states := []*ledger.State{&rec.State}
			for i := range rec.Deposed {
				states = append(states, &rec.Deposed[i].State)
			}
			for _, s := range states {
				if own := OwnerOf(rec.Object, e, s); own.Has(identity, id) && !yield(own, nil) {
					return
				}
			}
		}
	}
}

// OtherIdentity reports whether the owner's resource and another one both have an identity, and these differ.
func (o *Owner) OtherIdentity(identity string) bool {
	return identity != "" && o.identity != "" && !ledger.SameID(o.identity, identity)
}

// Is reports whether the owner's resource has a type, or one with the same arguments. A provider may have two names for
// one type, of which one is deprecated.
func (o *Owner) Is(e catalog.Entry, terraformType string) bool {
	if o.Type == terraformType {
		return true
	}
	ours, theirs := e.Schema.Resources[terraformType], e.Schema.Resources[o.Type]
	return ours != nil && theirs != nil && ours.Block.ImpliedType().Equals(theirs.Block.ImpliedType())
}

// setManager sets the object that already manages a resource, and reports whether there is one. It does not name an
// object that the user may not read.
func (s *search) setManager(ctx context.Context, result *v1alpha1.QueryResult,
	found instance.Found) (managed bool, err error) {
	if ReachesNothing(s.Entry) {
		return false, nil // any number of objects may have the value
	}
	if !s.indexed {
		if err := s.Index.Refresh(ctx); err != nil {
			return false, err
		}
		s.indexed = true
	}
	text, id := "", idOf(found.Resource)
	if result.Identity != nil {
		text = ledger.CanonicalIdentity(json.RawMessage(result.Identity.Raw))
		if id == "" {
			id = idOf(found.Identity)
		}
	}
	owners, err := FindOwners(ctx, s.Sources, s.Entry, text, id, func(v1alpha1.ObjectReference) bool { return false })
	if err != nil {
		return false, err
	}
	for _, own := range owners {
		if own.Is(s.Entry, s.of.Name) && !own.OtherIdentity(text) {
			return true, s.ownedBy(ctx, result, own)
		}
	}
	return false, nil
}

// ownedBy sets the object that manages a resource, or a warning if the user may not read that object.
func (s *search) ownedBy(ctx context.Context, result *v1alpha1.QueryResult, own Owner) error {
	addr := lang.AddressOf("", own.Type, own.Object.Name)
	addr.Namespace = own.Object.Namespace
	addr = addr.In(s.query.Namespace)
	if addr.Namespace != "" {
		plural, err := s.scope.Objects.Plural(own.Object)
		if err != nil {
			return err
		}
		err = s.scope.MayRead(ctx, store.Right{Namespace: addr.Namespace, Group: v1alpha1.ProviderGroup(s.Entry.Name),
			Resource: plural, Name: addr.ObjectName()})
		if _, forbidden := errors.AsType[*scope.ForbiddenError](err); forbidden {
			result.Diagnostics = append(result.Diagnostics, v1alpha1.Diagnostic{
				Severity: v1alpha1.SeverityWarning, Summary: "Resource is managed already",
				Detail: "An object of another namespace, which you may not read, manages it. Do not import it: each plan would undo the other's changes.",
			})
			return nil
		}
		if err != nil {
			return err
		}
	}
	result.ManagedBy = addr.String()
	return nil
}
