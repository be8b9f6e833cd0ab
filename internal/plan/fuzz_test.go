package plan

import (
	"encoding/json"
	"strings"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema/schematest"
	"github.com/zclconf/go-cty/cty"

	"testing"

	"pgregory.net/rapid"
)

// FuzzProposedNew: any prior state and any configuration of the schema merge into a state that the rules allow.
func FuzzProposedNew(f *testing.F) {
	b := schematest.Machine()
	f.Fuzz(rapid.MakeFuzz(func(rt *rapid.T) {
		prior, config := schematest.DrawBlock(rt, b, true), schematest.DrawBlock(rt, b, false)
		proposed := ProposedNew(b, prior, config)
		if errs := CheckPlanned(b, prior, config, proposed); len(errs) > 0 {
			rt.Fatalf("proposed state is refused: %q", schematest.Texts(errs))
		}
		Drift(prior, proposed)
		Decide(prior, proposed, nil, false, false)
	}))
}

// FuzzFirstPlan plans a new object from whatever a spec says: the proposed state is one that a provider may answer, and
// can be shown.
func FuzzFirstPlan(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"name":"x"}`, `{"name":"${sim_network.main.id}","rule":[{"port":1,"inner":[{}]}]}`, `{"name":"x","free":[{"v":[1,"a",null]},{"v":{}}],"any":[[],{}]}`,
		`{"name":"x","users":"${{for k, v in {a = 1} : k => {}}}","keys":"${[{pub = 1}]}"}`, `{"name":"x","legacy":"${[for i in range(3) : {a = i}]}","ports":"${toset([1, 2])}"}`,
		`{"name":"x","disk":"${sim_network.main}","nics":[null],"zones":[null],"mount":[null]}`, `{"name":"x","any":1e400,"size":-0.0}`,
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
		c, diags := lang.ConfigOptions{}.Parse(in, b)
		if diag.HasErrors(diags) {
			return
		}
		config, diags := c.Evaluate(func(lang.Address) (cty.Value, bool) { return cty.DynamicVal, true })
		if diag.HasErrors(diags) {
			return
		}
		prior := cty.NullVal(b.ImpliedType())
		proposed := ProposedNew(b, prior, config)
		if errs := CheckPlanned(b, prior, config, proposed); len(errs) > 0 {
			t.Fatalf("proposed state is refused: %q", schematest.Texts(errs))
		}
		if _, err := Render(b, prior, config); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkProposedNewSet(b *testing.B) {
	// A security group with 1,000 rules.
	block := schematest.Block(schematest.NestedBlock("rule", 4, schematest.Required("n", cty.Number), schematest.OptionalComputed("d", cty.String)))
	var prior, config []cty.Value
	for i := range int64(1000) {
		prior = append(prior, schematest.Obj("n", schematest.Num(i), "d", schematest.Str("d")))
		config = append(config, schematest.Obj("n", schematest.Num(i), "d", schematest.NullStr))
	}
	p, c := schematest.Obj("rule", cty.SetVal(prior)), schematest.Obj("rule", cty.SetVal(config))
	for b.Loop() {
		ProposedNew(block, p, c)
	}
}
