package plan

import (
	"testing"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/schema/schematest"
)

func TestAsConfig(t *testing.T) {
	b := schematest.Block(schematest.Optional("a", cty.String), schematest.Computed("id", cty.String), schematest.OptionalComputed("oc", cty.String),
		schematest.Object(schematest.Optional("n", cty.NilType), schema.NestingList, schematest.Optional("a", cty.String), schematest.Computed("id", cty.String)),
		schematest.NestedBlock("x", schema.NestingSet, schematest.Optional("a", cty.String), schematest.Computed("id", cty.String)))
	e := func(id cty.Value) cty.Value { return schematest.Obj("a", schematest.Str("1"), "id", id) }
	schematest.Same(t, AsConfig(b, schematest.Obj("a", schematest.Str("1"), "id", schematest.Str("i"), "oc", schematest.Str("2"), "n", cty.ListVal([]cty.Value{e(schematest.Str("i"))}), "x", cty.SetVal([]cty.Value{e(schematest.Str("i"))}))),
		schematest.Obj("a", schematest.Str("1"), "id", schematest.NullStr, "oc", schematest.Str("2"), "n", cty.ListVal([]cty.Value{e(schematest.NullStr)}), "x", cty.SetVal([]cty.Value{e(schematest.NullStr)})))
	none := cty.NullVal(b.ImpliedType())
	schematest.Same(t, AsConfig(b, none), none)
}

func TestAsConfigProposesTheState(t *testing.T) {
	// Sets may merge elements that differ in computed values alone, so the schema here has none.
	b := schematest.Block(schematest.Optional("a", cty.String), schematest.Computed("id", cty.String), schematest.OptionalComputed("oc", cty.String),
		schematest.Object(schematest.Optional("n", cty.NilType), schema.NestingMap, schematest.Optional("a", cty.String), schematest.Computed("id", cty.String)),
		schematest.NestedBlock("x", schema.NestingList, schematest.Optional("a", cty.String), schematest.Computed("id", cty.String)),
		schematest.NestedBlock("y", schema.NestingSingle, schematest.Optional("a", cty.String), schematest.Computed("id", cty.String)))
	rapid.Check(t, func(rt *rapid.T) {
		state := schematest.DrawBlock(rt, b, true)
		if got := ProposedNew(b, state, AsConfig(b, state)); !got.RawEquals(state) {
			rt.Fatalf("got  %#v\nwant %#v", got, state)
		}
	})
}
