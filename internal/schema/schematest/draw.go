package schematest

import (
	"maps"
	"slices"

	"github.com/hykube/hykube/internal/schema"
	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"
)

// DrawValue returns a random value that conforms to ty. Parts that are not required may be null. If unknown is true,
// they may also be unknown.
func DrawValue(t *rapid.T, ty cty.Type, unknown bool) cty.Value {
	pick := rapid.IntRange(0, 9).Draw(t, "kind")
	switch {
	case pick == 0:
		return cty.NullVal(ty)
	case pick == 1 && unknown:
		return cty.UnknownVal(ty)
	}
	few := func() int { return rapid.IntRange(0, 3).Draw(t, "n") }
	switch {
	case ty == cty.String:
		return Str(rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "s"))
	case ty == cty.Number:
		return Num(rapid.Int64Range(0, 3).Draw(t, "i"))
	case ty == cty.Bool:
		return cty.BoolVal(rapid.Bool().Draw(t, "b"))
	case ty == cty.DynamicPseudoType:
		return DrawValue(t, rapid.SampledFrom([]cty.Type{cty.String, cty.Number, cty.List(cty.Bool)}).Draw(t, "ty"),
			unknown)
	case ty.IsObjectType():
		vals := map[string]cty.Value{}
		for _, k := range slices.Sorted(maps.Keys(ty.AttributeTypes())) {
			vals[k] = DrawValue(t, ty.AttributeType(k), unknown)
		}
		return cty.ObjectVal(vals)
	case ty.IsMapType():
		vals := map[string]cty.Value{}
		for range few() {
			vals[rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "k")] = DrawValue(t, ty.ElementType(), unknown)
		}
		return schema.MapVal(vals, ty.ElementType())
	default:
		var vals []cty.Value
		for range few() {
			vals = append(vals, DrawValue(t, ty.ElementType(), unknown))
		}
		if ty.IsSetType() {
			v, _ := schema.SetVal(vals, ty.ElementType())
			return v
		}
		return schema.ListVal(vals, ty.ElementType())
	}
}

// DrawBlock returns a random value of a block, as in a configuration or a state. Nested blocks are never null, except
// those of the nesting mode single.
func DrawBlock(t *rapid.T, b *schema.Block, state bool) cty.Value {
	vals := map[string]cty.Value{}
	for _, a := range b.Attributes {
		vals[a.Name] = drawAttribute(t, a, state)
	}
	for _, nb := range b.Blocks {
		n := 1
		if nb.Nesting != schema.NestingGroup {
			n = rapid.IntRange(0, 2).Draw(t, "blocks")
		}
		vals[nb.TypeName] = drawNested(nb.Nesting, nb.Block.ImpliedType(), min(n, 3),
			func() cty.Value { return DrawBlock(t, nb.Block, state) })
	}
	return cty.ObjectVal(vals)
}

func drawAttribute(t *rapid.T, a *schema.Attribute, state bool) cty.Value {
	if a.Computed && !a.Optional && !state {
		return cty.NullVal(a.Type)
	}
	if a.Nested == nil {
		return DrawValue(t, a.Type, !state)
	}
	n := rapid.IntRange(-1, 2).Draw(t, "elements")
	if n < 0 {
		return cty.NullVal(a.Type)
	}
	elem := cty.Object(schema.AttributeTypes(a.Nested.Attributes))
	return drawNested(a.Nested.Nesting, elem, n, func() cty.Value {
		vals := map[string]cty.Value{}
		for _, in := range a.Nested.Attributes {
			vals[in.Name] = drawAttribute(t, in, state)
		}
		return cty.ObjectVal(vals)
	})
}

func drawNested(n schema.Nesting, elem cty.Type, count int, one func() cty.Value) cty.Value {
	if n == schema.NestingSingle || n == schema.NestingGroup {
		if count == 0 {
			return cty.NullVal(elem)
		}
		return one()
	}
	var vals []cty.Value
	byKey := map[string]cty.Value{}
	for i := range count {
		vals = append(vals, one())
		byKey[string(rune('a'+i))] = vals[i]
	}
	switch n {
	case schema.NestingMap:
		return schema.MapVal(byKey, elem)
	case schema.NestingSet:
		v, _ := schema.SetVal(vals, elem)
		return v
	default:
		return schema.ListVal(vals, elem)
	}
}
