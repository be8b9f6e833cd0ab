package session

import (
	"container/list"
	"context"
	"sync"
)

// othersEvery defines the share of calls other than those of applies while both wait: they get one of each othersEvery
// slots. So planning continues during a long apply.
const othersEvery = 4

// slots limits the number of concurrent calls. A free slot goes to the apply that waits longest, and each fourth one to the
// longest waiting other call. Several processes share the slots equally.
type slots struct {
	max int
	// processes returns the number of processes that share the slots; nil means one.
	processes func() int

	mu   sync.Mutex
	free int
	// applies and others hold a chan struct{} for each waiting call. It is closed when the call gets its slot.
	applies, others *list.List
	// given counts the slots that were given while both queues had waiting calls.
	given int
}

func newSlots(n int, processes func() int) *slots {
	return &slots{max: n, processes: processes, free: n, applies: list.New(), others: list.New()}
}

// theirs returns the number of slots of the other processes. Each process has at least one; see Processes.TakeSlot.
func (s *slots) theirs() int {
	if s.processes == nil {
		return 0
	}
	return s.max - max(1, s.max/s.processes())
}

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

func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass()
}

// pass gives a released slot, and others that are free, to waiting calls.
func (s *slots) pass() {
	s.free++
	for theirs := s.theirs(); s.free > theirs; {
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
