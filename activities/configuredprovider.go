package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/provider"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// providerSource acquires a process of a provider under a configuration, until release is called.
type providerSource func(ctx context.Context, e catalog.Entry, conf provider.Configuration) (p tfprotov6.ProviderServer, release func(), err error)

// configuredProvider is a configured provider, with the permission to make a call.
type configuredProvider struct {
	tfprotov6.ProviderServer
	// cfg is nil when the provider is used without a ProviderConfig.
	cfg *v1alpha1.ProviderConfig
	// known is false while the plan does not know all that the provider is configured with.
	known   bool
	release func()
}

// config is the name of the ProviderConfig; empty when there is none.
func (l *configuredProvider) config() string {
	if l.cfg == nil {
		return ""
	}
	return l.cfg.Name
}

// stopped says whether the provider was asked to stop what it does.
func (l *configuredProvider) stopped() bool {
	p, ok := l.ProviderServer.(stoppable)
	return ok && p.Stopped()
}

// limitMode says how a caller waits for the limits of a ProviderConfig.
type limitMode bool

const (
	// slotAndRate waits for one of the calls that may be under way at once.
	slotAndRate limitMode = true
	// rateOnly waits for the rate alone: a caller whose resource has a lease already must not wait for that one.
	rateOnly limitMode = false
)

// acquire returns the provider of a resource, configured by the ProviderConfig that the requester may use.
func (s *scope) acquire(ctx context.Context, r *resource, as limitMode) (*configuredProvider, error) {
	cfg, err := s.configFor(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.acquireWith(ctx, r, cfg, as)
}

// acquireWith returns the provider of a resource under a ProviderConfig, which may be nil.
func (s *scope) acquireWith(ctx context.Context, r *resource, cfg *v1alpha1.ProviderConfig, as limitMode) (*configuredProvider, error) {
	l := &configuredProvider{cfg: cfg}
	var limits *v1alpha1.Limits
	if cfg != nil {
		limits = cfg.Spec.Limits
		if err := s.mayUse(ctx, s.who, r.ref.Namespace, cfg.Name); err != nil {
			return nil, configurationError(r.entry, cfg, err)
		}
	}
	conf, err := s.configuration(ctx, r.entry, cfg)
	if err != nil {
		return nil, configurationError(r.entry, cfg, err)
	}
	l.known = conf.Config.IsWhollyKnown()
	key, done := r.ref.Namespace+"/"+r.entry.Name+"/"+l.config(), func() {}
	if as == rateOnly {
		err = s.limits.waitForRate(ctx, key, limits)
	} else {
		done, err = s.limits.acquire(ctx, key, limits)
	}
	if err != nil {
		return nil, err
	}
	var back func()
	if l.ProviderServer, back, err = s.providerSource()(ctx, r.entry, conf); err != nil {
		done()
		return nil, configurationError(r.entry, cfg, err)
	}
	noted := s.cancels.trackLease(s.plan, l.ProviderServer)
	l.release = func() {
		noted()
		back()
		done()
	}
	return l, nil
}

func (a *Activities) providerSource() providerSource {
	if a.source != nil {
		return a.source
	}
	return a.fromCatalog
}

func (a *Activities) fromCatalog(ctx context.Context, e catalog.Entry, conf provider.Configuration) (tfprotov6.ProviderServer, func(), error) {
	p, err := a.Catalog.Acquire(ctx, e, conf)
	if err != nil {
		return nil, nil, err
	}
	return p, p.Release, nil
}

// configError says that a provider refused its configuration, or that there is none to give it. It is one problem of the
// ProviderConfig, whatever uses that.
type configError struct {
	provider string
	// config is the name of the ProviderConfig; empty when there is none.
	config string
	error
}

func (e *configError) Error() string {
	if e.config != "" {
		return fmt.Sprintf("configure provider %q with ProviderConfig %q: %v", e.provider, e.config, e.error)
	}
	return fmt.Sprintf("configure provider %q without a ProviderConfig (there is none named %q or %q): %v", e.provider, v1alpha1.DefaultProviderConfig, e.provider, e.error)
}

func (e *configError) Unwrap() error { return e.error }

// diagnostics are those of the ProviderConfig, not of what uses it; nil when the provider is used without one.
func (e *configError) diagnostics() diag.Diagnostics {
	if e.config == "" {
		return nil
	}
	at := providerConfigAddress + e.config
	if f, ok := errors.AsType[*diag.Failure](e.error); ok && len(f.Diagnostics) > 0 {
		out := slices.Clone(f.Diagnostics)
		for i := range out {
			out[i].Address = at
		}
		return out
	}
	return diag.Diagnostics{{Severity: v1alpha1.SeverityError, Summary: "Provider cannot be configured", Address: at, Detail: e.Error()}}
}

// providerConfigAddress begins the address of a diagnostic that is about a ProviderConfig.
const providerConfigAddress = "ProviderConfig/"

// configurationError says which configuration an error is about; cfg may be nil. What passes stays what it is.
func configurationError(e catalog.Entry, cfg *v1alpha1.ProviderConfig, err error) error {
	ce := &configError{provider: e.Name, error: err}
	if cfg != nil {
		ce.config = cfg.Name
	}
	return ce
}

// configuration evaluates a ProviderConfig. It may be unknown in parts while planning, and never when a plan is applied.
func (s *scope) configuration(ctx context.Context, e catalog.Entry, cfg *v1alpha1.ProviderConfig) (provider.Configuration, error) {
	l := &evaluator{ctx: ctx, scope: s}
	var missing []lang.Address
	conf, err := s.Catalog.Configuration(ctx, e, cfg, catalog.Sources{
		Secret: func(ctx context.Context, name, key string) ([]byte, error) {
			value, err := s.Configs.Secret(ctx, cfg.Namespace, name, key)
			s.noteSecretText(string(value))
			return value, err
		},
		Functions: s.functions(),
		Value: func(addr lang.Address) (cty.Value, bool) {
			v, ok := l.resolve(addr)
			if !ok {
				missing = append(missing, addr)
				return cty.DynamicVal, true
			}
			return v, true
		},
	})
	s.noteSecretAttributes(e.Schema.Config.Block, conf.Config)
	if l.err != nil {
		return provider.Configuration{}, l.err // what could not be read is not unknown: nothing may be made of it
	}
	if err == nil && s.planned == nil && len(missing) > 0 && !conf.Config.IsWhollyKnown() {
		err = fmt.Errorf("spec.config: refers to %s, which has no values: it was not made yet, or is gone. Plan again with --target %s alone, then the rest", missing[0], missing[0])
	}
	return conf, err
}

// unconfiguredProvider returns a process that was not configured.
func (a *Activities) unconfiguredProvider(ctx context.Context, e catalog.Entry) (tfprotov6.ProviderServer, func(), error) {
	if a.source != nil {
		return a.source(ctx, e, provider.Configuration{})
	}
	p, err := a.Catalog.Unconfigured(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	return p, p.Release, nil
}
