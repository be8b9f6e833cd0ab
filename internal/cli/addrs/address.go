// Package addrs parses and formats the addresses of resources, as arguments, flags and references name them. It sends
// no requests.
package addrs

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
)

// ModeModule is the mode of a target that is a whole module, with the name of the Module.
const ModeModule = lang.ModeModule

// Target is a provider's object as the user names it, or a whole module.
type Target struct {
	// Namespace is empty if the name has none.
	Namespace string
	Mode      v1alpha1.Mode
	Type      string
	Name      string
	// Group is the API group in KIND.GROUP/NAME; otherwise empty.
	Group string
}

// Parse parses a Terraform address (sim_network.main, data.sim_image.base, namespace.shared.sim_network.main),
// kubectl's KIND/NAME (sim-network/main, data-sim-image/base), or kubectl's long form sim-network.sim.hykube.io/main.
// The name of an instance of a ResourceSet has its key, as in sim_instance.web[0] or sim-instance/web["a"].
func Parse(s string) (Target, error) {
	if t, ok := parseModuleTarget(s); ok {
		return t, nil
	}
	bad := fmt.Errorf("%q is not the address of a resource: write TYPE.NAME such as sim_network.main, or KIND/NAME such as sim-network/main", s)
	t, rest := Target{Mode: v1alpha1.ModeManaged}, s
	if after, ok := strings.CutPrefix(rest, "namespace."); ok {
		t.Namespace, rest, ok = strings.Cut(after, ".")
		if !ok {
			return Target{}, bad
		}
	}
	// A slash, a dot or a bracket may also be in the key of an instance.
	if kind, name, ok := strings.Cut(rest, "/"); ok && !strings.Contains(kind, "[") {
		kind, t.Group, _ = strings.Cut(kind, ".")
		t.Mode, t.Type = v1alpha1.ParseKind(kind)
		t.Name = name
	} else {
		for _, m := range []v1alpha1.Mode{v1alpha1.ModeData, v1alpha1.ModeEphemeral, v1alpha1.ModeAction} {
			if after, ok := strings.CutPrefix(rest, string(m)+"."); ok {
				t.Mode, rest = m, after
				break
			}
		}
		at := strings.IndexAny(rest, ".[")
		switch {
		case at < 0:
			return Target{}, bad
		case rest[at] == '.':
			t.Type, t.Name = v1alpha1.TypeOf(rest[:at]), rest[at+1:]
		default: // the expression syntax for a name with dots
			name, key, ok := strings.Cut(strings.TrimPrefix(rest[at:], `["`), `"]`)
			if !ok {
				return Target{}, bad
			}
			t.Type, t.Name = rest[:at], name+key
		}
	}
	base := t.Name
	if v1alpha1.IsVirtualName(t.Name) {
		name, key, ok := v1alpha1.ParseInstanceName(t.Name)
		if !ok {
			return Target{}, bad
		}
		base, t.Name = name, v1alpha1.InstanceName(name, key)
	}
	if t.Type == "" || base == "" || strings.ContainsAny(t.Type, `. "[]`) || strings.ContainsAny(base, `/ "[]`) {
		return Target{}, bad
	}
	return t, nil
}

// parseModuleTarget parses the address of a resource of a Module, such as
// module.shop.module.net["eu"].sim_network.a[3], or KIND/NAME with the name of its object. ok is false for another
// address.
func parseModuleTarget(s string) (t Target, ok bool) {
	t.Mode = v1alpha1.ModeManaged
	path, inner := "", ""
	if kind, name, found := strings.Cut(s, "/"); found && !strings.ContainsAny(kind, "[") {
		kind, t.Group, _ = strings.Cut(kind, ".")
		t.Mode, t.Type = v1alpha1.ParseKind(kind)
		path, inner = v1alpha1.SplitModuleObjectName(name)
	} else if at, rest, found := v1alpha1.CutModulePath(s); found && strings.HasPrefix(rest, ".") {
		rest = rest[1:]
		if after, data := strings.CutPrefix(rest, string(v1alpha1.ModeData)+"."); data {
			t.Mode, rest = v1alpha1.ModeData, after
		}
		path = at
		t.Type, inner, _ = strings.Cut(rest, ".")
	}
	name, key, keyed := v1alpha1.ParseInstanceName(inner)
	if path == "" || t.Type == "" || name == "" || strings.ContainsAny(name, `/. "[]`) {
		return Target{}, false
	}
	if keyed {
		name = v1alpha1.InstanceName(name, key)
	}
	t.Name = v1alpha1.ModuleObjectName(path, name)
	return t, true
}

