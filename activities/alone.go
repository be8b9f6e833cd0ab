package activities

import (
	"context"
	"sync"

	"github.com/hykube/hykube/workflows"
)

// alone lets one attempt at a step run at a time. An attempt that stops to heartbeat, on a machine that was asleep, say, is
// followed by another while it still waits for its provider; two of them must not make one change at once.
type alone struct {
	mu   sync.Mutex
	busy map[workflows.StepInput]chan struct{}
}

func newAlone() *alone { return &alone{busy: map[workflows.StepInput]chan struct{}{}} }

// enter waits until nobody else is at the step, or ctx ends. leave must be called then.
func (a *alone) enter(ctx context.Context, in workflows.StepInput) (leave func(), err error) {
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
