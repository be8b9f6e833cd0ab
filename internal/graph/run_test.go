package graph

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRunWorksSideBySideWithinItsWidth(t *testing.T) {
	const n, width = 50, 4
	var now, most atomic.Int32
	full := make(chan struct{})
	tracker := NewTracker(n, func(int) []int { return nil })
	err := Run(t.Context(), tracker, width, func(context.Context, int) (bool, error) {
		c := now.Add(1)
		defer now.Add(-1)
		if c > most.Load() {
			most.Store(c)
		}
		if c == width {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		<-full // the first ones wait until all slots are taken at the same time
		return true, nil
	})
	if err != nil || left(tracker) != 0 || most.Load() != width {
		t.Errorf("err %v, %d left, %d at once; want none, 0 and %d", err, left(tracker), most.Load(), width)
	}
}

func TestRunLeavesOutWhatDependsOnAFailure(t *testing.T) {
	deps := [][]int{nil, {0}, {1}, nil}
	var mu sync.Mutex
	var done []int
	err := Run(t.Context(), NewTracker(4, func(i int) []int { return deps[i] }), 2, func(_ context.Context, i int) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		done = append(done, i)
		return i != 1, nil
	})
	slices.Sort(done)
	if diff := cmp.Diff([]int{0, 1, 3}, done); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestRunStopsHandingOutAfterAnError(t *testing.T) {
	broken := errors.New("the store is gone")
	calls := 0
	err := Run(t.Context(), NewTracker(10, func(int) []int { return nil }), 1, func(context.Context, int) (bool, error) {
		calls++
		return false, broken
	})
	if !errors.Is(err, broken) || calls != 1 {
		t.Errorf("got %v after %d calls", err, calls)
	}
}

// sleeper is a Waker whose second half of the items becomes ready when it wakes.
type sleeper struct {
	*Tracker
	half  []int
	woken chan struct{}
	slept bool
}

func (s *sleeper) Ready() []int {
	out := s.Tracker.Ready()
	if !s.slept {
		s.half = append(s.half, out...)
		return nil
	}
	out, s.half = append(out, s.half...), nil
	return out
}

func (s *sleeper) Wake() <-chan struct{} {
	if s.slept {
		return nil
	}
	s.slept = true
	return s.woken
}

func TestRunWaitsForItemsThatTimeMakesReady(t *testing.T) {
	var calls atomic.Int32
	s := &sleeper{Tracker: NewTracker(3, func(int) []int { return nil }), woken: make(chan struct{})}
	close(s.woken)
	err := Run(t.Context(), s, 2, func(context.Context, int) (bool, error) {
		calls.Add(1)
		return true, nil
	})
	if err != nil || calls.Load() != 3 {
		t.Errorf("err %v, %d calls, want 3", err, calls.Load())
	}
}

func TestRunEndsWithItsContextWhileItWaits(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &sleeper{Tracker: NewTracker(1, func(int) []int { return nil }), woken: make(chan struct{})}
	cancel()
	err := Run(ctx, s, 1, func(context.Context, int) (bool, error) { return true, nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the error of the context", err)
	}
}
