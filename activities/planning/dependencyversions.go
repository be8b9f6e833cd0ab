package planning

import (
	"maps"
	"slices"
	"strings"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/scope"
)

// This file detects whether the dependencies of an object have changed since the object was last up to date. A default
// plan visits unchanged objects only for this reason.

// dependencyVersions returns the versions of a node's dependencies: the recorded versions of the values that it refers
// to, and the external versions. The version of a value that is not recorded is empty.
func (s *page) dependencyVersions(n *node) map[string]string {
	seen := map[string]string{}
	maps.Copy(seen, n.externalVersions)
	note := func(addr lang.Address, attribute string) {
		if i, ok := s.byAddr[addr]; ok && hasRecordedValue(s.nodes[i].Mode) {
			seen[valueVersion(addr, attribute)] = s.nodes[i].record.VersionOf(attribute)
		}
	}
	for _, ref := range n.values() {
		note(ref.Address, ref.Attribute)
	}
	for _, i := range s.nodesAt(s.transitiveDependencies(n.DependsOn, v1alpha1.ModeEphemeral)) {
		if d := s.nodes[i]; d.Mode == v1alpha1.ModeEphemeral {
			maps.Copy(seen, d.externalVersions)
			for _, addr := range d.DependsOn {
				note(addr, "")
			}
		}
	}
	for _, i := range s.nodesAt(s.transitiveDependencies(n.DependsOn, v1alpha1.ModeEphemeral, v1alpha1.ModeData)) {
		if d := s.nodes[i]; d.Mode == v1alpha1.ModeData {
			seen[objectVersion(d.Address)] = d.externalVersions[objectVersion(d.Address)]
			if d.config != nil {
				seen[changes.VersionOfConfig(d.config.Cfg.Name)] = d.config.Version
			}
		}
	}
	return seen
}

// values returns the references of a wanted node and of its ProviderConfig to other objects of the namespace.
func (n *node) values() []lang.Reference {
	all := slices.Clone(n.References)
	if n.wanted && n.providerConfig != nil {
		all = append(all, n.providerConfig.References...)
	}
	return slices.DeleteFunc(all, func(ref lang.Reference) bool {
		return ref.Namespace != "" || ref.Stored() || ref.Named() || ref.Address == n.Address
	})
}

// hasRecordedValue reports whether the ledger records the values of objects of a mode.
func hasRecordedValue(mode v1alpha1.Mode) bool {
	return mode == v1alpha1.ModeManaged || mode == v1alpha1.ModeData
}

// known removes the versions of values that are not recorded.
func known(versions map[string]string) map[string]string {
	maps.DeleteFunc(versions, func(_, version string) bool { return version == "" })
	return versions
}

// noteDependencyVersions stores in a change the versions of its dependencies. For a value that this plan changes, it
// stores the version that the apply will record.
func (pr *proposal) noteDependencyVersions(c *ledger.Change) {
	for name := range c.DependencyVersions {
		text, attribute, _ := strings.Cut(name, valueSeparator)
		addr, err := lang.ParseAddress(text)
		if err != nil {
			continue // the version is not that of a resource's value
		}
		if e := pr.expectedOf(addr); e != nil && e.changes(attribute) {
			c.DependencyVersions[name] = ledger.VersionOf(pr.plan.UID)
		}
	}
	c.DependencyVersions = known(c.DependencyVersions)
}

// valueSeparator separates an address from an attribute.
const valueSeparator = "#"

// valueVersion names the version of an attribute, or of all attributes if it is empty.
func valueVersion(addr lang.Address, attribute string) string {
	if attribute == "" {
		return addr.String()
	}
	return addr.String() + valueSeparator + attribute
}

// objectVersion names the version of the object of a data source, on which its own dependencies depend.
func objectVersion(addr lang.Address) string { return "Object/" + addr.String() }

// providerVersion names the version of a provider.
func providerVersion(name string) string { return "Provider/" + name }

// findExternalVersions determines the versions of a node's dependencies that are not resources: its provider, its
// ProviderConfig, which may be nil, and external references. The version of an ephemeral resource, and that of the
// object of a data source, is that of its arguments.
func (n *node) findExternalVersions(s *scope.ProviderConfigs, config *scope.ProviderConfigRef) {
	if n.Mode == v1alpha1.ModeData {
		outside, _ := s.ExternalVersion(n.References)
		n.externalVersions = map[string]string{objectVersion(n.Address): scope.VersionOf(n.Object, outside)}
		return
	}
	if !n.wanted || n.Mode == v1alpha1.ModeAction {
		return
	}
	n.externalVersions = map[string]string{}
	if version := n.Entry.Package.Version; version != "" {
		n.externalVersions[providerVersion(n.Entry.Name)] = version
	}
	if config != nil {
		n.externalVersions[changes.VersionOfConfig(config.Cfg.Name)] = config.Version
	}
	outside := ""
	if n.External {
		var known bool
		if outside, known = s.ExternalVersion(n.References); known {
			n.External = false
		}
	}
	n.External = n.External || config != nil && !config.VersionKnown
	switch {
	case n.Mode == v1alpha1.ModeEphemeral:
		n.externalVersions[n.Address.String()] = scope.VersionOf(n.Object, outside)
	case outside != "":
		n.externalVersions[changes.VersionOutside] = outside
	}
}
