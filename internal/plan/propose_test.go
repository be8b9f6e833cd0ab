package plan

import (
	"testing"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/schema/schematest"
)

func TestProposedNew(t *testing.T) {
	basic := schematest.Block(schematest.Optional("o", cty.String), schematest.Computed("c", cty.String), schematest.OptionalComputed("oc", cty.String), schematest.Required("r", cty.String))
	basicTy := basic.ImpliedType()

	// inner has one attribute of each kind, as a block and as a nested attribute.
	inner := func() []any {
		return []any{schematest.Optional("k", cty.String), schematest.OptionalComputed("v", cty.String), schematest.Computed("id", cty.String)}
	}
	innerAttrs := func() []*schema.Attribute {
		return []*schema.Attribute{schematest.Optional("k", cty.String), schematest.OptionalComputed("v", cty.String), schematest.Computed("id", cty.String)}
	}
	e := func(k, v, id cty.Value) cty.Value { return schematest.Obj("k", k, "v", v, "id", id) }
	ety := e(schematest.NullStr, schematest.NullStr, schematest.NullStr).Type()
	in := func(v cty.Value) cty.Value { return schematest.Obj("x", v) }
	blocks := func(n schema.Nesting) *schema.Block {
		return schematest.Block(schematest.NestedBlock("x", n, inner()...))
	}
	attrs := func(n schema.Nesting) *schema.Block {
		return schematest.Block(schematest.Object(schematest.Optional("x", cty.NilType), n, innerAttrs()...))
	}
	attrsOC := func(n schema.Nesting) *schema.Block {
		return schematest.Block(schematest.Object(schematest.OptionalComputed("x", cty.NilType), n, innerAttrs()...))
	}
	setOfLists := schematest.Block(schematest.NestedBlock("x", schema.NestingSet, schematest.Required("n", cty.String), schematest.Object(schematest.Optional("l", cty.NilType), schema.NestingList, innerAttrs()...)))
	list := func(vs ...cty.Value) cty.Value { return in(cty.ListVal(vs)) }
	set := func(vs ...cty.Value) cty.Value { return in(cty.SetVal(vs)) }
	m := func(kv ...any) cty.Value { return in(cty.MapVal(schematest.Obj(kv...).AsValueMap())) }

	for name, tc := range map[string]struct {
		block               *schema.Block
		prior, config, want cty.Value
	}{
		"nothing and nothing": {basic, cty.NullVal(basicTy), cty.NullVal(basicTy), cty.NullVal(basicTy)},
		"create takes the configuration": {basic, cty.NullVal(basicTy),
			schematest.Obj("o", schematest.Str("o"), "c", schematest.NullStr, "oc", schematest.NullStr, "r", schematest.Str("r")),
			schematest.Obj("o", schematest.Str("o"), "c", schematest.NullStr, "oc", schematest.NullStr, "r", schematest.Str("r"))},
		"computed values stay, configured ones follow": {basic,
			schematest.Obj("o", schematest.Str("old"), "c", schematest.Str("c"), "oc", schematest.Str("oc"), "r", schematest.Str("old")),
			schematest.Obj("o", schematest.NullStr, "c", schematest.NullStr, "oc", schematest.NullStr, "r", schematest.Str("new")),
			schematest.Obj("o", schematest.NullStr, "c", schematest.Str("c"), "oc", schematest.Str("oc"), "r", schematest.Str("new"))},
		"optional and computed: the configuration wins": {basic,
			schematest.Obj("o", schematest.NullStr, "c", schematest.Str("c"), "oc", schematest.Str("old"), "r", schematest.Str("r")),
			schematest.Obj("o", schematest.UnknownStr, "c", schematest.NullStr, "oc", schematest.Str("new"), "r", schematest.Str("r")),
			schematest.Obj("o", schematest.UnknownStr, "c", schematest.Str("c"), "oc", schematest.Str("new"), "r", schematest.Str("r"))},

		"single block: computed values stay": {blocks(schema.NestingSingle),
			in(e(schematest.Str("k"), schematest.Str("v"), schematest.Str("id"))), in(e(schematest.Str("K"), schematest.NullStr, schematest.NullStr)), in(e(schematest.Str("K"), schematest.Str("v"), schematest.Str("id")))},
		"single block: removed": {blocks(schema.NestingSingle),
			in(e(schematest.Str("k"), schematest.Str("v"), schematest.Str("id"))), in(cty.NullVal(ety)), in(cty.NullVal(ety))},
		"single block: added": {blocks(schema.NestingSingle),
			in(cty.NullVal(ety)), in(e(schematest.Str("k"), schematest.NullStr, schematest.NullStr)), in(e(schematest.Str("k"), schematest.NullStr, schematest.NullStr))},
		"group block: computed values stay": {blocks(schema.NestingGroup),
			in(e(schematest.Str("k"), schematest.Str("v"), schematest.Str("id"))), in(e(schematest.NullStr, schematest.NullStr, schematest.NullStr)), in(e(schematest.NullStr, schematest.Str("v"), schematest.Str("id")))},
		"list block: by index, new ones as they are": {blocks(schema.NestingList),
			list(e(schematest.Str("a"), schematest.NullStr, schematest.Str("1"))), list(e(schematest.Str("z"), schematest.NullStr, schematest.NullStr), e(schematest.Str("b"), schematest.NullStr, schematest.NullStr)),
			list(e(schematest.Str("z"), schematest.NullStr, schematest.Str("1")), e(schematest.Str("b"), schematest.NullStr, schematest.NullStr))},
		"list block: all removed": {blocks(schema.NestingList),
			list(e(schematest.Str("a"), schematest.NullStr, schematest.Str("1"))), in(cty.ListValEmpty(ety)), in(cty.ListValEmpty(ety))},
		"list block: unknown": {blocks(schema.NestingList),
			list(e(schematest.Str("a"), schematest.NullStr, schematest.Str("1"))), in(cty.UnknownVal(cty.List(ety))), in(cty.UnknownVal(cty.List(ety)))},
		"map block: by key": {blocks(schema.NestingMap),
			m("a", e(schematest.Str("a"), schematest.NullStr, schematest.Str("1")), "gone", e(schematest.NullStr, schematest.NullStr, schematest.NullStr)), m("a", e(schematest.Str("z"), schematest.NullStr, schematest.NullStr), "b", e(schematest.Str("b"), schematest.NullStr, schematest.NullStr)),
			m("a", e(schematest.Str("z"), schematest.NullStr, schematest.Str("1")), "b", e(schematest.Str("b"), schematest.NullStr, schematest.NullStr))},
		"set block: by what is not computed": {blocks(schema.NestingSet),
			set(e(schematest.Str("a"), schematest.Str("va"), schematest.Str("1")), e(schematest.Str("b"), schematest.Str("vb"), schematest.Str("2"))),
			set(e(schematest.Str("b"), schematest.NullStr, schematest.NullStr), e(schematest.Str("c"), schematest.NullStr, schematest.NullStr)),
			set(e(schematest.Str("b"), schematest.Str("vb"), schematest.Str("2")), e(schematest.Str("c"), schematest.NullStr, schematest.NullStr))},
		"set block: a configured value that is computed, too, must match": {blocks(schema.NestingSet),
			set(e(schematest.Str("a"), schematest.Str("va"), schematest.Str("1"))), set(e(schematest.Str("a"), schematest.Str("other"), schematest.NullStr)), set(e(schematest.Str("a"), schematest.Str("other"), schematest.NullStr))},
		"set block: a prior element is used once": {blocks(schema.NestingSet),
			set(e(schematest.Str("a"), schematest.Str("v1"), schematest.Str("1"))),
			set(e(schematest.Str("a"), schematest.NullStr, schematest.NullStr), e(schematest.Str("a"), schematest.Str("v2"), schematest.NullStr)),
			set(e(schematest.Str("a"), schematest.Str("v1"), schematest.Str("1")), e(schematest.Str("a"), schematest.Str("v2"), schematest.NullStr))},
		"set block: unknown does not match": {blocks(schema.NestingSet),
			set(e(schematest.Str("a"), schematest.Str("va"), schematest.Str("1"))), set(e(schematest.UnknownStr, schematest.NullStr, schematest.NullStr)), set(e(schematest.UnknownStr, schematest.NullStr, schematest.NullStr))},

		"nested single: computed values stay": {attrs(schema.NestingSingle),
			in(e(schematest.Str("k"), schematest.Str("v"), schematest.Str("id"))), in(e(schematest.Str("K"), schematest.NullStr, schematest.NullStr)), in(e(schematest.Str("K"), schematest.Str("v"), schematest.Str("id")))},
		"nested single: null": {attrs(schema.NestingSingle),
			in(e(schematest.Str("k"), schematest.Str("v"), schematest.Str("id"))), in(cty.NullVal(ety)), in(cty.NullVal(ety))},
		"nested single, computed: a null that was configured before is null": {attrsOC(schema.NestingSingle),
			in(e(schematest.Str("k"), schematest.Str("v"), schematest.Str("id"))), in(cty.NullVal(ety)), in(cty.NullVal(ety))},
		"nested single, computed: a null that the provider filled stays": {attrsOC(schema.NestingSingle),
			in(e(schematest.NullStr, schematest.Str("v"), schematest.Str("id"))), in(cty.NullVal(ety)), in(e(schematest.NullStr, schematest.Str("v"), schematest.Str("id")))},
		"nested list: by index": {attrs(schema.NestingList),
			list(e(schematest.Str("a"), schematest.Str("v"), schematest.Str("1")), e(schematest.Str("b"), schematest.NullStr, schematest.Str("2"))), list(e(schematest.Str("z"), schematest.NullStr, schematest.NullStr)), list(e(schematest.Str("z"), schematest.Str("v"), schematest.Str("1")))},
		"nested list, computed: all from the provider stays": {attrsOC(schema.NestingList),
			list(e(schematest.NullStr, schematest.Str("v"), schematest.Str("1"))), in(cty.NullVal(cty.List(ety))), list(e(schematest.NullStr, schematest.Str("v"), schematest.Str("1")))},
		"nested list, computed: one configured element makes it null": {attrsOC(schema.NestingList),
			list(e(schematest.NullStr, schematest.Str("v"), schematest.Str("1")), e(schematest.Str("k"), schematest.NullStr, schematest.Str("2"))), in(cty.NullVal(cty.List(ety))), in(cty.NullVal(cty.List(ety)))},
		"nested map: by key": {attrs(schema.NestingMap),
			m("a", e(schematest.Str("a"), schematest.Str("v"), schematest.Str("1"))), m("a", e(schematest.NullStr, schematest.NullStr, schematest.NullStr), "b", e(schematest.Str("b"), schematest.NullStr, schematest.NullStr)),
			m("a", e(schematest.NullStr, schematest.Str("v"), schematest.Str("1")), "b", e(schematest.Str("b"), schematest.NullStr, schematest.NullStr))},
		"nested set: by what is not computed": {attrs(schema.NestingSet),
			set(e(schematest.Str("a"), schematest.Str("va"), schematest.Str("1"))), set(e(schematest.Str("a"), schematest.NullStr, schematest.NullStr), e(schematest.Str("b"), schematest.NullStr, schematest.NullStr)),
			set(e(schematest.Str("a"), schematest.Str("va"), schematest.Str("1")), e(schematest.Str("b"), schematest.NullStr, schematest.NullStr))},
		"nested: unknown": {attrs(schema.NestingList),
			list(e(schematest.Str("a"), schematest.NullStr, schematest.Str("1"))), in(cty.UnknownVal(cty.List(ety))), in(cty.UnknownVal(cty.List(ety)))},
		"nested: empty stays empty": {attrs(schema.NestingList),
			list(e(schematest.Str("a"), schematest.NullStr, schematest.Str("1"))), in(cty.ListValEmpty(ety)), in(cty.ListValEmpty(ety))},

		"set of blocks with a nested attribute that has computed values": {
			schematest.Block(schematest.NestedBlock("x", schema.NestingSet, schematest.Required("n", cty.String), schematest.Object(schematest.Optional("o", cty.NilType), schema.NestingSingle, innerAttrs()...))),
			set(schematest.Obj("n", schematest.Str("1"), "o", e(schematest.Str("k"), schematest.Str("v"), schematest.Str("id")))),
			set(schematest.Obj("n", schematest.Str("1"), "o", e(schematest.Str("k"), schematest.NullStr, schematest.NullStr))),
			set(schematest.Obj("n", schematest.Str("1"), "o", e(schematest.Str("k"), schematest.Str("v"), schematest.Str("id"))))},
		"set of blocks with a list in them that has computed values": {setOfLists,
			set(schematest.Obj("n", schematest.Str("1"), "l", cty.ListVal([]cty.Value{e(schematest.Str("k"), schematest.Str("v"), schematest.Str("id"))}))),
			set(schematest.Obj("n", schematest.Str("1"), "l", cty.ListVal([]cty.Value{e(schematest.Str("k"), schematest.NullStr, schematest.NullStr)}))),
			set(schematest.Obj("n", schematest.Str("1"), "l", cty.ListVal([]cty.Value{e(schematest.Str("k"), schematest.Str("v"), schematest.Str("id"))})))},
		"set of blocks with a list in them that lost an element": {setOfLists,
			set(schematest.Obj("n", schematest.Str("1"), "l", cty.ListVal([]cty.Value{e(schematest.Str("k"), schematest.Str("v"), schematest.Str("id")), e(schematest.Str("k2"), schematest.Str("v"), schematest.Str("id"))}))),
			set(schematest.Obj("n", schematest.Str("1"), "l", cty.ListVal([]cty.Value{e(schematest.Str("k"), schematest.NullStr, schematest.NullStr)}))),
			set(schematest.Obj("n", schematest.Str("1"), "l", cty.ListVal([]cty.Value{e(schematest.Str("k"), schematest.NullStr, schematest.NullStr)})))},
		"set of blocks with a map in them that has computed values": {
			schematest.Block(schematest.NestedBlock("x", schema.NestingSet, schematest.Object(schematest.Optional("l", cty.NilType), schema.NestingMap, innerAttrs()...))),
			set(schematest.Obj("l", cty.MapVal(map[string]cty.Value{"a": e(schematest.Str("k"), schematest.Str("v"), schematest.Str("id"))}))),
			set(schematest.Obj("l", cty.MapVal(map[string]cty.Value{"a": e(schematest.Str("k"), schematest.NullStr, schematest.NullStr)}))),
			set(schematest.Obj("l", cty.MapVal(map[string]cty.Value{"a": e(schematest.Str("k"), schematest.Str("v"), schematest.Str("id"))})))},
		"set of blocks with a map in them that lost a key": {
			schematest.Block(schematest.NestedBlock("x", schema.NestingSet, schematest.Object(schematest.Optional("l", cty.NilType), schema.NestingMap, innerAttrs()...))),
			set(schematest.Obj("l", cty.MapVal(map[string]cty.Value{"a": e(schematest.Str("k"), schematest.Str("v"), schematest.Str("id"))}))),
			set(schematest.Obj("l", cty.MapVal(map[string]cty.Value{"b": e(schematest.Str("k"), schematest.NullStr, schematest.NullStr)}))),
			set(schematest.Obj("l", cty.MapVal(map[string]cty.Value{"b": e(schematest.Str("k"), schematest.NullStr, schematest.NullStr)})))},
		"set of blocks with a set in them: it must be equal": {
			schematest.Block(schematest.NestedBlock("x", schema.NestingSet, schematest.Computed("id", cty.String), schematest.NestedBlock("l", schema.NestingSet, inner()...))),
			set(schematest.Obj("id", schematest.Str("1"), "l", cty.SetVal([]cty.Value{e(schematest.Str("k"), schematest.NullStr, schematest.Str("id"))}))),
			set(schematest.Obj("id", schematest.NullStr, "l", cty.SetVal([]cty.Value{e(schematest.Str("k"), schematest.NullStr, schematest.NullStr)}))),
			set(schematest.Obj("id", schematest.NullStr, "l", cty.SetVal([]cty.Value{e(schematest.Str("k"), schematest.NullStr, schematest.NullStr)})))},
		"dynamic elements: tuples by index": {
			schematest.Block(schematest.NestedBlock("x", schema.NestingList, schematest.Optional("d", cty.DynamicPseudoType), schematest.Computed("id", cty.String))),
			in(cty.TupleVal([]cty.Value{schematest.Obj("d", schematest.Num(1), "id", schematest.Str("1"))})),
			in(cty.TupleVal([]cty.Value{schematest.Obj("d", schematest.Str("s"), "id", schematest.NullStr), schematest.Obj("d", schematest.Num(2), "id", schematest.NullStr)})),
			in(cty.TupleVal([]cty.Value{schematest.Obj("d", schematest.Str("s"), "id", schematest.Str("1")), schematest.Obj("d", schematest.Num(2), "id", schematest.NullStr)}))},
		"dynamic elements: objects by key": {
			schematest.Block(schematest.NestedBlock("x", schema.NestingMap, schematest.Optional("d", cty.DynamicPseudoType), schematest.Computed("id", cty.String))),
			in(schematest.Obj("a", schematest.Obj("d", schematest.Num(1), "id", schematest.Str("1")))),
			in(schematest.Obj("a", schematest.Obj("d", schematest.Str("s"), "id", schematest.NullStr), "b", schematest.Obj("d", cty.True, "id", schematest.NullStr))),
			in(schematest.Obj("a", schematest.Obj("d", schematest.Str("s"), "id", schematest.Str("1")), "b", schematest.Obj("d", cty.True, "id", schematest.NullStr)))},
		"blocks within blocks": {
			schematest.Block(schematest.NestedBlock("x", schema.NestingList, schematest.Computed("id", cty.String), schematest.NestedBlock("y", schema.NestingSet, schematest.Required("n", cty.String), schematest.Computed("id", cty.String)))),
			list(schematest.Obj("id", schematest.Str("1"), "y", cty.SetVal([]cty.Value{schematest.Obj("n", schematest.Str("a"), "id", schematest.Str("2"))}))),
			list(schematest.Obj("id", schematest.NullStr, "y", cty.SetVal([]cty.Value{schematest.Obj("n", schematest.Str("a"), "id", schematest.NullStr), schematest.Obj("n", schematest.Str("b"), "id", schematest.NullStr)}))),
			list(schematest.Obj("id", schematest.Str("1"), "y", cty.SetVal([]cty.Value{schematest.Obj("n", schematest.Str("a"), "id", schematest.Str("2")), schematest.Obj("n", schematest.Str("b"), "id", schematest.NullStr)})))},
		"marks are dropped": {basic, cty.NullVal(basicTy),
			schematest.Obj("o", schematest.Str("o").Mark(lang.Sensitive), "c", schematest.NullStr, "oc", schematest.NullStr, "r", schematest.Str("r")),
			schematest.Obj("o", schematest.Str("o"), "c", schematest.NullStr, "oc", schematest.NullStr, "r", schematest.Str("r"))},
	} {
		t.Run(name, func(t *testing.T) {
			schematest.Same(t, ProposedNew(tc.block, tc.prior, tc.config), tc.want)
		})
	}
}

