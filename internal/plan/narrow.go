package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// maxTypes is how many types the elements of one value may have where they must become one. To find the type that all of them
// can become takes time with the square of their number.
const maxTypes = 200

// loose says whether a type leaves open of what type the elements of a collection are, so that a conversion to it must find
// the one type that all of them can become.
func loose(ty cty.Type) bool {
	return ty.IsCollectionType() && ty.ElementType() == cty.DynamicPseudoType
}

// tighten converts a written list or object to a collection whose elements' type is open. It gives what convert.Convert does,
// but compares each type once, however many elements have it.
func tighten(v cty.Value, want cty.Type) (cty.Value, error) {
	ty := v.Type()
	if v.IsNull() || !v.IsKnown() || !ty.IsTupleType() && !ty.IsObjectType() {
		return convert.Convert(v, want)
	}
	var elements []cty.Type
	add := func(t cty.Type) bool {
		if !slices.ContainsFunc(elements, t.Equals) {
			elements = append(elements, t)
		}
		return len(elements) <= maxTypes
	}
	fits := true
	if ty.IsTupleType() {
		for _, t := range ty.TupleElementTypes() {
			if fits = add(t); !fits {
				break
			}
		}
	} else {
		for _, k := range sortedKeys(ty.AttributeTypes()) {
			if fits = add(ty.AttributeType(k)); !fits {
				break
			}
		}
	}
	if !fits {
		return cty.DynamicVal, fmt.Errorf("the elements are of more than %d types", maxTypes)
	}
	if len(elements) == 0 {
		return convert.Convert(v, want)
	}
	one, _ := convert.UnifyUnsafe(elements)
	if one == cty.NilType {
		return cty.DynamicVal, errors.New("all elements must have the same type")
	}
	switch {
	case want.IsListType():
		want = cty.List(one)
	case want.IsSetType():
		want = cty.Set(one)
	default:
		want = cty.Map(one)
	}
	return convert.Convert(v, want)
}
