package lang

import (
	"errors"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// transpose swaps the keys and the values of a map of lists of strings.
var transpose = function.New(&function.Spec{
	Params:       []function.Parameter{{Name: "values", Type: cty.Map(cty.List(cty.String))}},
	Type:         function.StaticReturnType(cty.Map(cty.List(cty.String))),
	RefineResult: notNull,
	Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
		if !args[0].IsWhollyKnown() {
			return cty.UnknownVal(ty), nil
		}
		keys := map[string][]cty.Value{}
		for it := args[0].ElementIterator(); it.Next(); {
			k, list := it.Element()
			if list.IsNull() {
				return cty.UnknownVal(ty), errors.New("input must not contain null list")
			}
			for it := list.ElementIterator(); it.Next(); {
				_, v := it.Element()
				if v.IsNull() {
					return cty.UnknownVal(ty), errors.New("input must not contain null string")
				}
				keys[v.AsString()] = append(keys[v.AsString()], k)
			}
		}
		if len(keys) == 0 {
			return cty.MapValEmpty(cty.List(cty.String)), nil
		}
		out := make(map[string]cty.Value, len(keys))
		for k, names := range keys {
			slices.SortFunc(names, func(a, b cty.Value) int { return strings.Compare(a.AsString(), b.AsString()) })
			out[k] = cty.ListVal(names)
		}
		return cty.MapVal(out), nil
	},
})

// matchKeys returns the values whose key, at the same index of the second list, is in the search set.
var matchKeys = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "values", Type: cty.List(cty.DynamicPseudoType)},
		{Name: "keys", Type: cty.List(cty.DynamicPseudoType)},
		{Name: "searchset", Type: cty.List(cty.DynamicPseudoType)},
	},
	RefineResult: notNull,
	Type: func(args []cty.Value) (cty.Type, error) {
		if ty, _ := convert.UnifyUnsafe([]cty.Type{args[1].Type(), args[2].Type()}); ty == cty.NilType {
			return cty.NilType, errors.New("keys and searchset must be of the same type")
		}
		// Return the type of the whole list: the element type of an empty tuple is not known.
		return args[0].Type(), nil
	},
	Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
		if !args[0].IsWhollyKnown() || !args[1].IsWhollyKnown() || !args[2].IsWhollyKnown() {
			return cty.UnknownVal(cty.List(ty.ElementType())), nil
		}
		if args[0].LengthInt() != args[1].LengthInt() {
			return cty.UnknownVal(ty), errors.New("length of keys and values should be equal")
		}
		same, _ := convert.UnifyUnsafe([]cty.Type{args[1].Type(), args[2].Type()})
		keys, err := convert.Convert(args[1], same)
		if err != nil {
			return cty.UnknownVal(ty), err
		}
		search, err := convert.Convert(args[2], same)
		if err != nil {
			return cty.UnknownVal(ty), err
		}
		values, wanted := args[0].AsValueSlice(), search.AsValueSlice()
		var out []cty.Value
		for i, k := range keys.AsValueSlice() {
			if slices.ContainsFunc(wanted, k.RawEquals) {
				out = append(out, values[i])
			}
		}
		if len(out) == 0 {
			return cty.ListValEmpty(ty.ElementType()), nil
		}
		return cty.ListVal(out), nil
	},
})
