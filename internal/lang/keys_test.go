package lang

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
)

func TestMapKeysAreTemplates(t *testing.T) {
	block := &schema.Block{Attributes: []*schema.Attribute{{Name: "tags", Type: cty.Map(cty.String), Optional: true}}}
	for name, tc := range map[string]struct {
		key    string
		scope  cty.Value
		want   cty.Value
		failed string
	}{
		"plain":     {"team", cty.StringVal("a"), cty.MapVal(map[string]cty.Value{"team": cty.StringVal("x")}), ""},
		"literal":   {"$${team}", cty.StringVal("a"), cty.MapVal(map[string]cty.Value{"${team}": cty.StringVal("x")}), ""},
		"reference": {"${sim_network.main.name}", cty.StringVal("a"), cty.MapVal(map[string]cty.Value{"a": cty.StringVal("x")}), ""},
		"template":  {"n-${sim_network.main.name}", cty.StringVal("a"), cty.MapVal(map[string]cty.Value{"n-a": cty.StringVal("x")}), ""},
		"unknown":   {"${sim_network.main.name}", cty.UnknownVal(cty.String), cty.UnknownVal(cty.Map(cty.String)), ""},
		"sensitive": {"${sim_network.main.name}", cty.StringVal("a").Mark(Sensitive), cty.MapVal(map[string]cty.Value{"a": cty.StringVal("x")}).Mark(Sensitive), ""},
		"no string": {"${sim_network.main.name}", cty.EmptyTupleVal, cty.NilVal, "Invalid map key"},
	} {
		c, diags := parseConfig(map[string]any{"tags": map[string]any{tc.key: "x"}}, block)
		if diag.HasErrors(diags) {
			t.Errorf("%s: %v", name, diags)
			continue
		}
		got, diags := c.Evaluate(func(Address) (cty.Value, bool) { return cty.ObjectVal(map[string]cty.Value{"name": tc.scope}), true })
		if tc.failed != "" {
			if len(diags) == 0 || !strings.Contains(diags[0].Summary, tc.failed) {
				t.Errorf("%s: got %v, want %q", name, diags, tc.failed)
			}
			continue
		}
		if diag.HasErrors(diags) || !got.GetAttr("tags").RawEquals(tc.want) {
			t.Errorf("%s: got %#v %v, want %#v", name, got, diags, tc.want)
		}
	}
	c, _ := parseConfig(map[string]any{"tags": map[string]any{"a": "1", "${sim_network.main.name}": "2"}}, block)
	if _, diags := c.Evaluate(func(Address) (cty.Value, bool) {
		return cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal("a")}), true
	}); len(diags) == 0 || diags[0].Attribute != "spec.tags" {
		t.Errorf("two keys that are the same: %v", diags)
	}
	c, _ = parseConfig(map[string]any{"tags": map[string]any{"$${sim_network.main.name}": "1", "${sim_network.main.name}": "2"}}, block)
	if _, diags := c.Evaluate(func(Address) (cty.Value, bool) {
		return cty.ObjectVal(map[string]cty.Value{"name": cty.UnknownVal(cty.String)}), true
	}); len(diags) > 0 {
		t.Errorf("a key that is the text of an unknown one: %v", diags)
	}
}
