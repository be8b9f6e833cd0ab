package activities

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// alone lets one attempt of a plan at an object's steps run at a time. An attempt that stops to heartbeat, on a machine that was
// asleep, say, is followed by another while it still waits for its provider; two of them must not make one change at once. And
// the steps of one object, that of a deposed instance beside that of the current one, write the same record.
type alone struct {
	mu   sync.Mutex
	busy map[planned]chan struct{}
}

// planned is what a plan has to do with an object.
type planned struct{ plan, object types.UID }

func newAlone() *alone { return &alone{busy: map[planned]chan struct{}{}} }

// enter waits until nobody else of the plan is at the object, or ctx ends. leave must be called then.
func (a *alone) enter(ctx context.Context, plan, object types.UID) (leave func(), err error) {
	in := planned{plan, object}
	for {
		a.mu.Lock()
		other, busy := a.busy[in]
		if !busy {
			done := make(chan struct{})
			a.busy[in] = done
			a.mu.Unlock()
			return func() {
				a.mu.Lock()
				delete(a.busy, in)
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
