package policy

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/runtime"
)

// This file evaluates expressions with values that are not known yet. CEL propagates an unknown value through operators
// and functions, and decides "true || unknown". It does not look into lists and maps: a comparison with an unknown
// element would be false. So this file replaces those functions that do.

// unknownOf returns an unknown value of the change with an index.
func unknownOf(index int32) *types.Unknown { return types.NewUnknown(int64(index), nil) }

// changesOf returns the indexes of the changes that an unknown value comes from, in ascending order.
func changesOf(u *types.Unknown) []int32 {
	var out []int32
	for _, id := range u.IDs() {
		out = append(out, int32(id))
	}
	slices.Sort(out)
	return out
}

// hasMacro expands has(e.f) to e.?f.hasValue(), because CEL's own has() is true for a field of an unknown value.
var hasMacro = cel.GlobalMacro(operators.Has, 1,
	func(f cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
		if args[0].Kind() != ast.SelectKind {
			return nil, f.NewError(args[0].ID(), "invalid argument to has() macro")
		}
		sel := args[0].AsSelect()
		return f.NewMemberCall("hasValue",
			f.NewCall(operators.OptSelect, sel.Operand(), f.NewLiteral(types.String(sel.FieldName())))), nil
	})

// exact are the functions that treat lists and maps with unknown elements correctly, or that take neither.
// Comprehensions are no functions.
var exact = map[string]bool{
	operators.LogicalAnd: true, operators.LogicalOr: true, operators.LogicalNot: true, operators.Conditional: true,
	operators.NotStrictlyFalse: true, operators.Index: true, operators.OptIndex: true, operators.OptSelect: true,
	operators.Add: true, operators.Subtract: true, operators.Multiply: true, operators.Divide: true,
	operators.Modulo: true, operators.Negate: true,
	operators.Less: true, operators.LessEquals: true, operators.Greater: true, operators.GreaterEquals: true,
	overloads.Size: true, overloads.StartsWith: true, overloads.EndsWith: true, overloads.Contains: true,
	overloads.Matches: true,
	"or":              true, "orValue": true, "hasValue": true, "value": true, "optional.of": true,
	"optional.none": true,
}

// decorate replaces the functions that would not treat unknown elements correctly.
func decorate(i interpreter.Interpretable) (interpreter.Interpretable, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	switch name := call.Function(); {
	case name == operators.Equals && len(call.Args()) == 2:
		return binary{call, equal}, nil
	case name == operators.NotEquals && len(call.Args()) == 2:
		return binary{call, func(a, b ref.Val) ref.Val { return not(equal(a, b)) }}, nil
	case name == operators.In && len(call.Args()) == 2:
		return binary{call, in}, nil
	case exact[name]:
		return i, nil
	default:
		return guarded{call}, nil
	}
}

// binary is a call with another implementation. It is strict.
type binary struct {
	interpreter.InterpretableCall
	do functions.BinaryOp
}

// Eval implements interpreter.Interpretable.
func (b binary) Eval(vars interpreter.Activation) ref.Val {
	args := b.Args()
	left, right := args[0].Eval(vars), args[1].Eval(vars)
	for _, v := range []ref.Val{left, right} {
		if types.IsError(v) {
			return v
		}
	}
	if u := merge(left, right); u != nil {
		return u
	}
	return b.do(left, right)
}

// guarded is a call whose result is unknown if an argument contains an unknown value.
type guarded struct{ interpreter.InterpretableCall }

// Eval implements interpreter.Interpretable.
func (g guarded) Eval(vars interpreter.Activation) ref.Val {
	var u *types.Unknown
	for _, arg := range g.Args() {
		u = types.MergeUnknowns(u, within(arg.Eval(vars)))
	}
	if u != nil {
		return u
	}
	return g.InterpretableCall.Eval(vars)
}

// merge returns the unknown values among some; nil if all are known.
func merge(values ...ref.Val) *types.Unknown {
	var out *types.Unknown
	for _, v := range values {
		if u, ok := v.(*types.Unknown); ok {
			out = types.MergeUnknowns(out, u)
		}
	}
	return out
}

// within returns the unknown values in a value; nil if it is known.
func within(v ref.Val) *types.Unknown {
	switch v := v.(type) {
	case *types.Unknown:
		return v
	case *types.Optional:
		if v.HasValue() {
			return within(v.GetValue())
		}
	case traits.Mapper:
		var out *types.Unknown
		for it := v.Iterator(); it.HasNext() == types.True; {
			out = types.MergeUnknowns(out, within(v.Get(it.Next())))
		}
		return out
	case traits.Lister:
		var out *types.Unknown
		for it := v.Iterator(); it.HasNext() == types.True; {
			out = types.MergeUnknowns(out, within(it.Next()))
		}
		return out
	}
	return nil
}

