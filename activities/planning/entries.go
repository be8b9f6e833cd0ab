package planning

import (
	"fmt"
	"strings"

	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/scope"
)

// entries finds the objects, and the sets of objects, of a namespace by their addresses.
type entries struct{ *index.View }

// exists reports whether an object has an address.
func (e entries) exists(addr lang.Address) bool {
	_, ok := e.Slot(addr)
	return ok
}

// slots returns the slots of the objects with some addresses.
func (e entries) slots(addrs []lang.Address) (out []int) {
	for _, addr := range addrs {
		if i, ok := e.Slot(addr); ok {
			out = append(out, i)
		}
	}
	return out
}

// within returns the addresses of the objects in a module, also of those that leave it.
func (e entries) within(module lang.Address) (out []lang.Address) {
	for _, n := range e.Nodes {
		if n.Object != nil && n.Object.Instance != nil && module.Covers(n.Object.Address()) {
			out = append(out, n.Object.Address())
		}
	}
	return out
}

// setAt returns the set whose template has an address; nil if there is none.
func (e entries) setAt(addr lang.Address) *resourceset.Set {
	if set := e.SetOf(addr); set != nil {
		return set.Set
	}
	return nil
}

// instancesOf returns the addresses of the instances of the set with an address, or of what is behind the output with
// an address; the address itself for another object.
func (e entries) instancesOf(addr lang.Address) (out []lang.Address) {
	if addr.IsModuleOutput() {
		for _, a := range e.Behind(addr) {
			out = append(out, e.instancesOf(a)...)
		}
		return out
	}
	set := e.setAt(addr)
	if set == nil {
		return []lang.Address{addr}
	}
	return instanceAddresses(addr, set)
}

// withLeaving returns the addresses of the instances of a set, and those of the instances that leave it.
func (e entries) withLeaving(set lang.Address) []lang.Address {
	out := e.instancesOf(set)
	if of := e.SetOf(set); of != nil {
		for _, i := range of.Leaving {
			out = append(out, e.Nodes[i].Object.Address())
		}
	}
	return out
}

// names returns the names of the objects with the type of an address, sorted.
func (e entries) names(of lang.Address) []string { return e.Names(of.Mode, of.Type) }

// knownAddresses returns a text with existing addresses of the type of an unknown address.
func (e entries) knownAddresses(addr lang.Address) string {
	const most = 5
	names := e.names(addr)
	switch {
	case len(names) == 0:
		return ""
	case len(names) > most:
		return fmt.Sprintf("; there are %s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	default:
		return "; there is " + strings.Join(names, ", ")
	}
}

// catalogOf returns the catalog for the checks of references.
func (e entries) catalogOf(a *scope.Sources) lang.Catalog {
	return lang.Catalog{
		Block: a.Block,
		Exists: func(addr lang.Address) bool {
			if set, key, ok := addr.Set(); ok && addr.Namespace == "" {
				of := e.setAt(set)
				return of != nil && (of.Problem != "" || of.Has(key))
			}
			// Only the evaluation finds out whether an object of another namespace, a ConfigMap or a Secret exists.
			return addr.Namespace != "" || addr.Stored() || e.exists(addr) || e.setAt(addr) != nil
		},
		Repeats: func(addr lang.Address) lang.Repetition {
			if set := e.setAt(addr); set != nil {
				return set.Repeats
			}
			return ""
		},
	}
}
