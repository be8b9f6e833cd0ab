package query

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
)

// Owners maps the existing resources of a type to the objects that manage them, also those of other Providers with the
// same source.
type Owners struct {
	byIdentity map[string][]Owner
	byID       map[string][]Owner
}

// Owner is an object and the identity of its resource.
type Owner struct {
	Object v1alpha1.ObjectReference
	// Config is the name of the ProviderConfig of the object's resource. It is empty without a ProviderConfig.
	Config   string
	identity string
}

// ownersOf reads the records of a type in all namespaces, since no resource should have two owners.
func ownersOf(ctx context.Context, src *scope.Sources, provider string, t *instance.Type) (*Owners, error) {
	o := &Owners{byIdentity: map[string][]Owner{}, byID: map[string][]Owner{}}
	for rec, err := range src.Ledger.Instances(ctx, "") {
		if err != nil {
			return nil, err
		}
		if !src.Catalog.SameSource(rec.Provider, provider) || rec.Mode != "" && rec.Mode != v1alpha1.ModeManaged {
			continue
		}
		o.Add(rec.Object, &rec.State, t)
		for i := range rec.Deposed {
			o.Add(rec.Object, &rec.Deposed[i].State, t)
		}
	}
	return o, nil
}

// Add adds an object with the state of its resource.
func (o *Owners) Add(object v1alpha1.ObjectReference, s *ledger.State, t *instance.Type) {
	if s.Type != t.Name || !s.Exists() {
		return
	}
	own := Owner{Object: object, Config: s.ProviderConfig}
	if t.Identity != nil && s.IdentityVersion == t.Identity.Version && len(s.Identity) > 0 {
		own.identity = Canonical(s.Identity)
		o.byIdentity[own.identity] = append(o.byIdentity[own.identity], own)
	}
	if id := IdIn(s.Attributes); id != "" {
		o.byID[id] = append(o.byID[id], own)
	}
}

// OwnersByType caches the owners by provider and type.
type OwnersByType map[[2]string]*Owners

// Of returns the owners of a type.
func (m *OwnersByType) Of(ctx context.Context, src *scope.Sources, provider string, t *instance.Type) (*Owners, error) {
	of := [2]string{provider, t.Name}
	if found := (*m)[of]; found != nil {
		return found, nil
	}
	found, err := ownersOf(ctx, src, provider, t)
	if err != nil {
		return nil, err
	}
	if *m == nil {
		*m = OwnersByType{}
	}
	(*m)[of] = found
	return found, nil
}

// IdentityIn returns the identity and the ID in a state; each is empty if the state has none.
func IdentityIn(s *ledger.State) (identity, id string) {
	if len(s.Identity) > 0 {
		identity = Canonical(s.Identity)
	}
	return identity, IdIn(s.Attributes)
}

// IdIn returns the ID in recorded attributes, the digits of a number. It returns "" if there is none, or if it is
// neither a string nor a number.
func IdIn(attributes json.RawMessage) string {
	var recorded struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(attributes, &recorded) != nil {
		return ""
	}
	var text string
	if json.Unmarshal(recorded.ID, &text) == nil {
		return text
	}
	var number json.Number
	if json.Unmarshal(recorded.ID, &number) == nil {
		return number.String()
	}
	return ""
}

// Find returns the owners of a resource by its identity. If the resource or an owner has no identity, Find compares
// their IDs.
func (o *Owners) Find(identity, id string) []Owner {
	return slices.DeleteFunc(o.FindSimilar(identity, id), func(own Owner) bool { return own.OtherIdentity(identity) })
}

// FindSimilar returns the owners of Find, and those of resources with the same ID and another identity. Such a resource
// may be the same: a provider may take a part of an identity from its configuration, such as the region.
func (o *Owners) FindSimilar(identity, id string) []Owner {
	var out []Owner
	if identity != "" {
		out = append(out, o.byIdentity[identity]...)
	}
	if id != "" {
		for _, own := range o.byID[id] {
			if identity == "" || own.identity != identity {
				out = append(out, own)
			}
		}
	}
	return out
}

// OtherIdentity reports whether the owner's resource and another one both have an identity, and these differ.
func (o *Owner) OtherIdentity(identity string) bool {
	return identity != "" && o.identity != "" && o.identity != identity
}

// Canonical normalizes a JSON object so that equal objects have equal texts.
func Canonical(raw json.RawMessage) string {
	v, err := decodeJSON(resource.WithoutNulls(raw))
	if err != nil {
		return string(raw)
	}
	out, err := json.Marshal(v) // json.Marshal sorts keys
	if err != nil {
		return string(raw)
	}
	return string(out)
}

// owned sets the object that already manages a resource. It does not name an object that the user may not read.
func (s *search) owned(ctx context.Context, result *v1alpha1.QueryResult, found instance.Found) error {
	if s.owners == nil {
		var err error
		if s.owners, err = ownersOf(ctx, s.Sources, s.Entry.Name, s.of); err != nil {
			return err
		}
	}
	text, id := "", idOf(found.Resource)
	if result.Identity != nil {
		text = Canonical(result.Identity.Raw)
		if id == "" {
			id = idOf(found.Identity)
		}
	}
	owners := s.owners.Find(text, id)
	if len(owners) == 0 {
		return nil
	}
	own := owners[0]
	addr := lang.Address{Namespace: own.Object.Namespace, Type: s.of.Name, Name: own.Object.Name}.In(s.query.Namespace)
	if addr.Namespace != "" {
		plural, err := s.scope.Objects.Plural(own.Object)
		if err != nil {
			return err
		}
		err = s.scope.MayRead(ctx, store.Right{Namespace: addr.Namespace, Group: v1alpha1.ProviderGroup(s.Entry.Name), Resource: plural, Name: addr.Name})
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
