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

// modulesIn returns a function that finds the Module with a name in a namespace. It returns nil after an error, and
// stores the error.
func modulesIn(ctx context.Context, a *scope.Sources, namespace string,
	failed *error) func(string) *resourceset.Module {
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

// expandSets replaces the references of a node to whole sets by references to their instances, and adds what is behind
// the outputs of Modules. A data source also depends on the instances that leave the sets: as in Terraform, it must not
// read before they are destroyed.
func (e entries) expandSets(n *node) {
	if !slices.ContainsFunc(n.DependsOn, func(a lang.Address) bool { return a.IsModuleOutput() || e.setAt(a) != nil }) {
		return
	}
	var dependsOn []lang.Address
	var refs []lang.Reference
	seen := map[lang.Address]bool{}
	for _, addr := range n.DependsOn {
		instances := e.instancesOf(addr)
		if n.Mode == v1alpha1.ModeData && e.setAt(addr) != nil {
			instances = e.withLeaving(addr)
		}
		for _, a := range instances {
			if !seen[a] {
				seen[a] = true
				dependsOn = append(dependsOn, a)
			}
		}
	}
	for _, r := range n.References {
		if e.setAt(r.Address) == nil {
			refs = append(refs, r)
			if r.Namespace == "" && r.IsModuleOutput() {
				for _, a := range e.instancesOf(r.Address) {
					refs = append(refs, lang.Reference{Address: a, Field: r.Field})
				}
			}
			continue
		}
		if !slices.Contains(n.wholeSets, r.Address) {
			n.wholeSets = append(n.wholeSets, r.Address)
		}
		for _, a := range e.instancesOf(r.Address) {
			refs = append(refs, lang.Reference{Address: a, Field: r.Field})
		}
	}
	slices.SortFunc(dependsOn, lang.Address.Compare)
	n.DependsOn, n.References = dependsOn, refs
}

// instanceAddresses returns the addresses of the instances of a set with an address.
func instanceAddresses(addr lang.Address, set *resourceset.Set) []lang.Address {
	out := make([]lang.Address, set.Len())
	for i := range out {
		out[i] = addr.Instance(set.Key(i))
	}
	return out
}

// instancesOf returns the addresses of the instances of the set with an address; nil for another object.
func (pr *proposal) instancesOf(ctx context.Context, addr lang.Address) ([]lang.Address, error) {
	set, err := scope.SetAt(ctx, pr.Sources, pr.plan.Namespace, addr)
	if err != nil || set == nil {
		return nil, err
	}
	return instanceAddresses(addr, set), nil
}
