package activities

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/lang"
)

// providerConfigCache are the ProviderConfigs of a namespace while it is surveyed: each is read once.
type providerConfigCache struct {
	get   func(name string) (*v1alpha1.ProviderConfig, error)
	known map[string]*providerConfigRef
	// externalVersion is the version of what expressions refer to that no plan of the namespace changes; see the function of that name.
	externalVersion func(refs []lang.Reference) (version string, ok bool)
}

// providerConfigRef is one ProviderConfig, with what its expressions refer to. What uses it depends on that:
// https://developer.hashicorp.com/terraform/language/providers/configuration#provider-configuration-1
type providerConfigRef struct {
	cfg        *v1alpha1.ProviderConfig
	references []lang.Reference
	checked    bool
	// version is another one when something in it, or outside of the namespace's plans, was changed; told is false when only a look
	// at what is made with it tells.
	version      string
	versionKnown bool
}

func (a *Activities) providerConfigs(ctx context.Context, po *v1alpha1.Plan) *providerConfigCache {
	scope := a.newScope(po, po.Namespace, nil)
	return &providerConfigCache{
		get:             func(name string) (*v1alpha1.ProviderConfig, error) { return a.Configs.Get(ctx, po.Namespace, name) },
		known:           map[string]*providerConfigRef{},
		externalVersion: func(refs []lang.Reference) (string, bool) { return scope.externalVersion(ctx, refs) },
	}
}

// lookup reads a ProviderConfig; cfg is nil when there is none of that name.
func (s *providerConfigCache) lookup(name string) (*providerConfigRef, error) {
	if known, ok := s.known[name]; ok {
		return known, nil
	}
	cfg, err := s.get(name)
	if err != nil {
		return nil, err
	}
	read := &providerConfigRef{cfg: cfg}
	if cfg != nil {
		read.references = catalog.References(cfg)
		var outside string
		outside, read.versionKnown = s.externalVersion(read.references)
		read.version = versionOfConfig(cfg, outside)
	}
	s.known[name] = read
	return read, nil
}

// forNode finds what a node is made with, or was made with when it is not wanted any more; nil when that is no ProviderConfig. Why
// there is none is told by whoever needs it.
func (s *providerConfigCache) forNode(n *node) (*providerConfigRef, error) {
	if !n.wanted && n.record.Exists() {
		if n.record.ProviderConfig == "" {
			return nil, nil
		}
		return s.lookup(n.record.ProviderConfig)
	}
	var failed error
	cfg, err := configOf(n.resource, func(name string) (*v1alpha1.ProviderConfig, error) {
		read, err := s.lookup(name)
		if err != nil {
			failed = err
			return nil, err
		}
		return read.cfg, nil
	})
	if err != nil || cfg == nil {
		return nil, failed
	}
	return s.lookup(cfg.Name)
}

// configure makes a node depend on what its ProviderConfig refers to: it cannot be made before that is known, nor destroyed
// after it is gone.
func (n *node) configure(s *providerConfigCache) error {
	found, err := s.forNode(n)
	if err != nil {
		return err
	}
	n.findExternalVersions(s, found)
	if found != nil && found.versionKnown {
		n.configVersion = found.version
	}
	if found == nil || len(found.references) == 0 {
		return nil
	}
	n.setting = found
	for _, ref := range found.references {
		switch {
		case ref.Namespace != "" || ref.Stored(): // no plan of this namespace makes it
		case ref.Address == n.addr:
			n.invalid = append(n.invalid, found.problem(ref, "Cycle", fmt.Sprintf(
				"The ProviderConfig %q refers to %s, which is itself made with it. Give %s another one with lifecycle.providerConfig.", found.cfg.Name, n.addr, n.addr)))
		case n.wanted && !slices.Contains(n.dependsOn, ref.Address):
			n.dependsOn, n.inherited = append(n.dependsOn, ref.Address), append(n.inherited, ref.Address)
		case n.wanted: // the node refers to it itself
		default:
			n.requires = append(n.requires, ref.Address)
		}
	}
	return nil
}

// names says whether an expression of the ProviderConfig, which may be nil, refers to something.
func (s *providerConfigRef) names(addr lang.Address) bool {
	return s != nil && slices.ContainsFunc(s.references, func(ref lang.Reference) bool { return ref.Address == addr })
}

// problem is an error at a reference of the ProviderConfig.
func (s *providerConfigRef) problem(at lang.Reference, summary, detail string) v1alpha1.Diagnostic {
	return v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: summary, Detail: detail, Address: "ProviderConfig/" + s.cfg.Name, Attribute: at.Field}
}

// resolveProviderConfig checks that what the ProviderConfig of a node refers to is there and stays.
func (s *survey) resolveProviderConfig(n *node, c lang.Catalog) {
	set := n.setting
	if set == nil || set.checked {
		return
	}
	set.checked = true
	diags := lang.CheckReferences(set.references, c)
	for i := range diags {
		diags[i].Address = cmp.Or(diags[i].Address, "ProviderConfig/"+set.cfg.Name)
	}
	s.diags = append(s.diags, diags...)
	for _, ref := range set.references {
		i, ok := s.byAddr[ref.Address]
		switch {
		case ok && s.nodes[i].movedTo != nil:
			s.diags = append(s.diags, set.problem(ref, "Reference to a resource that was moved",
				fmt.Sprintf("The ProviderConfig %q refers to %s, and %s takes over from that. Refer to %s.", set.cfg.Name, ref.Address, s.nodes[i].movedTo.addr, s.nodes[i].movedTo.addr)))
		case ok && s.nodes[i].deleting:
			s.diags = append(s.diags, set.problem(ref, "Reference to a resource that is being deleted",
				fmt.Sprintf("The ProviderConfig %q refers to %s, which is marked for deletion, and %s is made with it. Remove the reference.", set.cfg.Name, ref.Address, n.addr)))
		}
	}
}

// through says which ProviderConfigs are part of a circle.
func (s *survey) through(visited, cycle []int) string {
	text := ""
	for k, i := range cycle {
		n, next := s.nodes[visited[i]], s.nodes[visited[cycle[(k+1)%len(cycle)]]]
		if n.setting.names(next.addr) {
			text += fmt.Sprintf("%s is made with the ProviderConfig %q, which refers to %s. ", n.addr, n.setting.cfg.Name, next.addr)
		}
	}
	return text
}
