package cli

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
)

// targeted returns the objects of files that a plan with --target or -l needs: the named resources, the resources to
// which these refer, and every object that is no resource. Without these flags, it returns all objects.
func (s *session) targeted(ms []manifest, f *planFlags) ([]manifest, error) {
	if f.empty() {
		return ms, nil
	}
	selector, err := parseSelector(f.selector)
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, list := range [][]string{f.targets, f.invoke} {
		in, err := addresses("--target", list)
		if err != nil {
			return nil, err
		}
		for _, address := range in {
			set, _, _ := v1alpha1.ParseInstanceName(address) // the files have the set of an instance
			named[set] = true
			if path, _, ok := v1alpha1.CutModulePath(address); ok { // the files have the Module of a resource
				named[v1alpha1.ModulePath("", v1alpha1.RootModule(path), nil)] = true
			}
		}
	}
	t := &targeting{session: s, ms: ms, at: map[string]int{}, kept: make([]bool, len(ms))}
	for i, m := range ms {
		if isResource(m.object) {
			t.at[s.fullAddress(m)] = i
		}
	}
	for i, m := range ms {
		if named[addressOf(templateOf(m.object))] || f.selector != "" && selector.Matches(labels.Set(m.object.GetLabels())) {
			t.keep(i)
		}
	}
	var out []manifest
	for i, m := range ms {
		if t.kept[i] || !isResource(m.object) {
			out = append(out, m)
		}
	}
	if left := len(ms) - len(out); left > 0 {
		fmt.Fprintf(s.ErrOut, "Warning: --target and -l leave out %s of the files: the command neither plans nor records them.\n", diff.Plural(left, "object"))
	}
	return out, nil
}

// targeting finds the objects of files that named resources need.
type targeting struct {
	*session
	ms []manifest
	// at maps full addresses of resources to their indexes.
	at   map[string]int
	kept []bool
}

// keep marks an object, and all to which it refers. The ProviderConfigs of a resource may refer to other resources.
func (t *targeting) keep(i int) {
	if t.kept[i] {
		return
	}
	t.kept[i] = true
	m := t.ms[i]
	for _, r := range references(m.object) {
		address, err := parseTarget(r.address)
		if err != nil {
			continue
		}
		address.namespace = cmp.Or(address.namespace, m.object.GetNamespace(), t.namespace)
		if to, ok := t.at[address.full()]; ok {
			t.keep(to)
		}
	}
	provider, ok := v1alpha1.ProviderOfGroup(templateOf(m.object).GroupVersionKind().Group)
	if !ok {
		return
	}
	for k, config := range t.ms {
		spec, _ := config.object.Object["spec"].(map[string]any)
		if config.object.GroupVersionKind().GroupKind() == v1alpha1.Kind("ProviderConfig") && spec["provider"] == provider {
			t.keep(k)
		}
	}
}

// fullAddress returns the address of a resource with its namespace.
func (s *session) fullAddress(m manifest) string {
	t, _ := recorded{manifest: m, namespace: cmp.Or(m.object.GetNamespace(), s.namespace)}.target()
	return t.full()
}
