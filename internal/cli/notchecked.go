package cli

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/template"
)

// notChecked says what a validation of files cannot tell.
func (s *session) notChecked(ms []manifest) []string {
	var out []string
	if names := s.withoutSchema(ms); len(names) > 0 {
		out = append(out, "the objects of providers that are not installed yet ("+strings.Join(names, ", ")+")")
	}
	if names := s.elsewhere(ms); len(names) > 0 {
		out = append(out, "references to objects that are not in the files ("+strings.Join(cut(names, 3, "%d more"), ", ")+")")
	}
	return append(out, "what is recorded, your rights, and what only a provider can tell, which `kubectl hykube plan -f` looks at")
}

// withoutSchema are the providers among the objects that have no kinds on the server yet.
func (s *session) withoutSchema(ms []manifest) []string {
	groups, err := s.disco.ServerGroups()
	if err != nil {
		return nil
	}
	served := map[string]bool{}
	for _, g := range groups.Groups {
		served[g.Name] = true
	}
	var out []string
	for _, m := range ms {
		if name := m.object.GetName(); m.object.GroupVersionKind().GroupKind() == v1alpha1.Kind("Provider") && !served[v1alpha1.ProviderGroup(name)] {
			out = append(out, name)
		}
	}
	return out
}

// withoutKinds counts the objects of those providers.
func (s *session) withoutKinds(ms []manifest) (n int) {
	names := s.withoutSchema(ms)
	for _, m := range ms {
		if name, ok := v1alpha1.ProviderOfGroup(m.object.GroupVersionKind().Group); ok && slices.Contains(names, name) {
			n++
		}
	}
	return n
}

// elsewhere are the addresses that the objects refer to and that none of them has.
func (s *session) elsewhere(ms []manifest) []string {
	namespace := func(u *unstructured.Unstructured) string {
		if ns := u.GetNamespace(); ns != "" {
			return ns
		}
		return s.namespace
	}
	written := map[string]bool{}
	for _, m := range ms {
		r := recorded{manifest: m, namespace: namespace(m.object)}
		if t, ok := r.target(); ok {
			t.namespace = r.namespace
			written[t.full()] = true
		}
		written[strings.ToLower(m.object.GetKind())+"/"+r.namespace+"/"+m.object.GetName()] = true
	}
	var out []string
	add := func(key, name string) {
		if !written[key] && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, m := range ms {
		ns := namespace(m.object)
		if !isResource(m.object) {
			continue
		}
		for _, r := range references(m.object) {
			t, err := parseTarget(r.address)
			if err != nil {
				continue
			}
			if t.namespace == "" {
				t.namespace = ns
			}
			add(t.full(), r.address)
		}
		refs, _, _ := template.Evaluate(m.object.Object["spec"])
		for _, r := range refs {
			if key := stored(r, ns); key != "" {
				add(key, strings.Join(r.Subject(), "."))
			}
		}
	}
	slices.Sort(out)
	return out
}
