package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"
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
	b := machine()
	f.Fuzz(func(t *testing.T, js string) {
		d := json.NewDecoder(strings.NewReader(js))
		d.UseNumber()
		var in map[string]any
		if d.Decode(&in) != nil {
			return
		}
		c, diags := ParseConfig(in, b)
		for _, d := range diags {
			if !strings.HasPrefix(d.Attribute, "spec") || d.Summary == "" || d.Detail == "" {
				t.Fatalf("incomplete: %+v", d)
			}
		}
		if HasErrors(diags) {
			return
		}
		v, diags := c.Evaluate(scope)
		if HasErrors(diags) {
			return
		}
		bare, _ := v.UnmarkDeep()
		if errs := bare.Type().TestConformance(b.ImpliedType()); len(errs) > 0 {
			t.Fatalf("%#v does not conform: %v", bare, errs)
		}
		prior := cty.NullVal(b.ImpliedType())
		proposed := ProposedNew(b, prior, v)
		if errs := CheckPlanned(b, prior, v, proposed); len(errs) > 0 {
			t.Fatalf("proposed state is refused: %q", texts(errs))
		}
		if _, err := Render(b, prior, v); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzProposedNew: any prior state and any configuration of the schema merge into a state that the rules allow.
func FuzzProposedNew(f *testing.F) {
	b := machine()
	f.Fuzz(rapid.MakeFuzz(func(rt *rapid.T) {
		prior, config := drawBlock(rt, b, true), drawBlock(rt, b, false)
		proposed := ProposedNew(b, prior, config)
		if errs := CheckPlanned(b, prior, config, proposed); len(errs) > 0 {
			rt.Fatalf("proposed state is refused: %q", texts(errs))
		}
		Drift(prior, proposed)
		Decide(prior, proposed, nil, false, false)
	}))
}

func BenchmarkParseConfig(b *testing.B) {
	in, schema := spec(b, benchmarkSpec), machine()
	b.ReportAllocs()
	for b.Loop() {
		if _, diags := ParseConfig(in, schema); len(diags) > 0 {
			b.Fatal(diags)
		}
	}
}

func BenchmarkEvaluate(b *testing.B) {
	c, _ := ParseConfig(spec(b, benchmarkSpec), machine())
	b.ReportAllocs()
	for b.Loop() {
		if _, diags := c.Evaluate(scope); len(diags) > 0 {
			b.Fatal(diags)
		}
	}
}

const benchmarkSpec = `{"name":"web-${sim_network.main.id}","size":4,"tags":{"team":"infra","net":"${sim_network.main.id}"},
	"disk":{"gb":10},"rule":[{"port":80},{"port":443}],"zones":["a","b"]}`

func BenchmarkProposedNewSet(b *testing.B) {
	// A security group with 1,000 rules.
	block := block(nestedBlocks("rule", 4, required("n", cty.Number), optionalComputed("d", cty.String)))
	var prior, config []cty.Value
	for i := range int64(1000) {
		prior = append(prior, obj("n", num(i), "d", str("d")))
		config = append(config, obj("n", num(i), "d", nullStr))
	}
	p, c := obj("rule", cty.SetVal(prior)), obj("rule", cty.SetVal(config))
	for b.Loop() {
		ProposedNew(block, p, c)
	}
}
