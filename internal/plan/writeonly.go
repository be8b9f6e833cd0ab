package plan

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/schema"
)

// WithoutWriteOnly is a value without what must never be stored.
func WithoutWriteOnly(block *schema.Block, v cty.Value) cty.Value {
	return withAttrs(v, func(vals map[string]cty.Value) {
		dropWriteOnly(block.Attributes, vals)
		for _, nb := range block.Blocks {
			vals[nb.TypeName] = eachNested(nb.Nesting, vals[nb.TypeName], func(e cty.Value) cty.Value { return WithoutWriteOnly(nb.Block, e) })
		}
	})
}

func dropWriteOnly(attrs []*schema.Attribute, vals map[string]cty.Value) {
	for _, a := range attrs {
		switch {
		case a.WriteOnly:
			vals[a.Name] = cty.NullVal(a.Type)
		case a.Nested != nil:
			vals[a.Name] = eachNested(a.Nested.Nesting, vals[a.Name], func(e cty.Value) cty.Value {
				return withAttrs(e, func(vals map[string]cty.Value) { dropWriteOnly(a.Nested.Attributes, vals) })
			})
		}
	}
}
