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

// sleeper is a Waker whose items but the first become ready when it wakes.
type sleeper struct {
	*Tracker
	held  []int
	woken chan struct{}
	awake bool
}

func (s *sleeper) Ready() []int {
	s.held = append(s.held, s.Tracker.Ready()...)
	var out []int
	for len(s.held) > 0 && (s.awake || s.held[0] == 0) {
		out, s.held = append(out, s.held[0]), s.held[1:]
	}
	return out
}

func (s *sleeper) Wake() <-chan struct{} {
	if s.awake {
		return nil
	}
	s.awake = true
	return s.woken
}

func newSleeper(items int) *sleeper {
	s := &sleeper{Tracker: NewTracker(items, func(int) []int { return nil }), woken: make(chan struct{})}
	close(s.woken)
	return s
}

func TestRunStartsItemsThatTimeMakesReady(t *testing.T) {
	var others sync.WaitGroup
	others.Add(2)
	err := Run(t.Context(), newSleeper(3), 2, func(_ context.Context, i int) (bool, error) {
		if i == 0 {
			others.Done()
			others.Wait() // one of the others begins while this item runs
		} else if i == 1 {
			others.Done()
		}
		return true, nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestRunDoesNotWaitForTimeAlone(t *testing.T) {
	s := newSleeper(2)
	s.Tracker.Ready() // as if the first item had run
	var calls atomic.Int32
	s.held = []int{1}
	err := Run(t.Context(), s, 2, func(context.Context, int) (bool, error) {
		calls.Add(1)
		return true, nil
	})
	if err != nil || calls.Load() != 0 {
		t.Errorf("err %v, %d calls, want none: no item was ready, and none ran", err, calls.Load())
	}
}
