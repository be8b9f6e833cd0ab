package lang

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/schema"
)

func index(i int) *Instance { return &Instance{Key: v1alpha1.InstanceKey{Index: i}} }

func named(key string, value cty.Value) *Instance {
	return &Instance{Key: v1alpha1.InstanceKey{Named: true, Name: key}, Value: value}
}

func texts(addrs []Address) (out []string) {
	for _, a := range addrs {
		out = append(out, a.String())
	}
	return out
}

// expressionOf returns an expression of a template for one instance.
func expressionOf(t *testing.T, of *Instance, text string) *Expression {
	t.Helper()
	repetition := RepeatCount
	if of.Key.Named {
		repetition = RepeatForEach
	}
	e, diags := ParseExpression("${"+text+"}", "v", ExpressionOptions{Repetition: repetition})
	if len(diags) > 0 {
		t.Fatalf("%s: %v", text, diags)
	}
	return e.With(EvaluationContext{Instance: of})
}

// TestReferencesOfInstances wants each instance to refer to no more than it needs. Sets that refer to each other by index
// would otherwise have a dependency for each pair of instances.
func TestReferencesOfInstances(t *testing.T) {
	value := cty.ObjectVal(map[string]cty.Value{"net": cty.StringVal("b"), "at": cty.NumberIntVal(7)})
	for expr, tc := range map[string]struct {
		of   *Instance
		want string
	}{
		`sim_network.n[3].id`:                                         {index(1), "sim_network.n[3]"},
		`sim_network.n["a"].id`:                                       {index(1), `sim_network.n["a"]`},
		`sim_network.n[count.index].id`:                               {index(1), "sim_network.n[1]"},
		`sim_network.n[count.index]`:                                  {index(1), "sim_network.n[1]"},
		`sim_network.n[count.index % 2].id`:                           {index(3), "sim_network.n[1]"},
		`sim_network.n[floor(count.index / 4)].id`:                    {index(9), "sim_network.n[2]"},
		`sim_network.n[each.key].id`:                                  {named("a", value), `sim_network.n["a"]`},
		`sim_network.n[each.value.net].id`:                            {named("a", value), `sim_network.n["b"]`},
		`sim_network.n[each.value.at].id`:                             {named("a", value), "sim_network.n[7]"},
		`cidrsubnet(sim_network.n[each.key].cidr, 8, 1)`:              {named("a", value), `sim_network.n["a"]`},
		`sim_network.n[*].id`:                                         {index(1), "sim_network.n"},
		`length(sim_network.n)`:                                       {index(1), "sim_network.n"},
		`[for k, n in sim_network.n : n.id]`:                          {index(1), "sim_network.n"},
		`[for i in range(2) : sim_network.n[i].id]`:                   {index(1), "sim_network.n"},
		`sim_network.n[count.index + 0.5].id`:                         {index(1), "sim_network.n"},
		`sim_network.n[sim_network.main.zone].id`:                     {index(1), "sim_network.main sim_network.n"},
		`namespace.shared.sim_network.n[count.index].id`:              {index(1), "namespace.shared.sim_network.n[1]"},
		`configmap.app[each.key]`:                                     {named("a", value), "configmap.app"},
		`"${sim_network.n[count.index].id}-${sim_network.n[0].name}"`: {index(2), "sim_network.n[0] sim_network.n[2]"},
	} {
		if got := strings.Join(texts(expressionOf(t, tc.of, expr).Addresses()), " "); got != tc.want {
			t.Errorf("%s of %s: refers to %s, want %s", expr, tc.of.Key, got, tc.want)
		}
	}
}

