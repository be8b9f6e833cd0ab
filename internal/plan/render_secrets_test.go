package plan

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/schema/schematest"
)

func TestRenderSecretsChanged(t *testing.T) {
	b := schematest.Block(
		schematest.Optional("size", cty.Number), schematest.Sensitive(schematest.Optional("password", cty.String)), schematest.Sensitive(schematest.Optional("keys", cty.Map(cty.String))),
		schematest.Optional("tags", cty.Map(cty.String)), schematest.Optional("words", cty.List(cty.String)),
		&schema.Attribute{Name: "once", Type: cty.String, Optional: true, Sensitive: true, WriteOnly: true},
		schematest.NestedBlock("rule", schema.NestingList, schematest.Optional("port", cty.Number), schematest.Sensitive(schematest.Optional("key", cty.String))),
		schematest.NestedBlock("mount", schema.NestingSet, schematest.Sensitive(schematest.Optional("key", cty.String))),
	)
	rules := func(rules ...cty.Value) cty.Value { return cty.ListVal(rules) }
	rule := func(port int64, key string) cty.Value {
		return schematest.Obj("port", schematest.Num(port), "key", schematest.Str(key))
	}
	mount := func(key string) cty.Value { return cty.SetVal([]cty.Value{schematest.Obj("key", schematest.Str(key))}) }
	stringMap := func(pairs ...any) cty.Value { return cty.MapVal(schematest.Obj(pairs...).AsValueMap()) }
	value := func(changes ...any) cty.Value {
		all := schematest.Obj("size", schematest.Num(1), "password", schematest.Str("hunter2"), "keys", stringMap("k", schematest.Str("v")), "tags", stringMap("team", schematest.Str("a")),
			"words", cty.ListVal([]cty.Value{schematest.Str("x").Mark(lang.Sensitive), schematest.Str("y").Mark(lang.Sensitive)}), "once", schematest.NullStr,
			"rule", rules(rule(1, "a"), rule(2, "b")), "mount", mount("m")).AsValueMap()
		for i := 0; i < len(changes); i += 2 {
			all[changes[i].(string)] = changes[i+1].(cty.Value)
		}
		return cty.ObjectVal(all)
	}
	words := func(texts ...string) cty.Value {
		var vals []cty.Value
		for _, text := range texts {
			vals = append(vals, schematest.Str(text).Mark(lang.Sensitive))
		}
		return cty.ListVal(vals)
	}
	null := cty.NullVal(b.ImpliedType())
	for _, tc := range []struct {
		reason        string
		before, after cty.Value
		want          string
	}{
		{"what is no secret", value(), value("size", schematest.Num(2), "tags", stringMap("team", schematest.Str("b"))), ``},
		{"a secret", value(), value("size", schematest.Num(2), "password", schematest.Str("other")), `[["password"]]`},
		{"one that comes", value("password", schematest.NullStr), value(), `[["password"]]`},
		{"one that goes", value(), value("password", schematest.NullStr), `[["password"]]`},
		{"nothing, of another type", value("password", cty.NullVal(cty.DynamicPseudoType)), value("password", schematest.NullStr), ``},
		{"one that is not known yet", value(), value("password", schematest.UnknownStr), `[["password"]]`},
		{"a secret map, whose keys are secret too", value(), value("keys", stringMap("hidden", schematest.Str("v"))), `[["keys"]]`},
		{"a map with a key from a secret", value(), value("tags", stringMap("hidden", schematest.Str("a")).Mark(lang.Sensitive)), `[["tags"]]`},
		{"a map that had one", value("tags", stringMap("hidden", schematest.Str("a")).Mark(lang.Sensitive)), value(), `[["tags"]]`},
		{"an element of a map that comes from a secret", value(), value("tags", stringMap("team", schematest.Str("a"), "dsn", schematest.Str("new").Mark(lang.Sensitive))), `[["tags","dsn"]]`},
		{"an element of a map that goes", value("tags", stringMap("team", schematest.Str("a"), "dsn", schematest.Str("new").Mark(lang.Sensitive))), value(), `[["tags","dsn"]]`},
		{"the mark, and not the value", value(), value("tags", stringMap("team", schematest.Str("a").Mark(lang.Sensitive))), ``},
		{"within a block", value(), value("rule", rules(rule(1, "a"), rule(2, "new"))), `[["rule",1,"key"]]`},
		{"a block that comes first moves the others", value(), value("rule", rules(rule(0, "new"), rule(1, "a"), rule(2, "b"))), ``},
		{"a block that goes", value(), value("rule", rules(rule(2, "b"))), ``},
		{"no block any more", value(), value("rule", cty.ListValEmpty(rule(1, "a").Type())), ``},
		{"an element of a list", value(), value("words", words("x", "new")), `[["words",1]]`},
		{"an element that comes first", value(), value("words", words("new", "x", "y")), `[["words",0]]`},
		{"an element that goes", value(), value("words", words("y")), ``},
		{"within a set, which is masked as a whole", value(), value("mount", mount("new")), `[["mount"]]`},
		{"what is created", null, value(), ``},
		{"what is destroyed", value(), cty.NilVal, ``},
	} {
		r, err := Render(b, tc.before, tc.after)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if r.SecretsChanged != nil {
			got = string(r.SecretsChanged.Raw)
		}
		if got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
		}
	}
}

// TestEveryChangedSecretIsListed expects the paths of secrets that differ although both sides look the same, no other
// paths, and no secret.
func TestEveryChangedSecretIsListed(t *testing.T) {
	b := secretive() // every string of it is a secret
	rapid.Check(t, func(rt *rapid.T) {
		texts := func(v cty.Value, change func(string) string) cty.Value {
			v, _ = cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
				if v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
					return schematest.Str(change(v.AsString())), nil
				}
				return v, nil
			})
			return v
		}
		before := texts(resolve(schematest.DrawBlock(rt, b, false)), func(s string) string { return "s3cret-" + s })
		after := texts(before, func(s string) string {
			if rapid.Bool().Draw(rt, "changes") {
				return s + "-new"
			}
			return s
		})
		r, err := Render(b, before, after)
		if err != nil {
			rt.Fatal(err)
		}
		listed := ""
		if r.SecretsChanged != nil {
			listed = string(r.SecretsChanged.Raw)
		}
		if strings.Contains(listed, "s3cret") {
			rt.Fatalf("the paths have a secret: %s", listed)
		}
		if differs := !before.RawEquals(after); differs != (listed != "") {
			rt.Fatalf("differs: %v, listed: %q, for %#v and %#v", differs, listed, before, after)
		}
	})
}
