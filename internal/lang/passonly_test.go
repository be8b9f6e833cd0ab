package lang

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/schema/schematest"
)

// passOnlyThing has a password that may only be passed on, and arguments that every user may read.
func passOnlyThing(t *testing.T, password string) cty.Value {
	t.Helper()
	block := &schema.Block{Attributes: []*schema.Attribute{
		{Name: "id", Type: cty.String}, {Name: "password", Type: cty.String, Sensitive: true},
		{Name: "keys", Type: cty.Map(cty.String), Sensitive: true}, {Name: "any", Type: cty.DynamicPseudoType, Sensitive: true},
		{Name: "zones", Type: cty.List(cty.String)}, {Name: "tags", Type: cty.Map(cty.String)},
	}}
	v, err := PassOnly(MarkSensitive(block, schematest.Obj("id", schematest.Str("n"), "password", schematest.Str(password), "keys", cty.MapVal(map[string]cty.Value{"a": schematest.Str(password)}),
		"any", cty.TupleVal([]cty.Value{schematest.Str(password)}), "zones", cty.ListVal([]cty.Value{schematest.Str("x"), schematest.Str("y")}),
		"tags", cty.MapVal(map[string]cty.Value{"team": schematest.Str("infra")}))), "ask for it")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// passOnlySecrets differ in all that an expression could ask: their characters, their length, and what they can be converted to.
var passOnlySecrets = []string{"hunter2", "17", "true", "", "{\"a\": 1}"}

// A value that is passed on stays the same and sensitive, and may still only be passed on.
func TestPassOnlyPasses(t *testing.T) {
	for _, text := range []string{
		"${a_b.c.password}", "a-${a_b.c.password}", "${jsonencode({p = a_b.c.password})}", "${format(\"%s:%q\", a_b.c.id, a_b.c.password)}",
		"${join(\",\", [a_b.c.id, a_b.c.password])}", "${sha256(a_b.c.password)}", "${base64encode(\"u:${a_b.c.password}\")}", "${tostring(a_b.c.password)}",
		"${merge(a_b.c.tags, {p = a_b.c.password}).p}", "${[for t in [a_b.c.password]: \"x${t}\"][0]}", "${lookup({p = a_b.c.password}, \"p\", \"\")}",
		"${a_b.c.id == \"n\" ? a_b.c.password : \"\"}", "${try(a_b.c.password, \"\")}", "${a_b.c.keys.a}", "${templatestring(\"p=$${p}\", {p = a_b.c.password})}",
		"${sensitive(a_b.c.password)}", "${indent(2, a_b.c.password)}",
	} {
		e, diags := ParseExpression(text, "f", ExpressionOptions{Type: cty.String})
		for _, secret := range passOnlySecrets {
			v, more := e.Evaluate(func(Address) (cty.Value, bool) { return passOnlyThing(t, secret), true }, cty.NilVal)
			if diag.HasErrors(append(diags, more...)) {
				t.Errorf("%s of %q: %v", text, secret, append(diags, more...))
			} else if _, held := HoldsPassOnly(v); !held || !v.HasMark(Sensitive) || !v.IsKnown() {
				t.Errorf("%s of %q: %#v", text, secret, v)
			}
		}
	}
}

// An operation on the value is rejected, with the same text for every value.
func TestPassOnlyRefuses(t *testing.T) {
	for text, what := range map[string]string{
		"${nonsensitive(a_b.c.password)}":                                  "nonsensitive()",
		"${core::nonsensitive(a_b.c.password)}":                            "nonsensitive()",
		"${nonsensitive(\"x${a_b.c.password}\")}":                          "nonsensitive()",
		"${nonsensitive(sha256(a_b.c.password))}":                          "nonsensitive()",
		"${nonsensitive([a_b.c.password])[0]}":                             "nonsensitive()",
		"${a_b.c.password == \"hunter2\" ? 1 : 2}":                         "An operator",
		"${a_b.c.password ? 1 : 2}":                                        "A condition",
		"${!a_b.c.password}":                                               "An operator",
		"${a_b.c.password + 1}":                                            "An operator",
		"${false && a_b.c.password}":                                       "An operator",
		"${can(regex(\"^h\", a_b.c.password))}":                            "regex()",
		"${try(tonumber(a_b.c.password), 1)}":                              "tonumber()",
		"${length(a_b.c.password)}":                                        "length()",
		"${length(a_b.c.keys)}":                                            "length()",
		"${keys(a_b.c.keys)[0]}":                                           "keys()",
		"${substr(a_b.c.password, 0, 1)}":                                  "substr()",
		"${startswith(a_b.c.password, \"h\")}":                             "startswith()",
		"${contains([a_b.c.password], \"hunter2\")}":                       "contains()",
		"${index([a_b.c.password], \"hunter2\")}":                          "index()",
		"${toset([a_b.c.password, \"hunter2\"])}":                          "toset()",
		"${coalesce(a_b.c.password, \"x\")}":                               "coalesce()",
		"${format(\"%.1s\", a_b.c.password)}":                              "format()",
		"${format(\"%d\", a_b.c.password)}":                                "format()",
		"${format(a_b.c.password)}":                                        "format()",
		"${formatlist(\"%s\", [a_b.c.password])}":                          "formatlist()",
		"${jsondecode(a_b.c.password)}":                                    "jsondecode()",
		"${templatestring(\"$${substr(p, 0, 1)}\", {p = a_b.c.password})}": "substr()",
		"${templatestring(a_b.c.password, {})}":                            "templatestring()",
		"${{hunter2 = 1}[a_b.c.password]}":                                 "An index",
		"${{(a_b.c.password) = 1}}":                                        "A key",
		"${{\"${a_b.c.password}\" = 1}}":                                   "A key",
		"${[for x in a_b.c.keys : x]}":                                     "A for expression",
		"${[for x in [a_b.c.password] : 1 if x == \"hunter2\"]}":           "An operator",
		"${[for x in [a_b.c.password] : 1 if x]}":                          "A condition",
		"${{for x in [a_b.c.password] : x => 1}}":                          "A key",
		"${a_b.c.any[*]}":                                                  "A splat",
		"${max(a_b.c.any...)}":                                             "The number of arguments",
		"%{ if a_b.c.password }x%{ endif }":                                "A condition",
		"%{ for x in a_b.c.any }x%{ endfor }":                              "A for expression",
		"${range(length(sha256(a_b.c.password)))}":                         "length()",
		"${cidrhost(a_b.c.password, 1)}":                                   "cidrhost()",
		"${can(a_b.c.keys.b) ? 1 : 2}":                                     "A condition",
		"${try(a_b.c.keys.hunter2, \"\") == \"\"}":                         "An operator",
		"${can(upper(a_b.c.password))}":                                    "upper()",
	} {
		var first diag.Diagnostics
		for i, secret := range passOnlySecrets {
			e, diags := ParseExpression(text, "f", ExpressionOptions{})
			if diag.HasErrors(diags) {
				t.Fatalf("%s: %v", text, diags)
			}
			_, diags = e.Evaluate(func(Address) (cty.Value, bool) { return passOnlyThing(t, secret), true }, cty.NilVal)
			if len(diags) != 1 || diags[0].Summary != SummaryPassOnly || !strings.HasPrefix(diags[0].Detail, what+" would reveal something about a sensitive value: ask for it.") {
				t.Errorf("%s of %q: %v", text, secret, diags)
				break
			}
			if i == 0 {
				first = diags
			} else if diags[0] != first[0] {
				t.Errorf("%s says %v of one value and %v of another", text, first, diags)
			}
		}
	}
}

// An operation that reveals nothing about the value is permitted.
func TestPassOnlyLeavesTheRestAlone(t *testing.T) {
	for _, text := range []string{
		"${length(a_b.c.zones)}", "${a_b.c.id == \"n\" ? 1 : 2}", "${[for z in a_b.c.zones : upper(z)]}", "${keys(a_b.c.tags)}", "${can(a_b.c.tags.x)}",
		"${keys(a_b.c)}", "${length([a_b.c.password])}", "${issensitive(a_b.c.password)}", "${can(a_b.c.id) ? 1 : 2}", "${a_b.c.zones[*]}", "${nonsensitive(a_b.c.id)}",
	} {
		e, _ := ParseExpression(text, "f", ExpressionOptions{})
		v, diags := e.Evaluate(func(Address) (cty.Value, bool) { return passOnlyThing(t, "hunter2"), true }, cty.NilVal)
		if len(diags) > 0 || text != "${issensitive(a_b.c.password)}" && v.ContainsMarked() {
			t.Errorf("%s: %#v %v", text, v, diags)
		}
	}
}

// An argument takes the value when every value of the type would fit, and a condition takes none.
func TestPassOnlyMeetsTheSchema(t *testing.T) {
	block := &schema.Block{
		Attributes: []*schema.Attribute{
			{Name: "text", Type: cty.String, Optional: true}, {Name: "size", Type: cty.Number, Optional: true}, {Name: "tags", Type: cty.Map(cty.String), Optional: true},
		},
		Blocks: []*schema.NestedBlock{{TypeName: "rule", Nesting: schema.NestingList, Block: &schema.Block{Attributes: []*schema.Attribute{{Name: "port", Type: cty.String, Optional: true}}}}},
	}
	for reason, test := range map[string]struct {
		spec    map[string]any
		refused string
	}{
		"a string":               {spec: map[string]any{"text": "${a_b.c.password}"}},
		"in a map":               {spec: map[string]any{"tags": map[string]any{"x": "${a_b.c.password}"}}},
		"in a block":             {spec: map[string]any{"rule": []any{map[string]any{"port": "${a_b.c.password}"}}}},
		"all of a map":           {spec: map[string]any{"tags": "${a_b.c.keys}"}},
		"a number":               {spec: map[string]any{"size": "${a_b.c.password}"}, refused: "spec.size"},
		"a number of a template": {spec: map[string]any{"size": "1${a_b.c.password}"}, refused: "spec.size"},
		"a key":                  {spec: map[string]any{"tags": map[string]any{"${a_b.c.password}": "x"}}, refused: "spec.tags"},
		"blocks":                 {spec: map[string]any{"rule": "${a_b.c.any}"}, refused: "spec.rule"},
	} {
		for _, secret := range passOnlySecrets {
			c, diags := ConfigOptions{}.Parse(test.spec, block)
			v, more := c.Evaluate(func(Address) (cty.Value, bool) { return passOnlyThing(t, secret), true })
			diags = append(diags, more...)
			if test.refused == "" {
				if _, held := HoldsPassOnly(v); diag.HasErrors(diags) || !held {
					t.Errorf("%s of %q: %#v %v", reason, secret, v, diags)
				}
			} else if len(diags) != 1 || diags[0].Summary != SummaryPassOnly || !strings.HasPrefix(diags[0].Attribute, test.refused) {
				t.Errorf("%s of %q: %v", reason, secret, diags)
			}
		}
	}
	e, _ := ParseExpression("${a_b.c.password}", "f", ExpressionOptions{Type: cty.Bool})
	if _, diags := e.Evaluate(func(Address) (cty.Value, bool) { return passOnlyThing(t, "true"), true }, cty.NilVal); len(diags) != 1 || diags[0].Summary != SummaryPassOnly {
		t.Errorf("a condition: %v", diags)
	}
}