func TestValuesOfInstances(t *testing.T) {
	network := func(name string) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal("net-" + name), "name": cty.StringVal(name)})
	}
	asked := map[string]bool{}
	scope := func(a Address) (cty.Value, bool) {
		asked[a.String()] = true
		switch a.String() {
		case "sim_network.n":
			return cty.TupleVal([]cty.Value{network("0"), network("1"), network("2")}), true
		case "sim_network.n[0]", "sim_network.n[1]", "sim_network.n[2]", `sim_network.m["a"]`:
			_, key, _ := a.Set()
			return network(key.Text()), true
		}
		return cty.NilVal, false
	}
	value := cty.ObjectVal(map[string]cty.Value{"size": cty.NumberIntVal(3)})
	for expr, tc := range map[string]struct {
		of    *Instance
		want  string
		asked int
	}{
		`"web-${count.index}"`:                                     {index(4), `"web-4"`, 0},
		`count.index * 2`:                                          {index(4), "8", 0},
		`"${each.key}-${each.value.size}"`:                         {named("a", value), `"a-3"`, 0},
		`sim_network.n[count.index].id`:                            {index(1), `"net-1"`, 1},
		`sim_network.m[each.key].name`:                             {named("a", value), `"a"`, 1},
		`sim_network.n[2].name`:                                    {index(1), `"2"`, 1},
		`join(",", sim_network.n[*].name)`:                         {index(1), `"0,1,2"`, 1},
		`length(sim_network.n) + count.index`:                      {index(1), "4", 1},
		`try(sim_network.n[9].name, "none")`:                       {index(1), `"none"`, 1},
		`try(sim_network.m["z"].name, "none")`:                     {index(1), `"none"`, 1},
		`[sim_network.n[count.index].name, sim_network.n[0].name]`: {index(1), "[\n  \"1\",\n  \"0\",\n]", 2},
	} {
		clear(asked)
		v, diags := expressionOf(t, tc.of, expr).Evaluate(scope, cty.NilVal)
		if len(diags) > 0 {
			t.Errorf("%s: %v", expr, diags)
			continue
		}
		if got, err := FormatHCL(v, 1000); err != nil || got != tc.want || len(asked) != tc.asked {
			t.Errorf("%s: %s, want %s; asked for %v", expr, got, tc.want, asked)
		}
	}
}

func TestCountAndEachOutsideOfTheirSet(t *testing.T) {
	for expr, tc := range map[string]struct {
		repetition Repetition
		want       string
	}{
		"count.index":             {"", "it is known only in the template of a ResourceSet with spec.count"},
		"each.key":                {RepeatCount, "the ResourceSet has spec.count. Write count.index"},
		"count.inde":              {RepeatCount, `"count" has no attribute "inde". Write count.index`},
		"each":                    {RepeatForEach, `Write each.key or each.value`},
		"each.index":              {RepeatForEach, `"each" has no attribute "index"`},
		"namespace.a.count.index": {RepeatCount, "cannot be used after the name of a namespace"},
	} {
		_, diags := ParseExpression("${"+expr+"}", "v", ExpressionOptions{Repetition: tc.repetition})
		if len(diags) != 1 || !strings.Contains(diags[0].Detail, tc.want) {
			t.Errorf("%s with %q: %v, want %q", expr, tc.repetition, diags, tc.want)
		}
	}
}

