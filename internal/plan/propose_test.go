package plan

import (
	"testing"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"github.com/hykube/hykube/internal/schema"
)

func TestProposedNew(t *testing.T) {
	basic := block(optional("o", cty.String), computed("c", cty.String), optionalComputed("oc", cty.String), required("r", cty.String))
	basicTy := basic.ImpliedType()

	// inner has one attribute of each kind, as a block and as a nested attribute.
	inner := func() []any {
		return []any{optional("k", cty.String), optionalComputed("v", cty.String), computed("id", cty.String)}
	}
	innerAttrs := func() []*schema.Attribute {
		return []*schema.Attribute{optional("k", cty.String), optionalComputed("v", cty.String), computed("id", cty.String)}
	}
	e := func(k, v, id cty.Value) cty.Value { return obj("k", k, "v", v, "id", id) }
	ety := e(nullStr, nullStr, nullStr).Type()
	in := func(v cty.Value) cty.Value { return obj("x", v) }
	blocks := func(n schema.Nesting) *schema.Block { return block(nestedBlocks("x", n, inner()...)) }
	attrs := func(n schema.Nesting) *schema.Block {
		return block(object(optional("x", cty.NilType), n, innerAttrs()...))
	}
	attrsOC := func(n schema.Nesting) *schema.Block {
		return block(object(optionalComputed("x", cty.NilType), n, innerAttrs()...))
	}
	setOfLists := block(nestedBlocks("x", schema.NestingSet, required("n", cty.String), object(optional("l", cty.NilType), schema.NestingList, innerAttrs()...)))
	list := func(vs ...cty.Value) cty.Value { return in(cty.ListVal(vs)) }
	set := func(vs ...cty.Value) cty.Value { return in(cty.SetVal(vs)) }
	m := func(kv ...any) cty.Value { return in(cty.MapVal(obj(kv...).AsValueMap())) }

	for name, tc := range map[string]struct {
		block               *schema.Block
		prior, config, want cty.Value
	}{
		"nothing and nothing": {basic, cty.NullVal(basicTy), cty.NullVal(basicTy), cty.NullVal(basicTy)},
		"create takes the configuration": {basic, cty.NullVal(basicTy),
			obj("o", str("o"), "c", nullStr, "oc", nullStr, "r", str("r")),
			obj("o", str("o"), "c", nullStr, "oc", nullStr, "r", str("r"))},
		"computed values stay, configured ones follow": {basic,
			obj("o", str("old"), "c", str("c"), "oc", str("oc"), "r", str("old")),
			obj("o", nullStr, "c", nullStr, "oc", nullStr, "r", str("new")),
			obj("o", nullStr, "c", str("c"), "oc", str("oc"), "r", str("new"))},
		"optional and computed: the configuration wins": {basic,
			obj("o", nullStr, "c", str("c"), "oc", str("old"), "r", str("r")),
			obj("o", unknownStr, "c", nullStr, "oc", str("new"), "r", str("r")),
			obj("o", unknownStr, "c", str("c"), "oc", str("new"), "r", str("r"))},

		"single block: computed values stay": {blocks(schema.NestingSingle),
			in(e(str("k"), str("v"), str("id"))), in(e(str("K"), nullStr, nullStr)), in(e(str("K"), str("v"), str("id")))},
		"single block: removed": {blocks(schema.NestingSingle),
			in(e(str("k"), str("v"), str("id"))), in(cty.NullVal(ety)), in(cty.NullVal(ety))},
		"single block: added": {blocks(schema.NestingSingle),
			in(cty.NullVal(ety)), in(e(str("k"), nullStr, nullStr)), in(e(str("k"), nullStr, nullStr))},
		"group block: computed values stay": {blocks(schema.NestingGroup),
			in(e(str("k"), str("v"), str("id"))), in(e(nullStr, nullStr, nullStr)), in(e(nullStr, str("v"), str("id")))},
		"list block: by index, new ones as they are": {blocks(schema.NestingList),
			list(e(str("a"), nullStr, str("1"))), list(e(str("z"), nullStr, nullStr), e(str("b"), nullStr, nullStr)),
			list(e(str("z"), nullStr, str("1")), e(str("b"), nullStr, nullStr))},
		"list block: all removed": {blocks(schema.NestingList),
			list(e(str("a"), nullStr, str("1"))), in(cty.ListValEmpty(ety)), in(cty.ListValEmpty(ety))},
		"list block: unknown": {blocks(schema.NestingList),
			list(e(str("a"), nullStr, str("1"))), in(cty.UnknownVal(cty.List(ety))), in(cty.UnknownVal(cty.List(ety)))},
		"map block: by key": {blocks(schema.NestingMap),
			m("a", e(str("a"), nullStr, str("1")), "gone", e(nullStr, nullStr, nullStr)), m("a", e(str("z"), nullStr, nullStr), "b", e(str("b"), nullStr, nullStr)),
			m("a", e(str("z"), nullStr, str("1")), "b", e(str("b"), nullStr, nullStr))},
		"set block: by what is not computed": {blocks(schema.NestingSet),
			set(e(str("a"), str("va"), str("1")), e(str("b"), str("vb"), str("2"))),
			set(e(str("b"), nullStr, nullStr), e(str("c"), nullStr, nullStr)),
			set(e(str("b"), str("vb"), str("2")), e(str("c"), nullStr, nullStr))},
		"set block: a configured value that is computed, too, must match": {blocks(schema.NestingSet),
			set(e(str("a"), str("va"), str("1"))), set(e(str("a"), str("other"), nullStr)), set(e(str("a"), str("other"), nullStr))},
		"set block: a prior element is used once": {blocks(schema.NestingSet),
			set(e(str("a"), str("v1"), str("1"))),
			set(e(str("a"), nullStr, nullStr), e(str("a"), str("v2"), nullStr)),
			set(e(str("a"), str("v1"), str("1")), e(str("a"), str("v2"), nullStr))},
		"set block: unknown does not match": {blocks(schema.NestingSet),
			set(e(str("a"), str("va"), str("1"))), set(e(unknownStr, nullStr, nullStr)), set(e(unknownStr, nullStr, nullStr))},

		"nested single: computed values stay": {attrs(schema.NestingSingle),
			in(e(str("k"), str("v"), str("id"))), in(e(str("K"), nullStr, nullStr)), in(e(str("K"), str("v"), str("id")))},
		"nested single: null": {attrs(schema.NestingSingle),
			in(e(str("k"), str("v"), str("id"))), in(cty.NullVal(ety)), in(cty.NullVal(ety))},
		"nested single, computed: a null that was configured before is null": {attrsOC(schema.NestingSingle),
			in(e(str("k"), str("v"), str("id"))), in(cty.NullVal(ety)), in(cty.NullVal(ety))},
		"nested single, computed: a null that the provider filled stays": {attrsOC(schema.NestingSingle),
			in(e(nullStr, str("v"), str("id"))), in(cty.NullVal(ety)), in(e(nullStr, str("v"), str("id")))},
		"nested list: by index": {attrs(schema.NestingList),
			list(e(str("a"), str("v"), str("1")), e(str("b"), nullStr, str("2"))), list(e(str("z"), nullStr, nullStr)), list(e(str("z"), str("v"), str("1")))},
		"nested list, computed: all from the provider stays": {attrsOC(schema.NestingList),
			list(e(nullStr, str("v"), str("1"))), in(cty.NullVal(cty.List(ety))), list(e(nullStr, str("v"), str("1")))},
		"nested list, computed: one configured element makes it null": {attrsOC(schema.NestingList),
			list(e(nullStr, str("v"), str("1")), e(str("k"), nullStr, str("2"))), in(cty.NullVal(cty.List(ety))), in(cty.NullVal(cty.List(ety)))},
		"nested map: by key": {attrs(schema.NestingMap),
			m("a", e(str("a"), str("v"), str("1"))), m("a", e(nullStr, nullStr, nullStr), "b", e(str("b"), nullStr, nullStr)),
			m("a", e(nullStr, str("v"), str("1")), "b", e(str("b"), nullStr, nullStr))},
		"nested set: by what is not computed": {attrs(schema.NestingSet),
			set(e(str("a"), str("va"), str("1"))), set(e(str("a"), nullStr, nullStr), e(str("b"), nullStr, nullStr)),
			set(e(str("a"), str("va"), str("1")), e(str("b"), nullStr, nullStr))},
		"nested: unknown": {attrs(schema.NestingList),
			list(e(str("a"), nullStr, str("1"))), in(cty.UnknownVal(cty.List(ety))), in(cty.UnknownVal(cty.List(ety)))},
		"nested: empty stays empty": {attrs(schema.NestingList),
			list(e(str("a"), nullStr, str("1"))), in(cty.ListValEmpty(ety)), in(cty.ListValEmpty(ety))},

		"set of blocks with a nested attribute that has computed values": {
			block(nestedBlocks("x", schema.NestingSet, required("n", cty.String), object(optional("o", cty.NilType), schema.NestingSingle, innerAttrs()...))),
			set(obj("n", str("1"), "o", e(str("k"), str("v"), str("id")))),
			set(obj("n", str("1"), "o", e(str("k"), nullStr, nullStr))),
			set(obj("n", str("1"), "o", e(str("k"), str("v"), str("id"))))},
		"set of blocks with a list in them that has computed values": {setOfLists,
			set(obj("n", str("1"), "l", cty.ListVal([]cty.Value{e(str("k"), str("v"), str("id"))}))),
			set(obj("n", str("1"), "l", cty.ListVal([]cty.Value{e(str("k"), nullStr, nullStr)}))),
			set(obj("n", str("1"), "l", cty.ListVal([]cty.Value{e(str("k"), str("v"), str("id"))})))},
		"set of blocks with a list in them that lost an element": {setOfLists,
			set(obj("n", str("1"), "l", cty.ListVal([]cty.Value{e(str("k"), str("v"), str("id")), e(str("k2"), str("v"), str("id"))}))),
			set(obj("n", str("1"), "l", cty.ListVal([]cty.Value{e(str("k"), nullStr, nullStr)}))),
			set(obj("n", str("1"), "l", cty.ListVal([]cty.Value{e(str("k"), nullStr, nullStr)})))},
		"set of blocks with a map in them that has computed values": {
			block(nestedBlocks("x", schema.NestingSet, object(optional("l", cty.NilType), schema.NestingMap, innerAttrs()...))),
			set(obj("l", cty.MapVal(map[string]cty.Value{"a": e(str("k"), str("v"), str("id"))}))),
			set(obj("l", cty.MapVal(map[string]cty.Value{"a": e(str("k"), nullStr, nullStr)}))),
			set(obj("l", cty.MapVal(map[string]cty.Value{"a": e(str("k"), str("v"), str("id"))})))},
		"set of blocks with a map in them that lost a key": {
			block(nestedBlocks("x", schema.NestingSet, object(optional("l", cty.NilType), schema.NestingMap, innerAttrs()...))),
			set(obj("l", cty.MapVal(map[string]cty.Value{"a": e(str("k"), str("v"), str("id"))}))),
			set(obj("l", cty.MapVal(map[string]cty.Value{"b": e(str("k"), nullStr, nullStr)}))),
			set(obj("l", cty.MapVal(map[string]cty.Value{"b": e(str("k"), nullStr, nullStr)})))},
		"set of blocks with a set in them: it must be equal": {
			block(nestedBlocks("x", schema.NestingSet, computed("id", cty.String), nestedBlocks("l", schema.NestingSet, inner()...))),
			set(obj("id", str("1"), "l", cty.SetVal([]cty.Value{e(str("k"), nullStr, str("id"))}))),
			set(obj("id", nullStr, "l", cty.SetVal([]cty.Value{e(str("k"), nullStr, nullStr)}))),
			set(obj("id", nullStr, "l", cty.SetVal([]cty.Value{e(str("k"), nullStr, nullStr)})))},
		"dynamic elements: tuples by index": {
			block(nestedBlocks("x", schema.NestingList, optional("d", cty.DynamicPseudoType), computed("id", cty.String))),
			in(cty.TupleVal([]cty.Value{obj("d", num(1), "id", str("1"))})),
			in(cty.TupleVal([]cty.Value{obj("d", str("s"), "id", nullStr), obj("d", num(2), "id", nullStr)})),
			in(cty.TupleVal([]cty.Value{obj("d", str("s"), "id", str("1")), obj("d", num(2), "id", nullStr)}))},
		"dynamic elements: objects by key": {
			block(nestedBlocks("x", schema.NestingMap, optional("d", cty.DynamicPseudoType), computed("id", cty.String))),
			in(obj("a", obj("d", num(1), "id", str("1")))),
			in(obj("a", obj("d", str("s"), "id", nullStr), "b", obj("d", cty.True, "id", nullStr))),
			in(obj("a", obj("d", str("s"), "id", str("1")), "b", obj("d", cty.True, "id", nullStr)))},
		"blocks within blocks": {
			block(nestedBlocks("x", schema.NestingList, computed("id", cty.String), nestedBlocks("y", schema.NestingSet, required("n", cty.String), computed("id", cty.String)))),
			list(obj("id", str("1"), "y", cty.SetVal([]cty.Value{obj("n", str("a"), "id", str("2"))}))),
			list(obj("id", nullStr, "y", cty.SetVal([]cty.Value{obj("n", str("a"), "id", nullStr), obj("n", str("b"), "id", nullStr)}))),
			list(obj("id", str("1"), "y", cty.SetVal([]cty.Value{obj("n", str("a"), "id", str("2")), obj("n", str("b"), "id", nullStr)})))},
		"marks are dropped": {basic, cty.NullVal(basicTy),
			obj("o", str("o").Mark(Sensitive), "c", nullStr, "oc", nullStr, "r", str("r")),
			obj("o", str("o"), "c", nullStr, "oc", nullStr, "r", str("r"))},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, ProposedNew(tc.block, tc.prior, tc.config), tc.want)
		})
	}
}

