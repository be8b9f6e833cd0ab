package plan

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/schema/schematest"
)

func TestCheckPlanned(t *testing.T) {
	leaf := func(a *schema.Attribute) *schema.Block { return schematest.Block(a) }
	in := func(v cty.Value) cty.Value { return schematest.Obj("x", v) }
	e := schematest.Obj("a", schematest.NullStr, "c", schematest.NullStr)
	ety := e.Type()
	blocks := func(n schema.Nesting) *schema.Block {
		return schematest.Block(schematest.NestedBlock("x", n, schematest.Optional("a", cty.String), schematest.Computed("c", cty.String)))
	}
	attrs := func(n schema.Nesting) *schema.Block {
		return schematest.Block(schematest.Object(schematest.Optional("x", cty.NilType), n, schematest.Optional("a", cty.String), schematest.Computed("c", cty.String)))
	}
	el := func(a, c cty.Value) cty.Value { return schematest.Obj("a", a, "c", c) }
	list := func(vs ...cty.Value) cty.Value { return in(cty.ListVal(vs)) }
	set := func(vs ...cty.Value) cty.Value { return in(cty.SetVal(vs)) }
	m := func(kv ...any) cty.Value { return in(cty.MapVal(schematest.Obj(kv...).AsValueMap())) }
	none := cty.NullVal(in(schematest.NullStr).Type())

	for name, tc := range map[string]struct {
		block                  *schema.Block
		prior, config, planned cty.Value
		want                   []string
	}{
		"as configured":                      {leaf(schematest.Optional("x", cty.String)), none, in(schematest.Str("a")), in(schematest.Str("a")), nil},
		"as before, which is equivalent":     {leaf(schematest.Optional("x", cty.String)), in(schematest.Str("A")), in(schematest.Str("a")), in(schematest.Str("A")), nil},
		"computed is the provider's choice":  {leaf(schematest.Computed("x", cty.String)), none, in(schematest.NullStr), in(schematest.UnknownStr), nil},
		"a default for optional + computed":  {leaf(schematest.OptionalComputed("x", cty.String)), none, in(schematest.NullStr), in(schematest.Str("d")), nil},
		"write-only is never in a state":     {leaf(schematest.WriteOnly(schematest.Optional("x", cty.String))), none, in(schematest.Str("pw")), in(schematest.NullStr), nil},
		"neither configured nor before":      {leaf(schematest.Optional("x", cty.String)), in(schematest.Str("p")), in(schematest.Str("a")), in(schematest.Str("b")), []string{`x: planned value "b" does not match config value "a" nor prior value "p"`}},
		"not as configured":                  {leaf(schematest.Optional("x", cty.String)), none, in(schematest.Str("a")), in(schematest.Str("b")), []string{`x: planned value "b" does not match config value "a"`}},
		"unknown for what is configured":     {leaf(schematest.OptionalComputed("x", cty.String)), none, in(schematest.Str("a")), in(schematest.UnknownStr), []string{`x: planned value (known after apply) does not match config value "a"`}},
		"a default without computed":         {leaf(schematest.Optional("x", cty.String)), none, in(schematest.NullStr), in(schematest.Str("d")), []string{`x: planned value "d" for a non-computed attribute`}},
		"prior kept though config is null":   {leaf(schematest.Optional("x", cty.String)), in(schematest.Str("d")), in(schematest.NullStr), in(schematest.Str("d")), []string{`x: planned value "d" for a non-computed attribute`}},
		"errors have no secrets":             {leaf(schematest.Sensitive(schematest.Optional("x", cty.String))), in(schematest.Str("s1")), in(schematest.Str("s2")), in(schematest.Str("s3")), []string{`x: sensitive planned value does not match config value nor prior value`}},
		"errors have no marked secrets":      {leaf(schematest.Optional("x", cty.String)), none, in(schematest.Str("s2").Mark(lang.Sensitive)), in(schematest.Str("s3")), []string{`x: sensitive planned value does not match config value`}},
		"null object, though configured":     {leaf(schematest.Optional("x", cty.String)), none, in(schematest.Str("a")), none, []string{`planned for absence but config wants existence`}},
		"object, though not configured":      {leaf(schematest.Optional("x", cty.String)), none, none, in(schematest.Str("a")), []string{`planned for existence but config wants absence`}},
		"unknown config must stay unknown":   {leaf(schematest.Optional("x", cty.String)), none, in(schematest.UnknownStr), in(schematest.Str("a")), []string{`x: planned value "a" does not match config value (known after apply)`}},
		"a refined unknown is still unknown": {leaf(schematest.Optional("x", cty.String)), none, in(schematest.UnknownStr), in(schematest.UnknownStr.RefineNotNull()), nil},
		"and so is one within a map": {leaf(schematest.Optional("x", cty.Map(cty.String))), none,
			in(cty.MapVal(map[string]cty.Value{"k": cty.UnknownVal(cty.String).Refine().StringPrefix("db-").NewValue()})),
			in(cty.MapVal(map[string]cty.Value{"k": cty.UnknownVal(cty.String)})), nil},

		"list: fewer blocks":          {blocks(schema.NestingList), none, list(el(schematest.Str("a"), schematest.NullStr)), in(cty.ListValEmpty(ety)), []string{`x: block count in plan (0) disagrees with count in config (1)`}},
		"list: computed in a block":   {blocks(schema.NestingList), none, list(el(schematest.Str("a"), schematest.NullStr)), list(el(schematest.Str("a"), schematest.UnknownStr)), nil},
		"list: changed in a block":    {blocks(schema.NestingList), none, list(el(schematest.Str("a"), schematest.NullStr)), list(el(schematest.Str("b"), schematest.NullStr)), []string{`x[0].a: planned value "b" does not match config value "a"`}},
		"list: an unknown block":      {blocks(schema.NestingList), none, list(el(schematest.Str("a"), schematest.NullStr)), list(cty.UnknownVal(ety)), []string{`x[0]: element representing nested block must not be unknown itself; set nested attribute values to unknown instead`}},
		"list: null":                  {blocks(schema.NestingList), none, in(cty.ListValEmpty(ety)), in(cty.NullVal(cty.List(ety))), []string{`x: attribute representing nested blocks must be empty to indicate no blocks, not null`}},
		"list: config unknown":        {blocks(schema.NestingList), none, in(cty.UnknownVal(cty.List(ety))), list(el(schematest.Str("a"), schematest.NullStr)), []string{`x: planned value for a block that is not known yet`}},
		"list: unknown without cause": {blocks(schema.NestingList), none, list(el(schematest.Str("a"), schematest.NullStr)), in(cty.UnknownVal(cty.List(ety))), []string{`x: attribute representing nested block must not be unknown itself; set nested attribute values to unknown instead`}},
		"map: other keys":             {blocks(schema.NestingMap), none, m("a", el(schematest.Str("a"), schematest.NullStr)), m("b", el(schematest.Str("a"), schematest.NullStr)), []string{`x: block key "b" from plan is not present in config`, `x: block key "a" from config is not present in plan`}},
		"map: changed in a block":     {blocks(schema.NestingMap), none, m("a", el(schematest.Str("a"), schematest.NullStr)), m("a", el(schematest.Str("b"), schematest.NullStr)), []string{`x.a.a: planned value "b" does not match config value "a"`}},
		"set: trusted":                {blocks(schema.NestingSet), none, set(el(schematest.Str("a"), schematest.NullStr)), set(el(schematest.Str("other"), schematest.NullStr)), nil},
		"set: an unknown block":       {blocks(schema.NestingSet), none, set(el(schematest.Str("a"), schematest.NullStr)), set(cty.UnknownVal(ety)), []string{`x[*]: element representing nested block must not be unknown itself; set nested attribute values to unknown instead`}},
		"single: appears":             {blocks(schema.NestingSingle), none, in(cty.NullVal(ety)), in(el(schematest.NullStr, schematest.NullStr)), []string{`x: planned for existence but config wants absence`}},
		"group: computed":             {blocks(schema.NestingGroup), none, in(el(schematest.NullStr, schematest.NullStr)), in(el(schematest.NullStr, schematest.UnknownStr)), nil},

		"nested list: computed":            {attrs(schema.NestingList), none, list(el(schematest.Str("a"), schematest.NullStr)), list(el(schematest.Str("a"), schematest.UnknownStr)), nil},
		"nested list: changed":             {attrs(schema.NestingList), none, list(el(schematest.Str("a"), schematest.NullStr)), list(el(schematest.Str("b"), schematest.NullStr)), []string{`x[0].a: planned value "b" does not match config value "a"`}},
		"nested list: longer":              {attrs(schema.NestingList), none, list(el(schematest.Str("a"), schematest.NullStr)), list(el(schematest.Str("a"), schematest.NullStr), el(schematest.Str("a"), schematest.NullStr)), []string{`x: element count in plan (2) disagrees with count in config (1)`}},
		"nested: unknown though written":   {attrs(schema.NestingList), none, list(el(schematest.Str("a"), schematest.NullStr)), in(cty.UnknownVal(cty.List(ety))), []string{`x: planned unknown for configured value`}},
		"nested: null though written":      {attrs(schema.NestingSingle), none, in(el(schematest.Str("a"), schematest.NullStr)), in(cty.NullVal(ety)), []string{`x: planned for absence but config wants existence`}},
		"nested: there though not written": {attrs(schema.NestingSingle), none, in(cty.NullVal(ety)), in(el(schematest.NullStr, schematest.NullStr)), []string{`x: planned value {"a":null,"c":null} for a non-computed attribute`}},
		"nested map: other keys":           {attrs(schema.NestingMap), none, m("a", el(schematest.Str("a"), schematest.NullStr)), m("b", el(schematest.Str("a"), schematest.NullStr)), []string{`x: element key "b" from plan is not present in config`, `x: element key "a" from config is not present in plan`}},
		"nested set: another count":        {attrs(schema.NestingSet), none, set(el(schematest.Str("a"), schematest.NullStr)), set(el(schematest.Str("a"), schematest.NullStr), el(schematest.Str("b"), schematest.NullStr)), []string{`x: element count in plan (2) disagrees with count in config (1)`}},
		"nested: equivalent to prior":      {attrs(schema.NestingList), list(el(schematest.Str("A"), schematest.Str("1"))), list(el(schematest.Str("a"), schematest.NullStr)), list(el(schematest.Str("A"), schematest.Str("1"))), nil},
	} {
		t.Run(name, func(t *testing.T) {
			schematest.SameStrings(t, schematest.Texts(CheckPlanned(tc.block, tc.prior, tc.config, tc.planned)), tc.want)
		})
	}
}

