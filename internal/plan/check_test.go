package plan

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"github.com/hykube/hykube/internal/schema"
)

func TestCheckPlanned(t *testing.T) {
	leaf := func(a *schema.Attribute) *schema.Block { return block(a) }
	in := func(v cty.Value) cty.Value { return obj("x", v) }
	e := obj("a", nullStr, "c", nullStr)
	ety := e.Type()
	blocks := func(n schema.Nesting) *schema.Block {
		return block(nestedBlocks("x", n, optional("a", cty.String), computed("c", cty.String)))
	}
	attrs := func(n schema.Nesting) *schema.Block {
		return block(object(optional("x", cty.NilType), n, optional("a", cty.String), computed("c", cty.String)))
	}
	el := func(a, c cty.Value) cty.Value { return obj("a", a, "c", c) }
	list := func(vs ...cty.Value) cty.Value { return in(cty.ListVal(vs)) }
	set := func(vs ...cty.Value) cty.Value { return in(cty.SetVal(vs)) }
	m := func(kv ...any) cty.Value { return in(cty.MapVal(obj(kv...).AsValueMap())) }
	none := cty.NullVal(in(nullStr).Type())

	for name, tc := range map[string]struct {
		block                  *schema.Block
		prior, config, planned cty.Value
		want                   []string
	}{
		"as configured":                      {leaf(optional("x", cty.String)), none, in(str("a")), in(str("a")), nil},
		"as before, which is equivalent":     {leaf(optional("x", cty.String)), in(str("A")), in(str("a")), in(str("A")), nil},
		"computed is the provider's choice":  {leaf(computed("x", cty.String)), none, in(nullStr), in(unknownStr), nil},
		"a default for optional + computed":  {leaf(optionalComputed("x", cty.String)), none, in(nullStr), in(str("d")), nil},
		"write-only is never in a state":     {leaf(writeOnlyAttr(optional("x", cty.String))), none, in(str("pw")), in(nullStr), nil},
		"neither configured nor before":      {leaf(optional("x", cty.String)), in(str("p")), in(str("a")), in(str("b")), []string{`x: planned value "b" does not match config value "a" nor prior value "p"`}},
		"not as configured":                  {leaf(optional("x", cty.String)), none, in(str("a")), in(str("b")), []string{`x: planned value "b" does not match config value "a"`}},
		"unknown for what is configured":     {leaf(optionalComputed("x", cty.String)), none, in(str("a")), in(unknownStr), []string{`x: planned value (known after apply) does not match config value "a"`}},
		"a default without computed":         {leaf(optional("x", cty.String)), none, in(nullStr), in(str("d")), []string{`x: planned value "d" for a non-computed attribute`}},
		"prior kept though config is null":   {leaf(optional("x", cty.String)), in(str("d")), in(nullStr), in(str("d")), []string{`x: planned value "d" for a non-computed attribute`}},
		"secrets are not told":               {leaf(secret(optional("x", cty.String))), in(str("s1")), in(str("s2")), in(str("s3")), []string{`x: sensitive planned value does not match config value nor prior value`}},
		"marked secrets are not told":        {leaf(optional("x", cty.String)), none, in(str("s2").Mark(Sensitive)), in(str("s3")), []string{`x: sensitive planned value does not match config value`}},
		"null object, though configured":     {leaf(optional("x", cty.String)), none, in(str("a")), none, []string{`planned for absence but config wants existence`}},
		"object, though not configured":      {leaf(optional("x", cty.String)), none, none, in(str("a")), []string{`planned for existence but config wants absence`}},
		"unknown config must stay unknown":   {leaf(optional("x", cty.String)), none, in(unknownStr), in(str("a")), []string{`x: planned value "a" does not match config value (known after apply)`}},
		"a refined unknown is still unknown": {leaf(optional("x", cty.String)), none, in(unknownStr), in(unknownStr.RefineNotNull()), nil},
		"and so is one within a map": {leaf(optional("x", cty.Map(cty.String))), none,
			in(cty.MapVal(map[string]cty.Value{"k": cty.UnknownVal(cty.String).Refine().StringPrefix("db-").NewValue()})),
			in(cty.MapVal(map[string]cty.Value{"k": cty.UnknownVal(cty.String)})), nil},

		"list: fewer blocks":          {blocks(schema.NestingList), none, list(el(str("a"), nullStr)), in(cty.ListValEmpty(ety)), []string{`x: block count in plan (0) disagrees with count in config (1)`}},
		"list: computed in a block":   {blocks(schema.NestingList), none, list(el(str("a"), nullStr)), list(el(str("a"), unknownStr)), nil},
		"list: changed in a block":    {blocks(schema.NestingList), none, list(el(str("a"), nullStr)), list(el(str("b"), nullStr)), []string{`x[0].a: planned value "b" does not match config value "a"`}},
		"list: an unknown block":      {blocks(schema.NestingList), none, list(el(str("a"), nullStr)), list(cty.UnknownVal(ety)), []string{`x[0]: element representing nested block must not be unknown itself; set nested attribute values to unknown instead`}},
		"list: null":                  {blocks(schema.NestingList), none, in(cty.ListValEmpty(ety)), in(cty.NullVal(cty.List(ety))), []string{`x: attribute representing nested blocks must be empty to indicate no blocks, not null`}},
		"list: config unknown":        {blocks(schema.NestingList), none, in(cty.UnknownVal(cty.List(ety))), list(el(str("a"), nullStr)), []string{`x: planned value for a block that is not known yet`}},
		"list: unknown without cause": {blocks(schema.NestingList), none, list(el(str("a"), nullStr)), in(cty.UnknownVal(cty.List(ety))), []string{`x: attribute representing nested block must not be unknown itself; set nested attribute values to unknown instead`}},
		"map: other keys":             {blocks(schema.NestingMap), none, m("a", el(str("a"), nullStr)), m("b", el(str("a"), nullStr)), []string{`x: block key "b" from plan is not present in config`, `x: block key "a" from config is not present in plan`}},
		"map: changed in a block":     {blocks(schema.NestingMap), none, m("a", el(str("a"), nullStr)), m("a", el(str("b"), nullStr)), []string{`x.a.a: planned value "b" does not match config value "a"`}},
		"set: trusted":                {blocks(schema.NestingSet), none, set(el(str("a"), nullStr)), set(el(str("other"), nullStr)), nil},
		"set: an unknown block":       {blocks(schema.NestingSet), none, set(el(str("a"), nullStr)), set(cty.UnknownVal(ety)), []string{`x[*]: element representing nested block must not be unknown itself; set nested attribute values to unknown instead`}},
		"single: appears":             {blocks(schema.NestingSingle), none, in(cty.NullVal(ety)), in(el(nullStr, nullStr)), []string{`x: planned for existence but config wants absence`}},
		"group: computed":             {blocks(schema.NestingGroup), none, in(el(nullStr, nullStr)), in(el(nullStr, unknownStr)), nil},

		"nested list: computed":            {attrs(schema.NestingList), none, list(el(str("a"), nullStr)), list(el(str("a"), unknownStr)), nil},
		"nested list: changed":             {attrs(schema.NestingList), none, list(el(str("a"), nullStr)), list(el(str("b"), nullStr)), []string{`x[0].a: planned value "b" does not match config value "a"`}},
		"nested list: longer":              {attrs(schema.NestingList), none, list(el(str("a"), nullStr)), list(el(str("a"), nullStr), el(str("a"), nullStr)), []string{`x: element count in plan (2) disagrees with count in config (1)`}},
		"nested: unknown though written":   {attrs(schema.NestingList), none, list(el(str("a"), nullStr)), in(cty.UnknownVal(cty.List(ety))), []string{`x: planned unknown for configured value`}},
		"nested: null though written":      {attrs(schema.NestingSingle), none, in(el(str("a"), nullStr)), in(cty.NullVal(ety)), []string{`x: planned for absence but config wants existence`}},
		"nested: there though not written": {attrs(schema.NestingSingle), none, in(cty.NullVal(ety)), in(el(nullStr, nullStr)), []string{`x: planned value {"a":null,"c":null} for a non-computed attribute`}},
		"nested map: other keys":           {attrs(schema.NestingMap), none, m("a", el(str("a"), nullStr)), m("b", el(str("a"), nullStr)), []string{`x: element key "b" from plan is not present in config`, `x: element key "a" from config is not present in plan`}},
		"nested set: another count":        {attrs(schema.NestingSet), none, set(el(str("a"), nullStr)), set(el(str("a"), nullStr), el(str("b"), nullStr)), []string{`x: element count in plan (2) disagrees with count in config (1)`}},
		"nested: equivalent to prior":      {attrs(schema.NestingList), list(el(str("A"), str("1"))), list(el(str("a"), nullStr)), list(el(str("A"), str("1"))), nil},
	} {
		t.Run(name, func(t *testing.T) {
			sameStrings(t, texts(CheckPlanned(tc.block, tc.prior, tc.config, tc.planned)), tc.want)
		})
	}
}

