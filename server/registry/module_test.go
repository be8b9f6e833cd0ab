package registry

import (
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
)

// TestPartsOfModulesKeepTheirWriters writes a Module as ann, then a part of it as eve, and then something else as bob. Outputs depend
// on what eve wrote for as long as nobody writes that part again.
func TestPartsOfModulesKeepTheirWriters(t *testing.T) {
	type change = func(*v1alpha1.ModuleSpec)
	input := func(name, raw string) change {
		return func(s *v1alpha1.ModuleSpec) { s.Inputs[name] = v1alpha1.JSON{Raw: []byte(raw)} }
	}
	mode := func(s *v1alpha1.ModuleSpec) { s.Mode = v1alpha1.ModuleManage }
	for why, tc := range map[string]struct {
		eve, bob change
		want     string
	}{
		"another field":                     {input("c", `"x"`), mode, "ann eve"},
		"another input":                     {input("c", `"x"`), input("d", `"x"`), "ann bob eve"},
		"the same input":                    {input("c", `"x"`), input("c", `"y"`), "ann bob"},
		"the same value":                    {input("c", `"x"`), input("c", `"x"`), "ann eve"},
		"another attribute of an object":    {input("o", `{"a":2,"b":1}`), input("o", `{"a":2,"b":2}`), "ann bob eve"},
		"the same attribute of an object":   {input("o", `{"a":2,"b":1}`), input("o", `{"a":3,"b":1}`), "ann bob"},
		"an attribute with a dot":           {input("o", `{"a":1,"b":1,"a.b":2}`), input("o", `{"a":1,"b":2,"a.b":2}`), "ann bob eve"},
		"an input after one that was added": {input("new", `1`), input("d", `"x"`), "ann bob eve"},
		"an input after one that is gone":   {func(s *v1alpha1.ModuleSpec) { delete(s.Inputs, "c") }, input("d", `"x"`), "ann bob eve"},
		"a file after the ConfigMap": {func(s *v1alpha1.ModuleSpec) { s.Source.ConfigMap = "other" },
			func(s *v1alpha1.ModuleSpec) { s.Source.Items = []v1alpha1.ModuleItem{{Key: "k", Path: "main.tf"}} }, "ann bob eve"},
		"an input after a provider":  {func(s *v1alpha1.ModuleSpec) { s.Providers = map[string]string{"sim": "other"} }, input("d", `"x"`), "ann bob eve"},
		"an input after a long name": {input(strings.Repeat("n", 1000), `1`), input(strings.Repeat("n", 1001), `1`), "ann bob eve"},
	} {
		m := &v1alpha1.Module{}
		m.Spec.Source.ConfigMap = "files"
		m.Spec.Inputs = map[string]v1alpha1.JSON{"c": {Raw: []byte(`"c"`)}, "d": {Raw: []byte(`"d"`)}, "o": {Raw: []byte(`{"a":1,"b":1}`)}}
		strategy := moduleStrategy(Config{})
		strategy.begin(as(t, "ann"), m)
		for _, write := range []struct {
			user   string
			change change
		}{{"eve", tc.eve}, {"bob", tc.bob}} {
			old := m.DeepCopy()
			write.change(&m.Spec)
			strategy.prepareUpdate(as(t, write.user), m, old)
		}
		if got := strings.Join(slices.Sorted(slices.Values(contributor.Names(m.Status.Writers))), " "); got != tc.want {
			t.Errorf("%s: written by %s, want %s", why, got, tc.want)
		}
	}
}
