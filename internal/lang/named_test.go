package lang

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
)

func TestReferencesInModules(t *testing.T) {
	const own = `module.shop.module.net["eu"]`
	tests := []struct{ expression, want string }{
		{"sim_network.Main_1.id", own + ".sim_network.Main_1"},
		{"resource.sim_network.main.id", own + ".sim_network.main"},
		{"sim_network.main[0].id", own + ".sim_network.main[0]"},
		{`sim_network.main["a/b"].id`, own + `.sim_network.main["a/b"]`},
		{"data.sim_image.base.id", own + ".data.sim_image.base"},
		{"var.x.y", own + ".var.x"},
		{"local.x", own + ".local.x"},
		{"module.b.out.x", own + ".module.b.output.out"},
		{`module.b["k"].out`, own + `.module.b["k"].output.out`},
		{"module.b[0].out", own + ".module.b[0].output.out"},
		{"module.b", own + ".module.b"},
		{"module.b[*].out", own + ".module.b"},
		{"module.b[each.key].out", own + `.module.b["eu"].output.out`},
		{"sim_network.main[each.key].id", own + `.sim_network.main["eu"]`},
		{"path.module", own + ".path.module"},
		{"terraform.workspace", own + ".terraform.workspace"},
		{"configmap.app.x", own + ".configmap.app"},
		{"[for v in var.x : v.y]", own + ".var.x"},
	}
	at := EvaluationContext{Module: own, Instance: &Instance{Key: v1alpha1.InstanceKey{Named: true, Name: "eu"}, Value: cty.True}}
	for _, tc := range tests {
		// The parser knows the module, and not its instance.
		e, diags := ParseExpression("${"+tc.expression+"}", "a", ExpressionOptions{Module: "module.shop.module.net", Repetition: RepeatForEach})
		if diag.HasErrors(diags) {
			t.Errorf("%s: %s", tc.expression, diag.Describe(diags))
			continue
		}
		var got []string
		for _, a := range e.With(at).Addresses() {
			got = append(got, a.String())
		}
		if d := cmp.Diff([]string{tc.want}, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.expression, d)
		}
	}
}

// TestReferencesToOutputsOfModules evaluates references from a spec, where the module is a Module.
func TestReferencesToOutputsOfModules(t *testing.T) {
	values := map[Address]cty.Value{
		OutputOf("", "shop", "url"):   cty.StringVal("here"),
		OutputOf("eu", "shop", "url"): cty.StringVal("there"),
		OutputOf("", "2nd", "list"):   cty.TupleVal([]cty.Value{cty.StringVal("a")}),
	}
	const text = `${module.shop.url} ${namespace.eu.module.shop.url} ${module["2nd"].list[0]} ${namespace.own.module.shop.url}`
	e, diags := ParseExpression(text, "a", ExpressionOptions{Namespace: "own"})
	if diag.HasErrors(diags) {
		t.Fatal(diag.Describe(diags))
	}
	var got []string
	for _, a := range e.Addresses() {
		got = append(got, a.String())
	}
	want := []string{"module.2nd.list", "module.shop.url", "namespace.eu.module.shop.url"}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the addresses are %q, want %q", got, want)
	}
	v, diags := e.Evaluate(func(a Address) (cty.Value, bool) { v, ok := values[a]; return v, ok }, cty.NilVal)
	if diag.HasErrors(diags) || !v.RawEquals(cty.StringVal("here there a here")) {
		t.Errorf("the value is %#v, %s", v, diag.Describe(diags))
	}
}

func TestWrongReferencesInModules(t *testing.T) {
	tests := []struct{ expression, want string }{
		{"module", `"module" object cannot be accessed directly`},
		{"var", `"var" object cannot be accessed directly`},
		{"path.x", `does not have an attribute named "x"`},
		{"sim_network", "must be followed by at least one attribute access"},
		{"each.key", `"each" object can be used only`},
		{"count.index", `"count" object can only be used`},
		{"self.id", `only a postcondition can refer to`},
		{"action.sim_x.y", "An action has no result"},
	}
	for _, tc := range tests {
		_, diags := ParseExpression("${"+tc.expression+"}", "a", ExpressionOptions{Module: "module.shop"})
		if !strings.Contains(diag.Describe(diags), tc.want) {
			t.Errorf("%s: got %s, want %s", tc.expression, diag.Describe(diags), tc.want)
		}
	}
}

