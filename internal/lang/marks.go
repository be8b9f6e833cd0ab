package lang

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/schema"
)

type mark string

// Sensitive marks a value that must be masked wherever a user could see it. The mark propagates through expressions.
const Sensitive = mark("sensitive")

// Mask is the text that users see instead of a sensitive value.
const Mask = "(sensitive value)"

// MarkSensitive marks the values that the block's schema declares sensitive, as in the state of a referenced resource.
// It keeps existing marks.
func MarkSensitive(block *schema.Block, v cty.Value) cty.Value {
	if !schema.HasSensitive(block) {
		return v
	}
	return markBlock(block, v)
}

func markBlock(block *schema.Block, v cty.Value) cty.Value {
	return schema.UpdateAttributes(v, func(vals map[string]cty.Value) {
		markAttributes(block.Attributes, vals)
		for _, nb := range block.Blocks {
			if inner, ok := vals[nb.TypeName]; ok && schema.HasSensitive(nb.Block) {
				vals[nb.TypeName] = schema.UpdateElements(nb.Nesting, inner, func(e cty.Value) cty.Value { return markBlock(nb.Block, e) })
			}
		}
	})
}

func markAttributes(attrs []*schema.Attribute, vals map[string]cty.Value) {
	for _, a := range attrs {
		v, ok := vals[a.Name]
		switch {
		case !ok:
		case a.Sensitive:
			vals[a.Name] = v.Mark(Sensitive)
		case a.Nested != nil && schema.HasSensitiveAttribute(a.Nested.Attributes):
			vals[a.Name] = schema.UpdateElements(a.Nested.Nesting, v, func(e cty.Value) cty.Value {
				return schema.UpdateAttributes(e, func(vals map[string]cty.Value) { markAttributes(a.Nested.Attributes, vals) })
			})
		}
	}
}

// Ephemeral marks a value that must not be stored in a state, plan or status. The mark propagates through expressions.
// Only write-only attributes accept such a value.
const Ephemeral = mark("ephemeral")

// WithoutMarks returns a value without marks at any depth.
func WithoutMarks(v cty.Value) cty.Value {
	v, _ = v.UnmarkDeep()
	return v
}
