package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/schema"
)

// Short hands for schemas, so that a table reads as one.

func block(parts ...any) *schema.Block {
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

func required(name string, ty cty.Type) *schema.Attribute {
	return &schema.Attribute{Name: name, Type: ty, Required: true}
}

func optional(name string, ty cty.Type) *schema.Attribute {
	return &schema.Attribute{Name: name, Type: ty, Optional: true}
}

func computed(name string, ty cty.Type) *schema.Attribute {
	return &schema.Attribute{Name: name, Type: ty, Computed: true}
}

func optionalComputed(name string, ty cty.Type) *schema.Attribute {
	return &schema.Attribute{Name: name, Type: ty, Optional: true, Computed: true}
}

func secret(a *schema.Attribute) *schema.Attribute { a.Sensitive = true; return a }

func writeOnlyAttr(a *schema.Attribute) *schema.Attribute { a.WriteOnly = true; return a }

// object gives an attribute a schema of its own.
func object(a *schema.Attribute, n schema.Nesting, attrs ...*schema.Attribute) *schema.Attribute {
	slices.SortFunc(attrs, func(x, y *schema.Attribute) int { return strings.Compare(x.Name, y.Name) })
	a.Nested = &schema.Object{Nesting: n, Attributes: attrs}
	a.Type = a.Nested.ImpliedType()
	return a
}

func nestedBlocks(name string, n schema.Nesting, parts ...any) *schema.NestedBlock {
	return &schema.NestedBlock{TypeName: name, Nesting: n, Block: block(parts...)}
}

func obj(kv ...any) cty.Value {
	vals := make(map[string]cty.Value, len(kv)/2)
	for i := 0; i < len(kv); i += 2 {
		vals[kv[i].(string)] = kv[i+1].(cty.Value)
	}
	return cty.ObjectVal(vals)
}

func str(s string) cty.Value { return cty.StringVal(s) }

func num(i int64) cty.Value { return cty.NumberIntVal(i) }

var (
	nullStr    = cty.NullVal(cty.String)
	unknownStr = cty.UnknownVal(cty.String)
)

// same compares values as RawEquals does, and shows both when they differ.
func same(t *testing.T, got, want cty.Value) {
	t.Helper()
	if !got.RawEquals(want) {
		t.Errorf("got  %#v\nwant %#v", got, want)
	}
}

func sameStrings(t *testing.T, got, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func texts(errs []error) []string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Error())
	}
	return out
}
