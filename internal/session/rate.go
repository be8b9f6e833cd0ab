package session

import (
	"context"
	"sync"

	"golang.org/x/time/rate"
)

// rateUnits is the number of units of a shared limit for each call a second.
const rateUnits = 1000

// callRate limits the calls a second.
type callRate struct {
	limiter *rate.Limiter
	// share is nil if this process alone has the limit.
	share *share

	mu sync.Mutex
	// asking is true while the share runs. granted are its units.
	asking  bool
	granted int64
	// waiting counts the calls that wait, and begun those that have begun to wait since the last settle.
	waiting, begun int
	// ready is closed when the share has units; nil if no call waits for that.
	ready chan struct{}
}

// wait waits for the permission of a call.
func (r *callRate) wait(ctx context.Context) error {
	if r.share == nil {
		return r.limiter.Wait(ctx)
	}
	ready := r.enter()
	defer r.leave()
	if ready != nil {
		select {
		case <-ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return r.limiter.Wait(ctx)
}

func (r *callRate) enter() (ready <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting++
	r.begun++
	if !r.asking {
		r.asking = true
		go r.share.run(r)
	} else if r.granted == 0 {
		r.share.notify()
	}
	if r.granted == 0 && r.ready == nil {
		r.ready = make(chan struct{})
	}
	return r.ready
}

func (r *callRate) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting--
}

// settle implements consumer. A process that calls at all needs the whole rate.
func (r *callRate) settle(held, fair int64) (kept, needed int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting+r.begun > 0 {
		needed = r.share.total
	}
	r.begun = 0
	r.granted = held
	if r.waiting == 0 || fair > 0 {
		r.granted = min(held, fair)
	}
	r.limiter.SetLimit(rate.Limit(float64(r.granted) / rateUnits))
	r.limiter.SetBurst(int(max(1, r.granted/rateUnits)))
	if r.granted > 0 && r.ready != nil {
		close(r.ready)
		r.ready = nil
	}
	return r.granted, needed
}

// rest implements consumer.
func (r *callRate) rest() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking = r.waiting > 0
	return !r.asking
}
