package lang

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	yaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// builtins maps names to the functions that an expression may call, with Terraform's names:
// https://developer.hashicorp.com/terraform/language/functions No function reads files or the environment. The results
// of impure functions (clock and random values) are unknown until the EvaluationContext defines them.
var builtins = map[string]function.Function{
	// Numbers.
	"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "log": stdlib.LogFunc,
	"max": stdlib.MaxFunc,
	"min": stdlib.MinFunc, "parseint": stdlib.ParseIntFunc, "pow": stdlib.PowFunc, "signum": stdlib.SignumFunc,
	"sum": sum,

	// Strings. The implementation of templatestring depends on the evaluation: see costBudget.function.
	"chomp": stdlib.ChompFunc, "endswith": stringTest(strings.HasSuffix, nil), "format": stdlib.FormatFunc,
	"formatlist": stdlib.FormatListFunc,
	"indent":     stdlib.IndentFunc, "join": stdlib.JoinFunc, "lower": stdlib.LowerFunc, "regex": stdlib.RegexFunc,
	"regexall": stdlib.RegexAllFunc,
	"replace":  replace, "split": stdlib.SplitFunc, "startswith": stringTest(strings.HasPrefix, startsWithPrefix),
	"strcontains": stringTest(strings.Contains, nil),
	"strrev":      stdlib.ReverseFunc, "substr": stdlib.SubstrFunc, templateString: function.New(&function.Spec{}),
	"title": stdlib.TitleFunc, "trim": stdlib.TrimFunc,
	"trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc, "trimsuffix": stdlib.TrimSuffixFunc,
	"upper":    stdlib.UpperFunc,
	"basename": stringFunc(func(s string) (string, error) { return path.Base(s), nil }),
	"dirname":  stringFunc(func(s string) (string, error) { return path.Dir(s), nil }),

	// Collections.
	"alltrue": allTrue, "anytrue": anyTrue, "chunklist": stdlib.ChunklistFunc, "coalesce": coalesce,
	"coalescelist": stdlib.CoalesceListFunc,
	"compact":      stdlib.CompactFunc, "concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc,
	"distinct": stdlib.DistinctFunc,
	"element":  stdlib.ElementFunc, "flatten": stdlib.FlattenFunc, "index": indexOf, "keys": stdlib.KeysFunc,
	"length": length, "lookup": lookup,
	"matchkeys": matchKeys, "merge": stdlib.MergeFunc, "one": one, "range": stdlib.RangeFunc,
	"reverse":         stdlib.ReverseListFunc,
	"setintersection": stdlib.SetIntersectionFunc, "setproduct": stdlib.SetProductFunc,
	"setsubtract": stdlib.SetSubtractFunc,
	"setunion":    stdlib.SetUnionFunc, "slice": stdlib.SliceFunc, "sort": stdlib.SortFunc, "transpose": transpose,
	"values": stdlib.ValuesFunc,
	"zipmap": stdlib.ZipmapFunc,

	// Encodings.
	"base64decode": base64Decode, "base64encode": base64Encode, "base64gunzip": base64Gunzip, "base64gzip": base64Gzip,
	"csvdecode": stdlib.CSVDecodeFunc, "jsondecode": stdlib.JSONDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc,
	"textdecodebase64": textDecodeBase64, "textencodebase64": textEncodeBase64,
	"urldecode":  stringFunc(url.QueryUnescape),
	"urlencode":  stringFunc(func(s string) (string, error) { return url.QueryEscape(s), nil }),
	"yamldecode": yaml.YAMLDecodeFunc, "yamlencode": yaml.YAMLEncodeFunc,

	// Hashes.
	"base64sha256": digest(sha256.New, base64.StdEncoding.EncodeToString),
	"base64sha512": digest(sha512.New, base64.StdEncoding.EncodeToString),
	"md5":          digest(md5.New, hex.EncodeToString), "rsadecrypt": rsaDecrypt,
	"sha1":   digest(sha1.New, hex.EncodeToString),
	"sha256": digest(sha256.New, hex.EncodeToString), "sha512": digest(sha512.New, hex.EncodeToString),
	"uuidv5": uuidV5,

	// Impure functions: clock and random values.
	bcryptName: function.Unpredictable(bcryptFunc(nil)), planTimestamp: function.Unpredictable(clock(time.Time{})),
	timestamp: function.Unpredictable(clock(time.Time{})), newUUID: function.Unpredictable(uuidFunc(nil)),

	// Times.
	"formatdate": stdlib.FormatDateFunc, "timeadd": stdlib.TimeAddFunc, "timecmp": timeCompare,

	// Network addresses.
	"cidrcontains": cidrContains, "cidrhost": cidrHost, "cidrnetmask": cidrNetmask, "cidrsubnet": cidrSubnet,
	"cidrsubnets": cidrSubnets,

	// Type conversions and marks.
	"can": tryfunc.CanFunc, "ephemeralasnull": ephemeralAsNull, "issensitive": isSensitive,
	"nonsensitive": nonsensitive, "sensitive": sensitive,
	"tobool": conversion(cty.Bool), "tolist": conversion(cty.List(cty.DynamicPseudoType)),
	"tomap":    conversion(cty.Map(cty.DynamicPseudoType)),
	"tonumber": conversion(cty.Number), "toset": conversion(cty.Set(cty.DynamicPseudoType)),
	"tostring": conversion(cty.String), "try": tryfunc.TryFunc,
}

