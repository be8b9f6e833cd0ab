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