func TestNamedValuesAreEvaluated(t *testing.T) {
	eu, us := `module.shop.module.net["eu"]`, `module.shop.module.net["us"]`
	values := map[Address]cty.Value{
		{Module: "module.shop", Mode: ModeVariable, Name: "x"}:              cty.StringVal("X"),
		{Module: eu, Mode: ModeOutput, Name: "id"}:                          cty.StringVal("eu-1"),
		{Module: us, Mode: ModeOutput, Name: "id"}:                          cty.StringVal("us-1"),
		{Module: "module.shop", Mode: ModeModule, Name: "net"}:              cty.ObjectVal(map[string]cty.Value{"eu": cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal("eu-1")})}),
		{Module: "module.shop.module.one[0]", Mode: ModeOutput, Name: "id"}: cty.StringVal("one"),
		{Module: "module.shop", Type: "sim_network", Name: "a"}:             cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal("net-a")}),
	}
	scope := func(a Address) (cty.Value, bool) { v, ok := values[a]; return v, ok }
	tests := []struct{ expression, want string }{
		{"var.x", "X"},
		{"module.net[\"eu\"].id", "eu-1"},
		{"\"${module.net[\"eu\"].id} ${module.net[\"us\"].id}\"", "eu-1 us-1"},
		{"join(\" \", [for k, v in module.net : v.id])", "eu-1"},
		{"module.one[0].id", "one"},
		{"try(module.one[1].id, \"none\")", "none"},
		{"try(module.one[0].wrong, \"none\")", "none"},
		{"resource.sim_network.a.id", "net-a"},
		{"sim_network.a.id", "net-a"},
	}
	for _, tc := range tests {
		e, diags := ParseExpression("${"+tc.expression+"}", "a", ExpressionOptions{Module: "module.shop"})
		if diag.HasErrors(diags) {
			t.Errorf("%s: %s", tc.expression, diag.Describe(diags))
			continue
		}
		v, diags := e.Evaluate(scope, cty.NilVal)
		if diag.HasErrors(diags) || v.Type() != cty.String || v.AsString() != tc.want {
			t.Errorf("%s: got %#v %s, want %s", tc.expression, v, diag.Describe(diags), tc.want)
		}
	}
}

func TestAddressesInModules(t *testing.T) {
	tests := []struct {
		written string
		want    Address
	}{
		{`module.shop.module.net["eu"].sim_subnet.a[3]`, Address{Module: `module.shop.module.net["eu"]`, Type: "sim_subnet", Name: "a[3]"}},
		{"module.shop.data.sim_image.base", Address{Module: "module.shop", Mode: v1alpha1.ModeData, Type: "sim_image", Name: "base"}},
		{`sim-subnet/module.shop.module.net["eu"]:a[3]`, Address{Module: `module.shop.module.net["eu"]`, Type: "sim_subnet", Name: "a[3]"}},
		{"sim-subnet/module.shop", Address{Type: "sim_subnet", Name: "module.shop"}},
	}
	for _, tc := range tests {
		got, err := ParseAddress(tc.written)
		if err != nil || got != tc.want {
			t.Errorf("%s: got %+v, %v", tc.written, got, err)
		}
		if again, err := ParseAddress(got.String()); err != nil || again != got {
			t.Errorf("%s: its text %s gives %+v, %v", tc.written, got, again, err)
		}
		if got.ObjectName() != v1alpha1.ModuleObjectName(got.Module, got.Name) {
			t.Errorf("%s: the object has the name %s", tc.written, got.ObjectName())
		}
	}
	for _, wrong := range []string{"module.shop", "module.shop.", "module.shop.x", "module.shop.x.y.z", "module.a[x].b.c", "module.shop.x.y[z]"} {
		if a, err := ParseAddress(wrong); err == nil && a.Module != "" {
			t.Errorf("%s is read as %+v", wrong, a)
		}
	}
}