// Address returns the Terraform address without the namespace.
func (t Target) Address() string {
	if t.Mode == ModeModule {
		return v1alpha1.ModulePath("", t.Name, nil)
	}
	path, name := v1alpha1.SplitModuleObjectName(t.Name)
	a := t.Type + "." + v1alpha1.ShownName(name)
	if t.Mode != v1alpha1.ModeManaged {
		a = string(t.Mode) + "." + a
	}
	if path != "" {
		return v1alpha1.ShownModule(path) + "." + a
	}
	return a
}

// Full returns the address with its namespace, if it has one.
func (t Target) Full() string {
	if t.Namespace != "" {
		return "namespace." + t.Namespace + "." + t.Address()
	}
	return t.Address()
}

// Kind returns the kind of the object of a target.
func (t Target) Kind() string { return t.Mode.KindOf(t.Type) }

// ModeWord returns the noun for an object of a mode.
func ModeWord(m v1alpha1.Mode) string {
	switch m {
	case v1alpha1.ModeData:
		return "data source"
	case v1alpha1.ModeEphemeral:
		return "ephemeral resource"
	case v1alpha1.ModeAction:
		return "action"
	}
	return "resource"
}

// ParseAll parses the objects in a flag or in the arguments.
func ParseAll(flag string, in []string, only ...v1alpha1.Mode) ([]string, error) {
	var out []string
	for _, s := range in {
		t, err := Parse(s)
		if path, rest, ok := v1alpha1.CutModulePath(s); ok && rest == "" && len(only) == 0 {
			out = append(out, v1alpha1.ShownModule(path))
			continue
		}
		if err == nil {
			err = t.Only(only...)
		}
		if err == nil && t.Namespace != "" {
			err = errors.New("a plan covers one namespace; choose it with -n")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		out = append(out, t.Address())
	}
	return out, nil
}

// Only returns an error if the target has none of the modes. Without modes, it permits all.
func (t Target) Only(modes ...v1alpha1.Mode) error {
	for _, m := range modes {
		if t.Mode == m {
			return nil
		}
	}
	if len(modes) == 0 {
		return nil
	}
	want := ModeWord(modes[0])
	return fmt.Errorf("%s is %s, and only %ss can be named here", t.Address(), article(ModeWord(t.Mode)), want)
}

func article(noun string) string {
	if strings.ContainsAny(noun[:1], "aeiou") {
		return "an " + noun
	}
	return "a " + noun
}

// OfKind returns the Terraform address of an object of a kind.
func OfKind(kind, name string) string {
	m, typ := v1alpha1.ParseKind(kind)
	return Target{Mode: m, Type: typ, Name: name}.Address()
}

// Of returns the address of a provider's object.
func Of(u *unstructured.Unstructured) string {
	if IsModule(u) {
		return v1alpha1.ModulePath("", u.GetName(), nil)
	}
	return OfKind(u.GetKind(), u.GetName())
}

// IsResource reports whether plans change an object: an object of a provider's kind, or a ResourceSet.
func IsResource(u *unstructured.Unstructured) bool {
	_, ok := v1alpha1.ProviderOfGroup(u.GroupVersionKind().Group)
	return ok || IsSet(u) || IsModule(u)
}

// IsSet reports whether an object is a ResourceSet.
func IsSet(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == v1alpha1.Kind("ResourceSet")
}

// TemplateOf returns the template of a ResourceSet as an object of its kind, and other objects unchanged.
func TemplateOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	if !IsSet(u) {
		return u
	}
	template, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	if template == nil {
		template = map[string]any{}
	}
	out := &unstructured.Unstructured{Object: template}
	if out.GetName() == "" {
		out.SetName(u.GetName())
	}
	out.SetNamespace(u.GetNamespace())
	return out
}

// IsModule reports whether an object is a Module.
func IsModule(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == v1alpha1.Kind("Module")
}
