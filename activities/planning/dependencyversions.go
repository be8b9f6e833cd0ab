package planning

import (
	"maps"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/scope"
)

// This file detects whether the dependencies of an object have changed since the object was last up to date. A default
// plan visits unchanged objects only for this reason.

// dependencyVersions returns the versions of a node's dependencies: the recorded versions of referenced resources, and
// the external versions.
func (s *survey) dependencyVersions(n *node) map[string]string {
	seen := map[string]string{}
	maps.Copy(seen, n.externalVersions)
	for _, i := range s.indexes(s.transitiveDependencies(n.DependsOn, v1alpha1.ModeEphemeral)) {
		switch d := s.nodes[i]; {
		case d.Mode == v1alpha1.ModeEphemeral:
			maps.Copy(seen, d.externalVersions)
		case d.Mode == v1alpha1.ModeManaged && d.record.Version != "":
			seen[d.Address.String()] = d.record.Version
		}
	}
	return seen
}

// dependenciesChanged reports whether a dependency of a node has changed. An earlier plan may have changed it without
// visiting the node, its result may have differed from the plan, or it may be external.
func (s *survey) dependenciesChanged(n *node) bool {
	return !maps.Equal(s.dependencyVersions(n), n.record.DependencyVersions)
}

// noteDependencyVersions stores in a change the versions of its dependencies. For a dependency that this plan changes,
// it stores the version that the apply will record.
func (pr *proposal) noteDependencyVersions(c *ledger.Change) {
	for _, j := range c.DependsOn {
		d := pr.all[j]
		if d.Mode != "" || d.Deposed != "" || d.Action == v1alpha1.ActionNoOp && d.Importing == nil && d.PreviousAddress == "" && d.Refreshed == nil {
			continue
		}
		if c.DependencyVersions == nil { // the map was empty and therefore not stored
			c.DependencyVersions = map[string]string{}
		}
		c.DependencyVersions[d.Address] = ledger.VersionOf(pr.plan.UID)
	}
}

// providerVersion and configVersion name the versions of a provider and of a ProviderConfig.
func providerVersion(name string) string { return "Provider/" + name }
func configVersion(name string) string   { return "ProviderConfig/" + name }

// findExternalVersions determines the versions of a node's dependencies that are not resources: its provider, its
// ProviderConfig, which may be nil, and external references. The version of an ephemeral resource is that of its
// arguments.
func (n *node) findExternalVersions(s *scope.ProviderConfigs, config *scope.ProviderConfigRef) {
	if !n.wanted || n.Mode != v1alpha1.ModeManaged && n.Mode != v1alpha1.ModeEphemeral {
		return
	}
	n.externalVersions = map[string]string{}
	if version := n.Entry.Package.Version; version != "" {
		n.externalVersions[providerVersion(n.Entry.Name)] = version
	}
	if config != nil {
		n.externalVersions[configVersion(config.Cfg.Name)] = config.Version
	}
	outside := ""
	if n.External {
		var told bool
		if outside, told = s.ExternalVersion(n.References); told {
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
