package lang

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// conversion returns the function that converts its argument to a type, such as tomap. As in Terraform, the elements of
// the result keep their own marks; stdlib.MakeToFunc marks the whole result.
func conversion(want cty.Type) function.Function {
	plain := stdlib.MakeToFunc(want)
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "v", Type: cty.DynamicPseudoType, AllowNull: true, AllowMarked: true,
			AllowDynamicType: true}},
		Type: plain.ReturnTypeForValues,
		Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
			if v, err := convert.Convert(args[0], ty); err == nil {
				return v, nil
			}
			return plain.Call(args) // it explains the failure
		},
	})
}

// markFunc returns a function of one value that handles the marks of the value itself.
func markFunc(ty func(cty.Value) cty.Type, f func(v cty.Value) cty.Value) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{
			Name: "value", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowNull: true, AllowMarked: true,
			AllowDynamicType: true,
		}},
		Type: func(args []cty.Value) (cty.Type, error) { return ty(args[0]), nil },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f(args[0]), nil },
	})
}

var (
	sensitive    = markFunc(cty.Value.Type, func(v cty.Value) cty.Value { return v.Mark(Sensitive) })
	nonsensitive = markFunc(cty.Value.Type, func(v cty.Value) cty.Value { return without(v, Sensitive) })
	isSensitive  = markFunc(func(cty.Value) cty.Type { return cty.Bool }, func(v cty.Value) cty.Value {
		if v.HasMark(Sensitive) {
			return cty.True
		}
		if !v.IsKnown() {
			return cty.UnknownVal(cty.Bool)
		}
		return cty.False
	})
	// ephemeralAsNull replaces each ephemeral value by null, so that the result may be stored.
	ephemeralAsNull = markFunc(cty.Value.Type, func(v cty.Value) cty.Value {
		out, err := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
			if !v.HasMark(Ephemeral) {
				return v, nil
			}
			_, marks := without(v, Ephemeral).Unmark()
			return cty.NullVal(v.Type()).WithMarks(marks), nil
		})
		if err != nil {
			return cty.NullVal(v.Type())
		}
		return out
	})
)
