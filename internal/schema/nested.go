package schema

import (
	"github.com/zclconf/go-cty/cty"
)

// ListVal returns a list, or a tuple if the element type is dynamic (see NestedBlock.ImpliedType).
func ListVal(vals []cty.Value, elem cty.Type) cty.Value {
	switch {
	case elem.HasDynamicTypes():
		return cty.TupleVal(vals)
	case len(vals) == 0:
		return cty.ListValEmpty(elem)
	default:
		return cty.ListVal(vals)
	}
}

// MapVal returns a map, or an object if the element type is dynamic.
func MapVal(vals map[string]cty.Value, elem cty.Type) cty.Value {
	switch {
	case elem.HasDynamicTypes():
		return cty.ObjectVal(vals)
	case len(vals) == 0:
		return cty.MapValEmpty(elem)
	default:
		return cty.MapVal(vals)
	}
}

// SetVal returns a set. It returns false if the elements have different types, which a set cannot hold.
func SetVal(vals []cty.Value, elem cty.Type) (cty.Value, bool) {
	if len(vals) == 0 {
		return cty.SetValEmpty(elem), true
	}
	if elem.HasDynamicTypes() && !cty.CanSetVal(vals) {
		return cty.NilVal, false
	}
	return cty.SetVal(vals), true
}

// AttributeTypes returns the types of attributes by name.
func AttributeTypes(attrs []*Attribute) map[string]cty.Type {
	atys := make(map[string]cty.Type, len(attrs))
	for _, a := range attrs {
		atys[a.Name] = a.Type
	}
	return atys
}

// EmptyNested returns the value of a nested block type without blocks.
func EmptyNested(nb *NestedBlock) cty.Value {
	switch nb.Nesting {
	case NestingGroup:
		return EmptyBlock(nb.Block)
	case NestingList:
		return ListVal(nil, nb.Block.ImpliedType())
	case NestingSet:
		return cty.SetValEmpty(nb.Block.ImpliedType())
	case NestingMap:
		return MapVal(nil, nb.Block.ImpliedType())
	default:
		return cty.NullVal(nb.Block.ImpliedType())
	}
}

// EmptyBlock returns a block without arguments.
func EmptyBlock(b *Block) cty.Value {
	vals := make(map[string]cty.Value, len(b.Attributes)+len(b.Blocks))
	for _, a := range b.Attributes {
		vals[a.Name] = cty.NullVal(a.Type)
	}
	for _, nb := range b.Blocks {
		vals[nb.TypeName] = EmptyNested(nb)
	}
	return cty.ObjectVal(vals)
}

// UnknownBlock returns a block whose attributes and nested blocks are all unknown.
func UnknownBlock(b *Block) cty.Value {
	vals := make(map[string]cty.Value, len(b.Attributes)+len(b.Blocks))
	for _, a := range b.Attributes {
		vals[a.Name] = cty.UnknownVal(a.Type)
	}
	for _, nb := range b.Blocks {
		vals[nb.TypeName] = cty.UnknownVal(nb.ImpliedType())
	}
	return cty.ObjectVal(vals)
}

// UpdateAttributes rebuilds an object after f has changed its attributes. It returns null and unknown objects
// unchanged.
func UpdateAttributes(v cty.Value, f func(vals map[string]cty.Value)) cty.Value {
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

// UpdateElements rebuilds a nested value of any nesting mode with the result of f for each element. f must not change
// types.
func UpdateElements(nesting Nesting, v cty.Value, f func(cty.Value) cty.Value) cty.Value {
	if nesting == NestingSingle || nesting == NestingGroup {
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

// HasSensitive reports whether a block, or a block in it, has a sensitive attribute.
func HasSensitive(b *Block) bool {
	if HasSensitiveAttribute(b.Attributes) {
		return true
	}
	for _, nb := range b.Blocks {
		if HasSensitive(nb.Block) {
			return true
		}
	}
	return false
}

// HasSensitiveAttribute reports whether an attribute, or one nested in it, is sensitive.
func HasSensitiveAttribute(attrs []*Attribute) bool {
	for _, a := range attrs {
		if a.Sensitive || a.Nested != nil && HasSensitiveAttribute(a.Nested.Attributes) {
			return true
		}
	}
	return false
}