// drawValue makes any value that conforms to a type; what is not required may be null, and with unknown set, unknown.
func drawValue(t *rapid.T, ty cty.Type, unknown bool) cty.Value {
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
		return str(rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "s"))
	case ty == cty.Number:
		return num(rapid.Int64Range(0, 3).Draw(t, "i"))
	case ty == cty.Bool:
		return cty.BoolVal(rapid.Bool().Draw(t, "b"))
	case ty == cty.DynamicPseudoType:
		return drawValue(t, rapid.SampledFrom([]cty.Type{cty.String, cty.Number, cty.List(cty.Bool)}).Draw(t, "ty"), unknown)
	case ty.IsObjectType():
		vals := map[string]cty.Value{}
		for _, k := range sortedKeys(ty.AttributeTypes()) {
			vals[k] = drawValue(t, ty.AttributeType(k), unknown)
		}
		return cty.ObjectVal(vals)
	case ty.IsMapType():
		vals := map[string]cty.Value{}
		for range few() {
			vals[rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "k")] = drawValue(t, ty.ElementType(), unknown)
		}
		return mapVal(vals, ty.ElementType())
	default:
		var vals []cty.Value
		for range few() {
			vals = append(vals, drawValue(t, ty.ElementType(), unknown))
		}
		if ty.IsSetType() {
			v, _ := setVal(vals, ty.ElementType())
			return v
		}
		return listVal(vals, ty.ElementType())
	}
}

