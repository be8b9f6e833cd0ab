package applying

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// objectLocks lets only one attempt at the steps of a plan's object run at a time. If an attempt stops sending
// heartbeats, as on a suspended machine, Temporal starts another one while the first still waits for its provider. The
// two must not make the same change concurrently. Also, the steps of an object's deposed and current instances write
// the same record.
type objectLocks struct {
	mu   sync.Mutex
	held map[lockKey]chan struct{}
}

// lockKey identifies an object of a plan.
type lockKey struct{ plan, object types.UID }

func newObjectLocks() *objectLocks { return &objectLocks{held: map[lockKey]chan struct{}{}} }

// lock waits until no other step of the plan holds the object, or ctx ends. The caller must call leave.
func (a *objectLocks) lock(ctx context.Context, plan, object types.UID) (leave func(), err error) {
	in := lockKey{plan, object}
	for {
		a.mu.Lock()
		other, busy := a.held[in]
		if !busy {
			done := make(chan struct{})
			a.held[in] = done
			a.mu.Unlock()
			return func() {
				a.mu.Lock()
				delete(a.held, in)
				a.mu.Unlock()
				close(done)
			}, nil
		}
		a.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
