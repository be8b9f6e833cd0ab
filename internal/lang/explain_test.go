package lang

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/internal/schema/schematest"

	"github.com/zclconf/go-cty/cty"
)

// TestMissingInstancesAreNamed evaluates keys that only the evaluation knows.
func TestMissingInstancesAreNamed(t *testing.T) {
	network := schematest.Obj("id", schematest.Str("net-1"))
	values := map[string]cty.Value{
		"sim_network.main": schematest.Obj("id", schematest.Str("west")),
		"sim_network.n":    cty.TupleVal([]cty.Value{network, network}),
		"sim_network.m":    schematest.Obj("east", network, "best", cty.DynamicVal),
		"sim_network.none": cty.EmptyObjectVal,
	}
	for expr, want := range map[string]string{
		`sim_network.m[sim_network.main.id].id`:         `The ResourceSet of sim_network.m has no instance ["west"]. Did you mean "best"?`,
		`sim_network.none[sim_network.main.id].id`:      `The ResourceSet of sim_network.none has no instance ["west"].`,
		`sim_network.main[sim_network.main.id]`:         `sim_network.main has no attribute "west".`,
		`sim_network.n[length(sim_network.main.id)].id`: `sim_network.n has 2 elements, [0] to [1], so [4] does not exist.`,
	} {
		c, diags := parseConfig(map[string]any{"name": "${" + expr + "}"}, schematest.Block(schematest.Required("name", cty.String)))
		if len(diags) > 0 {
			t.Fatalf("%s: %v", expr, diags)
		}
		_, diags = c.Evaluate(func(a Address) (cty.Value, bool) {
			v, ok := values[a.String()]
			return v, ok
		})
		if len(diags) != 1 || strings.TrimSpace(diags[0].Detail) != want {
			t.Errorf("%s\ngot  %v\nwant %s", expr, diags, want)
		}
	}
}