// drawBlock makes a value of a block as a configuration or a state has them: blocks are never null but single ones.
func drawBlock(t *rapid.T, b *schema.Block, state bool) cty.Value {
	vals := map[string]cty.Value{}
	for _, a := range b.Attributes {
		vals[a.Name] = drawAttribute(t, a, state)
	}
	for _, nb := range b.Blocks {
		n := 1
		if nb.Nesting != schema.NestingGroup {
			n = rapid.IntRange(0, 2).Draw(t, "blocks")
		}
		vals[nb.TypeName] = drawNested(nb.Nesting, nb.Block.ImpliedType(), min(n, 3), func() cty.Value { return drawBlock(t, nb.Block, state) })
	}
	return cty.ObjectVal(vals)
}

func drawAttribute(t *rapid.T, a *schema.Attribute, state bool) cty.Value {
	if a.Computed && !a.Optional && !state {
		return cty.NullVal(a.Type)
	}
	if a.Nested == nil {
		return drawValue(t, a.Type, !state)
	}
	n := rapid.IntRange(-1, 2).Draw(t, "elements")
	if n < 0 {
		return cty.NullVal(a.Type)
	}
	elem := cty.Object(attributeTypes(a.Nested.Attributes))
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
		return mapVal(byKey, elem)
	case schema.NestingSet:
		v, _ := setVal(vals, elem)
		return v
	default:
		return listVal(vals, elem)
	}
}

