package changes

import (
	"context"
	"errors"
	"sync"

	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/ledger"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// aheadPage is the number of changes that ReadAhead reads at once.
	aheadPage = 64
	// maxAhead is the maximum number of changes that ReadAhead keeps for later calls. It exceeds the number of
	// concurrent calls, which do not arrive in the order of their indexes.
	maxAhead = 16 * aheadPage
)

// ReadAhead reads the changes of a plan one by one. Most plans take them roughly in the order of their indexes, so it
// then reads those that follow, too. It is safe for concurrent use.
type ReadAhead struct {
	ledger *ledger.Ledger
	plan   types.UID

	mu sync.Mutex
	// next is the index after the highest one that was read in a page, and known has the changes that were read and not
	// taken.
	next  int32
	known map[int32]*ledger.Change
}

// NewReadAhead returns a ReadAhead for a plan.
func NewReadAhead(l *ledger.Ledger, plan types.UID) *ReadAhead {
	return &ReadAhead{ledger: l, plan: plan, known: map[int32]*ledger.Change{}}
}

// Change returns a change as it is stored. It may have read it before, so a caller that writes the change must first
// call Forget, or must expect that another writer has changed it.
func (a *ReadAhead) Change(ctx context.Context, i int32) (*ledger.Change, error) {
	if c, err := a.take(ctx, i); c != nil || err != nil {
		return c, err
	}
	return a.ledger.Change(ctx, a.plan, i)
}

// take returns a change that was read and not taken, or nil. It reads the next pages up to the change, unless that is
// far ahead.
func (a *ReadAhead) take(ctx context.Context, i int32) (*ledger.Change, error) {
	fair.Lock(ctx, &a.mu) // a read of another process gives the slot of the processors back
	defer a.mu.Unlock()
	if i < a.next+maxAhead/2 {
		for i >= a.next {
			if more, err := a.read(ctx); err != nil || !more {
				return nil, err
			}
		}
	}
	c := a.known[i]
	delete(a.known, i)
	return c, nil
}

// read reads the next page. It returns false if there is none.
func (a *ReadAhead) read(ctx context.Context) (more bool, err error) {
	page, err := a.ledger.ChangesPage(ctx, a.plan, a.next, aheadPage)
	if errors.Is(err, ledger.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if len(a.known)+len(page) > maxAhead {
		clear(a.known)
	}
	for _, c := range page {
		a.known[c.Index] = c
	}
	a.next = page[len(page)-1].Index + 1
	return true, nil
}

// Forget makes the next call for a change read it again.
func (a *ReadAhead) Forget(ctx context.Context, i int32) {
	fair.Lock(ctx, &a.mu)
	defer a.mu.Unlock()
	delete(a.known, i)
}
