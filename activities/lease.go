package activities

import (
	"cmp"
	"context"
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
)

// lease is a configured provider for one managed resource.
type lease struct {
	instance.Type
	*configuredProvider
	entry catalog.Entry
}

// configFor finds the ProviderConfig of a resource: the one that its lifecycle names; else the one named "default", if
// it is one of the resource's provider; else the one named like the provider; else none.
func (a *Activities) configFor(ctx context.Context, r *resource) (*v1alpha1.ProviderConfig, error) {
	return configOf(r, func(name string) (*v1alpha1.ProviderConfig, error) { return a.Configs.Get(ctx, r.ref.Namespace, name) })
}

// configOf is configFor over any source of ProviderConfigs; get returns nil for one that is not there.
func configOf(r *resource, get func(name string) (*v1alpha1.ProviderConfig, error)) (*v1alpha1.ProviderConfig, error) {
	named := r.lifecycle.ProviderConfig
	candidates := []string{v1alpha1.DefaultProviderConfig, r.entry.Name}
	if named != "" {
		candidates = []string{named}
	}
	for _, name := range candidates {
		cfg, err := get(name)
		if err != nil {
			return nil, err
		}
		switch {
		case cfg != nil && cfg.Spec.Provider == r.entry.Name:
			return cfg, nil
		case cfg != nil && named != "":
			return nil, fmt.Errorf("lifecycle.providerConfig: %q configures the provider %q, not %q", named, cfg.Spec.Provider, r.entry.Name)
		}
	}
	if named != "" {
		return nil, fmt.Errorf("lifecycle.providerConfig: there is no ProviderConfig %q in the namespace %q", named, r.ref.Namespace)
	}
	return nil, nil
}

// lease acquires the provider of a resource. For a destroy the configuration is the recorded one.
func (s *scope) lease(ctx context.Context, r *resource, rec *ledger.State, wanted bool, as limitMode) (*lease, error) {
	var cfg *v1alpha1.ProviderConfig
	var err error
	if wanted || !rec.Exists() {
		cfg, err = s.configFor(ctx, r)
	} else if rec.ProviderConfig != "" {
		if cfg, err = s.Configs.Get(ctx, r.ref.Namespace, rec.ProviderConfig); err == nil && cfg == nil {
			err = fmt.Errorf("the ProviderConfig %q, which the resource was made with, does not exist any more; create it again", rec.ProviderConfig)
		}
	}
	if err == nil && wanted && begins(rec, cfg) {
		err = leaving(fmt.Sprintf("the ProviderConfig %q", cfg.Name))
	}
	if err != nil {
		return nil, err
	}
	l := &lease{entry: r.entry, Type: instance.NewType(r.entry.Schema, r.addr.Type)}
	l.Deferral = true
	if l.MetaBlock != nil {
		if l.Meta, err = s.Catalog.Meta(r.entry, cfg); err != nil {
			return nil, err
		}
	}
	if l.configuredProvider, err = s.acquireWith(ctx, r, cfg, as); err != nil {
		return nil, err
	}
	l.Provider = l.configuredProvider.ProviderServer
	return l, nil
}

// begins says whether a resource would begin to use a ProviderConfig, which may be nil, although that is being deleted. It serves those
// that were made with it until they are gone.
func begins(rec *ledger.State, cfg *v1alpha1.ProviderConfig) bool {
	return cfg != nil && cfg.DeletionTimestamp != nil && rec.ProviderConfig != cfg.Name
}

// replaceable refuses to begin a replacement with a ProviderConfig that is being deleted: its new instance is something new. It is asked
// before anything is destroyed. A replacement that is under way keeps its ProviderConfig.
func (s *stepRun) replaceable(ctx context.Context) error {
	c := s.change
	if c.Action != v1alpha1.ActionReplace || c.HalfDone || c.ProviderConfig == "" {
		return nil
	}
	cfg, err := s.Configs.Get(ctx, c.Object.Namespace, c.ProviderConfig)
	if err != nil {
		return err
	}
	if cfg == nil {
		return leaving(fmt.Sprintf("the ProviderConfig %q", c.ProviderConfig))
	}
	if what, err := s.Configs.Leaving(ctx, cfg); err != nil || what != "" {
		return cmp.Or(err, leaving(what))
	}
	return nil
}

// leaving refuses to create a resource with a configuration that is being deleted.
func leaving(what string) error {
	return &diag.Failure{Operation: "configure provider", Diagnostics: diag.Diagnostics{{
		Severity: v1alpha1.SeverityError, Summary: "Configuration is being deleted",
		Detail: fmt.Sprintf("Nothing new can be made, since %s is being deleted or is gone. It serves the resources that exist until they are destroyed. "+
			"Name another ProviderConfig in lifecycle.providerConfig, or take the deletion back with kubectl hykube undelete.", what),
	}}}
}

// mayUse refuses a ProviderConfig to somebody without the verb "use" on it.
func (a *Activities) mayUse(ctx context.Context, who *v1alpha1.Identity, namespace, name string) error {
	if who == nil {
		return fmt.Errorf("nobody is recorded as having asked for the plan; make a new one")
	}
	ok, err := a.Access.MayUse(ctx, *who, namespace, name)
	if err != nil {
		return err
	}
	if !ok {
		return &ForbiddenError{fmt.Sprintf("the user %q may not use the ProviderConfig %q in the namespace %q: ask for the verb \"use\" on providerconfigs.hykube.io", who.Username, name, namespace)}
	}
	return nil
}

// transient says whether the same call may succeed a little later. For a call that changes infrastructure that is not enough to
// make it again.
func transient(err error) bool { return diag.IsFailure(err, diag.Throttled, diag.Unreachable) }

// throttled says whether a provider's API turned a call away before doing anything.
func throttled(err error) bool { return diag.IsFailure(err, diag.Throttled) }
