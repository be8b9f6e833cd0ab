package planning

import (
	"context"
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
)

// This file finds out whether a person approved the arguments of a provider before. Who wrote them then contributes to no
// further change.

// accounts knows the arguments of the ProviderConfigs of a plan. It evaluates each ProviderConfig once.
type accounts struct {
	ctx     context.Context //nolint:containedctx // the survey has no other
	sources *scope.Sources
	plan    *v1alpha1.Plan

	mu    sync.Mutex
	known map[*scope.ProviderConfigRef]ledger.Configuration
}

func newAccounts(ctx context.Context, sources *scope.Sources, po *v1alpha1.Plan) *accounts {
	return &accounts{ctx: ctx, sources: sources, plan: po, known: map[*scope.ProviderConfigRef]ledger.Configuration{}}
}

// configuration returns the configuration of a node's provider. Its arguments are empty if they are not known now, or may not
// be read: the proposal then reports the reason.
func (a *accounts) configuration(n *node) ledger.Configuration {
	if !n.config.VersionKnown {
		return ledger.Configuration{}
	}
	fair.Lock(a.ctx, &a.mu)
	defer a.mu.Unlock()
	known, ok := a.known[n.config]
	if !ok {
		if args, err := a.sources.NewScope(a.plan, a.plan.Namespace, nil).ArgumentsOf(a.ctx, n.Resource, n.config.Cfg.Name); err == nil {
			known = args.Configuration
		}
		a.known[n.config] = known
	}
	return known
}

// approved returns the account of a node's provider if a person approved a plan that was applied with it; else "".
func (a *accounts) approved(n *node) string {
	account := ledger.AccountOf(n.config.Version, a.configuration(n))
	if account == "" || a.sources.Index == nil || !a.sources.Index.HasAccount(a.plan.Namespace, account) {
		return ""
	}
	return account
}

// changed reports whether a recorded resource was last seen with other arguments of its provider that do not rotate.
func (a *accounts) changed(n *node) bool {
	was := n.record.Configuration.Arguments
	if !n.record.Exists() || was == "" {
		return false
	}
	now := a.configuration(n).Arguments
	return now != "" && now != was
}

// bindAccount adds an unknown contributor to a change whose survey found an approved account, if the provider has another one
// now. The survey then did not look for its writers.
func bindAccount(c *ledger.Change, p *session.Session) {
	if c.Account != "" && c.Account != ledger.AccountOf(c.ConfigVersion, ledger.Configuration(p.Digest)) {
		c.Contributors = contributor.Merge(c.Contributors, []v1alpha1.Contributor{{More: true}})
	}
}
