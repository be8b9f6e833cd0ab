package planning

import (
	"maps"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/scope"
)

// This file tells whether what an object follows is still what it was when the object was last found, or made, as it should be. A
// default plan looks at nothing else of what nobody wrote anew.

// dependencyVersions are those of all that a node follows: what it refers to, as that is recorded, and what it is made with.
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

// dependenciesChanged says whether something that a node follows was changed by a plan that left the node out, came out other than it was
// planned, or is changed by no plan at all.
func (s *survey) dependenciesChanged(n *node) bool {
	return !maps.Equal(s.dependencyVersions(n), n.record.DependencyVersions)
}

// noteDependencyVersions writes down which versions of what a change refers to it was planned with: those that this plan is to record, where it
// records any.
func (pr *proposal) noteDependencyVersions(c *ledger.Change) {
	for _, j := range c.DependsOn {
		d := pr.all[j]
		if d.Mode != "" || d.Deposed != "" || d.Action == v1alpha1.ActionNoOp && d.Importing == nil && d.PreviousAddress == "" && d.Refreshed == nil {
			continue
		}
		if c.DependencyVersions == nil { // there was none to be stored
			c.DependencyVersions = map[string]string{}
		}
		c.DependencyVersions[d.Address] = ledger.VersionOf(pr.plan.UID)
	}
}

// findExternalVersions finds the versions of what a node follows that is no resource: its provider, the ProviderConfig, which may be nil, and what
// its expressions refer to outside of the namespace's plans. What is opened is of no version but that of what it is opened with.
func (n *node) findExternalVersions(s *scope.ProviderConfigs, config *scope.ProviderConfigRef) {
	if !n.wanted || n.Mode != v1alpha1.ModeManaged && n.Mode != v1alpha1.ModeEphemeral {
		return
	}
	n.externalVersions = map[string]string{}
	if version := n.Entry.Package.Version; version != "" {
		n.externalVersions["Provider/"+n.Entry.Name] = version
	}
	if config != nil {
		n.externalVersions["ProviderConfig/"+config.Cfg.Name] = config.Version
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
