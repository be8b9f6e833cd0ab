package planning

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/scope"
)

// configure adds the references of a node's ProviderConfig to the node's dependencies. Their resources must exist
// before the node is created, and until it is destroyed.
func (n *node) configure(s *scope.ProviderConfigs) error {
	found, err := s.ForResource(n.Resource, n.record, n.wanted)
	if err != nil {
		return err
	}
	n.config = found
	n.findExternalVersions(s, found)
	if found != nil && found.Comparable {
		n.configVersion = found.Version
	}
	if found == nil || len(found.References) == 0 {
		return nil
	}
	n.providerConfig = found
	for _, ref := range found.References {
		switch {
		case ref.Namespace != "" || ref.Stored(): // no plan of this namespace changes it
		case ref.Address == n.Address:
			n.Invalid = append(n.Invalid, found.Problem(ref, "Cycle", fmt.Sprintf(
				"The ProviderConfig %q refers to %s, which uses this ProviderConfig. Set another one in lifecycle.providerConfig of %s.", found.Cfg.Name, n.Address, n.Address)))
		case n.wanted && !slices.Contains(n.DependsOn, ref.Address):
			n.DependsOn, n.inherited = append(n.DependsOn, ref.Address), append(n.inherited, ref.Address)
		case n.wanted: // the node also refers to it directly
		default:
			n.requires = append(n.requires, ref.Address)
		}
	}
	return nil
}

// resolveProviderConfig checks that the objects to which a node's ProviderConfig refers exist and are not being
// deleted.
func (s *survey) resolveProviderConfig(n *node, c lang.Catalog) {
	set := n.providerConfig
	if set == nil || set.Checked {
		return
	}
	set.Checked = true
	diags := lang.CheckReferences(set.References, c)
	for _, ref := range set.References {
		if s.setAt(ref.Address) != nil {
			diags = append(diags, set.Problem(ref, "Unsupported reference", fmt.Sprintf(
				"The ProviderConfig %q refers to all instances of the ResourceSet of %s, but a ProviderConfig can refer only to single ones.", set.Cfg.Name, ref.Address)))
		}
	}
	for i := range diags {
		diags[i].Address = cmp.Or(diags[i].Address, scope.ProviderConfigAddress+set.Cfg.Name)
	}
	s.diags = append(s.diags, diags...)
	for _, ref := range set.References {
		i, ok := s.byAddr[ref.Address]
		switch {
		case ok && s.nodes[i].movedTo != "":
			s.diags = append(s.diags, set.Problem(ref, "Reference to a resource that was moved",
				fmt.Sprintf("The ProviderConfig %q refers to %s, which moves to %s. Refer to %s instead.", set.Cfg.Name,
					ref.Address, s.nodes[i].movedTo, s.nodes[i].movedTo)))
		case ok && s.nodes[i].Deleting && s.leftFiles(s.nodes[i].Ref):
			s.diags = append(s.diags, set.Problem(ref, "Reference to a resource that is no longer in the files",
				fmt.Sprintf("The ProviderConfig %q refers to %s, which is no longer in the files and would be deleted. %s uses this ProviderConfig. Put the resource back into the files, or remove the reference.",
					set.Cfg.Name, ref.Address, n.Address)))
		case ok && s.nodes[i].Deleting:
			s.diags = append(s.diags, set.Problem(ref, "Reference to a resource that is being deleted",
				fmt.Sprintf("The ProviderConfig %q refers to %s, which is marked for deletion. %s uses this ProviderConfig. Remove the reference, or take the deletion back: kubectl hykube undelete %s/%s -n %s.",
					set.Cfg.Name, ref.Address, n.Address, s.nodes[i].Ref.Kind, s.nodes[i].Ref.Name,
					s.nodes[i].Ref.Namespace)))
		}
	}
}

// configsInCycleText returns a text about the ProviderConfigs that are part of a cycle of slots.
func (o *outline) configsInCycleText(cycle []int) string {
	text := ""
	for k, i := range cycle {
		addr, next := o.Nodes[i].Object.Address(), o.Nodes[cycle[(k+1)%len(cycle)]].Object.Address()
		if u, err := o.config(i); err == nil && u.Names(next) {
			text += fmt.Sprintf("%s uses the ProviderConfig %q, which refers to %s. ", addr, u.Cfg.Name, next)
		}
	}
	return text
}