func TestProposedNewProperties(t *testing.T) {
	b := machine()
	rapid.Check(t, func(rt *rapid.T) {
		config := drawBlock(rt, b, false)
		prior := cty.NullVal(b.ImpliedType())
		if rapid.Bool().Draw(rt, "exists") {
			prior = drawBlock(rt, b, true)
		}
		proposed := ProposedNew(b, prior, config)
		if errs := proposed.Type().TestConformance(b.ImpliedType()); len(errs) > 0 {
			rt.Fatalf("does not conform: %v", errs)
		}
		// A provider that plans what is proposed breaks no rule.
		if errs := CheckPlanned(b, prior, config, proposed); len(errs) > 0 {
			rt.Fatalf("proposed state is refused: %q\nprior  %#v\nconfig %#v\nplan   %#v", texts(errs), prior, config, proposed)
		}
		if again := ProposedNew(b, prior, config); !again.RawEquals(proposed) {
			rt.Fatalf("not deterministic")
		}
	})
}

func TestProposedNewOfSameConfig(t *testing.T) {
	b := machine()
	rapid.Check(t, func(rt *rapid.T) {
		// The provider changed nothing, so there is nothing to propose.
		v := resolve(drawBlock(rt, b, false))
		if got := ProposedNew(b, v, v); !got.RawEquals(v) {
			rt.Fatalf("got  %#v\nwant %#v", got, v)
		}
	})
}

func TestProposeSetFindsWhatASlowSearchFinds(t *testing.T) {
	b := block(nestedBlocks("x", schema.NestingSet, optional("k", cty.Number), optionalComputed("v", cty.Number), computed("id", cty.Number)))
	n := nestedBlock{b.Blocks[0].Block}
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(state bool) cty.Value {
			var vals []cty.Value
			for range rapid.IntRange(1, 8).Draw(rt, "n") {
				vals = append(vals, drawBlock(rt, n.Block, state))
			}
			return cty.SetVal(vals)
		}
		prior, config := draw(true), draw(false)
		left, want := prior.AsValueSlice(), []cty.Value(nil)
		for _, c := range config.AsValueSlice() {
			match := cty.NullVal(n.elementType())
			for i, p := range left {
				if couldBecome(n, p, c) {
					match, left = p, append(left[:i:i], left[i+1:]...)
					break
				}
			}
			want = append(want, n.propose(match, c))
		}
		if got := proposeSet(n, prior, config); !got.RawEquals(cty.SetVal(want)) {
			rt.Fatalf("got  %#v\nwant %#v", got, cty.SetVal(want))
		}
	})
}
