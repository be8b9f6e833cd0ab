package plan

import (
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"

	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// Drift lists the attributes that differ, such as "tags.team" or "rule[0].port", sorted by name. It lists a set as a
// whole, since its elements have no names, and also a list whose length changed. An absent value counts as all null.
// For a marked value, it names the marked value but nothing within it.
func Drift(before, after cty.Value) []string {
	var out []string
	drift(unmarkedOrNull(before), unmarkedOrNull(after), "", &out)
	return out
}

// Drifted lists the attributes and blocks of two objects that differ, sorted by name.
func Drifted(before, after cty.Value) []string {
	x, y := valueMap(unmarkedOrNull(before)), valueMap(unmarkedOrNull(after))
	var out []string
	for _, name := range slices.Sorted(maps.Keys(y)) {
		var paths []string
		if drift(elementOrNull(x, name), y[name], name, &paths); len(paths) > 0 {
			out = append(out, name)
		}
	}
	return out
}

func unmarkedOrNull(v cty.Value) cty.Value {
	if v == cty.NilVal {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	v, _ = v.Unmark() // the list names attributes even if the whole object is marked
	return v
}

func drift(a, b cty.Value, field string, out *[]string) {
	hidden := a.IsMarked() || b.IsMarked()
	if hidden {
		a, b = lang.WithoutMarks(a), lang.WithoutMarks(b)
	}
	if a.RawEquals(b) || isEmpty(a) && isEmpty(b) {
		return
	}
	if hidden {
		*out = append(*out, field)
		return
	}
	known := a.IsKnown() && b.IsKnown()
	alike := sameKind(a.Type(), b.Type()) && !a.IsNull() && !b.IsNull()
	switch {
	case known && (keyed(a) || keyed(b)) && (field == "" || alike):
		x, y := valueMap(a), valueMap(b)
		all := maps.Clone(x)
		if all == nil {
			all = make(map[string]cty.Value, len(y))
		}
		maps.Copy(all, y)
		for _, k := range slices.Sorted(maps.Keys(all)) {
			drift(elementOrNull(x, k), elementOrNull(y, k), diag.KeyField(field, k), out)
		}
	case known && alike && a.LengthInt() == b.LengthInt():
		x, y := a.AsValueSlice(), b.AsValueSlice()
		for i := range x {
			drift(x[i], y[i], diag.IndexField(field, i), out)
		}
	default:
		*out = append(*out, field)
	}
}

// isEmpty reports whether a value is null or an empty collection. Providers on the legacy SDK read one back as the
// other, which is not drift.
func isEmpty(v cty.Value) bool {
	if v.IsNull() {
		return true
	}
	ty := v.Type()
	return v.IsKnown() && (ty.IsCollectionType() || ty.IsTupleType() || ty.Equals(cty.EmptyObject)) &&
		v.LengthInt() == 0
}

func elementOrNull(m map[string]cty.Value, k string) cty.Value {
	if v, ok := m[k]; ok {
		return v
	}
	return cty.NullVal(cty.DynamicPseudoType)
}