// TestReferencesToSetsAreChecked checks references against a set with two instances and a single object.
func TestReferencesToSetsAreChecked(t *testing.T) {
	block := &schema.Block{Attributes: []*schema.Attribute{{Name: "id", Type: cty.String, Computed: true}}}
	repeats := map[string]Repetition{"sim_network.n": RepeatCount, "sim_network.m": RepeatForEach}
	exists := map[string]bool{"sim_network.n": true, "sim_network.n[0]": true, "sim_network.n[1]": true, "sim_network.m": true, `sim_network.m["a"]`: true, "sim_network.main": true}
	in := Catalog{
		Block: func(Address) *schema.Block { return block }, Exists: func(a Address) bool { return exists[a.String()] },
		Repeats: func(a Address) Repetition { return repeats[a.String()] },
	}
	for expr, want := range map[string]string{
		`sim_network.n[1].id`:                    "",
		`sim_network.m["a"].id`:                  "",
		`sim_network.n[*].id`:                    "",
		`length(sim_network.n)`:                  "",
		`sim_network.n[1].nope`:                  `has no attribute "nope"`,
		`sim_network.n.id`:                       "sim_network.n is a ResourceSet with spec.count",
		`sim_network.m.id`:                       "sim_network.m is a ResourceSet with spec.forEach",
		`sim_network.n[2].id`:                    "The ResourceSet of sim_network.n has no instance [2]: see its spec.count or spec.forEach.",
		`sim_network.m["b"].id`:                  "Invalid index",
		`sim_network.m[0].id`:                    "The ResourceSet of sim_network.m has no instance [0]",
		`try(sim_network.n[2].id, "none")`:       "",
		`can(sim_network.m["b"].id) ? "a" : "b"`: "",
		`sim_network.main["id"]`:                 "For the attribute, write sim_network.main.id",
		`sim_network.main[0].id`:                 "Remove [0]",
		`sim_network.gone[0].id`:                 "There is no sim-network named",
	} {
		e, diags := ParseExpression("${"+expr+"}", "v", ExpressionOptions{})
		if len(diags) > 0 {
			t.Errorf("%s: %v", expr, diags)
			continue
		}
		diags = append(CheckReferences(e.References(), in), e.CheckTypes(in)...)
		got := ""
		for _, d := range diags {
			got += d.Summary + ": " + d.Detail
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
	r := NewReference(Address{Type: "sim_network", Name: "n[7]"}, "lifecycle.replaceTriggeredBy[0]")
	if d, missing := MissingInstance(r, in); !missing || !strings.Contains(d.Detail, "has no instance [7]") {
		t.Errorf("MissingInstance: %v, %t", d, missing)
	}
}

func TestAddressesOfInstances(t *testing.T) {
	for text, want := range map[string]string{
		"sim_instance.web[0]":                    "sim_instance.web[0]",
		`sim_instance.web["a"]`:                  `sim_instance.web["a"]`,
		`sim_instance.web["a/b.c"]`:              `sim_instance.web["a/b.c"]`,
		"sim-instance/web[0]":                    "sim_instance.web[0]",
		`sim-instance/web["a\u002fb"]`:           `sim_instance.web["a/b"]`,
		`sim_instance["my.web"][3]`:              "sim_instance.my.web[3]",
		`namespace.shared.sim_instance.web["a"]`: `namespace.shared.sim_instance.web["a"]`,
		"sim_instance.web[-1]":                   "",
		"sim_instance.web[0].id":                 "",
		"sim_instance.web[a]":                    "",
		"sim_instance.[0]":                       "",
		`sim_instance.web["a"`:                   "",
	} {
		a, err := ParseAddress(text)
		if want == "" {
			if err == nil {
				t.Errorf("%s is the address %s, want an error", text, a)
			}
			continue
		}
		again, againErr := ParseAddress(a.String())
		if err != nil || a.String() != want || againErr != nil || again != a {
			t.Errorf("%s: %s (%v), want %s; again %s (%v)", text, a, err, want, again, againErr)
		}
	}
	a := Address{Type: "sim_instance", Name: "my.web"}.Instance(v1alpha1.InstanceKey{Named: true, Name: "a/b"})
	if got, want := a.Expression(), `sim_instance["my.web"]["a/b"]`; got != want {
		t.Errorf("expression %s, want %s", got, want)
	}
}

func TestLiteral(t *testing.T) {
	v, err := Literal(map[string]any{"s": "${no template}", "n": int64(3), "l": []any{true, nil}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := FormatHCL(v, 1000)
	want := "{\n  \"l\" = [\n    true,\n    null,\n  ]\n  \"n\" = 3\n  \"s\" = \"$${no template}\"\n}"
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := Literal(make(chan int)); err == nil {
		t.Error("no error for a value that is not JSON")
	}
}
