package plan

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
)

func TestWithoutWriteOnly(t *testing.T) {
	attrs := []*schema.Attribute{
		{Name: "name", Type: cty.String, Optional: true},
		{Name: "password", Type: cty.String, Optional: true, WriteOnly: true},
	}
	o := &schema.Object{Nesting: schema.NestingMap, Attributes: attrs}
	b := &schema.Block{
		Attributes: append([]*schema.Attribute{{Name: "logins", Type: o.ImpliedType(), Nested: o, Optional: true}}, attrs...),
		Blocks:     []*schema.NestedBlock{{TypeName: "login", Nesting: schema.NestingList, Block: &schema.Block{Attributes: attrs}}},
	}
	with := func(password cty.Value) cty.Value {
		login := map[string]cty.Value{"name": cty.StringVal("ann").Mark(lang.Sensitive), "password": password}
		return cty.ObjectVal(map[string]cty.Value{
			"name": login["name"], "password": password,
			"logins": cty.MapVal(map[string]cty.Value{"a": cty.ObjectVal(login)}),
			"login":  cty.ListVal([]cty.Value{cty.ObjectVal(login)}),
		})
	}
	want := with(cty.NullVal(cty.String))
	for name, password := range map[string]cty.Value{
		"known": cty.StringVal("hush"), "unknown": cty.UnknownVal(cty.String), "ephemeral": cty.StringVal("hush").Mark(lang.Ephemeral),
	} {
		if got := WithoutWriteOnly(b, with(password)); !got.RawEquals(want) {
			t.Errorf("%s: got %#v, want %#v", name, got, want)
		}
	}
	null := cty.NullVal(b.ImpliedType())
	if got := WithoutWriteOnly(b, null); !got.RawEquals(null) {
		t.Errorf("nothing: got %#v", got)
	}
}
