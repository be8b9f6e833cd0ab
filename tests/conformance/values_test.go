package conformance

import (
	"math/big"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
)

func number(t *testing.T, s string) cty.Value {
	t.Helper()
	v, err := cty.ParseNumberVal(s)
	must(t, err)
	return v
}

// TestValues sends values of every type through plan, apply, the ledger, read and plan, and expects them unchanged.
func TestValues(t *testing.T) {
	t.Parallel()
	e := func(key, val any) cty.Value { return nested(key, val, nil) }
	for name, set := range map[string]attrs{
		"4.1 nothing":     {},
		"4.1 booleans":    {"flag": false, "tags": cty.MapVal(map[string]cty.Value{"yes": cty.True, "no": cty.False})},
		"4.1 empty":       {"items": cty.ListValEmpty(cty.String), "bag": cty.SetValEmpty(cty.Number), "tags": cty.MapValEmpty(cty.Bool)},
		"4.1 text":        {"items": cty.ListVal([]cty.Value{cty.StringVal(""), cty.StringVal("ä\u0301 \U0001f600 \"\\\n\x00"), cty.StringVal("${x}")})},
		"4.1 2^60+1":      {"number": number(t, "1152921504606846977"), "whole": number(t, "1152921504606846977")},
		"4.1 int64 ends":  {"whole": number(t, "-9223372036854775808"), "number": number(t, "9223372036854775807")},
		"4.1 0.1":         {"number": number(t, "0.1"), "bag": cty.SetVal([]cty.Value{number(t, "0.1"), number(t, "0.2")})},
		"4.1 1e400":       {"number": number(t, "1e400")},
		"4.1 many digits": {"number": number(t, "123456789012345678901234567890.123456789")},
		"4.1 a float":     {"ratio": cty.NumberFloatVal(2.5)},
		"4.1 an object":   {"pair": cty.ObjectVal(map[string]cty.Value{"left": cty.StringVal("l"), "right": cty.NullVal(cty.Number)})},

		"4.1 dynamic string": {"anything": cty.StringVal("s")},
		"4.1 dynamic number": {"anything": number(t, "1152921504606846977")},
		"4.1 dynamic list":   {"anything": cty.ListVal([]cty.Value{cty.StringVal("s")})},
		"4.1 dynamic map":    {"anything": cty.MapVal(map[string]cty.Value{"a": cty.True})},
		"4.1 dynamic object": {"anything": cty.ObjectVal(map[string]cty.Value{"a": cty.True, "b": cty.ObjectVal(map[string]cty.Value{"c": cty.NumberIntVal(1)})})},
		"4.1 dynamic tuple":  {"anything": cty.TupleVal([]cty.Value{cty.StringVal("s"), cty.NumberIntVal(1)})},

		"4.3/4 nested single":  {"single": e("k", nil)},
		"4.3/4 nested list":    {"list": cty.ListVal([]cty.Value{e("a", nil), e("b", "given"), e(nil, nil)})},
		"4.3/4 nested set":     {"set": cty.SetVal([]cty.Value{e("a", nil), e("b", "given")})},
		"4.3/4 nested map":     {"map": cty.MapVal(map[string]cty.Value{"x": e("a", nil), "y": e("b", "given")})},
		"4.3/4 chosen":         {"chosen": e("k", nil)},
		"4.3/4 block single":   {"block_single": e("k", nil)},
		"4.3/4 blocks in list": {"block_list": cty.ListVal([]cty.Value{e("a", nil), e("b", "given")})},
		"4.3/4 blocks in set":  {"block_set": cty.SetVal([]cty.Value{e("a", nil), e("b", "given")})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := about(t, shared["conform6"], "conform6_values")
			st := s.saved(s.create(set))
			for attr, want := range set {
				got := attribute(st.Value, attr)
				if !equivalent(got, value(t, want)) {
					t.Errorf("%s\n got %#v\nwant %#v, and what is computed besides", attr, got, value(t, want))
				}
			}
			st, _, err := s.Type.Read(t.Context(), st)
			must(t, err)
			st = s.saved(st)
			// Computed values are proposed unchanged, so nothing changes.
			if p := s.plan(st, s.config(set)); p.Action != v1alpha1.ActionNoOp {
				t.Errorf("planned to %s\nprior   %#v\nplanned %#v", p.Action, st.Value, p.Value)
			}
			must(t, s.destroy(st).Err)
		})
	}
}

// equivalent reports whether a value equals the wanted one, except for nulls that the provider replaced.
func equivalent(got, want cty.Value) bool {
	switch {
	case want.IsNull():
		return got.IsNull() || got.Type() == cty.String
	case got.IsNull() || !got.Type().Equals(want.Type()):
		return false
	case want.Type().IsObjectType():
		for name := range want.Type().AttributeTypes() {
			if !equivalent(got.GetAttr(name), want.GetAttr(name)) {
				return false
			}
		}
		return true
	case want.CanIterateElements() && got.LengthInt() == want.LengthInt():
		if want.Type().IsSetType() {
			for _, w := range want.AsValueSlice() {
				found := false
				for _, g := range got.AsValueSlice() {
					found = found || equivalent(g, w)
				}
				if !found {
					return false
				}
			}
			return true
		}
		for it := want.ElementIterator(); it.Next(); {
			k, w := it.Element()
			if got.HasIndex(k).False() || !equivalent(got.Index(k), w) {
				return false
			}
		}
		return true
	case want.Type() == cty.Number:
		return got.AsBigFloat().Cmp(new(big.Float).Copy(want.AsBigFloat())) == 0
	}
	return got.RawEquals(want)
}

