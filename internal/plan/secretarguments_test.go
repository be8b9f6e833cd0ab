package plan

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
)

func TestSecretArguments(t *testing.T) {
	o := lang.Origin{Address: lang.Address{Namespace: "prod", Type: "sim_password", Name: "db"}}
	secret := func(text string) cty.Value {
		return cty.StringVal(text).WithMarks(cty.NewValueMarks(lang.Sensitive, o))
	}
	object := &schema.Object{Nesting: schema.NestingSingle, Attributes: []*schema.Attribute{{Name: "key", Type: cty.String, Optional: true, Sensitive: true}}}
	block := &schema.Block{
		Attributes: []*schema.Attribute{
			{Name: "password", Type: cty.String, Optional: true, Sensitive: true}, {Name: "once", Type: cty.String, Optional: true, WriteOnly: true},
			{Name: "tags", Type: cty.Map(cty.String), Optional: true}, {Name: "login", Type: object.ImpliedType(), Nested: object, Optional: true},
			{Name: "own", Type: cty.String, Optional: true}, {Name: "names", Type: cty.Set(cty.String), Optional: true},
		},
		Blocks: []*schema.NestedBlock{{TypeName: "rule", Nesting: schema.NestingList, Block: &schema.Block{Attributes: []*schema.Attribute{{Name: "value", Type: cty.String, Optional: true}}}}},
	}
	config := cty.ObjectVal(map[string]cty.Value{
		"password": secret("a"), "once": secret("b").Mark(lang.Ephemeral), "own": cty.StringVal("c").Mark(lang.Sensitive),
		"tags":  cty.MapVal(map[string]cty.Value{"x": secret("d"), "y": cty.StringVal("e")}),
		"names": cty.SetVal([]cty.Value{secret("f")}),
		"login": cty.ObjectVal(map[string]cty.Value{"key": secret("g")}),
		"rule":  cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"value": secret("h")})}),
	})
	want := map[string]bool{"password": true, "once": true, "tags.x": false, "names": false, "login.key": true, "rule[0].value": false}
	got := SecretArguments(block, config)
	for _, s := range got {
		path := diag.PathField("", s.Path)
		if hidden, ok := want[path]; !ok || hidden != s.Hidden || len(s.Origins) != 1 || s.Origins[0] != o {
			t.Errorf("%s: hidden %t, from %v", path, s.Hidden, s.Origins)
		}
		if at := OriginsAt(config, s.Path); len(at) != 1 || at[0] != o {
			t.Errorf("%s: %v", path, at)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d arguments, want %d", len(got), len(want))
	}
}
