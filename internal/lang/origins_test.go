package lang

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/schema/schematest"
)

// TestOriginsPropagate evaluates expressions over secrets and expects the objects that their results come from.
func TestOriginsPropagate(t *testing.T) {
	secretOf := func(v cty.Value, a Address) cty.Value {
		return v.WithMarks(cty.NewValueMarks(Sensitive, Origin{Address: a}))
	}
	password := func(name string) Address { return Address{Namespace: "team", Type: "sim_password", Name: name} }
	db, prod := Address{Namespace: "team", Type: TypeSecret, Name: "db"}, Address{Namespace: "prod", Type: "sim_password", Name: "b"}
	key := func(name string) cty.Value {
		return cty.StringVal(name).WithMarks(cty.NewValueMarks(Sensitive, Origin{Address: db, Key: name}))
	}
	values := map[Address]cty.Value{
		{Type: "sim_password", Name: "a"}:                    cty.ObjectVal(map[string]cty.Value{"result": secretOf(cty.StringVal("x"), password("a")), "length": cty.NumberIntVal(8)}),
		{Namespace: "prod", Type: "sim_password", Name: "b"}: cty.ObjectVal(map[string]cty.Value{"result": secretOf(cty.UnknownVal(cty.String), prod)}),
		{Type: "sim_network", Name: "open"}:                  cty.ObjectVal(map[string]cty.Value{"id": cty.UnknownVal(cty.String), "name": cty.StringVal("n")}),
		{Type: TypeSecret, Name: "db"}:                       secretOf(cty.ObjectVal(map[string]cty.Value{"user": key("user"), "pass": key("pass")}), db),
	}
	a, b := "sim_password.a", "namespace.prod.sim_password.b"
	for reason, tc := range map[string]struct {
		expression string
		want       []string
	}{
		"a plain value has none":                      {"sim_password.a.length", nil},
		"a reference":                                 {"sim_password.a.result", []string{a}},
		"an unknown value":                            {"namespace.prod.sim_password.b.result", []string{b}},
		"a template":                                  {`"u:${sim_password.a.result}@h"`, []string{a}},
		"a template of two, one unknown":              {`"${sim_password.a.result}${namespace.prod.sim_password.b.result}"`, []string{b, a}},
		"a function":                                  {"upper(sim_password.a.result)", []string{a}},
		"a hash":                                      {"sha256(sim_password.a.result)", []string{a}},
		"jsonencode of an object":                     {"jsonencode({a = sim_password.a.result, n = 1})", []string{a}},
		"a condition with a known branch":             {`sim_network.open.name == "n" ? sim_password.a.result : "x"`, []string{a}},
		"a condition whose result depends on it":      {`sim_password.a.result == "x" ? "1" : "2"`, []string{a}},
		"an unknown condition":                        {`sim_network.open.id == "n" ? sim_password.a.result : namespace.prod.sim_password.b.result`, []string{b, a}},
		"for over secrets":                            {`[for s in [sim_password.a.result, "x"] : "${s}!"]`, []string{a}},
		"for with a secret key":                       {`{for s in [sim_password.a.result] : s => 1}`, []string{a}},
		"a merge":                                     {`merge({x = sim_password.a.result}, {y = namespace.prod.sim_password.b.result})`, []string{b, a}},
		"the plain part of a merge":                   {`merge({x = sim_password.a.result}, {y = "z"}).y`, nil},
		"a set":                                       {`toset([sim_password.a.result, "y"])`, []string{a}},
		"concat and element":                          {`element(concat([sim_password.a.result], ["x"]), 0)`, []string{a}},
		"templatestring":                              {`templatestring("v=$${x}", {x = sim_password.a.result})`, []string{a}},
		"try":                                         {`try(sim_password.a.result, "x")`, []string{a}},
		"sensitive() adds none":                       {`sensitive("x")`, nil},
		"nonsensitive() makes the value public":       {"nonsensitive(sim_password.a.result)", nil},
		"nonsensitive() of a part keeps the others":   {`"${nonsensitive(sim_password.a.result)}${namespace.prod.sim_password.b.result}"`, []string{b}},
		"a key of a Secret":                           {"secret.db.user", []string{"secret.db.user"}},
		"two keys of a Secret":                        {`"${secret.db.user}:${secret.db.pass}"`, []string{"secret.db.pass", "secret.db.user"}},
		"a whole Secret, whose names are secret, too": {"keys(secret.db)", []string{"secret.db"}},
		"a Secret by an unknown key":                  {"secret.db[sim_network.open.id]", []string{"secret.db"}},
	} {
		e, diags := ParseExpression("${"+tc.expression+"}", "v", ExpressionOptions{})
		v, more := e.Evaluate(func(a Address) (cty.Value, bool) { v, ok := values[a]; return v, ok }, cty.NilVal)
		if len(diags)+len(more) > 0 {
			t.Errorf("%s: %v", reason, append(diags, more...))
			continue
		}
		var got []string
		for _, o := range OriginsOf(v) {
			got = append(got, o.Text("team"))
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: -want +got:\n%s", reason, d)
		}
		if hidden := v.ContainsMarked(); hidden != (len(got) > 0) && tc.expression != `sensitive("x")` {
			t.Errorf("%s: the value is hidden: %t, and comes from %v", reason, hidden, got)
		}
	}
}

// TestOriginsSurviveTheSchema converts a secret to the types of arguments.
func TestOriginsSurviveTheSchema(t *testing.T) {
	block := schematest.Block(schematest.Optional("text", cty.String), schematest.Optional("list", cty.List(cty.String)), schematest.Optional("tags", cty.Map(cty.String)),
		schematest.Optional("set", cty.Set(cty.String)))
	const ref = "${sim_password.a.result}"
	parsed, diags := ConfigOptions{}.Parse(map[string]any{"text": ref, "list": []any{"x", ref}, "tags": map[string]any{"x": ref}, "set": []any{ref}}, block)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	o := Origin{Address: Address{Namespace: "team", Type: "sim_password", Name: "a"}}
	v, diags := parsed.Evaluate(func(Address) (cty.Value, bool) {
		return cty.ObjectVal(map[string]cty.Value{"result": cty.NumberIntVal(7).WithMarks(cty.NewValueMarks(Sensitive, o))}), true
	})
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	for name := range block.ImpliedType().AttributeTypes() {
		if got := OriginsOf(v.GetAttr(name)); len(got) != 1 || got[0] != o {
			t.Errorf("%s has the origins %v", name, got)
		}
	}
}

func TestEphemeralAsNullKeepsNoOrigin(t *testing.T) {
	o := Origin{Address: Address{Namespace: "team", Mode: "ephemeral", Type: "sim_token", Name: "a"}}
	v, err := ephemeralAsNull.Call([]cty.Value{cty.StringVal("x").WithMarks(cty.NewValueMarks(Ephemeral, o))})
	if err != nil || v.IsMarked() {
		t.Errorf("got %#v, %v", v, err)
	}
}

func TestBoundOrigins(t *testing.T) {
	three := []Origin{{Key: "a"}, {Key: "b"}, {Key: "c"}}
	if got := BoundOrigins(three, 3); len(got) != 3 {
		t.Errorf("got %v", got)
	}
	if got := BoundOrigins(three, 2); len(got) != 3 || got[2] != FurtherOrigins {
		t.Errorf("got %v", got)
	}
}
