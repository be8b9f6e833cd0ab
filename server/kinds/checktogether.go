package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/suggest"
)

// This file holds the checks that look at more than one of the objects of a validation.

// providerOf wants the provider of a ProviderConfig to be installed, or to be among the objects.
func (c *check) providerOf(u *unstructured.Unstructured) {
	name, _, _ := unstructured.NestedString(u.Object, "spec", "provider")
	if name == "" || c.providers[name] || c.snapshot.Load().groups[v1alpha1.ProviderGroup(name)] != nil {
		return
	}
	c.add(v1alpha1.SeverityError, "spec.provider",
		fmt.Sprintf("no provider %q is installed, and no Provider among these objects has that name; %s", name, c.nearProvider(name)))
}

// nearProvider says what to do about a provider that is nowhere.
func (c *check) nearProvider(name string) string {
	known := slices.Collect(maps.Keys(c.providers))
	for group := range c.snapshot.Load().groups {
		if provider, ok := v1alpha1.ProviderOfGroup(group); ok {
			known = append(known, provider)
		}
	}
	if near := suggest.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "install it, or correct the name"
}

// cycles reports the objects that refer to each other in a circle, each circle once.
func (c *check) cycles(objects []*unstructured.Unstructured) {
	index := map[lang.Address]int{}
	for i, u := range objects {
		if a, ok := addressed(u); ok {
			index[a] = i
		}
	}
	const open, done = 1, 2
	state := make([]int, len(objects))
	var path []int
	var visit func(i int)
	visit = func(i int) {
		state[i] = open
		path = append(path, i)
		for _, a := range c.dependencies(objects[i]) {
			j, ok := index[a]
			if !ok || state[j] == done {
				continue
			}
			if state[j] == 0 {
				visit(j)
				continue
			}
			var names []string
			for _, k := range path[slices.Index(path, j):] {
				names = append(names, nameIn(objects[k], objects[j]))
			}
			c.index = int32(j)
			c.add(v1alpha1.SeverityError, "", fmt.Sprintf("refers to itself in a cycle, so no plan can order the objects: %s", strings.Join(append(names, names[0]), " -> ")))
		}
		path = path[:len(path)-1]
		state[i] = done
	}
	for i := range objects {
		if state[i] == 0 {
			visit(i)
		}
	}
}

// nameIn is the address of an object as another one writes it.
func nameIn(u, from *unstructured.Unstructured) string {
	a, _ := addressed(u)
	if a.Namespace == from.GetNamespace() {
		a.Namespace = ""
	}
	return a.String()
}

// dependencies are what an object refers to in expressions and in lifecycle.dependsOn, in a stable order and all with a namespace.
func (c *check) dependencies(u *unstructured.Unstructured) []lang.Address {
	g := c.snapshot.Load().groups[u.GroupVersionKind().Group]
	if g == nil || g.byKind[u.GetKind()] == nil {
		return nil
	}
	refs, _ := g.byKind[u.GetKind()].references(u)
	var out []lang.Address
	for _, r := range refs {
		out = append(out, full(r.Address, u.GetNamespace()))
	}
	dependsOn, _, _ := unstructured.NestedStringSlice(u.Object, "lifecycle", "dependsOn")
	for _, text := range dependsOn {
		if a, err := lang.ParseAddress(text); err == nil {
			out = append(out, full(a, u.GetNamespace()))
		}
	}
	slices.SortFunc(out, lang.Address.Compare)
	return slices.Compact(out)
}