func TestCheckCompatible(t *testing.T) {
	in := func(v cty.Value) cty.Value { return schematest.Obj("x", v) }
	attrOf := func(ty cty.Type) *schema.Block { return schematest.Block(schematest.Optional("x", ty)) }
	el := func(a cty.Value) cty.Value { return schematest.Obj("a", a) }
	ety := el(schematest.NullStr).Type()
	blocks := func(n schema.Nesting) *schema.Block {
		return schematest.Block(schematest.NestedBlock("x", n, schematest.Optional("a", cty.String)))
	}
	list := func(vs ...cty.Value) cty.Value { return in(cty.ListVal(vs)) }
	set := func(vs ...cty.Value) cty.Value { return in(cty.SetVal(vs)) }
	none := cty.NullVal(in(schematest.NullStr).Type())

	for name, tc := range map[string]struct {
		block           *schema.Block
		planned, actual cty.Value
		want            []string
	}{
		"unknown becomes known":             {attrOf(cty.String), in(schematest.UnknownStr), in(schematest.Str("a")), nil},
		"unknown becomes null":              {attrOf(cty.String), in(schematest.UnknownStr), in(schematest.NullStr), nil},
		"unknown that cannot be null":       {attrOf(cty.String), in(schematest.UnknownStr.RefineNotNull()), in(schematest.NullStr), []string{`x: final value null does not conform to planning placeholder cty.UnknownVal(cty.String).RefineNotNull()`}},
		"known changes":                     {attrOf(cty.String), in(schematest.Str("a")), in(schematest.Str("b")), []string{`x: was "a", but now "b"`}},
		"known vanishes":                    {attrOf(cty.String), in(schematest.Str("a")), in(schematest.NullStr), []string{`x: was "a", but now null`}},
		"null appears":                      {attrOf(cty.String), in(schematest.NullStr), in(schematest.Str("a")), []string{`x: was null, but now "a"`}},
		"known becomes unknown":             {attrOf(cty.String), in(schematest.Str("a")), in(schematest.UnknownStr), []string{`x: was known, but now unknown`}},
		"null becomes unknown":              {attrOf(cty.String), in(schematest.NullStr), in(schematest.UnknownStr), []string{`x: was null, but now (known after apply)`}},
		"errors have no secrets":            {schematest.Block(schematest.Sensitive(schematest.Optional("x", cty.String))), in(schematest.Str("a")), in(schematest.Str("b")), []string{`x: inconsistent values for sensitive attribute`}},
		"errors have no marked secrets":     {attrOf(cty.String), in(schematest.Str("a").Mark(lang.Sensitive)), in(schematest.Str("b")), []string{`x: inconsistent values for sensitive attribute`}},
		"list: grows and shrinks":           {attrOf(cty.List(cty.String)), list(schematest.Str("a"), schematest.Str("b")), list(schematest.Str("c")), []string{`x[0]: was "a", but now "c"`, `x: element 1 has vanished`}},
		"map: other keys":                   {attrOf(cty.Map(cty.String)), in(cty.MapVal(map[string]cty.Value{"a": schematest.Str("1")})), in(cty.MapVal(map[string]cty.Value{"b": schematest.Str("1")})), []string{`x: element "a" has vanished`, `x: new element "b" has appeared`}},
		"map: an unknown element":           {attrOf(cty.Map(cty.String)), in(cty.MapVal(map[string]cty.Value{"a": schematest.UnknownStr})), in(cty.MapVal(map[string]cty.Value{"a": schematest.Str("1")})), nil},
		"set: unknown elements coalesce":    {attrOf(cty.Set(cty.String)), set(schematest.Str("a"), schematest.UnknownStr), set(schematest.Str("a")), nil},
		"set: an unknown element":           {attrOf(cty.Set(cty.String)), set(schematest.Str("a"), schematest.UnknownStr), set(schematest.Str("a"), schematest.Str("b")), nil},
		"set: grows":                        {attrOf(cty.Set(cty.String)), set(schematest.Str("a"), schematest.UnknownStr), set(schematest.Str("a"), schematest.Str("b"), schematest.Str("c")), []string{`x: length changed from 2 to 3`}},
		"set: another element":              {attrOf(cty.Set(cty.String)), set(schematest.Str("a")), set(schematest.Str("b")), []string{`x: planned set element "a" does not correlate with any element in actual`, `x: actual set element "b" does not correlate with any element in plan`}},
		"numbers: equal in value":           {attrOf(cty.Number), in(cty.NumberFloatVal(1)), in(schematest.Num(1)), nil},
		"dynamic: unknown becomes anything": {attrOf(cty.DynamicPseudoType), in(cty.DynamicVal), in(schematest.Num(1)), nil},
		"dynamic: another type":             {attrOf(cty.DynamicPseudoType), in(schematest.Str("1")), in(schematest.Num(1)), []string{`x: wrong final value type: string required, but have number`}},
		"object: gone":                      {attrOf(cty.String), in(schematest.Str("a")), none, []string{`root object was present, but now absent`}},
		"object: there":                     {attrOf(cty.String), none, in(schematest.Str("a")), []string{`root object was absent, but now present`}},

		"blocks: count":                    {blocks(schema.NestingList), list(el(schematest.Str("a"))), list(el(schematest.Str("a")), el(schematest.Str("b"))), []string{`x: block count changed from 1 to 2`}},
		"blocks: known changes":            {blocks(schema.NestingList), list(el(schematest.Str("a"))), list(el(schematest.Str("b"))), []string{`x[0].a: was "a", but now "b"`}},
		"blocks: unknown became some":      {blocks(schema.NestingList), in(cty.UnknownVal(cty.List(ety))), list(el(schematest.Str("a"))), nil},
		"blocks: null and empty are alike": {blocks(schema.NestingList), in(cty.ListValEmpty(ety)), in(cty.NullVal(cty.List(ety))), nil},
		"blocks: known became unknown":     {blocks(schema.NestingList), list(el(schematest.Str("a"))), in(cty.UnknownVal(cty.List(ety))), []string{`x: was known, but now unknown`}},
		"single: unknown became none":      {blocks(schema.NestingSingle), in(cty.UnknownVal(ety)), in(cty.NullVal(ety)), nil},
		"single: vanished":                 {blocks(schema.NestingSingle), in(el(schematest.Str("a"))), in(cty.NullVal(ety)), []string{`x: was present, but now absent`}},
		"set blocks: an unknown resolved":  {blocks(schema.NestingSet), set(el(schematest.UnknownStr), el(schematest.Str("b"))), set(el(schematest.Str("a")), el(schematest.Str("b"))), nil},
		"set blocks: another":              {blocks(schema.NestingSet), set(el(schematest.Str("a"))), set(el(schematest.Str("b"))), []string{`x: planned set element {"a":"a"} does not correlate with any element in actual`, `x: actual set element {"a":"b"} does not correlate with any element in plan`}},
		"set blocks: more":                 {blocks(schema.NestingSet), set(el(schematest.UnknownStr)), set(el(schematest.Str("a")), el(schematest.Str("b"))), []string{`x: block set length changed from 1 to 2`}},
		"map blocks: other keys": {blocks(schema.NestingMap), in(cty.MapVal(map[string]cty.Value{"a": el(schematest.Str("1"))})), in(cty.MapVal(map[string]cty.Value{"b": el(schematest.Str("1"))})),
			[]string{`x: block key "a" has vanished`, `x: new block key "b" has appeared`}},
		"nested attributes: an unknown resolved": {schematest.Block(schematest.Object(schematest.Optional("x", cty.NilType), schema.NestingSet, schematest.Optional("a", cty.String))), set(el(schematest.UnknownStr)), set(el(schematest.Str("a"))), nil},
		"nested attributes: known changes":       {schematest.Block(schematest.Object(schematest.Optional("x", cty.NilType), schema.NestingList, schematest.Optional("a", cty.String))), list(el(schematest.Str("a"))), list(el(schematest.Str("b"))), []string{`x[0].a: was "a", but now "b"`}},
	} {
		t.Run(name, func(t *testing.T) {
			schematest.SameStrings(t, schematest.Texts(CheckCompatible(tc.block, tc.planned, tc.actual)), tc.want)
		})
	}
}

