package plan

import (
	"testing"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"github.com/hykube/hykube/internal/schema"
)

func TestAsConfig(t *testing.T) {
	b := block(optional("a", cty.String), computed("id", cty.String), optionalComputed("oc", cty.String),
		object(optional("n", cty.NilType), schema.NestingList, optional("a", cty.String), computed("id", cty.String)),
		nestedBlocks("x", schema.NestingSet, optional("a", cty.String), computed("id", cty.String)))
	e := func(id cty.Value) cty.Value { return obj("a", str("1"), "id", id) }
	same(t, AsConfig(b, obj("a", str("1"), "id", str("i"), "oc", str("2"), "n", cty.ListVal([]cty.Value{e(str("i"))}), "x", cty.SetVal([]cty.Value{e(str("i"))}))),
		obj("a", str("1"), "id", nullStr, "oc", str("2"), "n", cty.ListVal([]cty.Value{e(nullStr)}), "x", cty.SetVal([]cty.Value{e(nullStr)})))
	none := cty.NullVal(b.ImpliedType())
	same(t, AsConfig(b, none), none)
}

func TestAsConfigProposesTheState(t *testing.T) {
	// Sets may merge elements that differ in computed values alone, so the schema here has none.
	b := block(optional("a", cty.String), computed("id", cty.String), optionalComputed("oc", cty.String),
		object(optional("n", cty.NilType), schema.NestingMap, optional("a", cty.String), computed("id", cty.String)),
		nestedBlocks("x", schema.NestingList, optional("a", cty.String), computed("id", cty.String)),
		nestedBlocks("y", schema.NestingSingle, optional("a", cty.String), computed("id", cty.String)))
	rapid.Check(t, func(rt *rapid.T) {
		state := drawBlock(rt, b, true)
		if got := ProposedNew(b, state, AsConfig(b, state)); !got.RawEquals(state) {
			rt.Fatalf("got  %#v\nwant %#v", got, state)
		}
	})
}
