// Package session acquires configured providers. It waits for the rate and concurrency limits of their
// ProviderConfigs, and classifies failed calls: throttled, unreachable, and others.
package session

import (
	"context"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/provider"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// providerSource acquires a process of a provider under a configuration, until release is called.
type providerSource func(ctx context.Context, e catalog.Entry, conf provider.Configuration) (p tfprotov6.ProviderServer, release func(), err error)

// Pool acquires the processes of providers within the limits of their ProviderConfigs.
type Pool struct {
	// Source acquires a configured process, and Unconfigured one that was not configured. Tests replace them.
	Source, Unconfigured providerSource
	// Track notes that a process works for a plan, until back is called; nil notes nothing. The plan is nil for a query.
	Track  func(*v1alpha1.Plan, tfprotov6.ProviderServer) (back func())
	limits *limits
}

// NewPool returns a pool over the installed providers.
func NewPool(c *catalog.Catalog) *Pool {
	return &Pool{
		limits: newLimits(),
		Source: func(ctx context.Context, e catalog.Entry, conf provider.Configuration) (tfprotov6.ProviderServer, func(), error) {
			p, err := c.Acquire(ctx, e, conf)
			if err != nil {
				return nil, nil, err
			}
			return p, p.Release, nil
		},
		Unconfigured: func(ctx context.Context, e catalog.Entry, _ provider.Configuration) (tfprotov6.ProviderServer, func(), error) {
			p, err := c.Unconfigured(ctx, e)
			if err != nil {
				return nil, nil, err
			}
			return p, p.Release, nil
		},
	}
}

// Wait waits for the limits of a ProviderConfig, which key identifies. done must be called when the call has ended.
func (p *Pool) Wait(ctx context.Context, key string, spec *v1alpha1.Limits, mode LimitMode) (done func(), err error) {
	if mode == RateOnly {
		return func() {}, p.limits.waitForRate(ctx, key, spec)
	}
	return p.limits.acquire(ctx, key, spec)
}

// Start acquires a configured process for a plan, which is nil for a query, until release is called.
func (p *Pool) Start(ctx context.Context, e catalog.Entry, conf provider.Configuration, plan *v1alpha1.Plan) (tfprotov6.ProviderServer, func(), error) {
	server, release, err := p.Source(ctx, e, conf)
	if err != nil || p.Track == nil {
		return server, release, err
	}
	back := p.Track(plan, server)
	return server, func() {
		back()
		release()
	}, nil
}

// LimitMode says how a caller waits for the limits of a ProviderConfig.
type LimitMode bool

const (
	// SlotAndRate waits for one of the calls that may be under way at once.
	SlotAndRate LimitMode = true
	// RateOnly waits for the rate alone: a caller whose resource has a lease already must not wait for that one.
	RateOnly LimitMode = false
)