func stringFunc(f func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Name: "str", Type: cty.String}},
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			s, err := f(args[0].AsString())
			if err != nil {
				return cty.UnknownVal(cty.String), function.NewArgError(0, err)
			}
			return cty.StringVal(s), nil
		},
	})
}

func digest(h func() hash.Hash, encode func([]byte) string) function.Function {
	return stringFunc(func(s string) (string, error) {
		d := h()
		d.Write([]byte(s))
		return encode(d.Sum(nil)), nil
	})
}

// stringTest returns a function that tests a string for a part. early, which may be nil, can decide if only a prefix of
// the string is known.
func stringTest(f func(s, part string) bool, early func(prefix, part string) cty.Value) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "str", Type: cty.String, AllowUnknown: true},
			{Name: "part", Type: cty.String}},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if s := args[0]; !s.IsKnown() {
				if early == nil {
					return cty.UnknownVal(cty.Bool), nil
				}
				return early(s.Range().StringPrefix(), args[1].AsString()), nil
			}
			return cty.BoolVal(f(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

// startsWithPrefix decides startswith for a string of which only a prefix is known.
func startsWithPrefix(known, part string) cty.Value {
	switch {
	case strings.HasPrefix(known, part):
		return cty.True
	case !strings.HasPrefix(part, known):
		return cty.False
	}
	return cty.UnknownVal(cty.Bool)
}

// coalesce returns the first argument that is neither null nor an empty string, as Terraform's function does.
var coalesce = function.New(&function.Spec{
	VarParam: &function.Parameter{
		Name: "vals", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowDynamicType: true, AllowNull: true,
	},
	Type: func(args []cty.Value) (cty.Type, error) {
		types := make([]cty.Type, len(args))
		for i, a := range args {
			types[i] = a.Type()
		}
		ty, _ := convert.UnifyUnsafe(types)
		if ty == cty.NilType {
			return cty.NilType, errors.New("all arguments must have the same type")
		}
		return ty, nil
	},
	RefineResult: notNull,
	Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
		for _, a := range args {
			v, err := convert.Convert(a, ty)
			if err != nil {
				return cty.NilVal, err
			}
			if !v.IsKnown() {
				return cty.UnknownVal(ty), nil
			}
			if v.IsNull() || v.Type() == cty.String && v.AsString() == "" {
				continue
			}
			return v, nil
		}
		return cty.NilVal, errors.New("no non-null, non-empty-string arguments")
	},
})

// length counts the characters of a string, or the elements of a collection, object or tuple.
var length = function.New(&function.Spec{
	Params: []function.Parameter{{
		Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true, AllowUnknown: true, AllowMarked: true,
	}},
	Type: func(args []cty.Value) (cty.Type, error) {
		ty := args[0].Type()
		if ty == cty.String || ty == cty.DynamicPseudoType || ty.IsObjectType() || ty.IsTupleType() ||
			ty.IsCollectionType() {
			return cty.Number, nil
		}
		return cty.NilType, errors.New("argument must be a string, a collection type, or a structural type")
	},
	RefineResult: notNull,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		v, marks := args[0].Unmark()
		switch ty := v.Type(); {
		case ty == cty.DynamicPseudoType:
			return cty.UnknownVal(cty.Number).WithMarks(marks), nil
		case ty == cty.String:
			n, err := stdlib.StrlenFunc.Call([]cty.Value{v})
			return n.WithMarks(marks), err
		case ty.IsObjectType():
			return cty.NumberIntVal(int64(len(ty.AttributeTypes()))).WithMarks(marks), nil
		case ty.IsTupleType():
			return cty.NumberIntVal(int64(len(ty.TupleElementTypes()))).WithMarks(marks), nil
		default:
			return v.Length().WithMarks(marks), nil
		}
	},
})

