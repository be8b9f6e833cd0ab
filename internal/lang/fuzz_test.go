package lang

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/schema/schematest"
)

// FuzzConfig: whatever a spec says, it is evaluated or refused, with a field in each diagnostic, and never panics.
func FuzzConfig(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"name":"x"}`, `{"name":"${sim_network.main.id}"}`, `{"name":"${sim_network.main}"}`, `{"name":null,"tags":{"a":null}}`,
		`{"name":"x","rule":[{"port":1,"inner":[{}]}],"mount":{"path":"${sim_network.main.secret}"}}`,
		`{"name":"x","free":[{"v":[1,"a",null]},{"v":{}}],"any":[[],{}]}`,
		`{"name":"x","rule":"${sim_network.main}","disk":"${sim_network.main}","users":"${{for k, v in sim_network.main : k => {}}}"}`,
		`{"name":"x","legacy":"${[for i in range(3) : {a = i}]}","ports":"${toset([1, 2])}"}`,
		`{"name":"x","legacy":[null,{"a":"${sim_network.main.name}"}],"tags":"${sim_network.main.name}"}`,
		`{"name":"${try(sim_network.main.nope.x, null)}","size":"${sensitive(1)}","on":"${can(1)}"}`,
		`{"name":"%{ if true }a%{ else }b%{ endif }"}`, `{"name":"${"}`, `{"name":"${sim_network[*].id}"}`, `{"name":"${each.key}"}`,
		`{"name":"x","keys":"${[sim_network.main.name, {pub = 1}]}"}`, `{"name":"x","any":"${sim_network.main}","strict":"${sim_network.main}"}`,
		`{"name":"x","rule":["${sim_network.main.name}"],"label":{"a":"${sim_network.main.name}"},"boot":"${null}","timeouts":"${sim_network.main.name}"}`,
		`{"name":"${coalesce()}${one([])}${index([1],1)}${sum([])}"}`, `{"name":"x","ports":[null],"zones":[null],"mount":[null],"keys":[null],"nics":[null]}`,
		`{"name":"x","any":1e400,"size":-0.0}`, `{"name":"x","free":{"v":"${sim_network.main.nothing}"}}`,
		`{"name":"${lookup({}, \"a\", sim_network.main.name)}${length(sim_network.main)}${join(\",\", sim_network.main.zones)}"}`,
	} {
		f.Add(s)
	}
	b := schematest.Machine()
	f.Fuzz(func(t *testing.T, js string) {
		d := json.NewDecoder(strings.NewReader(js))
		d.UseNumber()
		var in map[string]any
		if d.Decode(&in) != nil {
			return
		}
		c, diags := parseConfig(in, b)
		complete(t, diags, "spec", js)
		if diag.HasErrors(diags) {
			return
		}
		CheckReferences(c.References(), fuzzCatalog)
		complete(t, c.CheckTypes(fuzzCatalog), "spec", js)
		v, diags := c.Evaluate(scope)
		complete(t, diags, "spec", js)
		if diag.HasErrors(diags) {
			return
		}
		bare, _ := v.UnmarkDeep()
		if errs := bare.Type().TestConformance(b.ImpliedType()); len(errs) > 0 {
			t.Fatalf("%#v does not conform: %v", bare, errs)
		}
	})
}

// complete reports whether diagnostics have all required fields and no forbidden text.
func complete(t *testing.T, diags diag.Diagnostics, field, input string) {
	t.Helper()
	for _, d := range diags {
		if !strings.HasPrefix(d.Attribute, field) || d.Summary == "" || d.Detail == "" {
			t.Fatalf("incomplete: %+v", d)
		}
		if strings.Contains(d.Summary+d.Detail+d.Attribute, "s3cret") && !strings.Contains(input, "s3cret") {
			t.Fatalf("a diagnostic has a secret: %+v", d)
		}
		if len(d.Detail) > 4000 {
			t.Fatalf("a diagnostic of %d bytes", len(d.Detail))
		}
	}
}

var fuzzCatalog = Catalog{
	Block: func(a Address) *schema.Block {
		if a.Type == "sim_network" {
			return schematest.Machine()
		}
		return nil
	},
	Exists: func(Address) bool { return true },
	Types:  func(v1alpha1.Mode) []string { return []string{"sim_network", "sim_disk"} },
	Names:  func(Address) []string { return []string{"main"} },
}

// FuzzExpression: whatever an expression says, it is evaluated or refused, soon, twice with the same result, and without
// telling a secret.
func FuzzExpression(f *testing.F) {
	for _, c := range functionSeeds {
		f.Add(c)
	}
	b, err := os.ReadFile("testdata/functions.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, expr string) {
		if !utf8.ValidString(expr) {
			return // a spec is JSON
		}
		e, diags := ParseExpression("${"+expr+"}", "v", ExpressionOptions{Self: schematest.Machine()})
		complete(t, diags, "v", expr)
		if diag.HasErrors(diags) {
			return
		}
		e.CheckTypes(fuzzCatalog)
		v, diags := e.Evaluate(fuzzScope, network())
		complete(t, diags, "v", expr)
		if diag.HasErrors(diags) {
			return
		}
		again, _ := e.Evaluate(fuzzScope, network())
		if !v.RawEquals(again) {
			t.Fatalf("first %#v, then %#v", v, again)
		}
		if strings.Contains(fmt.Sprintf("%#v", v), "s3cret") && !v.ContainsMarked() && !strings.Contains(expr, "s3cret") && !strings.Contains(expr, "nonsensitive") {
			t.Fatalf("a secret has lost its mark: %#v", v)
		}
	})
}

var functionSeeds = []string{
	`sim_network.main.id`, `data.sim_image.x.zones[0]`, `namespace.shared.sim_network.main["id"]`, `configmap.app["a.b"]`, `secret.db.password`,
	`ephemeral.sim_token.t.secret`, `self.zones[*]`, `[for k, v in sim_network.main : upper(v)]`, `merge(configmap.app, secret.db)`,
	`jsondecode(secret.db.json)[sim_network.main.secret]`, `parseint(secret.db.password, 10)`, `{(sim_network.main.secret) = 1}`,
	`templatestring(configmap.app.tpl, {a = sim_network.main.secret})`, `templatestring(secret.db.tpl, {a = 1})`, `regex(secret.db.password, "a")`,
	`try(sim_network.main.nope, secret.db.nope, 1)`, `can(secret.db.password.x)`, `sim_network.main.name == null ? 1 : sim_network.main.count`,
	`cidrsubnet(sim_network.main.secret, 8, 1)`, `lookup(configmap.app, secret.db.password)`, `zipmap(sim_network.main.zones, [sim_network.main.secret, 1])`,
	`nonsensitive(secret.db)`, `ephemeralasnull(ephemeral.sim_token.t)`, `issensitive(secret.db.password) ? "a" : "b"`, `format("%s", secret.db)`,
	`[for s in [sim_network.main.secret] : s][0]`, `toset([sim_network.main.secret])`, `setproduct([sim_network.main.secret], ["a"])`, `join(sim_network.main.secret, ["a", "b"])`,
	`yamldecode(secret.db.json)`, `csvdecode(secret.db.password)`, `formatdate(secret.db.password, "2020-01-01T00:00:00Z")`, `timeadd(secret.db.password, "1h")`,
}

// fuzzScope has one of each kind of thing that can be referred to.
func fuzzScope(a Address) (cty.Value, bool) {
	switch a.Type {
	case TypeConfigMap:
		return schematest.Obj("region", schematest.Str("eu"), "a.b", schematest.Str("x"), "tpl", schematest.Str("hello ${a} %{ if true }x%{ endif }")), true
	case TypeSecret:
		return schematest.Obj("password", schematest.Str("s3cret"), "json", schematest.Str(`{"s3cret":"s3cret"}`), "tpl", schematest.Str("s3cret ${a}")), true
	}
	return network(), true
}

func BenchmarkParseConfig(b *testing.B) {
	in, schema := spec(b, benchmarkSpec), schematest.Machine()
	b.ReportAllocs()
	for b.Loop() {
		if _, diags := parseConfig(in, schema); len(diags) > 0 {
			b.Fatal(diags)
		}
	}
}

func BenchmarkEvaluate(b *testing.B) {
	c, _ := parseConfig(spec(b, benchmarkSpec), schematest.Machine())
	b.ReportAllocs()
	for b.Loop() {
		if _, diags := c.Evaluate(scope); len(diags) > 0 {
			b.Fatal(diags)
		}
	}
}

const benchmarkSpec = `{"name":"web-${sim_network.main.id}","size":4,"tags":{"team":"infra","net":"${sim_network.main.id}"},
	"disk":{"gb":10},"rule":[{"port":80},{"port":443}],"zones":["a","b"]}`
