package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
)

// CheckCompatible reports where an actual value does not complete the planned one. A known planned value must be equal;
// an unknown one may become any value of its type. A set may shrink, since unknown elements may turn out to be equal,
// but must not grow. It checks the result of an apply against its plan, and a repeated plan against the approved one.
// Both values must conform to the block's type. The errors are cty.PathErrors and never contain a sensitive value.
//
// The rules are those of Terraform's objchange.AssertObjectCompatible.
func CheckCompatible(block *schema.Block, planned, actual cty.Value) []error {
	var p problems
	planned, secret := unmarkNoting(planned)
	actual, more := unmarkNoting(actual)
	p.compareBlock(block, planned, actual, nil, append(secret, more...))
	return p
}

func (p *problems) compareBlock(b *schema.Block, planned, actual cty.Value, at *pathBuilder, secret secrets) {
	what := ""
	if at == nil {
		what = "root object "
	}
	switch {
	case planned.IsNull() && actual.IsNull():
		return
	case planned.IsNull():
		p.add(at, "%swas absent, but now present", what)
		return
	case actual.IsNull():
		p.add(at, "%swas present, but now absent", what)
		return
	case !planned.IsKnown():
		return
	case !actual.IsKnown():
		p.add(at, "%swas known, but now unknown", what)
		return
	}
	for _, a := range b.Attributes {
		p.compareAttribute(a, planned.GetAttr(a.Name), actual.GetAttr(a.Name), at.attr(a.Name), secret)
	}
	for _, nb := range b.Blocks {
		p.compareNested(nb, planned.GetAttr(nb.TypeName), actual.GetAttr(nb.TypeName), at.attr(nb.TypeName), secret)
	}
}

func (p *problems) compareAttribute(a *schema.Attribute, planned, actual cty.Value, at *pathBuilder, secret secrets) {
	var found problems
	found.compareValue(planned, actual, at)
	if len(found) > 0 && (a.Sensitive || a.WriteOnly || a.Nested != nil &&
		schema.HasSensitiveAttribute(a.Nested.Attributes) || secret.cover(at)) {
		p.add(at, "inconsistent values for sensitive attribute")
		return
	}
	*p = append(*p, found...)
}

func (p *problems) compareNested(nb *schema.NestedBlock, planned, actual cty.Value, at *pathBuilder, secret secrets) {
	switch nb.Nesting {
	case schema.NestingSingle, schema.NestingGroup:
		if !planned.IsKnown() && actual.IsNull() {
			return // an unknown block may turn out to be absent
		}
		p.compareBlock(nb.Block, planned, actual, at, secret)
		return
	}
	switch {
	case !planned.IsKnown() || planned.IsNull() || actual.IsNull():
		// Providers use empty and null interchangeably for absent blocks.
		return
	case !actual.IsKnown():
		p.add(at, "was known, but now unknown")
		return
	}
	switch nb.Nesting {
	case schema.NestingList:
		plannedVals, actualVals := planned.AsValueSlice(), actual.AsValueSlice()
		if len(plannedVals) != len(actualVals) {
			p.add(at, "block count changed from %d to %d", len(plannedVals), len(actualVals))
			return
		}
		for i := range plannedVals {
			p.compareBlock(nb.Block, plannedVals[i], actualVals[i], at.index(cty.NumberIntVal(int64(i))), secret)
		}
	case schema.NestingMap:
		p.compareMaps(planned, actual, at, "block key", func(planned, actual cty.Value, at *pathBuilder) {
			p.compareBlock(nb.Block, planned, actual, at, secret)
		})
	case schema.NestingSet:
		quiet := schema.HasSensitive(nb.Block) || secret.cover(at)
		p.compareSets(planned, actual, at, "block set length", quiet, func(x, y cty.Value) bool {
			var found problems
			found.compareBlock(nb.Block, x, y, at, nil)
			return len(found) == 0
		})
	}
}

func (p *problems) compareValue(planned, actual cty.Value, at *pathBuilder) {
	if planned.Type() == cty.DynamicPseudoType {
		return
	}
	if len(actual.Type().TestConformance(planned.Type())) > 0 {
		p.add(at, "wrong final value type: %s", convert.MismatchMessage(actual.Type(), planned.Type()))
		return
	}
	if !planned.IsKnown() {
		if in := planned.Range().Includes(actual); in.IsKnown() && in.False() {
			p.add(at, "final value %s does not conform to planning placeholder %#v", show(actual), planned)
		}
		return
	}
	switch {
	case planned.IsNull() && actual.IsNull():
		return
	case actual.IsNull():
		p.add(at, "was %s, but now null", show(planned))
		return
	case planned.IsNull():
		p.add(at, "was null, but now %s", show(actual))
		return
	case !actual.IsKnown():
		p.add(at, "was known, but now unknown")
		return
	}
	p.compareKnown(planned, actual, at)
}

