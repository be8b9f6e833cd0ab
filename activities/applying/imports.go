package applying

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/query"
	"github.com/hykube/hykube/internal/resource"
)

// importClaims prevents two plans from importing the same resource at once. Each was checked when it began, and neither
// has recorded the resource yet.
type importClaims struct {
	mu sync.Mutex
	// owners are those of the ledger when the first import of a type was claimed, and all that were claimed since then.
	owners query.OwnersByType
	// pending holds the objects whose import is not recorded yet.
	pending map[types.UID]bool
}

// claimImport returns a *changes.StaleError if another object manages the resource that the step imports, or is about
// to, and CheckOther does not permit the import. The caller calls release when the import is recorded or failed.
func (s *stepRun) claimImport(ctx context.Context, r *resource.Resource) (release func(), err error) {
	claims, c := &s.imports, s.Change
	fair.Lock(ctx, &claims.mu)
	defer claims.mu.Unlock()
	t := instance.NewType(r.Entry.Schema, r.Address.Type)
	owners, err := claims.owners.Of(ctx, s.Sources, r.Entry.Name, &t)
	if err != nil {
		return nil, err
	}
	others, err := changes.OtherOwners(ctx, s.Sources, c, r, owners)
	if err != nil {
		return nil, err
	}
	actors := changes.ActorsOf(s.Sources, s.Plan)
	for _, other := range others {
		rec, err := s.Ledger.Instance(ctx, other.Object)
		if err != nil {
			return nil, err
		}
		// The object may have forgotten the resource since then.
		if !claims.pending[other.Object.UID] && !rec.Exists() {
			continue
		}
		if err := actors.CheckOther(ctx, c, other); err != nil {
			return nil, err
		}
	}
	state := *c.Refreshed
	state.Type, state.ProviderConfig = r.Address.Type, c.ProviderConfig
	owners.Add(c.Object, &state, &t)
	if claims.pending == nil {
		claims.pending = map[types.UID]bool{}
	}
	claims.pending[c.Object.UID] = true
	return func() {
		claims.mu.Lock()
		defer claims.mu.Unlock()
		delete(claims.pending, c.Object.UID)
	}, nil
}

// reset forgets the owners. The next import reads them from the ledger, with all imports that are not pending.
func (i *importClaims) reset() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.pending) == 0 {
		i.owners = nil
	}
}
