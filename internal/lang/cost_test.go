package lang

import (
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/schema/schematest"

	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"
)

// nest wraps for expressions, each of which binds a name to what f makes of the one before.
func nest(n int, first string, f func(name string) string) string {
	name := func(i int) string { return fmt.Sprintf("x%d", i) }
	expr := "length(jsonencode(" + name(n) + "))"
	for i := n; i > 0; i-- {
		expr = "[for " + name(i) + " in [" + f(name(i-1)) + "] : " + expr + "]"
	}
	return "[for x0 in [" + first + "] : " + expr + "]"
}

// harmless are those that may as well be accepted, since they come to an end soon.
var harmless = map[string]bool{"many conditions": true, "many signs, but not too many": true, "many sums": true, "many nots": true, "a large regular expression": true, "lists of one": true, "splitting at each comma": true, "distinct of much": true, "much in one list": true}

// Every expensive spec is rejected before it takes long or fills the memory.
func TestHostileExpressions(t *testing.T) {
	kilo := `join("", [for i in range(1000) : "abcdefghij"])`
	mega := `join("", [for i in range(1000) : "` + strings.Repeat("0,", 600) + `"])`
	many := `flatten([for i in range(300) : range(300)])`
	for name, expr := range map[string]string{
		"loops in loops":                       `[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : a]]]`,
		"loops in loops that keep nothing":     `[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : a if false]]]`,
		"a loop with a costly condition":       `[for a in range(1000) : [for b in range(1000) : a if ` + many + ` == ` + many + `]]`,
		"doubling by templates":                nest(40, `"xxxxxxxxxxxxxxxx"`, func(x string) string { return `"${` + x + `}${` + x + `}"` }),
		"doubling by join":                     nest(40, `"xxxxxxxxxxxxxxxx"`, func(x string) string { return `join("", [` + x + `, ` + x + `])` }),
		"doubling by format":                   nest(40, `"xxxxxxxxxxxxxxxx"`, func(x string) string { return `format("%s%s", ` + x + `, ` + x + `)` }),
		"doubling by lists":                    nest(40, `[1]`, func(x string) string { return `[` + x + `, ` + x + `]` }),
		"doubling by objects":                  nest(40, `{}`, func(x string) string { return `{a = ` + x + `, b = ` + x + `}` }),
		"doubling by concat":                   nest(40, `[1]`, func(x string) string { return `concat(` + x + `, ` + x + `)` }),
		"doubling by replace":                  nest(40, `"xxxxxxxxxxxxxxxx"`, func(x string) string { return `replace(` + x + `, "/./", "$0$0")` }),
		"doubling by conditions":               nest(40, `[1]`, func(x string) string { return `true ? [` + x + `, ` + x + `] : [` + x + `, ` + x + `]` }),
		"doubling by a splat":                  nest(40, `[1]`, func(x string) string { return `[` + x + `, ` + x + `][*]` }),
		"squaring numbers":                     nest(40, `10`, func(x string) string { return x + ` * ` + x }),
		"a number of many digits in a string":  `tostring(tonumber("1e99999999"))`,
		"a number of many digits, implied":     `"1e99999999" + 0`,
		"a number of many digits in a format":  `format("%f", "1e99999999")`,
		"a number of many digits in a list":    `formatlist("%f", ["1e99999999"])`,
		"a number of many digits, rounded":     `floor("1e99999999")`,
		"a number of many digits from JSON":    `jsondecode("1e99999999") + 1`,
		"a power of many digits":               `pow(10, 99999999)`,
		"indenting":                            `indent(1000000000, "a\nb")`,
		"indenting below nothing":              `indent(-1, "a\nb")`,
		"joining with a long separator":        `join(` + kilo + `, range(1000))`,
		"replacing nothing by much":            `replace(` + kilo + `, "", ` + kilo + `)`,
		"replacing each letter by much":        `replace(` + kilo + `, "/./", ` + kilo + `)`,
		"a format of many verbs":               `format("` + strings.Repeat("%[1]s", 2000) + `", ` + kilo + `)`,
		"a format with a width":                `format("%*d", 99999999, 1)`,
		"a product of sets":                    `setproduct(range(1000), range(1000), range(1000))`,
		"many comparisons":                     `matchkeys(` + many + `, ` + many + `, ` + many + `)`,
		"distinct of much":                     `distinct(` + many + `)`,
		"much in one list":                     `tolist(` + many + `)`,
		"a large regular expression":           `regexall("((((a?){10}){10}){9})", ` + kilo + `)`,
		"many regular expressions":             `[for i in range(1000) : regex("(((a?){10}){10}b)", ` + kilo + `)]`,
		"deep JSON":                            `jsondecode("` + strings.Repeat("[", 60000) + strings.Repeat("]", 60000) + `")`,
		"deep YAML":                            `yamldecode("` + strings.Repeat("- ", 30000) + `1")`,
		"YAML whose aliases multiply":          `yamldecode("` + billionLaughs(30) + `")`,
		"the limit is not caught by try":       `try([for a in range(1000) : [for b in range(1000) : [for c in range(1000) : a]]], "x")`,
		"a template that multiplies":           `templatestring("%%{ for a in l }%%{ for b in l }%%{ for c in l }x%%{ endfor }%%{ endfor }%%{ endfor }", {l = range(1000)})`,
		"a template that calls templatestring": `templatestring("$${templatestring(\"x\", {})}", {})`,
		"splitting each letter":                `length(split("", ` + mega + `))`,
		"splitting at each comma":              `length(split(",", ` + mega + `))`,
		"a match for each letter":              `length(regexall(".", ` + mega + `))`,
		"a list in JSON":                       `length(jsondecode("[${` + mega + `}0]"))`,
		"a list in YAML":                       `length(yamldecode("[${` + mega + `}0]"))`,
		"columns in CSV":                       `length(csvdecode("a\n${replace(` + mega + `, ",", "\n")}"))`,
		"lists of one":                         `chunklist(` + many + `, 1)`,
		"sorting":                              `sort(split(",", ` + mega + `))`,
		"escapes in JSON":                      `length(jsonencode(jsonencode(jsonencode(replace(` + mega + `, "0", "\"")))))`,
		"percent signs":                        `length(urlencode(urlencode(urlencode(` + mega + `))))`,
		"merging much":                         `merge([for i in range(1000) : {for j in range(1000) : "k${j}" => i}]...)`,
		"many subnets":                         `[for i in range(1000) : cidrsubnets("10.0.0.0/8", [for j in range(1000) : 16]...)]`,
		"a map of pairs":                       `zipmap(split(",", ` + mega + `), split(",", ` + mega + `))`,
		"many signs":                           strings.Repeat("-", 100000) + "1",
		"many signs, but not too many":         strings.Repeat("-", 39000) + "1",
		"many sums":                            strings.Repeat("1 + ", 32000) + "1",
		"many nots":                            strings.Repeat("!", 39000) + "true",
		"many conditions":                      strings.Repeat("true ? 1 : ", 10000) + "1",
		"many templates in templates":          strings.Repeat(`"${`, 500) + "1" + strings.Repeat(`}"`, 500),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, diags := parseConfig(map[string]any{"v": "${" + expr + "}"}, schematest.Block(schematest.Optional("v", cty.DynamicPseudoType)))
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if !diag.HasErrors(diags) && !harmless[name] {
				t.Error(name + " is accepted")
			} else if len(diags) > 0 && len(diags[0].Detail) > 2000 {
				t.Errorf("a diagnostic of %d bytes", len(diags[0].Detail))
			}
			if took > 20*time.Second { // generous: the machine may be busy
				t.Errorf("%s took %v", name, took)
			}
			if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 1000 {
				t.Errorf("allocated %d MiB", mb)
			}
			if len(diags) > 0 {
				t.Logf(name+": %v, %d MiB: %s: %.200s", took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20, diags[0].Summary, diags[0].Detail)
			}
		})
	}
}

