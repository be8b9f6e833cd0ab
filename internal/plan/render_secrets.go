package plan

import (
	"github.com/hykube/hykube/internal/lang"

	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// secretChanges returns the paths of the marked values that differ, or may differ, after the change. It omits values
// that are added or removed with their whole block. A path ends where a mark begins, so it names nothing masked: a map
// with a secret key has the mark itself. Indexes of lists are those of after.
func secretChanges(before, after cty.Value) []cty.Path {
	var out []cty.Path
	walkSecrets(before, after, nil, &out)
	return out
}

func walkSecrets(b, a cty.Value, at cty.Path, out *[]cty.Path) {
	if b.IsMarked() || a.IsMarked() {
		if b, a = lang.WithoutMarks(b), lang.WithoutMarks(a); !a.IsWhollyKnown() || !sameSecret(b, a) {
			*out = append(*out, at)
		}
		return
	}
	if b.IsNull() || a.IsNull() || !b.IsKnown() || !a.IsKnown() {
		return
	}
	bt, ty := b.Type(), a.Type()
	switch {
	case (ty.IsObjectType() || ty.IsMapType()) && (bt.IsObjectType() || bt.IsMapType()):
		x, y := b.AsValueMap(), a.AsValueMap()
		for _, k := range slices.Sorted(maps.Keys(y)) {
			step := at.GetAttr(k)
			if ty.IsMapType() {
				step = at.IndexString(k)
			}
			walkSecrets(orNull(x, k), y[k], step, out)
		}
		for _, k := range slices.Sorted(maps.Keys(x)) {
			if _, ok := y[k]; ok {
				continue
			}
			step := at.GetAttr(k)
			if bt.IsMapType() {
				step = at.IndexString(k)
			}
			walkSecrets(x[k], cty.NullVal(cty.DynamicPseudoType), step, out)
		}
	case indexed(a) && indexed(b):
		walkSecretList(b.AsValueSlice(), a.AsValueSlice(), at, out)
	}
}

// walkSecretList skips the equal elements at both ends. An added or removed element shifts the others without changing
// them.
func walkSecretList(b, a []cty.Value, at cty.Path, out *[]cty.Path) {
	lo, n, m := 0, len(b), len(a)
	for lo < n && lo < m && lang.WithoutMarks(b[lo]).RawEquals(lang.WithoutMarks(a[lo])) {
		lo++
	}
	for n > lo && m > lo && lang.WithoutMarks(b[n-1]).RawEquals(lang.WithoutMarks(a[m-1])) {
		n, m = n-1, m-1
	}
	for i := lo; i < m; i++ {
		old := cty.NullVal(cty.DynamicPseudoType)
		if i < n {
			old = b[i]
		}
		walkSecrets(old, a[i], at.IndexInt(i), out)
	}
}

// sameSecret compares two values. Nulls of different types are equal.
func sameSecret(b, a cty.Value) bool { return b.IsNull() && a.IsNull() || b.RawEquals(a) }