// resolve replaces unknown values by some of their type.
func resolve(v cty.Value) cty.Value {
	out, _ := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		switch {
		case v.IsKnown():
			return v, nil
		case v.Type() == cty.String:
			return schematest.Str("resolved"), nil
		default:
			return cty.NullVal(v.Type()), nil
		}
	})
	return out
}

func TestCheckCompatibleProperties(t *testing.T) {
	b := schematest.Machine()
	rapid.Check(t, func(rt *rapid.T) {
		v := schematest.DrawBlock(rt, b, false)
		if errs := CheckCompatible(b, v, v); len(errs) > 0 {
			rt.Fatalf("not compatible with itself: %q\n%#v", schematest.Texts(errs), v)
		}
		if errs := CheckCompatible(b, v, resolve(v)); len(errs) > 0 {
			rt.Fatalf("not compatible with its completion: %q\n%#v", schematest.Texts(errs), v)
		}
		w := schematest.DrawBlock(rt, b, true)
		if v.IsWhollyKnown() && !equal(v, w) && len(CheckCompatible(b, v, w)) == 0 {
			// Only null and empty collections of blocks are alike, and those are not drawn.
			rt.Fatalf("known, different and yet compatible:\n%#v\n%#v\n%v", v, w, Drift(v, w))
		}
	})
}

