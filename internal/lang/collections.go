package lang

import (
	"errors"
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// maxTypes is the maximum number of distinct element types when a conversion must unify them. Unification takes time
// quadratic in their number.
const maxTypes = 200

// maxMixed is the maximum number of elements in a list whose elements have different types.
const maxMixed = 5000

// Convert converts a value to a type. The result equals that of convert.Convert, which takes much longer for large
// collections.
func Convert(v cty.Value, want cty.Type) (cty.Value, error) { return convertCollection(v, want) }

// convertCollection converts a tuple or object to a collection. The result equals that of convert.Convert. But
// convert.Convert compares the elements' types pairwise, which takes minutes for a list of ten thousand strings.
func convertCollection(v cty.Value, want cty.Type) (cty.Value, error) {
	bareValue, marks := v.Unmark()
	ty := bareValue.Type()
	if !want.IsCollectionType() || bareValue.IsNull() || !bareValue.IsKnown() ||
		!ty.IsTupleType() && !ty.IsObjectType() ||
		ty.IsTupleType() == want.IsMapType() || bareValue.LengthInt() == 0 {
		return convert.Convert(v, want)
	}
	elem := want.ElementType()
	if elem == cty.DynamicPseudoType {
		var err error
		if elem, err = commonType(ty); err != nil {
			return cty.DynamicVal, err
		}
	}
	if elem.HasDynamicTypes() {
		if bareValue.LengthInt() > maxMixed {
			return cty.DynamicVal, fmt.Errorf("more than %d elements of mixed types are not supported", maxMixed)
		}
		return convert.Convert(v, want)
	}
	if want.IsMapType() {
		vals := bareValue.AsValueMap()
		for _, k := range sortedKeys(vals) {
			e, err := convert.Convert(vals[k], elem)
			if err != nil {
				return cty.DynamicVal, err
			}
			vals[k] = e
		}
		return cty.MapVal(vals).WithMarks(marks), nil
	}
	vals := bareValue.AsValueSlice()
	for i, e := range vals {
		e, err := convert.Convert(e, elem)
		if err != nil {
			return cty.DynamicVal, cty.IndexIntPath(i).NewError(err)
		}
		vals[i] = e
	}
	if want.IsSetType() {
		return cty.SetVal(vals).WithMarks(marks), nil
	}
	return cty.ListVal(vals).WithMarks(marks), nil
}

// commonType returns the type to which all elements of a tuple or object can be converted.
func commonType(ty cty.Type) (cty.Type, error) {
	var types []cty.Type
	add := func(t cty.Type) error {
		if !slices.ContainsFunc(types, t.Equals) {
			types = append(types, t)
		}
		if len(types) > maxTypes {
			return fmt.Errorf("the elements are of more than %d types", maxTypes)
		}
		return nil
	}
	if ty.IsTupleType() {
		for _, t := range ty.TupleElementTypes() {
			if err := add(t); err != nil {
				return cty.NilType, err
			}
		}
	} else {
		for _, k := range sortedKeys(ty.AttributeTypes()) {
			if err := add(ty.AttributeType(k)); err != nil {
				return cty.NilType, err
			}
		}
	}
	one, _ := convert.UnifyUnsafe(types)
	if one == cty.NilType {
		return cty.NilType, errors.New("all elements must have the same type")
	}
	return one, nil
}
