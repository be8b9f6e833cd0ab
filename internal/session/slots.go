package session

import (
	"container/list"
	"context"
	"sync"
)

// othersEvery defines the share of calls other than those of applies while both wait: they get one of each othersEvery
// slots. So planning continues during a long apply.
const othersEvery = 4

// slots limits the number of concurrent calls. A free slot goes to the apply that waits longest, and each fourth one to
// the longest waiting other call.
type slots struct {
	max int
	// share is nil if this process alone has the slots.
	share *share

	mu   sync.Mutex
	free int
	// asking is true while the share runs. granted is the number of slots that this process may use, and fair the
	// number that it should use at most.
	asking        bool
	granted, fair int
	// applies and others hold a chan struct{} for each waiting call. It is closed when the call gets its slot.
	applies, others *list.List
	// given counts the slots that were given while both queues had waiting calls.
	given int
}

// newSlots returns n slots, all of which this process has if share is nil.
func newSlots(n int, share *share) *slots {
	s := &slots{max: n, share: share, free: n, applies: list.New(), others: list.New()}
	if share == nil {
		s.granted, s.fair = n, n
	}
	return s
}

// theirs returns the number of slots that this process may not use.
func (s *slots) theirs() int { return s.max - s.granted }

// acquire waits for a slot. The caller calls release after its call.
func (s *slots) acquire(ctx context.Context, apply bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.free > s.theirs() {
		s.free--
		s.mu.Unlock()
		return nil
	}
	queue := s.others
	if apply {
		queue = s.applies
	}
	ready := make(chan struct{})
	waiting := queue.PushBack(ready)
	s.askForMore()
	s.mu.Unlock()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-ready: // it got its slot in the meantime
		s.pass()
	default:
		queue.Remove(waiting)
	}
	return ctx.Err()
}

// askForMore makes the share ask for what the waiting calls need.
func (s *slots) askForMore() {
	switch {
	case s.share == nil:
	case s.asking:
		s.share.notify()
	default:
		s.asking = true
		go s.share.run(s)
	}
}

// settle implements consumer.
func (s *slots) settle(held, fair int64) (kept, needed int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fair = int(fair)
	s.granted = min(int(held), max(s.max-s.free, s.fair))
	s.give()
	return int64(s.granted), int64(s.max - s.free + s.applies.Len() + s.others.Len())
}

// rest implements consumer.
func (s *slots) rest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = s.applies.Len()+s.others.Len() > 0
	return !s.asking
}

func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass()
}

// pass gives a released slot to a waiting call. A process with more than its fair part gives it back instead.
func (s *slots) pass() {
	s.free++
	if s.granted > s.fair {
		s.granted--
		s.share.notify()
	}
	s.give()
}

// give gives free slots to waiting calls.
func (s *slots) give() {
	for s.free > s.theirs() {
		queue := s.applies
		switch {
		case s.applies.Len() > 0 && s.others.Len() > 0:
			if s.given++; s.given%othersEvery == 0 {
				queue = s.others
			}
		case s.applies.Len() == 0:
			queue = s.others
		}
		next := queue.Front()
		if next == nil {
			return
		}
		s.free--
		close(queue.Remove(next).(chan struct{}))
	}
}
