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
	u = templateOf(u)
	lifecycle, _ := u.Object["lifecycle"].(map[string]any)
	for _, v := range []any{u.Object["spec"], lifecycle} {
		refs, _, _ := template.Evaluate(v)
		for _, r := range refs {
			if t, ok := referred(r); ok {
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

// referred returns the provider's object of a reference. ok is false for a ConfigMap, a Secret, self, count and each.
func referred(r template.Reference) (t target, ok bool) {
	names := r.Subject()
	if len(names) > 2 && names[0] == "namespace" {
		t.namespace, names = names[1], names[2:]
	}
	t.mode = v1alpha1.ModeManaged
	if len(names) == 3 {
		t.mode, names = v1alpha1.Mode(names[0]), names[1:]
	}
	if len(names) != 2 || slices.Contains(names, "") || slices.Contains([]string{"configmap", "secret", "count", "each"}, names[0]) {
		return target{}, false
	}
	t.typ, t.name = names[0], names[1]
	return t, true
}
