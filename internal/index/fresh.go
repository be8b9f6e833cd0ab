package index

import (
	"context"
	"sync/atomic"

	"github.com/hykube/hykube/internal/bug"
)

// This file lets concurrent readers share a refresh. The steps of an apply read their objects from the index, hundreds
// at once, and each must see all writes before its call.

// refreshCount counts refreshes, so that a caller that waited for the index can tell whether it must refresh again.
type refreshCount struct {
	// begun is the number of refreshes that have begun.
	begun atomic.Int64
	// done is the highest number of a refresh that succeeded. The mutex of the index guards it.
	done int64
}

// run refreshes, unless a refresh that began after the caller asked has succeeded. asked is the value of begun at that
// time. It requires the mutex of the index.
func (c *refreshCount) run(asked int64, refresh func() error) error {
	if c.done > asked {
		return nil
	}
	number := c.begun.Add(1)
	if err := refresh(); err != nil {
		return err
	}
	c.done = number
	return nil
}

// lockFresh locks the index when it has all writes before the call. The caller must call unlock, even after an error.
func (x *Index) lockFresh(ctx context.Context) (unlock func(), err error) {
	asked := x.all.begun.Load()
	x.mu.Lock()
	return x.mu.Unlock, x.guarded(func() error {
		x.restore(ctx)
		return x.all.run(asked, func() error { return x.refresh(ctx) })
	})
}

// lockFreshObjects is lockFresh for the objects and the ResourceSets alone. The records and the statuses may be older.
func (x *Index) lockFreshObjects(ctx context.Context) (unlock func(), err error) {
	asked, askedAll := x.stored.begun.Load(), x.all.begun.Load()
	x.mu.Lock()
	return x.mu.Unlock, x.guarded(func() error {
		x.restore(ctx)
		if x.all.done > askedAll {
			return nil
		}
		return x.stored.run(asked, func() error { return x.refreshObjects(ctx) })
	})
}

// guarded calls f, and returns a panic as an error. The entries may then be incomplete, so the next refresh reads
// everything.
func (x *Index) guarded(f func() error) error {
	err := bug.Catch(f)
	if bug.Is(err) {
		x.reset()
	}
	return err
}
