package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"

	ctyjson "github.com/zclconf/go-cty/cty/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file tells whether what an object follows is still what it was when the object was last found, or made, as it should be. A
// default plan looks at nothing else of what nobody wrote anew.

// dependencyVersions are those of all that a node follows: what it refers to, as that is recorded, and what it is made with.
func (s *survey) dependencyVersions(n *node) map[string]string {
	seen := map[string]string{}
	maps.Copy(seen, n.externalVersions)
	for _, i := range s.indexes(s.transitiveDependencies(n.dependsOn, v1alpha1.ModeEphemeral)) {
		switch d := s.nodes[i]; {
		case d.mode == v1alpha1.ModeEphemeral:
			maps.Copy(seen, d.externalVersions)
		case d.mode == v1alpha1.ModeManaged && d.record.Version != "":
			seen[d.addr.String()] = d.record.Version
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
func (n *node) findExternalVersions(s *providerConfigCache, config *providerConfigRef) {
	if !n.wanted || n.mode != v1alpha1.ModeManaged && n.mode != v1alpha1.ModeEphemeral {
		return
	}
	n.externalVersions = map[string]string{}
	if version := n.entry.Package.Version; version != "" {
		n.externalVersions["Provider/"+n.entry.Name] = version
	}
	if config != nil {
		n.externalVersions["ProviderConfig/"+config.cfg.Name] = config.version
	}
	outside := ""
	if n.external {
		var told bool
		if outside, told = s.externalVersion(n.references); told {
			n.external = false
		}
	}
	n.external = n.external || config != nil && !config.versionKnown
	switch {
	case n.mode == v1alpha1.ModeEphemeral:
		n.externalVersions[n.addr.String()] = versionOf(n.obj, outside)
	case outside != "":
		n.externalVersions["outside"] = outside
	}
}

// versionOf is another one whenever somebody writes an object anew, or what it refers to outside of the namespace's plans.
func versionOf(obj metav1.Object, outside string) string {
	return strings.TrimSuffix(fmt.Sprintf("%s/%d/%s", obj.GetUID(), obj.GetGeneration(), outside), "/")
}

// versionOfConfig is another one whenever a provider is told something else by a ProviderConfig. What may be asked of it at once is
// no part of that, and neither are the values of secretRefs, which rotate.
func versionOfConfig(cfg *v1alpha1.ProviderConfig, outside string) string {
	spec := cfg.Spec
	spec.Limits = nil
	text, err := json.Marshal(spec)
	if err != nil { // it was decoded from JSON
		text = fmt.Append(nil, cfg.UID, cfg.Generation)
	}
	sum := sha256.Sum256(text)
	return strings.TrimSuffix(hex.EncodeToString(sum[:8])+"/"+outside, "/")
}

// checkProviderConfig refuses a ProviderConfig that was changed after the plan was made: the approval covers its arguments, too.
func (s *stepRun) checkProviderConfig(ctx context.Context, cfg *v1alpha1.ProviderConfig) error {
	if cfg == nil || s.change.ConfigVersion == "" {
		return nil
	}
	outside, told := s.scope.externalVersion(ctx, catalog.References(cfg))
	if told && versionOfConfig(cfg, outside) != s.change.ConfigVersion {
		return configMoved(cfg.Name)
	}
	return nil
}

func configMoved(name string) error {
	return &staleError{fmt.Sprintf("the ProviderConfig %q, or a ConfigMap or Secret that it refers to, was changed after the plan was made", name)}
}

// externalVersion is the version of what expressions refer to that no plan of this namespace changes, such as a ConfigMap; ok is false when
// only a look at whatever follows it tells, since it cannot be read now.
func (s *scope) externalVersion(ctx context.Context, refs []lang.Reference) (version string, ok bool) {
	h := sha256.New()
	for _, ref := range refs {
		if ref.Namespace == "" && !ref.Stored() {
			continue
		}
		if ref.Mode == v1alpha1.ModeEphemeral {
			return "", false // it is another one each time
		}
		v, found, err := s.value(ctx, ref.Address)
		if err != nil || !found {
			return "", false
		}
		v, _ = v.UnmarkDeep()
		raw, err := ctyjson.Marshal(v, v.Type())
		if err != nil {
			return "", false
		}
		fmt.Fprintf(h, "%s %s\n", ref.Address, raw)
		version = hex.EncodeToString(h.Sum(nil)[:8])
	}
	return version, true
}
