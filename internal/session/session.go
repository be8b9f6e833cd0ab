// Package session acquires configured providers. It waits for the rate and concurrency limits of their
// ProviderConfigs, and classifies failed calls: throttled, unreachable, and others.
package session

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider"
)

// Stoppable is the lease of a provider process that can be stopped; see provider.Lease.
type Stoppable interface {
	Stop()
	Stopped() bool
}

// observable is the lease of a provider process that reports the diagnostics of its answers; see provider.Lease.
type observable interface {
	Observe(answered func([]*tfprotov6.Diagnostic))
}

// Session is a configured provider that may be called within its limits.
type Session struct {
	tfprotov6.ProviderServer
	// Config is nil if the provider is used without a ProviderConfig.
	Config *v1alpha1.ProviderConfig
	// Known is false if the provider's configuration has values that the plan does not know yet.
	Known bool
	// Key identifies all arguments of the provider, also those that are unknown or ephemeral; see
	// provider.Configuration.
	Key string
	// Digest and SecretDigest are the digests of the provider's configuration; see provider.Configuration.
	Digest       provider.Digest
	SecretDigest string
	// Rotated is true if the arguments may differ from the approved ones in those that rotate or are ephemeral.
	Rotated bool
	// Public are the arguments that hold no secret; see provider.Configuration.
	Public  []provider.Argument
	Release func()
}

// Arguments identify the arguments of the provider, to which an approval is bound.
func (l *Session) Arguments() ledger.Arguments {
	return ledger.Arguments{Configuration: ledger.Configuration(l.Digest), Secrets: l.SecretDigest}
}

// ConfigName returns the name of the ProviderConfig, or "" if there is none.
func (l *Session) ConfigName() string {
	if l.Config == nil {
		return ""
	}
	return l.Config.Name
}

// Stopped reports whether the provider was asked to stop its calls.
func (l *Session) Stopped() bool {
	p, ok := l.ProviderServer.(Stoppable)
	return ok && p.Stopped()
}

// Transient reports whether the same call may succeed later. It does not say that a call that changes infrastructure is
// safe to repeat.
func Transient(err error) bool { return diag.IsFailure(err, diag.Throttled, diag.Unreachable) }

// Throttled reports whether the provider's API rejected a call before doing anything.
func Throttled(err error) bool { return diag.IsFailure(err, diag.Throttled) }

// Width is the maximum number of concurrent calls of one plan, over all provider configurations. BatchWidth is the
// maximum if a provider takes batches.
const (
	Width      = 32
	BatchWidth = 256
)

// Attempts is the maximum number of attempts of a call that may succeed later.
const Attempts = 5

// providerSource acquires a provider process with a configuration. The caller must call release.
type providerSource func(ctx context.Context, e catalog.Entry,
	conf provider.Configuration) (p tfprotov6.ProviderServer, release func(), err error)

// Pool acquires provider processes within the limits of their ProviderConfigs.
type Pool struct {
	// Source acquires a configured process, and Unconfigured an unconfigured one. Tests replace them.
	Source, Unconfigured providerSource
	limits               *limits

	mu sync.Mutex
	// working has the stoppable processes that work for each plan.
	working map[types.UID]map[Stoppable]struct{}
}

// NewPool returns a pool over the installed providers. All processes share the limits. It logs when the API of
// a provider throttles.
func NewPool(c *catalog.Catalog, processes ledger.Processes, logger *slog.Logger) *Pool {
	return &Pool{
		limits:  newLimits(processes, logger),
		working: map[types.UID]map[Stoppable]struct{}{},
		Source: func(ctx context.Context, e catalog.Entry,
			conf provider.Configuration) (tfprotov6.ProviderServer, func(), error) {
			p, err := c.Acquire(ctx, e, conf)
			if err != nil {
				return nil, nil, err
			}
			return p, p.Release, nil
		},
		Unconfigured: func(ctx context.Context, e catalog.Entry,
			_ provider.Configuration) (tfprotov6.ProviderServer, func(), error) {
			p, err := c.Unconfigured(ctx, e)
			if err != nil {
				return nil, nil, err
			}
			return p, p.Release, nil
		},
	}
}

// Wait waits for the limits of the ProviderConfig that key identifies. batched is true for a type whose calls the
// provider takes in batches. The caller must call the admission's Release after its provider call.
func (p *Pool) Wait(ctx context.Context, key string, spec *v1alpha1.Limits, batched bool,
	mode LimitMode) (*Admission, error) {
	defer fair.Pause(ctx)()
	return p.limits.bucket(key, spec).admit(ctx, batched, mode)
}

// Start acquires a configured process for a plan, after Wait admitted its call. plan is nil for a query. The caller
// must call the returned release function.
func (p *Pool) Start(ctx context.Context, e catalog.Entry, conf provider.Configuration, plan *v1alpha1.Plan,
	admitted *Admission) (tfprotov6.ProviderServer, func(), error) {
	defer fair.Pause(ctx)()
	server, release, err := p.Source(ctx, e, conf)
	if o, ok := server.(observable); ok && err == nil {
		o.Observe(admitted.answered)
	}
	lease, ok := server.(Stoppable)
	if err != nil || plan == nil || !ok {
		return server, release, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.working[plan.UID] == nil {
		p.working[plan.UID] = map[Stoppable]struct{}{}
	}
	p.working[plan.UID][lease] = struct{}{}
	return server, func() {
		p.mu.Lock()
		if delete(p.working[plan.UID], lease); len(p.working[plan.UID]) == 0 {
			delete(p.working, plan.UID)
		}
		p.mu.Unlock()
		release()
	}, nil
}

// Working returns the processes that work for a plan and can be stopped.
func (p *Pool) Working(plan types.UID) []Stoppable {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.working[plan]))
}
