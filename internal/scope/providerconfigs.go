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

// ProviderConfigs caches the ProviderConfigs of a namespace during a survey, so that each is read once.
type ProviderConfigs struct {
	Get   func(name string) (*v1alpha1.ProviderConfig, error)
	Known map[string]*ProviderConfigRef
	// ExternalVersion returns the version of references to objects that no plan of the namespace changes; see
	// Scope.ExternalVersion.
	ExternalVersion func(refs []lang.Reference) (version string, ok bool)
}

// ProviderConfigRef is a ProviderConfig with its references. Resources that use it depend on these:
// https://developer.hashicorp.com/terraform/language/providers/configuration#provider-configuration-1
type ProviderConfigRef struct {
	Cfg        *v1alpha1.ProviderConfig
	References []lang.Reference
	Checked    bool
	// Version changes whenever the ProviderConfig, or an external object that it refers to, changes. VersionKnown is
	// false if the version cannot be determined, so that its resources must be visited.
	Version      string
	VersionKnown bool
	// Comparable is true if the version can be compared with that of another time. It ignores ephemeral values, which
	// differ each time.
	Comparable bool
}

// ProviderConfigs returns the cache for the namespace of a plan. Each ProviderConfig is read on first use.
func (a *Sources) ProviderConfigs(ctx context.Context, po *v1alpha1.Plan) *ProviderConfigs {
	scope := a.NewScope(po, po.Namespace, nil)
	return &ProviderConfigs{
		Get: func(name string) (*v1alpha1.ProviderConfig, error) {
			return a.Configs.Get(ctx, po.Namespace, name)
		},
		Known:           map[string]*ProviderConfigRef{},
		ExternalVersion: func(refs []lang.Reference) (string, bool) { return scope.ExternalVersion(ctx, refs) },
	}
}

// lookup returns a ProviderConfig. Its Cfg is nil if there is none of that name.
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
		lasting := Lasting(read.References)
		var outside string
		outside, read.Comparable = s.ExternalVersion(lasting)
		read.VersionKnown = read.Comparable && len(lasting) == len(read.References)
		read.Version = VersionOfConfig(cfg, outside)
	}
	s.Known[name] = read
	return read, nil
}

// ForResource returns the ProviderConfig of a resource, or the recorded one if wanted is false. It returns nil if there
// is none. It does not report the reason, since acquiring the provider does.
func (s *ProviderConfigs) ForResource(r *resource.Resource, rec *ledger.Instance,
	wanted bool) (*ProviderConfigRef, error) {
	if !wanted && rec.Exists() && !appliedWithoutConfig(r, &rec.State) {
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

// Lasting returns the references without those to ephemeral resources of other namespaces, which have no version.
func Lasting(refs []lang.Reference) []lang.Reference {
	return slices.DeleteFunc(slices.Clone(refs),
		func(ref lang.Reference) bool { return ref.Namespace != "" && ref.Mode == v1alpha1.ModeEphemeral })
}

// Names reports whether the ProviderConfig, which may be nil, refers to the address.
func (s *ProviderConfigRef) Names(addr lang.Address) bool {
	return s != nil && slices.ContainsFunc(s.References, func(ref lang.Reference) bool { return ref.Address == addr })
}

// Problem returns an error diagnostic at a reference of the ProviderConfig.
func (s *ProviderConfigRef) Problem(at lang.Reference, summary, detail string) v1alpha1.Diagnostic {
	return v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: summary, Detail: detail,
		Address: ProviderConfigAddress + s.Cfg.Name, Attribute: at.Field}
}
