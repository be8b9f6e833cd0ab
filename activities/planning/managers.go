package planning

import (
	"context"
	"fmt"
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/query"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
)

// sharedID is an ID that several resources of a type have in one account; see query.Sharing.
type sharedID struct {
	terraformType, id string
	configuration     ledger.Configuration
}

// warnOtherManagers adds a warning to a destroy of infrastructure that another object manages, too. Two causes are
// possible. A resource was removed outside of Hykube, and another object created one with the same ID. Or two objects
// imported the same resource at once.
//
// If the provider returned the recorded values, the resource is still the recorded one. Then no object manages it, too,
// because of an ID that is known to name several resources. Nor does one whose resources are only values.
func (pr *proposal) warnOtherManagers(ctx context.Context, c *ledger.Change, r *resource.Resource, state *ledger.State,
	l *scope.Lease) error {
	if query.ReachesNothing(r.Entry) {
		return nil
	}
	unchanged := c.Read && len(c.Drift) == 0 && !c.Reconfigured && state.IdentityText() == ""
	key := sharedID{r.Address.Type, state.ID(), state.Configuration}
	if unchanged && pr.sharedIDs.has(key) {
		return nil
	}
	var other *query.Owner
	sharing := query.NewSharing(state)
	for own, err := range query.Owners(ctx, pr.Sources, r.Entry, state.IdentityText(), state.ID(),
		func(v1alpha1.ObjectReference) bool { return false }) {
		if err != nil {
			return err
		}
		if unchanged && sharing.Proves(own) {
			pr.sharedIDs.note(key)
			return nil
		}
		if other != nil {
			continue
		}
		manages, err := pr.managesToo(ctx, r, state, own, l)
		if err != nil {
			return err
		}
		if manages {
			other = &own
		}
	}
	if other == nil {
		return nil
	}
	who, err := pr.describeOwner(ctx, *other)
	if err != nil {
		return err
	}
	d := lang.Problem(r.Address, "", "Another object manages the same infrastructure", fmt.Sprintf(
		"%s manages the infrastructure that this plan destroys. To keep it there, set lifecycle.destroy: false on %s and then delete the object: the plan forgets the resource and destroys nothing.", who, r.Address))
	d.Severity, c.OtherOwner = v1alpha1.SeverityWarning, true
	pr.warnOnce(c, d)
	return nil
}

// managesToo reports whether an owner seems to manage the resource in a state, too.
func (pr *proposal) managesToo(ctx context.Context, r *resource.Resource, state *ledger.State, own query.Owner,
	l *scope.Lease) (bool, error) {
	identity, here := state.IdentityText(), own.Object.Namespace == pr.plan.Namespace
	switch {
	case own.Object.UID == r.Ref.UID:
		return false, nil
	case !own.Is(r.Entry, r.Address.Type), own.OtherIdentity(identity), !own.HasExactly(identity, state.ID()),
		own.NamedOtherwise(r.Entry, state):
		return false, nil
	case here && own.Config == state.ProviderConfig, state.Configuration.Same(own.Configuration):
		return true, nil
	case here, r.Lifecycle.Import == nil:
		return false, nil
	}
	return query.SameAccount(ctx, pr.Sources, r.Entry, pr.plan.Namespace, l.ConfigName(), own.Object.Namespace,
		own.Config)
}

// sharedIDs holds the IDs that are known to name several resources.
type sharedIDs struct {
	mu    sync.Mutex
	known map[sharedID]bool
}

func (s *sharedIDs) has(key sharedID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[key]
}

func (s *sharedIDs) note(key sharedID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[sharedID]bool{}
	}
	s.known[key] = true
}