func TestCheckCompatible(t *testing.T) {
	in := func(v cty.Value) cty.Value { return obj("x", v) }
	attrOf := func(ty cty.Type) *schema.Block { return block(optional("x", ty)) }
	el := func(a cty.Value) cty.Value { return obj("a", a) }
	ety := el(nullStr).Type()
	blocks := func(n schema.Nesting) *schema.Block { return block(nestedBlocks("x", n, optional("a", cty.String))) }
	list := func(vs ...cty.Value) cty.Value { return in(cty.ListVal(vs)) }
	set := func(vs ...cty.Value) cty.Value { return in(cty.SetVal(vs)) }
	none := cty.NullVal(in(nullStr).Type())

	for name, tc := range map[string]struct {
		block           *schema.Block
		planned, actual cty.Value
		want            []string
	}{
		"unknown becomes known":             {attrOf(cty.String), in(unknownStr), in(str("a")), nil},
		"unknown becomes null":              {attrOf(cty.String), in(unknownStr), in(nullStr), nil},
		"unknown that cannot be null":       {attrOf(cty.String), in(unknownStr.RefineNotNull()), in(nullStr), []string{`x: final value null does not conform to planning placeholder cty.UnknownVal(cty.String).RefineNotNull()`}},
		"known changes":                     {attrOf(cty.String), in(str("a")), in(str("b")), []string{`x: was "a", but now "b"`}},
		"known vanishes":                    {attrOf(cty.String), in(str("a")), in(nullStr), []string{`x: was "a", but now null`}},
		"null appears":                      {attrOf(cty.String), in(nullStr), in(str("a")), []string{`x: was null, but now "a"`}},
		"known becomes unknown":             {attrOf(cty.String), in(str("a")), in(unknownStr), []string{`x: was known, but now unknown`}},
		"null becomes unknown":              {attrOf(cty.String), in(nullStr), in(unknownStr), []string{`x: was null, but now (known after apply)`}},
		"secrets are not told":              {block(secret(optional("x", cty.String))), in(str("a")), in(str("b")), []string{`x: inconsistent values for sensitive attribute`}},
		"marked secrets are not told":       {attrOf(cty.String), in(str("a").Mark(Sensitive)), in(str("b")), []string{`x: inconsistent values for sensitive attribute`}},
		"list: grows and shrinks":           {attrOf(cty.List(cty.String)), list(str("a"), str("b")), list(str("c")), []string{`x[0]: was "a", but now "c"`, `x: element 1 has vanished`}},
		"map: other keys":                   {attrOf(cty.Map(cty.String)), in(cty.MapVal(map[string]cty.Value{"a": str("1")})), in(cty.MapVal(map[string]cty.Value{"b": str("1")})), []string{`x: element "a" has vanished`, `x: new element "b" has appeared`}},
		"map: an unknown element":           {attrOf(cty.Map(cty.String)), in(cty.MapVal(map[string]cty.Value{"a": unknownStr})), in(cty.MapVal(map[string]cty.Value{"a": str("1")})), nil},
		"set: unknown elements coalesce":    {attrOf(cty.Set(cty.String)), set(str("a"), unknownStr), set(str("a")), nil},
		"set: an unknown element":           {attrOf(cty.Set(cty.String)), set(str("a"), unknownStr), set(str("a"), str("b")), nil},
		"set: grows":                        {attrOf(cty.Set(cty.String)), set(str("a"), unknownStr), set(str("a"), str("b"), str("c")), []string{`x: length changed from 2 to 3`}},
		"set: another element":              {attrOf(cty.Set(cty.String)), set(str("a")), set(str("b")), []string{`x: planned set element "a" does not correlate with any element in actual`, `x: actual set element "b" does not correlate with any element in plan`}},
		"numbers: equal in value":           {attrOf(cty.Number), in(cty.NumberFloatVal(1)), in(num(1)), nil},
		"dynamic: unknown becomes anything": {attrOf(cty.DynamicPseudoType), in(cty.DynamicVal), in(num(1)), nil},
		"dynamic: another type":             {attrOf(cty.DynamicPseudoType), in(str("1")), in(num(1)), []string{`x: wrong final value type: string required, but have number`}},
		"object: gone":                      {attrOf(cty.String), in(str("a")), none, []string{`root object was present, but now absent`}},
		"object: there":                     {attrOf(cty.String), none, in(str("a")), []string{`root object was absent, but now present`}},

		"blocks: count":                    {blocks(schema.NestingList), list(el(str("a"))), list(el(str("a")), el(str("b"))), []string{`x: block count changed from 1 to 2`}},
		"blocks: known changes":            {blocks(schema.NestingList), list(el(str("a"))), list(el(str("b"))), []string{`x[0].a: was "a", but now "b"`}},
		"blocks: unknown became some":      {blocks(schema.NestingList), in(cty.UnknownVal(cty.List(ety))), list(el(str("a"))), nil},
		"blocks: null and empty are alike": {blocks(schema.NestingList), in(cty.ListValEmpty(ety)), in(cty.NullVal(cty.List(ety))), nil},
		"blocks: known became unknown":     {blocks(schema.NestingList), list(el(str("a"))), in(cty.UnknownVal(cty.List(ety))), []string{`x: was known, but now unknown`}},
		"single: unknown became none":      {blocks(schema.NestingSingle), in(cty.UnknownVal(ety)), in(cty.NullVal(ety)), nil},
		"single: vanished":                 {blocks(schema.NestingSingle), in(el(str("a"))), in(cty.NullVal(ety)), []string{`x: was present, but now absent`}},
		"set blocks: an unknown resolved":  {blocks(schema.NestingSet), set(el(unknownStr), el(str("b"))), set(el(str("a")), el(str("b"))), nil},
		"set blocks: another":              {blocks(schema.NestingSet), set(el(str("a"))), set(el(str("b"))), []string{`x: planned set element {"a":"a"} does not correlate with any element in actual`, `x: actual set element {"a":"b"} does not correlate with any element in plan`}},
		"set blocks: more":                 {blocks(schema.NestingSet), set(el(unknownStr)), set(el(str("a")), el(str("b"))), []string{`x: block set length changed from 1 to 2`}},
		"map blocks: other keys": {blocks(schema.NestingMap), in(cty.MapVal(map[string]cty.Value{"a": el(str("1"))})), in(cty.MapVal(map[string]cty.Value{"b": el(str("1"))})),
			[]string{`x: block key "a" has vanished`, `x: new block key "b" has appeared`}},
		"nested attributes: an unknown resolved": {block(object(optional("x", cty.NilType), schema.NestingSet, optional("a", cty.String))), set(el(unknownStr)), set(el(str("a"))), nil},
		"nested attributes: known changes":       {block(object(optional("x", cty.NilType), schema.NestingList, optional("a", cty.String))), list(el(str("a"))), list(el(str("b"))), []string{`x[0].a: was "a", but now "b"`}},
	} {
		t.Run(name, func(t *testing.T) {
			sameStrings(t, texts(CheckCompatible(tc.block, tc.planned, tc.actual)), tc.want)
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
			return str("resolved"), nil
		default:
			return cty.NullVal(v.Type()), nil
		}
	})
	return out
}

