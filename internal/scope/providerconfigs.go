package scope

import (
	"context"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
)

// ProviderConfigs are the ProviderConfigs of a namespace while it is surveyed: each is read once.
type ProviderConfigs struct {
	Get   func(name string) (*v1alpha1.ProviderConfig, error)
	Known map[string]*ProviderConfigRef
	// ExternalVersion is the version of what expressions refer to that no plan of the namespace changes; see the function of that name.
	ExternalVersion func(refs []lang.Reference) (version string, ok bool)
}

// ProviderConfigRef is one ProviderConfig, with what its expressions refer to. What uses it depends on that:
// https://developer.hashicorp.com/terraform/language/providers/configuration#provider-configuration-1
type ProviderConfigRef struct {
	Cfg        *v1alpha1.ProviderConfig
	References []lang.Reference
	Checked    bool
	// Version is another one when something in it, or outside of the namespace's plans, was changed; told is false when only a look
	// at what is made with it tells.
	Version      string
	VersionKnown bool
}

// ProviderConfigs returns those of the namespace of a plan. They are read when they are first asked for.
func (a *Sources) ProviderConfigs(ctx context.Context, po *v1alpha1.Plan) *ProviderConfigs {
	scope := a.NewScope(po, po.Namespace, nil)
	return &ProviderConfigs{
		Get:             func(name string) (*v1alpha1.ProviderConfig, error) { return a.Configs.Get(ctx, po.Namespace, name) },
		Known:           map[string]*ProviderConfigRef{},
		ExternalVersion: func(refs []lang.Reference) (string, bool) { return scope.ExternalVersion(ctx, refs) },
	}
}

// lookup reads a ProviderConfig; cfg is nil when there is none of that name.
func (s *ProviderConfigs) lookup(name string) (*ProviderConfigRef, error) {
	if known, ok := s.Known[name]; ok {
		return known, nil
	}
	cfg, err := s.Get(name)
	if err != nil {
		return nil, err
	}
	read := &ProviderConfigRef{Cfg: cfg}
	if cfg != nil {
		read.References = catalog.References(cfg)
		var outside string
		outside, read.VersionKnown = s.ExternalVersion(read.References)
		read.Version = VersionOfConfig(cfg, outside)
	}
	s.Known[name] = read
	return read, nil
}

// ForResource finds the ProviderConfig that a resource is made with, or was made with when it is not wanted any more; nil when there is none. Why
// there is none is told by whoever needs it.
func (s *ProviderConfigs) ForResource(r *resource.Resource, rec *ledger.Instance, wanted bool) (*ProviderConfigRef, error) {
	if !wanted && rec.Exists() {
		if rec.ProviderConfig == "" {
			return nil, nil
		}
		return s.lookup(rec.ProviderConfig)
	}
	var failed error
	cfg, err := configOf(r, func(name string) (*v1alpha1.ProviderConfig, error) {
		read, err := s.lookup(name)
		if err != nil {
			failed = err
			return nil, err
		}
		return read.Cfg, nil
	})
	if err != nil || cfg == nil {
		return nil, failed
	}
	return s.lookup(cfg.Name)
}

// Names says whether an expression of the ProviderConfig, which may be nil, refers to something.
func (s *ProviderConfigRef) Names(addr lang.Address) bool {
	return s != nil && slices.ContainsFunc(s.References, func(ref lang.Reference) bool { return ref.Address == addr })
}

// Problem is an error at a reference of the ProviderConfig.
func (s *ProviderConfigRef) Problem(at lang.Reference, summary, detail string) v1alpha1.Diagnostic {
	return v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: summary, Detail: detail, Address: ProviderConfigAddress + s.Cfg.Name, Attribute: at.Field}
}
