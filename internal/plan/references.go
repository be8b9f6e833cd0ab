package plan

import (
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/schema"
)

// Catalog is what CheckReferences asks about the world.
type Catalog struct {
	// Block is the schema of a resource type; nil when no provider has the type.
	Block func(terraformType string) *schema.Block
	// Exists says whether the namespace holds the resource.
	Exists func(Address) bool
	// Types and Names list the known types, and the names of a type's resources. They are asked only to suggest
	// something near, and may be nil.
	Types func() []string
	Names func(terraformType string) []string
}

// CheckReferences reports references to types, resources and attributes that do not exist, with something near if
// there is.
func CheckReferences(refs []Reference, in Catalog) Diagnostics {
	var diags Diagnostics
	for _, r := range refs {
		block := in.Block(r.Type)
		switch {
		case block == nil:
			var types []string
			if in.Types != nil {
				types = in.Types()
			}
			hint := didYouMean(r.Type, types)
			if hint == "" {
				hint = " Install the provider that has it, or correct the name."
			}
			diags = append(diags, errorAt(r.Field, "Reference to an unknown resource type", "There is no resource type %q.%s", r.Type, hint))
		case !in.Exists(r.Address):
			var names []string
			if in.Names != nil {
				names = in.Names(r.Type)
			}
			diags = append(diags, missingResource(r, names))
		case r.Attribute != "" && block.Attribute(r.Attribute) == nil && block.NestedBlock(r.Attribute) == nil:
			diags = append(diags, missingAttribute(r, block))
		}
	}
	return diags
}

func missingResource(r Reference, names []string) v1alpha1.Diagnostic {
	near := ""
	if n := nearest(r.Name, names); n != "" {
		near = fmt.Sprintf(" Did you mean %s?", Address{Type: r.Type, Name: n}.Expression())
	}
	return errorAt(r.Field, "Reference to a missing resource",
		"There is no %s named %q in this namespace.%s Create it, or correct the reference to %s.", v1alpha1.KindOf(r.Type), r.Name, near, r.Expression())
}

func missingAttribute(r Reference, block *schema.Block) v1alpha1.Diagnostic {
	names := make([]string, 0, len(block.Attributes)+len(block.Blocks))
	for _, a := range block.Attributes {
		names = append(names, a.Name)
	}
	for _, nb := range block.Blocks {
		names = append(names, nb.TypeName)
	}
	hint := didYouMean(r.Attribute, names)
	if hint == "" {
		hint = fmt.Sprintf(" See kubectl explain %s.status.attributes.", v1alpha1.KindOf(r.Type))
	}
	return errorAt(r.Field, "Reference to a missing attribute", "A %s has no attribute %q.%s", v1alpha1.KindOf(r.Type), r.Attribute, hint)
}