func TestCheckCompatibleProperties(t *testing.T) {
	b := machine()
	rapid.Check(t, func(rt *rapid.T) {
		v := drawBlock(rt, b, false)
		if errs := CheckCompatible(b, v, v); len(errs) > 0 {
			rt.Fatalf("not compatible with itself: %q\n%#v", texts(errs), v)
		}
		if errs := CheckCompatible(b, v, resolve(v)); len(errs) > 0 {
			rt.Fatalf("not compatible with its completion: %q\n%#v", texts(errs), v)
		}
		w := drawBlock(rt, b, true)
		if v.IsWhollyKnown() && !equal(v, w) && len(CheckCompatible(b, v, w)) == 0 {
			// Only null and empty collections of blocks are alike, and those are not drawn.
			rt.Fatalf("known, different and yet compatible:\n%#v\n%#v\n%v", v, w, Drift(v, w))
		}
	})
}

func TestErrorsHoldTheirOwnPaths(t *testing.T) {
	// Steps appended to one shared path would overwrite each other.
	b := block(nestedBlocks("x", schema.NestingList, optional("a", cty.String), optional("b", cty.String), optional("c", cty.String)))
	v := func(s string) cty.Value {
		return obj("x", cty.ListVal([]cty.Value{obj("a", str(s), "b", str(s), "c", str(s)), obj("a", str(s), "b", str(s), "c", str(s))}))
	}
	got := strings.Join(texts(CheckCompatible(b, v("1"), v("2"))), "\n")
	for _, want := range []string{"x[0].a", "x[0].b", "x[0].c", "x[1].a", "x[1].b", "x[1].c"} {
		if !strings.Contains(got, want+":") {
			t.Errorf("no error for %s in\n%s", want, got)
		}
	}
}

func TestCheckWriteOnly(t *testing.T) {
	w := func() *schema.Attribute { return writeOnlyAttr(optional("w", cty.String)) }
	b := block(w(), nestedBlocks("x", schema.NestingList, w()), nestedBlocks("s", schema.NestingSet, w()), object(optional("n", cty.NilType), schema.NestingMap, w()))
	value := func(v cty.Value) cty.Value {
		e := obj("w", v)
		return obj("w", v, "x", cty.ListVal([]cty.Value{e}), "s", cty.SetVal([]cty.Value{e}), "n", cty.MapVal(map[string]cty.Value{"k": e}))
	}
	if errs := CheckWriteOnly(b, value(nullStr)); len(errs) > 0 {
		t.Error(errs)
	}
	if errs := CheckWriteOnly(b, cty.NullVal(b.ImpliedType())); len(errs) > 0 {
		t.Error(errs)
	}
	got := texts(CheckWriteOnly(b, value(str("s3cret"))))
	const what = ": write-only value in a state, where it must be null"
	sameStrings(t, got, []string{"n.k.w" + what, "w" + what, "s[*].w" + what, "x[0].w" + what})
}
