package cli

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/template"
)

// reference is an address to which an object refers. sure is true for a field that holds an address, and false for an
// expression.
type reference struct {
	address string
	sure    bool
}

// references returns the references in an object's spec and lifecycle.
func references(u *unstructured.Unstructured) []reference {
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
		add(t.full(), false)
	}
	u = templateOf(u)
	lifecycle, _ := u.Object["lifecycle"].(map[string]any)
	for _, v := range []any{u.Object["spec"], lifecycle} {
		refs, _, _ := template.Evaluate(v)
		for _, r := range refs {
			if t, ok := referred(r); ok {
				if module != "" { // an expression in a Module names what is beside it
					t.name = module + ":" + t.name
				}
				add(t.full(), false)
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
				add(t.full(), true)
			}
		}
	}
	for _, s := range list("dependsOn") {
		if t, err := parseTarget(s); err == nil {
			add(t.full(), true)
		}
	}
	return out
}

// through returns the providers' objects on which a resource of a Module depends through variables, local values and called modules.
func through(u *unstructured.Unstructured) (out []target) {
	list, _, _ := unstructured.NestedSlice(u.Object, v1alpha1.FieldInstance, "through")
	for _, item := range list {
		at, _ := item.(map[string]any)
		text := func(name string) string { t, _ := at[name].(string); return t }
		t := target{namespace: text("namespace"), mode: v1alpha1.Mode(text("mode")), typ: text("type"), name: text("name")}
		if t.mode == "" {
			t.mode = v1alpha1.ModeManaged
		}
		if path := text("module"); path != "" {
			t.name = path + ":" + t.name
		}
		if t.typ != "" && !slices.Contains(noObjects, t.typ) {
			out = append(out, t)
		}
	}
	return out
}

// noObjects are the first parts of references to what is no object of a provider.
var noObjects = []string{"configmap", "secret", "count", "each", "var", "local"}

// referred returns the provider's object of a reference. ok is false for a ConfigMap, a Secret, self, count, each, and the variables
// and local values of a Module.
func referred(r template.Reference) (t target, ok bool) {
	names := r.Subject()
	if len(names) > 2 && names[0] == "namespace" {
		t.namespace, names = names[1], names[2:]
	}
	t.mode = v1alpha1.ModeManaged
	if len(names) == 3 {
		t.mode, names = v1alpha1.Mode(names[0]), names[1:]
	}
	if len(names) != 2 || slices.Contains(names, "") || slices.Contains(noObjects, names[0]) {
		return target{}, false
	}
	t.typ, t.name = names[0], names[1]
	return t, true
}