func billionLaughs(levels int) string {
	doc := `a0: &a0 [1, 1]\n`
	for i := 1; i < levels; i++ {
		doc += fmt.Sprintf(`a%d: &a%d [*a%d, *a%d]\n`, i, i, i-1, i-1)
	}
	return doc
}

// Usual specs are far below the limits.
func TestLargeSpecsAreAccepted(t *testing.T) {
	for name, expr := range map[string]string{
		"a thousand rules":         `[for i in range(1000) : {port = i, cidr = cidrsubnet("10.0.0.0/8", 16, i), name = "rule-${i}"}]`,
		"a long script":            `join("\n", [for i in range(1000) : format("echo %03d >> /var/log/boot.log", i)])`,
		"a lookup in a loop":       `[for m in [{for j in range(1000) : "k${j}" => j}] : [for i in range(1000) : lookup(m, "k${i}", 0) + m["k${i}"] + length(m)]]`,
		"tags merged often":        `[for i in range(500) : merge({for j in range(20) : "t${j}" => j}, {Name = i})]`,
		"a large document":         `jsondecode(jsonencode([for i in range(1000) : {a = i, b = ["x", "y"]}]))`,
		"a text with replacements": `replace(join("", [for i in range(1000) : "some words and more "]), "/[aeiou]/", "_")`,
	} {
		_, diags := parseConfig(map[string]any{"v": "${" + expr + "}"}, schematest.Block(schematest.Optional("v", cty.DynamicPseudoType)))
		if len(diags) > 0 {
			t.Errorf("%s: %+v", name, diags)
		}
	}
}

// TestAnEvaluationEndsWithItsRequest evaluates an expression of a request that has ended.
func TestAnEvaluationEndsWithItsRequest(t *testing.T) {
	ended := make(chan struct{})
	close(ended)
	spec := map[string]any{"name": "${join(\"\", [for i in range(1000): \"${i}\"])}"}
	block := &schema.Block{Attributes: []*schema.Attribute{{Name: "name", Type: cty.String, Optional: true}}}
	c, diags := ConfigOptions{}.Parse(spec, block)
	if diag.HasErrors(diags) {
		t.Fatal(diags)
	}
	c.constant = cty.NilVal // otherwise nothing is left to evaluate
	if _, diags := c.With(EvaluationContext{Budget: &Budget{done: ended}}).Evaluate(func(Address) (cty.Value, bool) { return cty.NilVal, false }); !diag.HasErrors(diags) {
		t.Error("it was evaluated")
	}
	if _, diags := (ConfigOptions{Budget: &Budget{done: ended}}).Parse(spec, block); !diag.HasErrors(diags) {
		t.Error("its dry run was made")
	}
}
