package addrs

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/template"
)

// reference is an address to which an object refers. sure is true for a field that holds an address, and false for an
// expression.
type reference struct {
	Address string
	Sure    bool
}

// References returns the references in an object's spec and lifecycle.
func References(u *unstructured.Unstructured) []reference {
	seen := map[string]bool{}
	var out []reference
	add := func(a string, sure bool) {
		if !seen[a] {
			seen[a] = true
			out = append(out, reference{a, sure})
		}
	}
	module, _ := v1alpha1.SplitModuleObjectName(u.GetName())
	for _, t := range through(u) {
		add(t.Full(), false)
	}
	u = TemplateOf(u)
	lifecycle, _ := u.Object["lifecycle"].(map[string]any)
	for _, v := range []any{u.Object["spec"], lifecycle} {
		refs, _, _ := template.Evaluate(v)
		for _, r := range refs {
			if t, ok := referred(r); ok {
				if module != "" { // an expression in a Module names what is beside it
					t.Name = module + ":" + t.Name
				}
				add(t.Full(), false)
			}
		}
	}
	list := func(field string) []string {
		l, _, _ := unstructured.NestedStringSlice(lifecycle, field)
		return l
	}
	for _, s := range list("replaceTriggeredBy") { // an attribute may follow
		if r, ok := template.Parse(s); ok {
			if t, ok := referred(r); ok {
				add(t.Full(), true)
			}
		}
	}
	for _, s := range list("dependsOn") {
		if t, err := Parse(s); err == nil {
			add(t.Full(), true)
		}
	}
	return out
}

// through returns the providers' objects on which a resource of a Module depends through variables, local values and
// called modules.
func through(u *unstructured.Unstructured) (out []Target) {
	list, _, _ := unstructured.NestedSlice(u.Object, v1alpha1.FieldInstance, "through")
	for _, item := range list {
		at, _ := item.(map[string]any)
		text := func(name string) string { t, _ := at[name].(string); return t }
		t := Target{Namespace: text("namespace"), Mode: v1alpha1.Mode(text("mode")), Type: text("type"),
			Name: text("name")}
		if t.Mode == "" {
			t.Mode = v1alpha1.ModeManaged
		}
		if path := text("module"); path != "" {
			t.Name = path + ":" + t.Name
		}
		if t.Type != "" && !slices.Contains(noObjects, t.Type) {
			out = append(out, t)
		}
	}
	return out
}

// noObjects are the first parts of references to what is no object of a provider.
var noObjects = []string{"configmap", "secret", "count", "each", "var", "local"}

// referred returns the provider's object of a reference. ok is false for a ConfigMap, a Secret, self, count, each, and
// the variables and local values of a Module.
func referred(r template.Reference) (t Target, ok bool) {
	names := r.Subject()
	if len(names) > 2 && names[0] == "namespace" {
		t.Namespace, names = names[1], names[2:]
	}
	t.Mode = v1alpha1.ModeManaged
	if len(names) == 3 {
		t.Mode, names = v1alpha1.Mode(names[0]), names[1:]
	}
	if len(names) != 2 || slices.Contains(names, "") || slices.Contains(noObjects, names[0]) {
		return Target{}, false
	}
	t.Type, t.Name = names[0], names[1]
	return t, true
}
