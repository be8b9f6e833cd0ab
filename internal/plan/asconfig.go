package plan

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/schema"
)

// AsConfig returns the configuration that would produce the state: the state without the attributes that only the
// provider may set. It is the effective configuration when all changes are ignored, and the basis of a generated
// configuration.
func AsConfig(block *schema.Block, state cty.Value) cty.Value {
	return without(block, state, func(a *schema.Attribute) bool { return !a.Configurable() })
}

// WithoutWriteOnly returns a value with its write-only attributes set to null, since these must never be stored.
func WithoutWriteOnly(block *schema.Block, v cty.Value) cty.Value {
	return without(block, v, func(a *schema.Attribute) bool { return a.WriteOnly })
}

// without sets the selected attributes to null, at any depth.
func without(block *schema.Block, v cty.Value, drop func(*schema.Attribute) bool) cty.Value {
	return schema.UpdateAttributes(v, func(vals map[string]cty.Value) {
		withoutAttributes(block.Attributes, vals, drop)
		for _, nb := range block.Blocks {
			vals[nb.TypeName] = schema.UpdateElements(nb.Nesting, vals[nb.TypeName],
				func(e cty.Value) cty.Value { return without(nb.Block, e, drop) })
		}
	})
}

func withoutAttributes(attrs []*schema.Attribute, vals map[string]cty.Value, drop func(*schema.Attribute) bool) {
	for _, a := range attrs {
		switch {
		case drop(a):
			vals[a.Name] = cty.NullVal(a.Type)
		case a.Nested != nil:
			vals[a.Name] = schema.UpdateElements(a.Nested.Nesting, vals[a.Name], func(e cty.Value) cty.Value {
				return schema.UpdateAttributes(e,
					func(vals map[string]cty.Value) { withoutAttributes(a.Nested.Attributes, vals, drop) })
			})
		}
	}
}