// lookup returns an element of a map or object. Without such an element, it returns the default, or fails if there is
// no default.
var lookup = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "map", Type: cty.DynamicPseudoType, AllowMarked: true},
		{Name: "key", Type: cty.String, AllowMarked: true},
	},
	VarParam: &function.Parameter{Name: "default", Type: cty.DynamicPseudoType, AllowUnknown: true,
		AllowDynamicType: true, AllowNull: true, AllowMarked: true},
	Type: func(args []cty.Value) (cty.Type, error) {
		if len(args) > 3 {
			return cty.NilType, fmt.Errorf("lookup takes two or three arguments, got %d", len(args))
		}
		switch ty := args[0].Type(); {
		case ty.IsObjectType():
			key, _ := args[1].Unmark()
			if !key.IsKnown() {
				return cty.DynamicPseudoType, nil
			}
			if ty.HasAttribute(key.AsString()) {
				return ty.AttributeType(key.AsString()), nil
			}
			if len(args) == 3 {
				return args[2].Type(), nil
			}
			return cty.NilType, function.NewArgErrorf(1, "the given object has no attribute %q", key.AsString())
		case ty.IsMapType():
			if len(args) == 3 {
				if _, err := convert.Convert(args[2], ty.ElementType()); err != nil {
					return cty.NilType, function.NewArgErrorf(2,
						"the default value must have the same type as the map elements")
				}
			}
			return ty.ElementType(), nil
		default:
			return cty.NilType, function.NewArgErrorf(0, "lookup requires a map or an object as its first argument")
		}
	},
	Impl: func(args []cty.Value, want cty.Type) (cty.Value, error) {
		m, marks := args[0].Unmark()
		key, keyMarks := args[1].Unmark()
		if !m.IsKnown() || !key.IsKnown() {
			return cty.UnknownVal(want).WithMarks(marks, keyMarks), nil
		}
		name := key.AsString()
		switch {
		case m.Type().IsObjectType() && m.Type().HasAttribute(name):
			return m.GetAttr(name).WithMarks(marks, keyMarks), nil
		case m.Type().IsMapType() && m.HasIndex(key).True():
			return m.Index(key).WithMarks(marks, keyMarks), nil
		case len(args) == 3:
			v, err := convert.Convert(args[2], want)
			return v.WithMarks(marks, keyMarks), err
		default:
			return cty.UnknownVal(want), function.NewArgErrorf(1, "the given map has no element with this key")
		}
	},
})

