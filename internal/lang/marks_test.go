package lang

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/schema/schematest"
)

func TestMarkSensitive(t *testing.T) {
	secret := schematest.Optional("secret", cty.String)
	secret.Sensitive = true
	block := schematest.Block(secret, schematest.Optional("open", cty.String),
		&schema.NestedBlock{TypeName: "login", Nesting: schema.NestingSingle, Block: schematest.Block(secret)})
	v := MarkSensitive(block, cty.ObjectVal(map[string]cty.Value{
		"secret": cty.StringVal("a"), "open": cty.StringVal("b"), "login": cty.ObjectVal(map[string]cty.Value{"secret": cty.StringVal("c")}),
	}))
	if !v.GetAttr("secret").HasMark(Sensitive) || !v.GetAttr("login").GetAttr("secret").HasMark(Sensitive) || v.GetAttr("open").IsMarked() {
		t.Errorf("got %#v", v)
	}
}

// TestSecretsAreMarkedWhateverTheScopeReturns has a scope that omits the marks for sensitive and ephemeral values.
func TestSecretsAreMarkedWhateverTheScopeReturns(t *testing.T) {
	parsed, diags := ConfigOptions{}.Parse(map[string]any{"a": "${secret.db.password}"}, schematest.Block(schematest.Optional("a", cty.String)))
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	v, diags := parsed.Evaluate(func(Address) (cty.Value, bool) {
		return cty.ObjectVal(map[string]cty.Value{"password": cty.StringVal("hunter22")}), true
	})
	if len(diags) > 0 || !v.GetAttr("a").HasMark(Sensitive) {
		t.Errorf("got %#v, %v", v, diags)
	}
}

// TestHasMarks compares HasMarks with cty's function. A value without marks stays as it is, without a copy.
func TestHasMarks(t *testing.T) {
	secret, plain := cty.StringVal("a").Mark(Sensitive), cty.StringVal("b")
	object := func(v cty.Value) cty.Value { return cty.ObjectVal(map[string]cty.Value{"a": plain, "b": v}) }
	for _, v := range []cty.Value{
		plain, secret, cty.DynamicVal, cty.NullVal(cty.String), cty.UnknownVal(cty.List(cty.String)), cty.UnknownVal(cty.String).Mark(Ephemeral),
		cty.NullVal(cty.Map(cty.String)).Mark(Sensitive), cty.EmptyObjectVal, cty.ListValEmpty(cty.String), cty.EmptyTupleVal, cty.MapValEmpty(cty.String),
		cty.ListVal([]cty.Value{plain, plain}), cty.ListVal([]cty.Value{plain, secret}), cty.SetVal([]cty.Value{plain}), cty.SetVal([]cty.Value{plain, secret}),
		cty.TupleVal([]cty.Value{plain, cty.NumberIntVal(1)}), cty.TupleVal([]cty.Value{secret}), cty.MapVal(map[string]cty.Value{"k": secret}),
		cty.MapVal(map[string]cty.Value{"k": plain}), cty.ListVal([]cty.Value{object(plain), object(plain)}), cty.ListVal([]cty.Value{object(plain), object(secret)}),
	} {
		for _, v := range []cty.Value{v, object(v), object(object(v))} {
			if got, want := HasMarks(v), v.ContainsMarked(); got != want {
				t.Errorf("%#v: %t, want %t", v, got, want)
			}
			if got := WithoutMarks(v); HasMarks(got) {
				t.Errorf("%#v keeps marks: %#v", v, got)
			}
		}
	}
	if HasMarks(cty.NilVal) {
		t.Error("no value has marks")
	}
	v := object(object(plain))
	if n := testing.AllocsPerRun(10, func() { WithoutMarks(v) }); n > 0 {
		t.Errorf("%g allocations for a value without marks", n)
	}
}
