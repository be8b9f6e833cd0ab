package planning

import (
	"context"
	"sync"

	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/ledger"

	"k8s.io/apimachinery/pkg/types"
)

// aheadPage is the number of changes that readAhead reads at once.
const aheadPage = 64

// readAhead reads the changes of a plan one by one. Most plans take them in the order of their indexes, so it then reads
// those that follow, too.
type readAhead struct {
	ledger *ledger.Ledger
	plan   types.UID

	mu sync.Mutex
	// next is the index after the highest one that was read, and known has the changes that were read and not taken.
	next  int32
	known map[int32]*ledger.Change
}

// change returns a change as it is stored. It may have read it before, so a caller that writes the change must first call
// forget.
func (a *readAhead) change(ctx context.Context, i int32) (*ledger.Change, error) {
	fair.Lock(ctx, &a.mu) // a read of another process gives the slot of the processors back
	defer a.mu.Unlock()
	if c := a.known[i]; c != nil {
		delete(a.known, i)
		return c, nil
	}
	if i != a.next {
		return a.ledger.Change(ctx, a.plan, i)
	}
	page, err := a.ledger.ChangesPage(ctx, a.plan, i, aheadPage)
	if err != nil {
		return nil, err
	}
	a.known = make(map[int32]*ledger.Change, len(page))
	for _, c := range page[1:] {
		a.known[c.Index] = c
	}
	a.next = page[len(page)-1].Index + 1
	return page[0], nil
}

// forget makes the next call for a change read it again.
func (a *readAhead) forget(ctx context.Context, i int32) {
	fair.Lock(ctx, &a.mu)
	defer a.mu.Unlock()
	delete(a.known, i)
}