func TestProposedNewProperties(t *testing.T) {
	b := schematest.Machine()
	rapid.Check(t, func(rt *rapid.T) {
		config := schematest.DrawBlock(rt, b, false)
		prior := cty.NullVal(b.ImpliedType())
		if rapid.Bool().Draw(rt, "exists") {
			prior = schematest.DrawBlock(rt, b, true)
		}
		proposed := ProposedNew(b, prior, config)
		if errs := proposed.Type().TestConformance(b.ImpliedType()); len(errs) > 0 {
			rt.Fatalf("does not conform: %v", errs)
		}
		// A provider that plans the proposed value breaks no rule.
		if errs := CheckPlanned(b, prior, config, proposed); len(errs) > 0 {
			rt.Fatalf("proposed state is refused: %q\nprior  %#v\nconfig %#v\nplan   %#v", schematest.Texts(errs), prior, config, proposed)
		}
		if again := ProposedNew(b, prior, config); !again.RawEquals(proposed) {
			rt.Fatalf("not deterministic")
		}
	})
}

func TestProposedNewOfSameConfig(t *testing.T) {
	b := schematest.Machine()
	rapid.Check(t, func(rt *rapid.T) {
		// The provider changed nothing, so there is nothing to propose.
		v := resolve(schematest.DrawBlock(rt, b, false))
		if got := ProposedNew(b, v, v); !got.RawEquals(v) {
			rt.Fatalf("got  %#v\nwant %#v", got, v)
		}
	})
}

func TestProposeSetFindsWhatASlowSearchFinds(t *testing.T) {
	b := schematest.Block(schematest.NestedBlock("x", schema.NestingSet, schematest.Optional("k", cty.Number), schematest.OptionalComputed("v", cty.Number), schematest.Computed("id", cty.Number)))
	n := nestedBlock{b.Blocks[0].Block}
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(state bool) cty.Value {
			var vals []cty.Value
			for range rapid.IntRange(1, 8).Draw(rt, "n") {
				vals = append(vals, schematest.DrawBlock(rt, n.Block, state))
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
