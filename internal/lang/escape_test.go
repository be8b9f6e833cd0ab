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
