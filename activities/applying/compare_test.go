package applying

import (
	"testing"

	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/schema"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
)

// TestDifferences compares a resource with the approved one.
func TestDifferences(t *testing.T) {
	block := &schema.Block{Attributes: []*schema.Attribute{
		{Name: "id", Type: cty.String, Computed: true}, {Name: "name", Type: cty.String, Required: true}, {Name: "seen", Type: cty.String, Computed: true},
		{Name: "tags", Type: cty.Map(cty.String), Optional: true},
	}}
	text := cty.StringVal
	value := func(id, name, seen string, tags cty.Value) instance.State {
		return instance.State{Value: cty.ObjectVal(map[string]cty.Value{"id": text(id), "name": text(name), "seen": text(seen), "tags": tags})}
	}
	none, empty := cty.NullVal(cty.Map(cty.String)), cty.MapValEmpty(cty.String)
	identity := func(s instance.State, account string) instance.State {
		s.Identity = cty.ObjectVal(map[string]cty.Value{"account": text(account)})
		return s
	}
	approved := value("i", "a", "1", none)
	for reason, test := range map[string]struct {
		found     instance.State
		unsettled []string
		all, args []string
	}{
		"the same":                       {found: value("i", "a", "1", none)},
		"empty instead of null":          {found: value("i", "a", "1", empty)},
		"another argument":               {found: value("i", "b", "1", none), all: []string{"name"}, args: []string{"name"}},
		"another computed value":         {found: value("i", "a", "2", none), all: []string{"seen"}},
		"a value that changes by itself": {found: value("i", "a", "2", none), unsettled: []string{"seen"}},
		"and another argument":           {found: value("i", "b", "2", none), unsettled: []string{"seen"}, all: []string{"name"}, args: []string{"name"}},
		"another ID":                     {found: value("j", "a", "1", none), all: []string{"id"}, args: []string{"id"}},
		"further tags":                   {found: value("i", "a", "1", cty.MapVal(map[string]cty.Value{"x": text("y")})), all: []string{"tags"}, args: []string{"tags"}},
		"an identity that was not known": {found: identity(value("i", "a", "1", none), "x")},
	} {
		for how, want := range map[comparison][]string{allAttributes: test.all, argumentsAlone: test.args} {
			got := how.differences(block, approved, test.found, test.unsettled)
			if len(got)+len(want) > 0 && !cmp.Equal(got, want) {
				t.Errorf("%s, comparison %d: %v, want %v", reason, how, got, want)
			}
		}
	}
	if got := argumentsAlone.differences(block, identity(approved, "x"), identity(approved, "y"), nil); !cmp.Equal(got, []string{"its identity"}) {
		t.Errorf("with another identity: %v", got)
	}
}
