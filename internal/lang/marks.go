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
				vals[nb.TypeName] = schema.UpdateElements(nb.Nesting, inner,
					func(e cty.Value) cty.Value { return markBlock(nb.Block, e) })
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
				return schema.UpdateAttributes(e,
					func(vals map[string]cty.Value) { markAttributes(a.Nested.Attributes, vals) })
			})
		}
	}
}

// Ephemeral marks a value that must not be stored in a state, plan or status. The mark propagates through expressions.
// Only write-only attributes accept such a value.
const Ephemeral = mark("ephemeral")

// WithoutMarks returns a value without marks at any depth.
func WithoutMarks(v cty.Value) cty.Value {
	if HasMarks(v) {
		v, _ = v.UnmarkDeep()
	}
	return v
}

// HasMarks reports whether a value has marks at any depth. Most values have none, and for them it is much faster than
// cty's functions: it notes no paths and copies no values.
func HasMarks(v cty.Value) bool {
	switch {
	case v == cty.NilVal:
		return false
	case v.IsMarked():
		return true
	case v.IsNull() || !v.IsKnown():
		return false
	}
	switch ty := v.Type(); {
	case ty.IsObjectType():
		for name := range ty.AttributeTypes() {
			if HasMarks(v.GetAttr(name)) {
				return true
			}
		}
	case ty.IsListType() || ty.IsMapType() || ty.IsTupleType(): // a set has the marks of its elements
		if v.LengthInt() == 0 {
			return false
		}
		for it := v.ElementIterator(); it.Next(); {
			if _, e := it.Element(); HasMarks(e) {
				return true
			}
		}
	}
	return false
}