func TestErrorsHoldTheirOwnPaths(t *testing.T) {
	// Steps appended to one shared path would overwrite each other.
	b := schematest.Block(schematest.NestedBlock("x", schema.NestingList, schematest.Optional("a", cty.String), schematest.Optional("b", cty.String), schematest.Optional("c", cty.String)))
	v := func(s string) cty.Value {
		return schematest.Obj("x", cty.ListVal([]cty.Value{schematest.Obj("a", schematest.Str(s), "b", schematest.Str(s), "c", schematest.Str(s)), schematest.Obj("a", schematest.Str(s), "b", schematest.Str(s), "c", schematest.Str(s))}))
	}
	got := strings.Join(schematest.Texts(CheckCompatible(b, v("1"), v("2"))), "\n")
	for _, want := range []string{"x[0].a", "x[0].b", "x[0].c", "x[1].a", "x[1].b", "x[1].c"} {
		if !strings.Contains(got, want+":") {
			t.Errorf("no error for %s in\n%s", want, got)
		}
	}
}

func TestCheckWriteOnly(t *testing.T) {
	w := func() *schema.Attribute { return schematest.WriteOnly(schematest.Optional("w", cty.String)) }
	b := schematest.Block(w(), schematest.NestedBlock("x", schema.NestingList, w()), schematest.NestedBlock("s", schema.NestingSet, w()), schematest.Object(schematest.Optional("n", cty.NilType), schema.NestingMap, w()))
	value := func(v cty.Value) cty.Value {
		e := schematest.Obj("w", v)
		return schematest.Obj("w", v, "x", cty.ListVal([]cty.Value{e}), "s", cty.SetVal([]cty.Value{e}), "n", cty.MapVal(map[string]cty.Value{"k": e}))
	}
	if errs := CheckWriteOnly(b, value(schematest.NullStr)); len(errs) > 0 {
		t.Error(errs)
	}
	if errs := CheckWriteOnly(b, cty.NullVal(b.ImpliedType())); len(errs) > 0 {
		t.Error(errs)
	}
	got := schematest.Texts(CheckWriteOnly(b, value(schematest.Str("s3cret"))))
	const what = ": write-only value in a state, where it must be null"
	schematest.SameStrings(t, got, []string{"n.k.w" + what, "w" + what, "s[*].w" + what, "x[0].w" + what})
}
