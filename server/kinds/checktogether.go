package kinds

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/suggest"
)

// This file has the checks that involve several objects of a validation.

// providerOf reports a ProviderConfig whose provider is neither installed nor among the objects.
func (c *check) providerOf(u *unstructured.Unstructured) {
	name, _, _ := unstructured.NestedString(u.Object, "spec", "provider")
	if name == "" || c.providers[name] || c.snapshot.Load().groups[v1alpha1.ProviderGroup(name)] != nil {
		return
	}
	c.add(v1alpha1.SeverityError, "spec.provider",
		fmt.Sprintf("no provider %q is installed, and no Provider among these objects has that name; %s", name,
			c.similarProvider(name)))
}

// similarProvider returns the remedy for a missing provider.
func (c *check) similarProvider(name string) string {
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

// configReferences checks the references in the arguments of a ProviderConfig.
func (c *check) configReferences(u *unstructured.Unstructured) {
	args, ok, _ := unstructured.NestedMap(u.Object, "spec", "config")
	if !ok {
		return
	}
	refs := lang.ConfigOptions{Namespace: u.GetNamespace()}.References(args)
	for i := range refs {
		refs[i].Field = strings.Replace(refs[i].Field, "spec", "spec.config", 1)
	}
	c.unknown(c.unknownTypes(refs))
	for _, d := range lang.CheckReferences(c.ofKnownTypes(refs), c.catalog(u.GetNamespace())) {
		c.add(d.Severity, d.Attribute, strings.TrimSpace(d.Summary+": "+d.Detail))
	}
}

// unknown reports references to types that no installed provider has. It cannot check the types of a Provider among the
// objects.
func (c *check) unknown(found []unknownType) {
	pending := slices.DeleteFunc(slices.Collect(maps.Keys(c.providers)), func(name string) bool {
		return c.snapshot.Load().groups[v1alpha1.ProviderGroup(name)] != nil
	})
	for _, t := range found {
		provider, _, _ := strings.Cut(t.typ, "_")
		severity := t.Severity
		switch {
		case slices.Contains(pending, provider):
			continue
		case !t.certain && len(pending) > 0: // the name of a type need not begin with the name of its provider
			severity = v1alpha1.SeverityWarning
		}
		c.add(severity, t.Attribute, t.Summary+": "+t.Detail)
	}
}

// ofKnownTypes returns the references to types of installed providers, ConfigMaps and Secrets.
func (c *check) ofKnownTypes(refs []lang.Reference) []lang.Reference {
	return slices.DeleteFunc(slices.Clone(refs),
		func(r lang.Reference) bool { return !r.Stored() && len(c.ByType(r.Mode, r.Type)) == 0 })
}

// providerConfigOf checks the ProviderConfig that an object names. One that is not among the objects may exist on the
// server. So it reports the name only if it is similar to that of a ProviderConfig among the objects.
func (c *check) providerConfigOf(s *served, u *unstructured.Unstructured) {
	const at = "lifecycle.providerConfig"
	named, _, _ := unstructured.NestedString(u.Object, "lifecycle", "providerConfig")
	if named == "" {
		return
	}
	if provider, exists := c.configs[types.NamespacedName{Namespace: u.GetNamespace(), Name: named}]; exists {
		if provider != s.Provider {
			c.add(v1alpha1.SeverityError, at,
				fmt.Sprintf("%q configures the provider %q, not %q", named, provider, s.Provider))
		}
		return
	}
	var names []string
	for key, provider := range c.configs {
		if key.Namespace == u.GetNamespace() && provider == s.Provider {
			names = append(names, key.Name)
		}
	}
	slices.Sort(names)
	if near := suggest.Nearest(named, names); near != "" {
		c.add(v1alpha1.SeverityWarning, at,
			fmt.Sprintf("no ProviderConfig %q is among these objects; did you mean %q?", named, near))
	}
}

// maxCycles is the maximum number of cycles that a validation reports. An object with many references may be in many.
const maxCycles = 20

// cycles reports each reference cycle among the objects once, up to maxCycles. It stops when ctx ends.
func (c *check) cycles(ctx context.Context, objects []*unstructured.Unstructured) {
	index := map[lang.Address]int{}
	for i, u := range objects {
		if a, ok := addressed(u); ok {
			index[a] = i
		}
	}
	const open, done = 1, 2
	state := make([]int, len(objects))
	var path []int
	found := 0
	var visit func(i int)
	visit = func(i int) {
		state[i] = open
		path = append(path, i)
		for _, a := range c.dependencies[i] {
			if ctx.Err() != nil || found == maxCycles {
				return
			}
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
			found++
			c.index = int32(j)
			c.add(v1alpha1.SeverityError, "",
				diag.Clip(fmt.Sprintf("refers to itself in a cycle, so no plan can order the objects: %s",
					strings.Join(append(names, names[0]), " -> "))))
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

// nameIn returns the address of an object as an expression of another object writes it.
func nameIn(u, from *unstructured.Unstructured) string {
	a, _ := addressed(u)
	if a.Namespace == from.GetNamespace() {
		a.Namespace = ""
	}
	return a.String()
}

// dependencies returns the addresses in an object's expressions and in lifecycle.dependsOn, in a stable order and with
// their namespaces.
func (s *served) dependencies(ctx context.Context, u *unstructured.Unstructured) []lang.Address {
	refs, _ := s.references(ctx, u)
	var out []lang.Address
	for _, r := range refs {
		out = append(out, qualified(r.Address, u.GetNamespace()))
	}
	dependsOn, _, _ := unstructured.NestedStringSlice(u.Object, "lifecycle", "dependsOn")
	for _, text := range dependsOn {
		if a, err := lang.ParseAddress(text); err == nil {
			out = append(out, qualified(a, u.GetNamespace()))
		}
	}
	slices.SortFunc(out, lang.Address.Compare)
	return slices.Compact(out)
}
