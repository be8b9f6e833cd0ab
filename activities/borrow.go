package activities

import (
	"context"
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// lender lends a process of a provider that is configured with cfg, until release is called. cfg may be nil.
type lender func(ctx context.Context, e catalog.Entry, cfg *v1alpha1.ProviderConfig, namespace string) (p tfprotov6.ProviderServer, release func(), err error)

// loan is a configured provider for something that is no managed resource.
type loan struct {
	tfprotov6.ProviderServer
	// cfg is nil when the provider is used without a ProviderConfig.
	cfg     *v1alpha1.ProviderConfig
	release func()
}

// config is the name of the ProviderConfig; empty when there is none.
func (l *loan) config() string {
	if l.cfg == nil {
		return ""
	}
	return l.cfg.Name
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
func (a *Activities) borrow(ctx context.Context, r *resource, who *v1alpha1.Identity, as turn) (*loan, error) {
	cfg, err := a.configFor(ctx, r)
	if err != nil {
		return nil, err
	}
	l := &loan{cfg: cfg}
	var limits *v1alpha1.Limits
	if cfg != nil {
		limits = cfg.Spec.Limits
		if err := a.mayUse(ctx, who, r.ref.Namespace, cfg.Name); err != nil {
			return nil, err
		}
	}
	key, done := r.ref.Namespace+"/"+r.entry.Name+"/"+l.config(), func() {}
	if as == asGuest {
		err = a.limits.pace(ctx, key, limits)
	} else {
		done, err = a.limits.take(ctx, key, limits)
	}
	if err != nil {
		return nil, err
	}
	var back func()
	if l.ProviderServer, back, err = a.lender()(ctx, r.entry, cfg, r.ref.Namespace); err != nil {
		done()
		return nil, err
	}
	l.release = func() {
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

func (a *Activities) fromCatalog(ctx context.Context, e catalog.Entry, cfg *v1alpha1.ProviderConfig, namespace string) (tfprotov6.ProviderServer, func(), error) {
	p, err := a.Catalog.Acquire(ctx, e, cfg, func(ctx context.Context, name, key string) ([]byte, error) {
		return a.Configs.Secret(ctx, namespace, name, key)
	})
	switch {
	case err == nil:
		return p, p.Release, nil
	case cfg != nil:
		return nil, nil, fmt.Errorf("configure provider %q with ProviderConfig %q: %w", e.Name, cfg.Name, err)
	default:
		return nil, nil, fmt.Errorf("configure provider %q without a ProviderConfig (there is none named %q or %q): %w", e.Name, v1alpha1.DefaultProviderConfig, e.Name, err)
	}
}

// bare lends a process that nobody configured.
func (a *Activities) bare(ctx context.Context, e catalog.Entry) (tfprotov6.ProviderServer, func(), error) {
	if a.lend != nil {
		return a.lend(ctx, e, nil, "")
	}
	p, err := a.Catalog.Unconfigured(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	return p, p.Release, nil
}
