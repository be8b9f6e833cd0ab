// Package schematest has short constructors for schemas and values in tests, and generates random values.
package schematest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/schema"
)

func Block(parts ...any) *schema.Block {
	b := &schema.Block{}
	for _, p := range parts {
		switch p := p.(type) {
		case *schema.Attribute:
			b.Attributes = append(b.Attributes, p)
		case *schema.NestedBlock:
			b.Blocks = append(b.Blocks, p)
		}
	}
	slices.SortFunc(b.Attributes, func(x, y *schema.Attribute) int { return strings.Compare(x.Name, y.Name) })
	slices.SortFunc(b.Blocks, func(x, y *schema.NestedBlock) int { return strings.Compare(x.TypeName, y.TypeName) })
	return b
}

func Required(name string, ty cty.Type) *schema.Attribute {
	return &schema.Attribute{Name: name, Type: ty, Required: true}
}

func Optional(name string, ty cty.Type) *schema.Attribute {
	return &schema.Attribute{Name: name, Type: ty, Optional: true}
}

func Computed(name string, ty cty.Type) *schema.Attribute {
	return &schema.Attribute{Name: name, Type: ty, Computed: true}
}

func OptionalComputed(name string, ty cty.Type) *schema.Attribute {
	return &schema.Attribute{Name: name, Type: ty, Optional: true, Computed: true}
}

func Sensitive(a *schema.Attribute) *schema.Attribute { a.Sensitive = true; return a }

func WriteOnly(a *schema.Attribute) *schema.Attribute { a.WriteOnly = true; return a }

// Object gives an attribute a nested schema.
func Object(a *schema.Attribute, n schema.Nesting, attrs ...*schema.Attribute) *schema.Attribute {
	slices.SortFunc(attrs, func(x, y *schema.Attribute) int { return strings.Compare(x.Name, y.Name) })
	a.Nested = &schema.Object{Nesting: n, Attributes: attrs}
	a.Type = a.Nested.ImpliedType()
	return a
}

func NestedBlock(name string, n schema.Nesting, parts ...any) *schema.NestedBlock {
	return &schema.NestedBlock{TypeName: name, Nesting: n, Block: Block(parts...)}
}

func Obj(kv ...any) cty.Value {
	vals := make(map[string]cty.Value, len(kv)/2)
	for i := 0; i < len(kv); i += 2 {
		vals[kv[i].(string)] = kv[i+1].(cty.Value)
	}
	return cty.ObjectVal(vals)
}

func Str(s string) cty.Value { return cty.StringVal(s) }

func Num(i int64) cty.Value { return cty.NumberIntVal(i) }

var (
	NullStr    = cty.NullVal(cty.String)
	UnknownStr = cty.UnknownVal(cty.String)
)

// Same fails the test, and prints both values, if RawEquals reports that they differ.
func Same(t *testing.T, got, want cty.Value) {
	t.Helper()
	if !got.RawEquals(want) {
		t.Errorf("got  %#v\nwant %#v", got, want)
	}
}

func SameStrings(t *testing.T, got, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func Texts(errs []error) []string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Error())
	}
	return out
}

// Machine returns a block with each feature of a schema.
func Machine() *schema.Block {
	return Block(
		Required("name", cty.String),
		Optional("size", cty.Number),
		Optional("on", cty.Bool),
		Optional("tags", cty.Map(cty.String)),
		Optional("zones", cty.List(cty.String)),
		Optional("ports", cty.Set(cty.Number)),
		Optional("any", cty.DynamicPseudoType),
		Optional("legacy", cty.List(cty.Object(map[string]cty.Type{"a": cty.String, "b": cty.Number}))),
		Optional("strict", cty.Object(map[string]cty.Type{"a": cty.String, "b": cty.Number})),
		Computed("id", cty.String),
		OptionalComputed("ip", cty.String),
		Sensitive(Optional("password", cty.String)),
		Object(Optional("disk", cty.NilType), schema.NestingSingle, Required("gb", cty.Number),
			Optional("kind", cty.String), Computed("serial", cty.String)),
		Object(Optional("nics", cty.NilType), schema.NestingList, Required("net", cty.String)),
		Object(Optional("users", cty.NilType), schema.NestingMap, Optional("uid", cty.Number)),
		Object(Optional("keys", cty.NilType), schema.NestingSet, Required("pub", cty.String)),
		NestedBlock("timeouts", schema.NestingSingle, Optional("create", cty.String)),
		NestedBlock("boot", schema.NestingGroup, Optional("order", cty.Number)),
		NestedBlock("rule", schema.NestingList, Required("port", cty.Number),
			NestedBlock("inner", schema.NestingSet, Optional("x", cty.String))),
		NestedBlock("mount", schema.NestingSet, Required("path", cty.String)),
		NestedBlock("label", schema.NestingMap, Optional("v", cty.String)),
		NestedBlock("free", schema.NestingList, Optional("v", cty.DynamicPseudoType)),
	)
}
