package kinds

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/schema"
)

func TestScalarWarnings(t *testing.T) {
	block := &schema.Block{
		Attributes: []*schema.Attribute{
			{Name: "big", Type: cty.Number}, {Name: "fine", Type: cty.Number}, {Name: "name", Type: cty.String}, {Name: "size", Type: cty.Number}, {Name: "tags", Type: cty.Map(cty.String)}, {Name: "zones", Type: cty.List(cty.String)},
		},
		Blocks: []*schema.NestedBlock{{TypeName: "rule", Nesting: schema.NestingList, Block: &schema.Block{Attributes: []*schema.Attribute{{Name: "to", Type: cty.String}}}}},
	}
	got := scalarWarnings(map[string]any{
		"name": false, "size": int64(3), "tags": map[string]any{"version": 1.1, "team": "a"}, "zones": []any{"a", int64(12)},
		"rule": []any{map[string]any{"to": true}}, "big": 18446744073709552000.0, "fine": 2.5,
	}, block)
	want := []string{"spec.big: the number is too large", "spec.name: ", "spec.rule[0].to: ", "spec.tags.version: ", "spec.zones[1]: "}
	if len(got) != len(want) {
		t.Fatalf("got %d warnings, want %d: %q", len(got), len(want), got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("warning %d: got %q, want one about %s", i, got[i], want[i])
		}
	}
	if !strings.Contains(got[3], `becomes "1.1"`) {
		t.Errorf("it does not say what comes of it: %q", got[3])
	}
	many := map[string]any{}
	for _, key := range strings.Split("abcdefgh", "") {
		many[key] = true
	}
	if got := scalarWarnings(map[string]any{"tags": many}, block); len(got) != maxScalarWarnings+1 {
		t.Errorf("%d warnings for one object", len(got))
	}
}
