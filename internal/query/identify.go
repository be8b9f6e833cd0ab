package query

import (
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/ledger"

	"github.com/zclconf/go-cty/cty"
)

// This file decides what identifies a resource of a type.
//
// Resources of a provider that reaches nothing are only values, as those of hashicorp/random. Nothing identifies them,
// and any number of objects may have the same one; see ReachesNothing.
//
// For others, if the provider returns an identity, the identity does. Otherwise the ID does, except where it surely
// names more than one resource, as the key of an object that buckets have. There are two proofs of that:
//
//   - The provider imported one resource by another text than its ID, and a different one by the ID itself; see
//     NamedBy. Then the attribute by which it imports them identifies them.
//   - Hykube created two resources, and the provider gave both the same ID, but different values; see Sharing.
//
// Each proof holds only for resources that the provider returned with the same arguments, so in one account. Who writes
// a ProviderConfig can make two resources with any ID in an account of their own, which proves nothing about another
// account. And other arguments, such as max_retries, may reach the same account, so they prove nothing either.
//
// A created resource may have been removed outside of Hykube before the next one got its ID, such as a name. So the
// second proof alone never permits an import, unless a required argument shows that the resources differ. It only lets
// users import who may update the other object. See docs/decisions/0016-what-identifies-a-resource.md.

// NamedBy returns the attribute that may name an imported resource in place of its ID: the provider sets it to the text
// of the import. It returns "" if there is none. The attribute names resources if another one, imported by the ID
// itself, has the same ID, and the ID in that attribute; see Names.
func NamedBy(e catalog.Entry, terraformType, importID string, s *ledger.State) string {
	of := e.Schema.Resources[terraformType]
	if of == nil || ReachesNothing(e) || importID == "" || s.IdentityText() != "" || s.ID() == "" ||
		ledger.SameID(s.ID(), importID) {
		return ""
	}
	for _, a := range of.Block.Attributes {
		// A user can set other attributes, which clouds let them change. Two owners of an equal secret must not learn
		// of each other.
		fixed := a.Type == cty.String && a.Computed && !a.Optional && !a.WriteOnly && !a.Sensitive
		if fixed && a.Name != "id" && s.Text(a.Name) == importID {
			return a.Name
		}
	}
	return ""
}

// Names reports whether an attribute names resources, and their ID does not. byID is the resource that the provider
// imported by the ID of another one.
func Names(attribute, id string, byID *ledger.State) bool {
	return byID.IdentityText() == "" && byID.ID() == id && byID.Text(attribute) == id
}

// NamedOtherwise reports whether an attribute shows that the owner's resource is not one with a state and the same ID.
// Sensitive attributes show nothing, so that no import tells whether another object has an equal secret; see NamedBy.
func (o *Owner) NamedOtherwise(e catalog.Entry, s *ledger.State) bool {
	attribute := s.NamedBy
	if attribute == "" {
		attribute = o.State.NamedBy
	}
	of := e.Schema.Resources[o.Type]
	if attribute == "" || of == nil || o.Type != s.Type || !s.Configuration.Same(o.Configuration) {
		return false
	}
	if a := of.Block.Attribute(attribute); a == nil || a.Sensitive {
		return false
	}
	ours, theirs := s.Text(attribute), o.State.Text(attribute)
	return ours != "" && theirs != "" && !ledger.SameID(ours, theirs)
}

// Sharing looks for a proof that an ID names more than one resource of a type in an account.
type Sharing struct {
	of    *ledger.State
	first *Owner
}

// NewSharing returns a Sharing for the type, the ID and the account of a state. The state has no identity.
func NewSharing(of *ledger.State) *Sharing { return &Sharing{of: of} }

// Proves reports whether an owner, together with those before, proves that several resources have the ID.
func (s *Sharing) Proves(own Owner) bool {
	switch {
	case own.Type != s.of.Type || !own.Configuration.Same(s.of.Configuration) || own.identity != "" ||
		!own.HasExactly("", s.of.ID()):
		return false
	case own.State.NamedBy != "":
		return true
	case !own.State.Created:
		return false
	case s.first == nil:
		s.first = &own
		return false
	}
	// Some APIs take the create of what exists for an update of it. Then two objects manage one resource, with equal
	// values.
	return s.first.Object.UID != own.Object.UID && !s.first.State.SameValues(own.State)
}

// ReachesNothing reports whether a provider gets neither arguments nor anything of the server with which it could reach
// an account or a file. So its resources are only values: two objects with the same one do not affect each other.
func ReachesNothing(e catalog.Entry) bool {
	g := e.Package.Grants
	return !e.TakesConfiguration() && !g.Off && len(g.Environment)+len(g.ReadPaths)+len(g.WritePaths)+
		len(g.ExecutePaths) == 0
}
