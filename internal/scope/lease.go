package scope

import (
	"context"
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/session"

	"k8s.io/apimachinery/pkg/types"
)

// DataSource returns the data source of an object with its provider.
func (s *Scope) DataSource(ctx context.Context, l *session.Session,
	r *resource.Resource) (*instance.DataSource, error) {
	d := instance.NewDataSource(r.Entry.Schema, r.Address.Type)
	d.Provider, d.Deferral = l.ProviderServer, true
	if d.MetaBlock == nil {
		return &d, nil
	}
	var err error
	d.Meta, err = s.Catalog.Meta(ctx, r.Entry, l.Config)
	return &d, err
}

// Lease is a configured provider with a managed resource type.
type Lease struct {
	instance.Type
	*session.Session
	entry catalog.Entry
}

// Record writes a state that the provider returned to a record.
func (l *Lease) Record(rec *ledger.State, s instance.State) error {
	rec.SetConfiguration(ledger.Configuration(l.Digest))
	return l.Type.Record(rec, s)
}

// Reconfigured reports whether the provider has, or may have, other arguments than those with which it returned a
// recorded state. The ID in the state may then be that of another resource. A record from the time when the provider
// took no arguments has none, so only the names of the ProviderConfigs are compared.
func (l *Lease) Reconfigured(rec *ledger.State) bool {
	return l.entry.TakesConfiguration() && l.Digest.Ephemeral || l.HasOtherArguments(rec)
}

// HasOtherArguments is like Reconfigured, but ignores ephemeral values, which differ each time.
func (l *Lease) HasOtherArguments(rec *ledger.State) bool {
	switch {
	case !l.entry.TakesConfiguration():
		return false
	case rec.Configuration == ledger.Configuration{}:
		return rec.ProviderConfig != "" && rec.ProviderConfig != l.ConfigName()
	}
	return rec.Configuration != ledger.Configuration(l.Digest)
}

// MayBeElsewhere reports whether the provider may reach another account than the recorded one, because it has other
// arguments that do not rotate.
func (l *Lease) MayBeElsewhere(rec *ledger.State) bool {
	return l.HasOtherArguments(rec) && (rec.Configuration == ledger.Configuration{} ||
		rec.Configuration.Arguments != l.Digest.Arguments)
}

// configFor returns the ProviderConfig of a resource: the one in its lifecycle; else "default", if it belongs to the
// resource's provider; else the one with the provider's name; else nil.
func (s *Scope) configFor(ctx context.Context, r *resource.Resource) (*v1alpha1.ProviderConfig, error) {
	return configOf(r, func(name string) (*v1alpha1.ProviderConfig, error) {
		return s.config(ctx, r.Ref.Namespace, name)
	})
}

// config returns a ProviderConfig, or nil if there is none. The scope reads each only once, so that all resources of a
// plan are planned with the same.
func (s *Scope) config(ctx context.Context, namespace, name string) (*v1alpha1.ProviderConfig, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	fair.Lock(ctx, &s.readingConfig)
	defer s.readingConfig.Unlock()
	if cfg, ok := s.configs[key]; ok {
		return cfg, nil
	}
	cfg, err := s.Configs.Get(ctx, namespace, name)
	if err == nil {
		s.configs[key] = cfg
	}
	return cfg, err
}

// ConfigOf returns the ProviderConfig of a resource; nil without one.
func (a *Sources) ConfigOf(ctx context.Context, r *resource.Resource) (*v1alpha1.ProviderConfig, error) {
	return configOf(r, func(name string) (*v1alpha1.ProviderConfig, error) {
		return a.Configs.Get(ctx, r.Ref.Namespace, name)
	})
}

// configOf is like configFor, but reads ProviderConfigs with get. get returns nil if no ProviderConfig has the name.
func configOf(r *resource.Resource,
	get func(name string) (*v1alpha1.ProviderConfig, error)) (*v1alpha1.ProviderConfig, error) {
	named := r.Lifecycle.ProviderConfig
	candidates := []string{v1alpha1.DefaultProviderConfig, r.Entry.Name}
	if named != "" {
		candidates = []string{named}
	}
	for _, name := range candidates {
		cfg, err := get(name)
		if err != nil {
			return nil, err
		}
		switch {
		case cfg != nil && cfg.Spec.Provider == r.Entry.Name:
			return cfg, nil
		case cfg != nil && named != "":
			return nil, fmt.Errorf("lifecycle.providerConfig: %q configures the provider %q, not %q", named,
				cfg.Spec.Provider, r.Entry.Name)
		}
	}
	if named != "" {
		return nil, &AbsentError{fmt.Sprintf(
			"lifecycle.providerConfig: there is no ProviderConfig %q in the namespace %q", named, r.Ref.Namespace)}
	}
	return nil, nil
}

// Lease acquires the provider of a resource. For a destroy, it uses the recorded ProviderConfig.
func (s *Scope) Lease(ctx context.Context, r *resource.Resource, rec *ledger.State, wanted bool,
	as session.LimitMode) (*Lease, error) {
	var cfg *v1alpha1.ProviderConfig
	var err error
	if wanted || !rec.Exists() || appliedWithoutConfig(r, rec) {
		cfg, err = s.configFor(ctx, r)
	} else if rec.ProviderConfig != "" {
		if cfg, err = s.config(ctx, r.Ref.Namespace, rec.ProviderConfig); err == nil && cfg == nil {
			err = fmt.Errorf("the ProviderConfig %q, which the resource was applied with, no longer exists; create it again", rec.ProviderConfig)
		}
	}
	if err == nil && wanted && begins(rec, cfg) {
		err = BeingDeleted(fmt.Sprintf("the ProviderConfig %q", cfg.Name))
	}
	if err != nil {
		return nil, err
	}
	l := &Lease{entry: r.Entry, Type: instance.NewType(r.Entry.Schema, r.Address.Type)}
	l.Deferral = true
	if l.MetaBlock != nil {
		if l.Meta, err = s.Catalog.Meta(ctx, r.Entry, cfg); err != nil {
			return nil, err
		}
	}
	if l.Session, err = s.acquireWith(ctx, r, cfg, as); err != nil {
		return nil, err
	}
	l.Provider, l.Audit = l.Session.ProviderServer, s.Recorder(r, l.ConfigName())
	return l, nil
}

// appliedWithoutConfig reports whether the resource was applied without a ProviderConfig, because the provider took no
// arguments then. Hykube destroys it with the one that it would be applied with.
func appliedWithoutConfig(r *resource.Resource, rec *ledger.State) bool {
	return rec.Exists() && rec.ProviderConfig == "" && r.Entry.TakesConfiguration()
}

// begins reports whether a resource would start to use a ProviderConfig, which may be nil, that is being deleted. Only
// resources that already use it may continue.
func begins(rec *ledger.State, cfg *v1alpha1.ProviderConfig) bool {
	return cfg != nil && cfg.DeletionTimestamp != nil && rec.ProviderConfig != cfg.Name
}

// BeingDeleted returns the error for a resource whose configuration is being deleted.
func BeingDeleted(what string) error {
	return &diag.Failure{Operation: "configure provider", Diagnostics: diag.Diagnostics{{
		Severity: v1alpha1.SeverityError, Summary: "Configuration is being deleted",
		Detail: fmt.Sprintf("No resource can be created with %s, which is being deleted or is gone. Existing resources use it until they are destroyed. "+
			"Set another ProviderConfig in lifecycle.providerConfig, or take the deletion back with kubectl hykube undelete.", what),
	}}}
}
