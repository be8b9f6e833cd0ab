package plan

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"github.com/hykube/hykube/internal/schema"
)

func TestRenderSecretsChanged(t *testing.T) {
	b := block(
		optional("size", cty.Number), secret(optional("password", cty.String)), secret(optional("keys", cty.Map(cty.String))),
		optional("tags", cty.Map(cty.String)), optional("words", cty.List(cty.String)),
		&schema.Attribute{Name: "once", Type: cty.String, Optional: true, Sensitive: true, WriteOnly: true},
		nestedBlocks("rule", schema.NestingList, optional("port", cty.Number), secret(optional("key", cty.String))),
		nestedBlocks("mount", schema.NestingSet, secret(optional("key", cty.String))),
	)
	rules := func(rules ...cty.Value) cty.Value { return cty.ListVal(rules) }
	rule := func(port int64, key string) cty.Value { return obj("port", num(port), "key", str(key)) }
	mount := func(key string) cty.Value { return cty.SetVal([]cty.Value{obj("key", str(key))}) }
	stringMap := func(pairs ...any) cty.Value { return cty.MapVal(obj(pairs...).AsValueMap()) }
	value := func(changes ...any) cty.Value {
		all := obj("size", num(1), "password", str("hunter2"), "keys", stringMap("k", str("v")), "tags", stringMap("team", str("a")),
			"words", cty.ListVal([]cty.Value{str("x").Mark(Sensitive), str("y").Mark(Sensitive)}), "once", nullStr,
			"rule", rules(rule(1, "a"), rule(2, "b")), "mount", mount("m")).AsValueMap()
		for i := 0; i < len(changes); i += 2 {
			all[changes[i].(string)] = changes[i+1].(cty.Value)
		}
		return cty.ObjectVal(all)
	}
	words := func(texts ...string) cty.Value {
		var vals []cty.Value
		for _, text := range texts {
			vals = append(vals, str(text).Mark(Sensitive))
		}
		return cty.ListVal(vals)
	}
	null := cty.NullVal(b.ImpliedType())
	for _, tc := range []struct {
		reason        string
		before, after cty.Value
		want          string
	}{
		{"what is no secret", value(), value("size", num(2), "tags", stringMap("team", str("b"))), ``},
		{"a secret", value(), value("size", num(2), "password", str("other")), `[["password"]]`},
		{"one that comes", value("password", nullStr), value(), `[["password"]]`},
		{"one that goes", value(), value("password", nullStr), `[["password"]]`},
		{"nothing, of another type", value("password", cty.NullVal(cty.DynamicPseudoType)), value("password", nullStr), ``},
		{"one that is not known yet", value(), value("password", unknownStr), `[["password"]]`},
		{"a secret map, whose keys are secret too", value(), value("keys", stringMap("hidden", str("v"))), `[["keys"]]`},
		{"a map with a key from a secret", value(), value("tags", stringMap("hidden", str("a")).Mark(Sensitive)), `[["tags"]]`},
		{"a map that had one", value("tags", stringMap("hidden", str("a")).Mark(Sensitive)), value(), `[["tags"]]`},
		{"an element of a map that comes from a secret", value(), value("tags", stringMap("team", str("a"), "dsn", str("new").Mark(Sensitive))), `[["tags","dsn"]]`},
		{"an element of a map that goes", value("tags", stringMap("team", str("a"), "dsn", str("new").Mark(Sensitive))), value(), `[["tags","dsn"]]`},
		{"the mark, and not the value", value(), value("tags", stringMap("team", str("a").Mark(Sensitive))), ``},
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

// Secrets that differ where both sides look the same are told of, all others are not, and none is told.
func TestEverySecretThatChangesIsTold(t *testing.T) {
	b := secretive() // every string of it is a secret
	rapid.Check(t, func(rt *rapid.T) {
		texts := func(v cty.Value, change func(string) string) cty.Value {
			v, _ = cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
				if v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
					return str(change(v.AsString())), nil
				}
				return v, nil
			})
			return v
		}
		before := texts(resolve(drawBlock(rt, b, false)), func(s string) string { return "s3cret-" + s })
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
		told := ""
		if r.SecretsChanged != nil {
			told = string(r.SecretsChanged.Raw)
		}
		if strings.Contains(told, "s3cret") {
			rt.Fatalf("a secret is told: %s", told)
		}
		if differs := !before.RawEquals(after); differs != (told != "") {
			rt.Fatalf("differs: %v, told: %q, for %#v and %#v", differs, told, before, after)
		}
	})
}
