package plan

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/schema"
)

// AsConfig is the configuration that would ask for what a state holds: the state without what only the provider
// may set. It is what ignoring all changes means, and where the configuration of an imported resource begins.
func AsConfig(block *schema.Block, state cty.Value) cty.Value {
	return withAttrs(state, func(vals map[string]cty.Value) {
		configAttributes(block.Attributes, vals)
		for _, nb := range block.Blocks {
			vals[nb.TypeName] = eachNested(nb.Nesting, vals[nb.TypeName], func(e cty.Value) cty.Value { return AsConfig(nb.Block, e) })
		}
	})
}

func configAttributes(attrs []*schema.Attribute, vals map[string]cty.Value) {
	for _, a := range attrs {
		switch {
		case !a.Configurable():
			vals[a.Name] = cty.NullVal(a.Type)
		case a.Nested != nil:
			vals[a.Name] = eachNested(a.Nested.Nesting, vals[a.Name], func(e cty.Value) cty.Value {
				return withAttrs(e, func(vals map[string]cty.Value) { configAttributes(a.Nested.Attributes, vals) })
			})
		}
	}
}
