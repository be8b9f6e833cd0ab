package planning

import (
	"context"
	"errors"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/scope"
)

// This file handles references to ResourceSets, whose instances are nodes of their own.

// setAt returns the set whose template has an address; nil if there is none.
func (s *survey) setAt(addr lang.Address) *resourceset.Set {
	if s.outline != nil {
		if set := s.outline.view.SetOf(addr); set != nil {
			return set.Set
		}
		return nil
	}
	if s.sets == nil || addr.Namespace != "" || addr.Mode != "" && addr.Module == "" || addr.Stored() || v1alpha1.IsInstanceName(addr.Name) {
		return nil
	}
	set, known := s.known[addr]
	if !known {
		if s.known == nil {
			s.known = map[lang.Address]*resourceset.Set{}
		}
		set = s.sets(addr)
		s.known[addr] = set
	}
	return set
}

// setsIn returns a function that finds the set with an address in a namespace. It returns nil after an error, and stores
// the error.
func setsIn(ctx context.Context, a *scope.Sources, namespace string, failed *error) func(lang.Address) *resourceset.Set {
	return func(addr lang.Address) *resourceset.Set {
		set, err := scope.SetAt(ctx, a, namespace, addr)
		if err != nil {
			*failed = errors.Join(*failed, err)
		}
		return set
	}
}

// modulesIn returns a function that finds the Module with a name in a namespace. It returns nil after an error, and stores the
// error.
func modulesIn(ctx context.Context, a *scope.Sources, namespace string, failed *error) func(string) *resourceset.Module {
	return func(name string) *resourceset.Module {
		if a.Sets == nil {
			return nil
		}
		m, err := a.Sets.Module(ctx, namespace, name)
		if err != nil {
			*failed = errors.Join(*failed, err)
		}
		return m
	}
}

// behind returns what the value of an output of a Module of the namespace depends on.
func (s *survey) behind(output lang.Address) []lang.Address {
	switch {
	case s.outline != nil:
		return s.outline.view.Behind(output)
	case s.modules != nil:
		return resourceset.Behind(output, s.modules)
	}
	return nil
}

// waitsFor reports, without an outline, whether an address is that of an output of a Module that is not known yet.
func (s *survey) waitsFor(addr lang.Address) bool {
	return s.modules != nil && addr.Namespace == "" && addr.IsModuleOutput() && resourceset.WaitsFor(addr, s.modules) != ""
}

// expandSets replaces the references of a node to whole sets by references to their instances, and adds what is behind the outputs
// of Modules. A data source also depends on the instances that leave the sets: as in Terraform, it must not read before they are
// destroyed.
func (s *survey) expandSets(n *node) {
	if n.expanded {
		return
	}
	n.expanded = true
	if !slices.ContainsFunc(n.DependsOn, func(a lang.Address) bool { return a.IsModuleOutput() || s.setAt(a) != nil }) {
		return
	}
	var dependsOn []lang.Address
	var refs []lang.Reference
	seen := map[lang.Address]bool{}
	for _, addr := range n.DependsOn {
		n.waits = n.waits || s.waitsFor(addr)
		instances := s.instancesOf(addr)
		if n.Mode == v1alpha1.ModeData && s.setAt(addr) != nil {
			instances = s.withLeaving(addr)
		}
		for _, a := range instances {
			if !seen[a] {
				seen[a] = true
				dependsOn = append(dependsOn, a)
			}
		}
	}
	for _, r := range n.References {
		if s.setAt(r.Address) == nil {
			refs = append(refs, r)
			if r.Namespace == "" && r.IsModuleOutput() {
				for _, a := range s.instancesOf(r.Address) {
					refs = append(refs, lang.Reference{Address: a, Field: r.Field})
				}
			}
			continue
		}
		if !slices.Contains(n.wholeSets, r.Address) {
			n.wholeSets = append(n.wholeSets, r.Address)
		}
		for _, a := range s.instancesOf(r.Address) {
			refs = append(refs, lang.Reference{Address: a, Field: r.Field})
		}
	}
	slices.SortFunc(dependsOn, lang.Address.Compare)
	n.DependsOn, n.References = dependsOn, refs
}

// instancesOf returns the addresses of the instances of the set with an address, or of what is behind the output with an address; the
// address itself for another object.
func (s *survey) instancesOf(addr lang.Address) (out []lang.Address) {
	if addr.IsModuleOutput() {
		for _, a := range s.behind(addr) {
			out = append(out, s.instancesOf(a)...)
		}
		return out
	}
	set := s.setAt(addr)
	if set == nil {
		return []lang.Address{addr}
	}
	return instanceAddresses(addr, set)
}

// instanceAddresses returns the addresses of the instances of a set with an address.
func instanceAddresses(addr lang.Address, set *resourceset.Set) []lang.Address {
	out := make([]lang.Address, set.Len())
	for i := range out {
		out[i] = addr.Instance(set.Key(i))
	}
	return out
}

// withLeaving returns the addresses of the instances of a set, and those of the instances that leave it.
func (s *survey) withLeaving(set lang.Address) []lang.Address {
	out := s.instancesOf(set)
	if s.outline != nil {
		if of := s.outline.view.SetOf(set); of != nil {
			for _, i := range of.Leaving {
				out = append(out, s.outline.view.Nodes[i].Object.Address())
			}
		}
		return out
	}
	for _, n := range s.nodes {
		if of, _, ok := n.Address.Set(); ok && of == set && resourceset.IsLeaving(n.Object) {
			out = append(out, n.Address)
		}
	}
	return out
}

// catalogOf returns the catalog for the checks of references.
func (s *survey) catalogOf(a *scope.Sources) lang.Catalog {
	return lang.Catalog{
		Block: a.Block,
		Exists: func(addr lang.Address) bool {
			if set, key, ok := addr.Set(); ok && addr.Namespace == "" {
				of := s.setAt(set)
				return of != nil && (of.Problem != "" || of.Has(key))
			}
			return s.isExternal(addr) || s.exists(addr) || s.setAt(addr) != nil
		},
		Repeats: func(addr lang.Address) lang.Repetition {
			if set := s.setAt(addr); set != nil {
				return set.Repeats
			}
			return ""
		},
	}
}

// instancesOf returns the addresses of the instances of the set with an address; nil for another object.
func (pr *proposal) instancesOf(ctx context.Context, addr lang.Address) ([]lang.Address, error) {
	set, err := scope.SetAt(ctx, pr.Sources, pr.plan.Namespace, addr)
	if err != nil || set == nil {
		return nil, err
	}
	return instanceAddresses(addr, set), nil
}

// changesInPlace reports whether the plan updates or replaces a resource.
func (pr *proposal) changesInPlace(addr lang.Address) bool {
	e := pr.expectedOf(addr)
	return e != nil && (e.action == v1alpha1.ActionUpdate || e.action == v1alpha1.ActionReplace)
}