// indexOf returns the position of a value in a list.
var indexOf = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "list", Type: cty.DynamicPseudoType},
		{Name: "value", Type: cty.DynamicPseudoType},
	},
	Type: func(args []cty.Value) (cty.Type, error) {
		if ty := args[0].Type(); !ty.IsListType() && !ty.IsTupleType() {
			return cty.NilType, function.NewArgErrorf(0, "argument must be a list or tuple")
		}
		return cty.Number, nil
	},
	RefineResult: notNull,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		for it := args[0].ElementIterator(); it.Next(); {
			i, v := it.Element()
			eq, err := stdlib.Equal(v, args[1])
			if err != nil {
				return cty.NilVal, err
			}
			if !eq.IsKnown() {
				return cty.UnknownVal(cty.Number), nil
			}
			if eq.True() {
				return i, nil
			}
		}
		return cty.NilVal, errors.New("item not found")
	},
})

// replace substitutes a substring, or a regular expression if the substring is enclosed in slashes.
var replace = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "str", Type: cty.String}, {Name: "substr", Type: cty.String},
		{Name: "replace", Type: cty.String}},
	Type: function.StaticReturnType(cty.String), RefineResult: notNull,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		s, sub, with := args[0].AsString(), args[1].AsString(), args[2].AsString()
		if pattern, ok := slashed(sub); ok {
			re, err := regexp.Compile(pattern)
			if err != nil {
				return cty.UnknownVal(cty.String), function.NewArgError(1, err)
			}
			return cty.StringVal(re.ReplaceAllString(s, with)), nil
		}
		return cty.StringVal(strings.ReplaceAll(s, sub, with)), nil
	},
})

// fold returns a function that evaluates a list of booleans until one decides the result. Null counts as false, as in
// Terraform.
func fold(neutral bool) function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			unknown := false
			for it := args[0].ElementIterator(); it.Next(); {
				switch _, v := it.Element(); {
				case !v.IsKnown():
					unknown = true
				case v.IsNull():
					if neutral {
						return cty.False, nil
					}
				case v.True() != neutral:
					return v, nil
				}
			}
			if unknown {
				return cty.UnknownVal(cty.Bool), nil
			}
			return cty.BoolVal(neutral), nil
		},
	})
}

var allTrue, anyTrue = fold(true), fold(false)

var sum = function.New(&function.Spec{
	Params:       []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
	Type:         function.StaticReturnType(cty.Number),
	RefineResult: notNull,
	Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
		if t := args[0].Type(); !t.IsListType() && !t.IsSetType() && !t.IsTupleType() {
			return cty.UnknownVal(ty), function.NewArgErrorf(0, "argument must be list, set, or tuple. Received %s",
				t.FriendlyName())
		}
		if args[0].LengthInt() == 0 {
			return cty.UnknownVal(ty), function.NewArgErrorf(0, "cannot sum an empty list")
		}
		acc := cty.Zero
		for it := args[0].ElementIterator(); it.Next(); {
			_, v := it.Element()
			v, err := convert.Convert(v, cty.Number)
			if err != nil || v.IsNull() {
				return cty.UnknownVal(ty), function.NewArgErrorf(0,
					"argument must be list, set, or tuple of number values")
			}
			if hugeNumber(v) {
				return cty.UnknownVal(ty), function.NewArgErrorf(0, "a number is out of range")
			}
			acc = acc.Add(v)
		}
		return acc, nil
	},
})

// one returns the only element of a list or set, or null for an empty one.
var one = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
	Type: func(args []cty.Value) (cty.Type, error) {
		switch ty := args[0].Type(); {
		case ty.IsListType() || ty.IsSetType():
			return ty.ElementType(), nil
		case ty.IsTupleType() && len(ty.TupleElementTypes()) == 0:
			return cty.DynamicPseudoType, nil
		case ty.IsTupleType() && len(ty.TupleElementTypes()) == 1:
			return ty.TupleElementType(0), nil
		default:
			return cty.NilType, function.NewArgErrorf(0,
				"must be a list, set, or tuple with either zero or one elements")
		}
	},
	Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
		switch args[0].LengthInt() {
		case 0:
			return cty.NullVal(ty), nil
		case 1:
			return args[0].AsValueSlice()[0], nil
		default:
			return cty.NilVal, function.NewArgErrorf(0,
				"must be a list, set, or tuple with either zero or one elements")
		}
	},
})
