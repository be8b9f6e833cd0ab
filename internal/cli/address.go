package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
)

// modeModule is the mode of a target that is a whole module, with the name of the Module.
const modeModule = lang.ModeModule

// target is a provider's object as the user names it, or a whole module.
type target struct {
	// namespace is empty if the name has none.
	namespace string
	mode      v1alpha1.Mode
	typ       string
	name      string
	// group is the API group in KIND.GROUP/NAME; otherwise empty.
	group string
}

// parseTarget parses a Terraform address (sim_network.main, data.sim_image.base, namespace.shared.sim_network.main),
// kubectl's KIND/NAME (sim-network/main, data-sim-image/base), or kubectl's long form sim-network.sim.hykube.io/main. The
// name of an instance of a ResourceSet has its key, as in sim_instance.web[0] or sim-instance/web["a"].
func parseTarget(s string) (target, error) {
	if t, ok := parseModuleTarget(s); ok {
		return t, nil
	}
	bad := fmt.Errorf("%q is not the address of a resource: write TYPE.NAME such as sim_network.main, or KIND/NAME such as sim-network/main", s)
	t, rest := target{mode: v1alpha1.ModeManaged}, s
	if after, ok := strings.CutPrefix(rest, "namespace."); ok {
		t.namespace, rest, ok = strings.Cut(after, ".")
		if !ok {
			return target{}, bad
		}
	}
	// A slash, a dot or a bracket may also be in the key of an instance.
	if kind, name, ok := strings.Cut(rest, "/"); ok && !strings.Contains(kind, "[") {
		kind, t.group, _ = strings.Cut(kind, ".")
		t.mode, t.typ = v1alpha1.ParseKind(kind)
		t.name = name
	} else {
		for _, m := range []v1alpha1.Mode{v1alpha1.ModeData, v1alpha1.ModeEphemeral, v1alpha1.ModeAction} {
			if after, ok := strings.CutPrefix(rest, string(m)+"."); ok {
				t.mode, rest = m, after
				break
			}
		}
		at := strings.IndexAny(rest, ".[")
		switch {
		case at < 0:
			return target{}, bad
		case rest[at] == '.':
			t.typ, t.name = v1alpha1.TypeOf(rest[:at]), rest[at+1:]
		default: // the expression syntax for a name with dots
			name, key, ok := strings.Cut(strings.TrimPrefix(rest[at:], `["`), `"]`)
			if !ok {
				return target{}, bad
			}
			t.typ, t.name = rest[:at], name+key
		}
	}
	base := t.name
	if v1alpha1.IsVirtualName(t.name) {
		name, key, ok := v1alpha1.ParseInstanceName(t.name)
		if !ok {
			return target{}, bad
		}
		base, t.name = name, v1alpha1.InstanceName(name, key)
	}
	if t.typ == "" || base == "" || strings.ContainsAny(t.typ, `. "[]`) || strings.ContainsAny(base, `/ "[]`) {
		return target{}, bad
	}
	return t, nil
}

// parseModuleTarget parses the address of a resource of a Module, such as module.shop.module.net["eu"].sim_network.a[3], or KIND/NAME
// with the name of its object. ok is false for another address.
func parseModuleTarget(s string) (t target, ok bool) {
	t.mode = v1alpha1.ModeManaged
	path, inner := "", ""
	if kind, name, found := strings.Cut(s, "/"); found && !strings.ContainsAny(kind, "[") {
		kind, t.group, _ = strings.Cut(kind, ".")
		t.mode, t.typ = v1alpha1.ParseKind(kind)
		path, inner = v1alpha1.SplitModuleObjectName(name)
	} else if at, rest, found := v1alpha1.CutModulePath(s); found && strings.HasPrefix(rest, ".") {
		rest = rest[1:]
		if after, data := strings.CutPrefix(rest, string(v1alpha1.ModeData)+"."); data {
			t.mode, rest = v1alpha1.ModeData, after
		}
		path = at
		t.typ, inner, _ = strings.Cut(rest, ".")
	}
	name, key, keyed := v1alpha1.ParseInstanceName(inner)
	if path == "" || t.typ == "" || name == "" || strings.ContainsAny(name, `/. "[]`) {
		return target{}, false
	}
	if keyed {
		name = v1alpha1.InstanceName(name, key)
	}
	t.name = v1alpha1.ModuleObjectName(path, name)
	return t, true
}

// address returns the Terraform address without the namespace.
func (t target) address() string {
	if t.mode == modeModule {
		return v1alpha1.ModulePath("", t.name, nil)
	}
	path, name := v1alpha1.SplitModuleObjectName(t.name)
	a := t.typ + "." + v1alpha1.ShownName(name)
	if t.mode != v1alpha1.ModeManaged {
		a = string(t.mode) + "." + a
	}
	if path != "" {
		return v1alpha1.ShownModule(path) + "." + a
	}
	return a
}

// full returns the address with its namespace, if it has one.
func (t target) full() string {
	if t.namespace != "" {
		return "namespace." + t.namespace + "." + t.address()
	}
	return t.address()
}

func (t target) kind() string { return t.mode.KindOf(t.typ) }

// modeWord returns the noun for an object of a mode.
func modeWord(m v1alpha1.Mode) string {
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

// addresses parses the objects in a flag or in the arguments.
func addresses(flag string, in []string, only ...v1alpha1.Mode) ([]string, error) {
	var out []string
	for _, s := range in {
		t, err := parseTarget(s)
		if path, rest, ok := v1alpha1.CutModulePath(s); ok && rest == "" && len(only) == 0 {
			out = append(out, v1alpha1.ShownModule(path))
			continue
		}
		if err == nil {
			err = t.only(only...)
		}
		if err == nil && t.namespace != "" {
			err = errors.New("a plan covers one namespace; choose it with -n")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		out = append(out, t.address())
	}
	return out, nil
}

// only returns an error if the target has none of the modes. Without modes, it permits all.
func (t target) only(modes ...v1alpha1.Mode) error {
	for _, m := range modes {
		if t.mode == m {
			return nil
		}
	}
	if len(modes) == 0 {
		return nil
	}
	want := modeWord(modes[0])
	return fmt.Errorf("%s is %s, and only %ss can be named here", t.address(), article(modeWord(t.mode)), want)
}

func article(noun string) string {
	if strings.ContainsAny(noun[:1], "aeiou") {
		return "an " + noun
	}
	return "a " + noun
}

// addressOfKind returns the Terraform address of an object of a kind.
func addressOfKind(kind, name string) string {
	m, typ := v1alpha1.ParseKind(kind)
	return target{mode: m, typ: typ, name: name}.address()
}
