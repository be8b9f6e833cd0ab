package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// Identity is the schema of the identity of a resource type, which is unique for each instance.
type Identity struct {
	// Version increases when the stored form of the identity changes. It is independent of the type's schema version.
	Version int64
	// Attributes, sorted by name.
	Attributes []*IdentityAttribute
}

// IdentityAttribute is one attribute of an identity.
type IdentityAttribute struct {
	Name        string
	Type        cty.Type
	Description string
	// RequiredForImport: an import by identity must set it. OptionalForImport: an import may set it.
	RequiredForImport, OptionalForImport bool
}

// ImpliedType returns the object type of the identity's values.
func (i *Identity) ImpliedType() cty.Type {
	atys := make(map[string]cty.Type, len(i.Attributes))
	for _, a := range i.Attributes {
		atys[a.Name] = a.Type
	}
	return cty.Object(atys)
}

// AddIdentities adds the schemas of a GetResourceIdentitySchemas response. Errors name the type and the attribute.
func (p *Provider) AddIdentities(r *tfprotov6.GetResourceIdentitySchemasResponse) error {
	all := make(map[string]*Identity, len(r.IdentitySchemas))
	for name, s := range r.IdentitySchemas {
		if s == nil {
			continue
		}
		id := &Identity{Version: s.Version}
		for _, a := range s.IdentityAttributes {
			ty, err := fromType(a.Type)
			if err != nil {
				return fmt.Errorf("identity of resource type %q: attribute %q: %w", name, a.Name, err)
			}
			id.Attributes = append(id.Attributes, &IdentityAttribute{
				Name: a.Name, Type: ty, Description: a.Description,
				RequiredForImport: a.RequiredForImport, OptionalForImport: a.OptionalForImport,
			})
		}
		slices.SortFunc(id.Attributes, func(a, b *IdentityAttribute) int { return strings.Compare(a.Name, b.Name) })
		all[name] = id
	}
	p.Identities = all
	return nil
}
