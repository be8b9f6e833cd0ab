package applying

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// objectLocks lets one attempt of a plan at an object's steps run at a time. An attempt that stops to heartbeat, on a machine that was
// asleep, say, is followed by another while it still waits for its provider; two of them must not make one change at once. And
// the steps of one object, that of a deposed instance beside that of the current one, write the same record.
type objectLocks struct {
	mu   sync.Mutex
	held map[lockKey]chan struct{}
}

// lockKey identifies an object within a plan.
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
