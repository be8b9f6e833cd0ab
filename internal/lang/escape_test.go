package lang

import (
	"github.com/hykube/hykube/internal/schema/schematest"

	"testing"

	"github.com/zclconf/go-cty/cty"
)

func TestEscapeTemplate(t *testing.T) {
	for _, text := range []string{"", "plain", "${a.b.c}", "%{ if x }", "$${", "a$", "$$$${x}%%{"} {
		c, diags := parseConfig(map[string]any{"a": EscapeTemplate(text)}, schematest.Block(schematest.Optional("a", cty.String)))
		if len(diags) > 0 {
			t.Fatalf("%q: %v", text, diags)
		}
		v, _ := c.Evaluate(nil)
		if got := v.GetAttr("a").AsString(); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestConstant(t *testing.T) {
	for template, want := range map[string]string{
		"": "", "plain": "plain", "$${x}": "${x}", "a%%{if}": "a%{if}", "$$": "$$", "a$": "a$", "$$ $${": "$$ ${", "$${a}$${b}": "${a}${b}",
	} {
		if got, ok := Constant(template); !ok || got != want {
			t.Errorf("%q is %q, %t; want %q", template, got, ok, want)
		}
		if got, ok := Constant(EscapeTemplate(want)); !ok || got != want {
			t.Errorf("the escaped %q is %q, %t", want, got, ok)
		}
	}
	for _, template := range []string{"${x}", "a${1}", `${"x"}`, "${null}", "${", "%{if true}a%{endif}", "$${x}${y}", "%{"} {
		if got, ok := Constant(template); ok {
			t.Errorf("%q is the constant %q", template, got)
		}
	}
}