// compareKnown compares two values that are known and not null, of the same type.
func (p *problems) compareKnown(planned, actual cty.Value, at *pathBuilder) {
	switch ty := planned.Type(); {
	case ty.IsPrimitiveType():
		if !actual.RawEquals(planned) && !actual.Equals(planned).True() {
			p.add(at, "was %s, but now %s", show(planned), show(actual))
		}
	case ty.IsListType() || ty.IsTupleType():
		plannedVals, actualVals := planned.AsValueSlice(), actual.AsValueSlice()
		for i := range max(len(plannedVals), len(actualVals)) {
			switch {
			case i >= len(actualVals):
				p.add(at, "element %d has vanished", i)
			case i >= len(plannedVals):
				p.add(at, "new element %d has appeared", i)
			default:
				p.compareValue(plannedVals[i], actualVals[i], at.index(cty.NumberIntVal(int64(i))))
			}
		}
	case ty.IsMapType():
		p.compareMaps(planned, actual, at, "element", p.compareValue)
	case ty.IsObjectType():
		for _, k := range slices.Sorted(maps.Keys(ty.AttributeTypes())) {
			p.compareValue(planned.GetAttr(k), actual.GetAttr(k), at.attr(k))
		}
	case ty.IsSetType():
		p.compareSets(planned, actual, at, "length", false, func(x, y cty.Value) bool {
			var found problems
			found.compareValue(x, y, at)
			return len(found) == 0
		})
	}
}

// compareMaps requires the same keys in both maps, and compares the elements of each.
func (p *problems) compareMaps(planned, actual cty.Value, at *pathBuilder, noun string,
	compare func(planned, actual cty.Value, at *pathBuilder)) {
	plannedVals, actualVals := planned.AsValueMap(), actual.AsValueMap()
	for _, k := range slices.Sorted(maps.Keys(plannedVals)) {
		if a, ok := actualVals[k]; ok {
			compare(plannedVals[k], a, at.index(cty.StringVal(k)))
			continue
		}
		p.add(at, noun+" %q has vanished", k)
	}
	for _, k := range slices.Sorted(maps.Keys(actualVals)) {
		if _, ok := plannedVals[k]; !ok {
			p.add(at, "new "+noun+" %q has appeared", k)
		}
	}
}

// compareSets requires an equivalent in the other set for each element of both sets. It pairs equal elements by their
// hash. It compares only the remaining elements, which contained unknown values, with all others.
func (p *problems) compareSets(planned, actual cty.Value, at *pathBuilder, noun string, quiet bool,
	equivalent func(x, y cty.Value) bool) {
	xs, ys := planned.AsValueSlice(), actual.AsValueSlice()
	xFound, yFound := make([]bool, len(xs)), make([]bool, len(ys))
	byHash := make(map[int][]int, len(ys))
	for j, y := range ys {
		h := y.Hash()
		byHash[h] = append(byHash[h], j)
	}
	for i, x := range xs {
		for _, j := range byHash[x.Hash()] {
			if x.RawEquals(ys[j]) {
				xFound[i], yFound[j] = true, true
				break
			}
		}
	}
	for i, x := range xs {
		if xFound[i] {
			continue
		}
		for j, y := range ys {
			if equivalent(x, y) {
				xFound[i], yFound[j] = true, true
			}
		}
	}
	for j, y := range ys {
		for i := 0; i < len(xs) && !yFound[j]; i++ {
			yFound[j] = equivalent(xs[i], y)
		}
	}
	text := func(v cty.Value) string {
		if quiet {
			return lang.Mask
		}
		return show(v)
	}
	for i, x := range xs {
		if !xFound[i] {
			p.add(at, "planned set element %s does not correlate with any element in actual", text(x))
		}
	}
	for j, y := range ys {
		if !yFound[j] {
			p.add(at, "actual set element %s does not correlate with any element in plan", text(y))
		}
	}
	if len(xs) < len(ys) {
		p.add(at, "%s changed from %d to %d", noun, len(xs), len(ys))
	}
}

// show returns a shortened text of a value for an error message.
func show(v cty.Value) string {
	if !v.IsKnown() {
		return "(known after apply)"
	}
	b, err := json.Marshal(plain(v, nullIncluded))
	if err != nil {
		return fmt.Sprintf("%#v", v)
	}
	if s := string(b); len(s) <= 200 {
		return s
	}
	return string(b[:200]) + "..."
}