// TestNestedChanges changes one of several nested objects. The computed values of the others stay.
func TestNestedChanges(t *testing.T) {
	t.Parallel()
	e := func(key string) cty.Value { return nested(key, nil, nil) }
	for name, tc := range map[string]struct{ before, after attrs }{
		"4.3/4 list":      {attrs{"list": cty.ListVal([]cty.Value{e("a"), e("b")})}, attrs{"list": cty.ListVal([]cty.Value{e("a"), e("c")})}},
		"4.3/4 map":       {attrs{"map": cty.MapVal(map[string]cty.Value{"x": e("a"), "y": e("b")})}, attrs{"map": cty.MapVal(map[string]cty.Value{"x": e("a"), "z": e("b")})}},
		"4.3/4 set":       {attrs{"set": cty.SetVal([]cty.Value{e("a"), e("b")})}, attrs{"set": cty.SetVal([]cty.Value{e("a"), e("c")})}},
		"4.3/4 block set": {attrs{"block_set": cty.SetVal([]cty.Value{e("a"), e("b")})}, attrs{"block_set": cty.SetVal([]cty.Value{e("a"), e("c")})}},
		"4.3/4 single":    {attrs{"single": e("a")}, attrs{}},
		"4.3/4 chosen":    {attrs{"chosen": e("a")}, attrs{}},
		"4.3/4 block":     {attrs{"block_list": cty.ListVal([]cty.Value{e("a")})}, attrs{"block_list": cty.ListVal([]cty.Value{e("a"), e("b")})}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := about(t, shared["conform6"], "conform6_values")
			st := s.saved(s.create(tc.before))
			p := s.plan(st, s.config(tc.after))
			if p.Action != v1alpha1.ActionUpdate {
				t.Fatalf("planned to %s", p.Action)
			}
			st = s.saved(s.apply(st, tc.after))
			if p := s.plan(st, s.config(tc.after)); p.Action != v1alpha1.ActionNoOp {
				t.Errorf("planned to %s after the update", p.Action)
			}
		})
	}
}

// TestGroupBlocksAndRefinedUnknowns tests what the plugin framework lacks: group and map blocks, and refined unknown
// values.
func TestGroupBlocksAndRefinedUnknowns(t *testing.T) {
	t.Parallel()
	e := func(key, val any) cty.Value { return nested(key, val, nil) }
	for name, set := range map[string]attrs{
		"4.1 group left out":    {},
		"4.1 group":             {"group": e("k", nil)},
		"4.3/4 map of blocks":   {"map": cty.MapVal(map[string]cty.Value{"x": e("a", nil), "y": e("b", "given")})},
		"4.3/4 set of blocks":   {"set": cty.SetVal([]cty.Value{e("a", nil), e("b", nil)})},
		"4.3/4 single block":    {"single": e("a", nil)},
		"4.1 refined unknown":   {"behaviour": "refine"},
		"4.1 precise and large": {"number": number(t, "1152921504606846977.5")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := about(t, shared["conform6"], "conform6_raw")
			p := s.plan(s.Type.Null(), s.config(set))
			if attribute(p.Value, "address").IsKnown() {
				t.Errorf("address is planned as %#v", attribute(p.Value, "address"))
			}
			st := s.saved(s.create(set))
			same(t, "address", attribute(st.Value, "address"), cty.StringVal("raw-address"))
			for attr, want := range set {
				if !equivalent(attribute(st.Value, attr), value(t, want)) {
					t.Errorf("%s\n got %#v\nwant %#v, and what is computed besides", attr, attribute(st.Value, attr), value(t, want))
				}
			}
			if attribute(st.Value, "group").IsNull() {
				t.Error("4.1: a group block is never null")
			}
			if p := s.plan(st, s.config(set)); set["behaviour"] == nil && p.Action != v1alpha1.ActionNoOp {
				t.Errorf("planned to %s\nprior   %#v\nplanned %#v", p.Action, st.Value, p.Value)
			}
		})
	}
	t.Run("4.1 refined unknown in a configuration", func(t *testing.T) {
		t.Parallel()
		s := about(t, shared["conform6"], "conform6_thing")
		note := cty.UnknownVal(cty.String).Refine().NotNull().StringPrefix("db-").NewValue()
		p := s.plan(s.Type.Null(), s.config(attrs{"note": note, "tags": cty.MapVal(map[string]cty.Value{"k": note})}))
		if attribute(p.Value, "note").IsKnown() {
			t.Errorf("note is planned as %#v", attribute(p.Value, "note"))
		}
	})
}