func not(v ref.Val) ref.Val {
	if types.IsUnknown(v) {
		return v
	}
	return types.Bool(v != types.True)
}

// equal compares two values. It is false if known parts differ, and else unknown if a part is unknown.
func equal(a, b ref.Val) ref.Val {
	if u := merge(a, b); u != nil {
		return u
	}
	if x, ok := a.(*types.Optional); ok {
		y, ok := b.(*types.Optional)
		switch {
		case !ok || x.HasValue() != y.HasValue():
			return types.False
		case !x.HasValue():
			return types.True
		}
		return equal(x.GetValue(), y.GetValue())
	}
	if x, ok := a.(traits.Mapper); ok {
		y, ok := b.(traits.Mapper)
		if !ok || x.Size() != y.Size() {
			return types.False
		}
		return all(func(yield func(ref.Val) bool) {
			for it := x.Iterator(); it.HasNext() == types.True; {
				key := it.Next()
				other, found := y.Find(key)
				if !found {
					yield(types.False)
					return
				}
				if !yield(equal(x.Get(key), other)) {
					return
				}
			}
		})
	}
	if x, ok := a.(traits.Lister); ok {
		y, ok := b.(traits.Lister)
		if !ok || x.Size() != y.Size() {
			return types.False
		}
		return all(func(yield func(ref.Val) bool) {
			for i, n := types.Int(0), x.Size().(types.Int); i < n; i++ {
				if !yield(equal(x.Get(i), y.Get(i))) {
					return
				}
			}
		})
	}
	return types.Bool(types.Equal(a, b) == types.True)
}

// all returns false if one of the results is false, else the unknown ones, else true.
func all(results func(yield func(ref.Val) bool)) ref.Val {
	var unknown *types.Unknown
	for r := range results {
		if u, ok := r.(*types.Unknown); ok {
			unknown = types.MergeUnknowns(unknown, u)
		} else if r != types.True {
			return types.False
		}
	}
	if unknown != nil {
		return unknown
	}
	return types.True
}

// in reports whether a list has an element, or a map a key.
func in(v, container ref.Val) ref.Val {
	list, ok := container.(traits.Lister)
	if !ok {
		c, ok := container.(traits.Container)
		if !ok {
			return types.MaybeNoSuchOverloadErr(container)
		}
		return c.Contains(v)
	}
	var unknown *types.Unknown
	for it := list.Iterator(); it.HasNext() == types.True; {
		switch r := equal(v, it.Next()).(type) {
		case *types.Unknown:
			unknown = types.MergeUnknowns(unknown, r)
		case types.Bool:
			if r {
				return types.True
			}
		}
	}
	if unknown != nil {
		return unknown
	}
	return types.False
}

// withFlags replaces the parts of a JSON value for which the flags are true. The flags have the form of afterUnknown
// and afterSensitive. It returns the value itself if no flag is true.
func withFlags(value, flags *runtime.RawExtension, replacement string) (*runtime.RawExtension, error) {
	if !Flagged(flags) {
		return value, nil
	}
	var set, v any
	if err := json.Unmarshal(flags.Raw, &set); err != nil {
		return nil, err
	}
	if value != nil && len(value.Raw) > 0 {
		d := json.NewDecoder(bytes.NewReader(value.Raw))
		d.UseNumber() // numbers keep their digits
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
	}
	raw, err := json.Marshal(replace(v, set, replacement))
	return &runtime.RawExtension{Raw: raw}, err
}

// Flagged reports whether one of the flags may be true.
func Flagged(flags *runtime.RawExtension) bool {
	return flags != nil && bytes.Contains(flags.Raw, []byte("true"))
}

func anyTrue(flags any) bool {
	switch f := flags.(type) {
	case bool:
		return f
	case map[string]any:
		for _, v := range f {
			if anyTrue(v) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(f, anyTrue)
	}
	return false
}

func replace(v, flags any, replacement string) any {
	switch f := flags.(type) {
	case bool:
		if f {
			return replacement
		}
	case map[string]any:
		m, _ := v.(map[string]any)
		for k, flag := range f {
			if !anyTrue(flag) {
				continue
			}
			if m == nil {
				m = map[string]any{}
			}
			m[k] = replace(m[k], flag, replacement)
		}
		if m != nil {
			return m
		}
	case []any:
		list, _ := v.([]any)
		for i, flag := range f {
			if !anyTrue(flag) {
				continue
			}
			for len(list) <= i {
				list = append(list, nil)
			}
			list[i] = replace(list[i], flag, replacement)
		}
		if list != nil {
			return list
		}
	}
	return v
}
