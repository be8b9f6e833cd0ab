package plan

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/schema"
)

type mark string

// Sensitive marks a value that must be masked wherever a person could see it. It follows the value through expressions.
const Sensitive = mark("sensitive")

// Mask stands for a sensitive value in what people see.
const Mask = "(sensitive value)"

// MarkSensitive marks what the schema calls sensitive in a value of the block, such as the state of a resource
// that an expression refers to. Marks that the value bears already are kept.
func MarkSensitive(block *schema.Block, v cty.Value) cty.Value {
	if !hasSensitive(block) {
		return v
	}
	return markBlock(block, v)
}

func markBlock(block *schema.Block, v cty.Value) cty.Value {
	return withAttrs(v, func(vals map[string]cty.Value) {
		markAttributes(block.Attributes, vals)
		for _, nb := range block.Blocks {
			if inner, ok := vals[nb.TypeName]; ok && hasSensitive(nb.Block) {
				vals[nb.TypeName] = eachNested(nb.Nesting, inner, func(e cty.Value) cty.Value { return markBlock(nb.Block, e) })
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
		case a.Nested != nil && hasSensitiveAttribute(a.Nested.Attributes):
			vals[a.Name] = eachNested(a.Nested.Nesting, v, func(e cty.Value) cty.Value {
				return withAttrs(e, func(vals map[string]cty.Value) { markAttributes(a.Nested.Attributes, vals) })
			})
		}
	}
}

func hasSensitive(b *schema.Block) bool {
	if hasSensitiveAttribute(b.Attributes) {
		return true
	}
	for _, nb := range b.Blocks {
		if hasSensitive(nb.Block) {
			return true
		}
	}
	return false
}

func hasSensitiveAttribute(attrs []*schema.Attribute) bool {
	for _, a := range attrs {
		if a.Sensitive || a.Nested != nil && hasSensitiveAttribute(a.Nested.Attributes) {
			return true
		}
	}
	return false
}

// withAttrs rebuilds an object after f changed its attributes; null and unknown objects are left alone.
func withAttrs(v cty.Value, f func(vals map[string]cty.Value)) cty.Value {
	v, marks := v.Unmark()
	if v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() {
		return v.WithMarks(marks)
	}
	vals := v.AsValueMap()
	if len(vals) == 0 {
		return v.WithMarks(marks)
	}
	f(vals)
	return cty.ObjectVal(vals).WithMarks(marks)
}

// eachNested rebuilds a nested value, whatever its nesting, from what f makes of each element. f must not change types.
func eachNested(nesting schema.Nesting, v cty.Value, f func(cty.Value) cty.Value) cty.Value {
	if nesting == schema.NestingSingle || nesting == schema.NestingGroup {
		return f(v)
	}
	v, marks := v.Unmark()
	if v.IsNull() || !v.IsKnown() || v.Type().IsPrimitiveType() || v.LengthInt() == 0 {
		return v.WithMarks(marks)
	}
	ty := v.Type()
	if ty.IsMapType() || ty.IsObjectType() {
		vals := v.AsValueMap()
		for k, e := range vals {
			vals[k] = f(e)
		}
		if ty.IsMapType() {
			return cty.MapVal(vals).WithMarks(marks)
		}
		return cty.ObjectVal(vals).WithMarks(marks)
	}
	vals := v.AsValueSlice()
	for i, e := range vals {
		vals[i] = f(e)
	}
	switch {
	case ty.IsListType():
		return cty.ListVal(vals).WithMarks(marks)
	case ty.IsSetType():
		return cty.SetVal(vals).WithMarks(marks)
	default:
		return cty.TupleVal(vals).WithMarks(marks)
	}
}

// Ephemeral marks a value that must not be stored: not in a state, a plan or a status. It follows the value through
// expressions, and may end in write-only attributes alone.
const Ephemeral = mark("ephemeral")
