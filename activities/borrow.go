package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/provider"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// lender lends a process of a provider under a configuration, until release is called.
type lender func(ctx context.Context, e catalog.Entry, conf provider.Configuration) (p tfprotov6.ProviderServer, release func(), err error)

// loan is a configured provider, with the permission to make a call.
type loan struct {
	tfprotov6.ProviderServer
	// cfg is nil when the provider is used without a ProviderConfig.
	cfg *v1alpha1.ProviderConfig
	// known is false while the plan does not know all that the provider is configured with.
	known   bool
	release func()
}

// config is the name of the ProviderConfig; empty when there is none.
func (l *loan) config() string {
	if l.cfg == nil {
		return ""
	}
	return l.cfg.Name
}

// stopped says whether the provider was asked to stop what it does.
func (l *loan) stopped() bool {
	p, ok := l.ProviderServer.(stoppable)
	return ok && p.Stopped()
}

// turn is how a borrower waits for the limits of a ProviderConfig.
type turn bool

const (
	// inLine waits for one of the calls that may be under way at once.
	inLine turn = true
	// asGuest waits for the rate alone: who borrows while a resource has its own lease must not wait for that one.
	asGuest turn = false
)

// borrow lends the provider of a resource to somebody who may use its ProviderConfig.
func (s *scope) borrow(ctx context.Context, r *resource, as turn) (*loan, error) {
	cfg, err := s.configFor(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.loan(ctx, r, cfg, as)
}

// loan lends the provider of a resource under a ProviderConfig, which may be nil.
func (s *scope) loan(ctx context.Context, r *resource, cfg *v1alpha1.ProviderConfig, as turn) (*loan, error) {
	l := &loan{cfg: cfg}
	var limits *v1alpha1.Limits
	if cfg != nil {
		limits = cfg.Spec.Limits
		if err := s.mayUse(ctx, s.who, r.ref.Namespace, cfg.Name); err != nil {
			return nil, unconfigured(r.entry, cfg, err)
		}
	}
	conf, err := s.configuration(ctx, r.entry, cfg)
	if err != nil {
		return nil, unconfigured(r.entry, cfg, err)
	}
	l.known = conf.Config.IsWhollyKnown()
	key, done := r.ref.Namespace+"/"+r.entry.Name+"/"+l.config(), func() {}
	if as == asGuest {
		err = s.limits.pace(ctx, key, limits)
	} else {
		done, err = s.limits.take(ctx, key, limits)
	}
	if err != nil {
		return nil, err
	}
	var back func()
	if l.ProviderServer, back, err = s.lender()(ctx, r.entry, conf); err != nil {
		done()
		return nil, unconfigured(r.entry, cfg, err)
	}
	noted := s.stops.lent(s.plan, l.ProviderServer)
	l.release = func() {
		noted()
		back()
		done()
	}
	return l, nil
}

func (a *Activities) lender() lender {
	if a.lend != nil {
		return a.lend
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
	if de, ok := errors.AsType[*instance.DiagnosticsError](e.error); ok {
		out := slices.Clone(de.Diagnostics)
		for i := range out {
			out[i].Address = at
		}
		return out
	}
	return diag.Diagnostics{{Severity: v1alpha1.SeverityError, Summary: "Provider cannot be configured", Address: at, Detail: e.Error()}}
}

// providerConfigAddress begins the address of a diagnostic that is about a ProviderConfig.
const providerConfigAddress = "ProviderConfig/"

// unconfigured says which configuration an error is about; cfg may be nil. What passes stays what it is.
func unconfigured(e catalog.Entry, cfg *v1alpha1.ProviderConfig, err error) error {
	ce := &configError{provider: e.Name, error: err}
	if cfg != nil {
		ce.config = cfg.Name
	}
	return ce
}

// configuration evaluates a ProviderConfig. It may be unknown in parts while planning, and never when a plan is applied.
func (s *scope) configuration(ctx context.Context, e catalog.Entry, cfg *v1alpha1.ProviderConfig) (provider.Configuration, error) {
	l := &look{ctx: ctx, scope: s}
	var missing []lang.Address
	conf, err := s.Catalog.Configuration(ctx, e, cfg, catalog.Sources{
		Secret: func(ctx context.Context, name, key string) ([]byte, error) {
			value, err := s.Configs.Secret(ctx, cfg.Namespace, name, key)
			s.heedText(string(value))
			return value, err
		},
		Functions: s.functions(),
		Value: func(addr lang.Address) (cty.Value, bool) {
			v, ok := l.up(addr)
			if !ok {
				missing = append(missing, addr)
				return cty.DynamicVal, true
			}
			return v, true
		},
	})
	s.heedValue(e.Schema.Config.Block, conf.Config)
	if l.err != nil {
		return provider.Configuration{}, l.err // what could not be read is not unknown: nothing may be made of it
	}
	if err == nil && s.planned == nil && len(missing) > 0 && !conf.Config.IsWhollyKnown() {
		err = fmt.Errorf("spec.config: refers to %s, which has no values: it was not made yet, or is gone. Plan again with --target %s alone, then the rest", missing[0], missing[0])
	}
	return conf, err
}

// bare lends a process that nobody configured.
func (a *Activities) bare(ctx context.Context, e catalog.Entry) (tfprotov6.ProviderServer, func(), error) {
	if a.lend != nil {
		return a.lend(ctx, e, provider.Configuration{})
	}
	p, err := a.Catalog.Unconfigured(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	return p, p.Release, nil
}
