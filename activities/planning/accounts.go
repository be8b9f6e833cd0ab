package planning

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
)

// This file finds out who wrote the arguments of a provider, and whether another person approved them before. The
// writers then contribute to no further create of the type.

// accounts knows the arguments of the ProviderConfigs of a plan. It evaluates each ProviderConfig once.
type accounts struct {
	writers *writers
	ledger  *ledger.Ledger

	mu    sync.Mutex
	known map[*scope.ProviderConfigRef]configAccount
}

// configAccount is the account of a ProviderConfig, with the digests that were approved for each type.
type configAccount struct {
	ledger.Account
	approved map[string]string
}

// approvedFor reports whether a person approved the account for a Terraform type. Values that rotate are approved for
// all types at once: for this one, a person need only have approved all other arguments.
func (a *configAccount) approvedFor(typ string) bool {
	lasting, _, known := strings.Cut(a.Digest, "/")
	return known && strings.HasPrefix(a.approved[typ], lasting+"/") &&
		slices.Contains(slices.Collect(maps.Values(a.approved)), a.Digest)
}

func newAccounts(w *writers, l *ledger.Ledger) *accounts {
	return &accounts{writers: w, ledger: l, known: map[*scope.ProviderConfigRef]configAccount{}}
}

// of returns the account of a node with a ProviderConfig. changed is true if its resource is recorded with other
// arguments.
func (a *accounts) of(n *node) (account ledger.Account, changed bool) {
	fair.Lock(a.writers.ctx, &a.mu)
	known, ok := a.known[n.config]
	if !ok {
		known = a.read(n)
		a.known[n.config] = known
	}
	a.mu.Unlock()
	account = known.Account
	account.Approved = known.approvedFor(n.Address.Type)
	return account, n.record.HasOtherArguments(account.Arguments.Configuration)
}

// read evaluates the ProviderConfig of a node, and then reads the writers, so that a later write has a later writer.
// Arguments that are not known now, or may not be read, are empty: the proposal then reports the reason.
func (a *accounts) read(n *node) (out configAccount) {
	cfg := n.config.Cfg
	args, err := a.writers.values.ArgumentsOf(a.writers.ctx, n.Resource, cfg.Name)
	lasting, rotating := a.writers.ofArguments(cfg, n.config.References)
	out.Writers = contributor.Merge(append(slices.Clone(lasting), rotating...)...)
	if err != nil || args.Ephemeral || len(out.Writers) == 0 {
		return out
	}
	out.Arguments = args
	if out.approved, err = a.ledger.Accounts(a.writers.ctx, cfg); err != nil {
		a.writers.logger.Warn("read the approved accounts of a ProviderConfig", "namespace", cfg.Namespace, "name",
			cfg.Name, "error", err)
		return out
	}
	out.Digest = accountDigest(n.config.Version, args.Configuration, lasting, rotating)
	return out
}

// written is a write of an argument. At is empty for an argument that rotates: its writers may put the approved value
// back.
type written struct {
	By    v1alpha1.Identity
	Wrote []string
	At    string
}

// withoutGroups returns an identity without groups, which change over time.
func withoutGroups(who v1alpha1.Identity) v1alpha1.Identity {
	who.Groups, who.Through = nil, slices.Clone(who.Through)
	for i := range who.Through {
		who.Through[i].Groups = nil
	}
	return who
}

// accountDigest identifies the arguments of a provider with the version of its ProviderConfig and all their writes. So
// neither other arguments, nor a later write of the same ones, have the same digest. An argument that rotates may
// choose an account, too, so its value counts, in the part behind the slash. accountDigest returns "" if an argument, a
// writer or a time is unknown.
func accountDigest(version string, arguments ledger.Configuration, lasting, rotating [][]v1alpha1.Contributor) string {
	if version == "" || arguments.Arguments == "" {
		return ""
	}
	digest := func(lists [][]v1alpha1.Contributor, rotates bool, identified ...string) string {
		all := [][]written{}
		for _, list := range lists {
			writes := []written{}
			for _, c := range list {
				if c.More || c.At.IsZero() {
					return ""
				}
				w := written{By: withoutGroups(c.Identity), Wrote: c.Wrote}
				if !rotates {
					w.At = c.At.UTC().String()
				}
				writes = append(writes, w)
			}
			all = append(all, writes)
		}
		raw, err := json.Marshal([]any{identified, all})
		if err != nil { // cannot happen
			return ""
		}
		sum := sha256.Sum256(raw)
		return base64.RawURLEncoding.EncodeToString(sum[:])
	}
	last, rotate := digest(lasting, false, version, arguments.Arguments), digest(rotating, true, arguments.Rotating)
	if last == "" || rotate == "" {
		return ""
	}
	return last + "/" + rotate
}

// bindAccount compares the arguments of a provider with those that the survey found, or with those of the record of a
// resource that was applied with them. If they differ, or are not known any more, because the plan changes what they
// refer to or a user wrote them since the survey, their present writers contribute. rec is nil for an action.
func (pr *proposal) bindAccount(ctx context.Context, c *ledger.Change, p *session.Session, rec *ledger.Instance) {
	now := ledger.Configuration(p.Digest)
	a := c.Account
	if a == nil && !rec.HasOtherArguments(now) || a != nil && a.Digest != "" && a.Arguments.Same(now) {
		return
	}
	if a == nil {
		a = new(ledger.Account)
	}
	writers := contributor.Merge(a.Writers, pr.writersOf(ctx, p))
	c.Contributors = contributor.Merge(c.Contributors, writers)
	c.Account = &ledger.Account{Writers: writers}
}

// writersOf returns who wrote the arguments of a configured provider. It reads them after the provider was configured,
// so that whoever wrote these values is among them, unless the plan is stale.
func (pr *proposal) writersOf(ctx context.Context, p *session.Session) []v1alpha1.Contributor {
	if p.Config == nil {
		return nil
	}
	of := writtenConfig{p.Config.UID, ledger.Configuration(p.Digest)}
	fair.Lock(ctx, &pr.writing)
	defer pr.writing.Unlock()
	known, ok := pr.writers[of]
	if !ok {
		w := newWriters(ctx, pr.scope, pr.Logger, pr.plan.Namespace)
		known = contributor.Merge(w.ofConfig(p.Config, catalog.References(p.Config))...)
		pr.writers[of] = known
	}
	return known
}

// writtenConfig identifies a ProviderConfig with its arguments.
type writtenConfig struct {
	config    types.UID
	arguments ledger.Configuration
}
