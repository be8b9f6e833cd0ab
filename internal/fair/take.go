package fair

import (
	"context"
	"sync"
	"time"
)

// timeSlice is the time after which a slot of Take is released, unless its holder pauses or ends before. A holder that
// takes longer probably waits for another goroutine, which may itself wait for a slot.
const timeSlice = 100 * time.Millisecond

// holder holds a slot of Take, and releases it while it waits.
type holder struct {
	slots *Slots
	key   string

	mu sync.Mutex
	// slot is nil while the holder pauses.
	slot   *Slot
	expiry *time.Timer
	// pauses is the number of pauses that have not ended.
	pauses int
}

type holderKey struct{}

// Take waits for a slot for a key, which the returned context carries. The caller must call done. Pause releases the
// slot for a time. If the context already carries a slot, Take does nothing.
func (s *Slots) Take(ctx context.Context, key string) (_ context.Context, done func(), err error) {
	if _, ok := ctx.Value(holderKey{}).(*holder); ok {
		return ctx, func() {}, nil
	}
	return s.take(ctx, key)
}

func (s *Slots) take(ctx context.Context, key string) (_ context.Context, done func(), err error) {
	t := &holder{slots: s, key: key}
	if err := t.begin(ctx, s.Request(key)); err != nil {
		return ctx, func() {}, err
	}
	return context.WithValue(ctx, holderKey{}, t), t.end, nil
}

// TakeToo takes another slot for the key of the context's slot, for a goroutine that works in parallel with its holder.
// Without such a slot, it does nothing.
func TakeToo(ctx context.Context) (_ context.Context, done func(), err error) {
	t, ok := ctx.Value(holderKey{}).(*holder)
	if !ok {
		return ctx, func() {}, nil
	}
	return t.slots.take(ctx, t.key)
}

// Pause releases the slot of a context while its holder waits, such as for a provider or the database. The caller must
// call resume, which waits for a slot before the requests of Take, or until the context ends. Without a slot, Pause
// does nothing.
func Pause(ctx context.Context) (resume func()) {
	t, ok := ctx.Value(holderKey{}).(*holder)
	if !ok {
		return func() {}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pauses++; t.pauses == 1 {
		t.release()
	}
	return func() {
		t.mu.Lock()
		t.pauses--
		again := t.pauses == 0
		t.mu.Unlock()
		if again {
			_ = t.begin(ctx, t.slots.request(t.key, true)) // the caller sees the end of the context
		}
	}
}

// begin waits for a requested slot.
func (t *holder) begin(ctx context.Context, slot *Slot) error {
	select {
	case <-slot.granted:
	case <-ctx.Done():
		slot.Release()
		return context.Cause(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pauses > 0 || t.slot != nil {
		slot.Release() // another goroutine of the holder has paused or resumed
		return nil
	}
	t.slot, t.expiry = slot, time.AfterFunc(timeSlice, slot.Release)
	return nil
}

func (t *holder) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pauses++ // a pause that ends later does not take a slot
	t.release()
}

// release releases the slot. The caller holds the mutex.
func (t *holder) release() {
	if t.slot == nil {
		return
	}
	t.expiry.Stop()
	t.slot.Release()
	t.slot = nil
}

// Lock locks a mutex that its holders keep while they pause. Without it, a holder of a slot could wait for the mutex
// while the holder of the mutex waits for a slot.
func Lock(ctx context.Context, mu *sync.Mutex) {
	if mu.TryLock() {
		return
	}
	resume := Pause(ctx)
	mu.Lock()
	resume()
}
