package applying

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/query"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
)

// importClaims prevents two plans of this process from importing the same resource at once. The checks of both may pass
// when they begin, because neither has recorded the resource yet. Between several processes, a slot does that.
type importClaims struct {
	mu sync.Mutex
	// pending holds the owners whose import is not recorded yet, by object.
	pending map[types.UID]query.Owner
}

// claimImport returns a *changes.StaleError if another object manages the resource that the step imports, or is about
// to, and CheckOther does not permit the import. The caller calls release when the import is recorded or failed.
func (s *stepRun) claimImport(ctx context.Context, r *resource.Resource) (release func(), err error) {
	claims, c := &s.imports, s.Change
	common := func() {}
	if s.Processes.Processes() > 1 {
		if common, err = s.Processes.TakeSlot(ctx, importSlot(r.Address.Type, c.Refreshed.ID()), 1); err != nil {
			return nil, store.Failed(err)
		}
	}
	fair.Lock(ctx, &claims.mu)
	defer claims.mu.Unlock()
	if err := s.checkOwners(ctx, r, c.Refreshed, slices.Collect(maps.Values(claims.pending))...); err != nil {
		common()
		return nil, err
	}
	state := *c.Refreshed
	state.Type, state.ProviderConfig = r.Address.Type, c.ProviderConfig
	if claims.pending == nil {
		claims.pending = map[types.UID]query.Owner{}
	}
	claims.pending[c.Object.UID] = query.OwnerOf(c.Object, r.Entry, &state)
	return func() {
		common()
		claims.mu.Lock()
		defer claims.mu.Unlock()
		delete(claims.pending, c.Object.UID)
	}, nil
}

// importSlot returns the name of the slot for imports of a resource.
func importSlot(resourceType, id string) string {
	return fmt.Sprintf("import/%s/%x", resourceType, sha256.Sum256([]byte(id)))
}

// checkOwners returns a *changes.StaleError if another object manages a resource with the ID or identity in a state,
// and CheckOther does not permit the step. pending are owners that are not recorded yet.
func (s *stepRun) checkOwners(ctx context.Context, r *resource.Resource, state *ledger.State,
	pending ...query.Owner) error {
	if err := s.Index.Refresh(ctx); err != nil {
		return err
	}
	others, err := changes.OtherOwners(ctx, s.Sources, s.Change, r.Entry, state, pending...)
	if err != nil {
		return err
	}
	return s.checkOthers(ctx, others)
}

// checkOthers returns a *changes.StaleError if CheckOther does not permit the step because of an object.
func (s *stepRun) checkOthers(ctx context.Context, others []changes.OtherOwner) error {
	if len(others) == 0 {
		return nil
	}
	actors := changes.ActorsOf(s.Sources, s.Plan)
	for _, other := range others {
		if err := actors.CheckOther(ctx, s.Change, other); err != nil {
			return err
		}
	}
	return nil
}

// checkReconfigured checks the owners if the provider has other arguments than those with which it returned a state.
func (s *stepRun) checkReconfigured(ctx context.Context, l *scope.Lease, state *ledger.State) error {
	if !state.Exists() || !l.Reconfigured(state) {
		return nil
	}
	return s.checkOwners(ctx, s.resource, state)
}

// checkRead returns a *changes.StaleError if a create of another object may have made the resource, and CheckOther does
// not permit the step. Call it after a read with arguments that no earlier read used. If the read returned the recorded
// state, the resource is the recorded one.
func (s *stepRun) checkRead(ctx context.Context, l *scope.Lease, recorded, found instance.State) error {
	before, _ := recorded.Value.UnmarkDeep()
	after, _ := found.Value.UnmarkDeep()
	if !found.Exists() || before.RawEquals(after) {
		return nil
	}
	var state ledger.State
	if err := l.Record(&state, found); err != nil {
		return err
	}
	if err := s.Index.Refresh(ctx); err != nil {
		return err
	}
	creators, err := changes.Creators(ctx, s.Sources, s.Change, s.resource.Entry, &state)
	if err != nil {
		return err
	}
	return s.checkOthers(ctx, creators)
}
