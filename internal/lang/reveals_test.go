package lang

import (
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
)

// An author needs the right to the values that an expression would reveal, as far as the schema declares them
// sensitive.
func TestReferenceRevealsSensitive(t *testing.T) {
	block := &schema.Block{
		Attributes: []*schema.Attribute{
			{Name: "id", Type: cty.String}, {Name: "zones", Type: cty.List(cty.String)}, {Name: "password", Type: cty.String, Sensitive: true},
			{Name: "keys", Type: cty.Map(cty.String), Sensitive: true},
			{Name: "users", Nested: &schema.Object{Nesting: schema.NestingList, Attributes: []*schema.Attribute{{Name: "name", Type: cty.String}, {Name: "key", Type: cty.String, Sensitive: true}}}},
		},
		Blocks: []*schema.NestedBlock{{TypeName: "disk", Nesting: schema.NestingList, Block: &schema.Block{
			Attributes: []*schema.Attribute{{Name: "size", Type: cty.Number}, {Name: "key", Type: cty.String, Sensitive: true}},
		}}},
	}
	reveals := func(refs []Reference) bool {
		return slices.ContainsFunc(refs, func(r Reference) bool { return r.RevealsSensitive(block) })
	}
	for text, want := range map[string]bool{
		"${a_b.c.password}":   false,
		"x-${a_b.c.password}": false,
		"${jsonencode({u = lower(a_b.c.id), p = a_b.c.password})}": false,
		"${format(\"%s-%s\", a_b.c.id, a_b.c.password)}":           false,
		"${a_b.c.id == \"\" ? a_b.c.password : a_b.c.id}":          false,
		"${merge({}, {p = a_b.c.password})}":                       false,
		"${try(a_b.c.password, \"\")}":                             false,
		"${cidrsubnet(a_b.c.id, 8, 2)}":                            false,
		"${length(a_b.c.zones)}":                                   false,
		"${[for z in a_b.c.zones : upper(z)]}":                     false,
		"${a_b.c.disk[0].size > 1}":                                false,
		"${a_b.c.disk[*].key}":                                     false,
		"${[for d in a_b.c.disk : d.key]}":                         false,
		"${a_b.c.keys.a}":                                          false,
		"${length(a_b.c)}":                                         false,

		"${length([a_b.c.password])}":                                              false,
		"${length(jsonencode(a_b.c))}":                                             true,
		"${length([a_b.c.keys][0])}":                                               true,
		"${length(element([a_b.c.keys], 0))}":                                      true,
		"${nonsensitive(a_b.c.password)}":                                          true,
		"${core::nonsensitive(\"x${a_b.c.password}\")}":                            true,
		"${nonsensitive(a_b.c.id)}":                                                true,
		"${[for x in a_b.c.zones : nonsensitive(x)]}":                              true,
		"${[for x in [a_b.c.id] : [for y in [x] : nonsensitive(y)]]}":              true,
		"${[for x in a_b.c.zones : nonsensitive(a_b.c.password)]}":                 true,
		"${false && a_b.c.password == \"x\"}":                                      true,
		"${a_b.c.password == \"x\" ? 1 : 2}":                                       true,
		"${can(regex(\"^a\", a_b.c.password))}":                                    true,
		"${try(tonumber(a_b.c.password), 1)}":                                      true,
		"${length(a_b.c.password)}":                                                true,
		"${length(a_b.c.keys)}":                                                    true,
		"${{x = 1}[a_b.c.password]}":                                               true,
		"${{(a_b.c.password) = 1}}":                                                true,
		"${{for x in [a_b.c.password] : x => 1}}":                                  true,
		"${[for d in a_b.c.disk : d.size if d.key == \"x\"]}":                      true,
		"${a_b.c.users[0].key == \"x\"}":                                           true,
		"${lower(jsonencode(a_b.c.users))}":                                        true,
		"${substr(a_b.c.password, 0, 1)}":                                          true,
		"${format(\"%.1s\", a_b.c.password)}":                                      true,
		"${format(a_b.c.id, a_b.c.password)}":                                      true,
		"%{ if a_b.c.password != \"\" }x%{ endif }":                                true,
		"%{ for k in a_b.c.keys }x%{ endfor }":                                     true,
		"${provider::x::y(a_b.c.password)}":                                        true,
		"${max(a_b.c.keys...)}":                                                    true,
		"${templatestring(configmap.a.b, {p = a_b.c.password})}":                   true,
		"${length(a_b.c.zones) > 1 ? \"\" : nonsensitive(a_b.c.password)}":         true,
		"${[for k, v in {a = a_b.c.password} : upper(v)]}":                         true,
		"${a_b.c.keys[*]}":                                                         true,
		"${{a = 1, \"${a_b.c.password}\" = 2}}":                                    true,
		"${!a_b.c.password}":                                                       true,
		"${[a_b.c.password, nonsensitive([a_b.c.password])[0], \"\"][length([])]}": true,
	} {
		fns := Functions{"provider::x::y": builtins["upper"]}
		e, diags := ParseExpression(text, "f", ExpressionOptions{Functions: fns})
		if diag.HasErrors(diags) && !strings.Contains(text, "max(") {
			t.Errorf("%s: %v", text, diags)
		}
		if got := reveals(e.References()); got != want {
			t.Errorf("%s reveals: %t, want %t", text, got, want)
		}
	}
	e, _ := ParseExpression("${self.password}", "f", ExpressionOptions{Self: block, Type: cty.Bool})
	if own := e.Own(); !reveals(own) || len(e.References()) > 0 {
		t.Errorf("a condition of a secret: %v", own)
	}
	e, _ = ParseExpression("${self.id}", "f", ExpressionOptions{Self: block, Type: cty.Bool})
	if reveals(e.Own()) {
		t.Error("a condition of something else is refused")
	}
	c, _ := parseConfig(map[string]any{"tags": map[string]any{"${a_b.c.password}": "x"}}, &schema.Block{Attributes: []*schema.Attribute{{Name: "tags", Type: cty.Map(cty.String), Optional: true}}})
	if !reveals(c.References()) {
		t.Error("a key that is a secret is not refused")
	}
}

// Nested for expressions cost no more to look through than they take to write.
func TestReferenceRevealsSensitiveOfDeepLoops(t *testing.T) {
	text := "a_b.c.zones"
	names := "abcdefghijklmnopqrstuvwxyz"
	for i := range 60 {
		v := string(names[i%26]) + string(names[i/26])
		text = "[for " + v + " in [" + text + "] : [for w in [" + v + ", " + v + "] : w]]"
	}
	if e, _ := ParseExpression("${"+text+"}", "f", ExpressionOptions{}); len(e.References()) != 1 {
		t.Errorf("%d references", len(e.References()))
	}
}
