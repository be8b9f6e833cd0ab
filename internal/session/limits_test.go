package session

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
)

func quiet() *limits { return newLimits(nil, slog.New(slog.DiscardHandler)) }

func TestLimitsAreSharedByConfiguration(t *testing.T) {
	l := quiet()
	one := &v1alpha1.Limits{Concurrency: 1}
	admitted, err := l.bucket("prod/sim/default", one).admit(t.Context(), false, SlotAndRate)
	if err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := l.bucket("prod/sim/default", one).admit(impatient, false, SlotAndRate); err == nil {
		t.Error("a second call of a configuration that allows one")
	}
	if other, err := l.bucket("prod/sim/other", one).admit(t.Context(), false, SlotAndRate); err != nil {
		t.Errorf("another configuration has to wait: %v", err)
	} else {
		other.Release()
	}
	admitted.Release()
	admitted.Release() // does nothing
	for range 2 {
		again, err := l.bucket("prod/sim/default", one).admit(t.Context(), false, SlotAndRate)
		if err != nil {
			t.Fatal(err)
		}
		again.Release()
	}
}

// TestBatchesHaveSlotsOfTheirOwn holds all slots of calls one by one. Batched calls have others, unless the user set a
// limit.
func TestBatchesHaveSlotsOfTheirOwn(t *testing.T) {
	for _, tt := range []struct {
		limits *v1alpha1.Limits
		want   int // batched calls
	}{{nil, batchConcurrency}, {&v1alpha1.Limits{Concurrency: defaultConcurrency}, 0}} {
		b := quiet().bucket("prod/sim/default", tt.limits)
		for range defaultConcurrency {
			if _, err := b.admit(t.Context(), false, SlotAndRate); err != nil {
				t.Fatal(err)
			}
		}
		if got := b.batched.free; got != tt.want {
			t.Errorf("limits %v: %d batched calls at once beside %d others, want %d", tt.limits, got, defaultConcurrency, tt.want)
		}
	}
}

// TestAppliesGetMostSlots has applies and plans wait for one slot. Each fourth slot goes to a plan, and within both kinds
// the longest waiting is first.
func TestAppliesGetMostSlots(t *testing.T) {
	s := newSlots(1, nil)
	if err := s.acquire(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 8)
	wait := func(name string, apply bool) {
		before := s.applies.Len() + s.others.Len()
		go func() {
			if s.acquire(t.Context(), apply) == nil {
				got <- name
			}
		}()
		for waiting := before; waiting == before; time.Sleep(time.Millisecond) {
			s.mu.Lock()
			waiting = s.applies.Len() + s.others.Len()
			s.mu.Unlock()
		}
	}
	for _, name := range []string{"plan 1", "plan 2"} {
		wait(name, false)
	}
	for _, name := range []string{"apply 1", "apply 2", "apply 3", "apply 4"} {
		wait(name, true)
	}
	left, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.acquire(left, true); err == nil {
		t.Error("a caller that left got a slot")
	}
	var order []string
	for range 6 {
		s.release()
		order = append(order, <-got)
	}
	if want := []string{"apply 1", "apply 2", "apply 3", "plan 1", "apply 4", "plan 2"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
	if s.release(); s.free != 1 {
		t.Errorf("%d slots are free, want 1", s.free)
	}
}

// TestACallerThatLeavesPassesItsSlotOn has a caller leave at the moment when it gets its slot. The slot is not lost.
func TestACallerThatLeavesPassesItsSlotOn(t *testing.T) {
	s := newSlots(1, nil)
	if err := s.acquire(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { left <- s.acquire(ctx, true) }()
	for waits := false; !waits; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		waits = s.applies.Len() == 1
		s.mu.Unlock()
	}
	s.mu.Lock()
	leave()
	time.Sleep(20 * time.Millisecond) // it notices that it was told to leave, and waits for the mutex
	s.pass()
	s.mu.Unlock()
	if err := <-left; err == nil {
		s.release() // it got the slot after all
	}
	if s.free != 1 {
		t.Errorf("%d slots are free, want 1", s.free)
	}
}

// sharing are processes that share limits. taken counts the slots of all processes that were taken.
type sharing struct {
	n     atomic.Int64
	taken atomic.Int64
}

func (s *sharing) Processes() int { return int(s.n.Load()) }

func (s *sharing) TakeSlot(context.Context, string, int) (func(), error) {
	s.taken.Add(1)
	return func() { s.taken.Add(-1) }, nil
}

// TestProcessesShareLimits has another process begin and end. Fewer slots than processes are those of all processes.
func TestProcessesShareLimits(t *testing.T) {
	s := &sharing{}
	s.n.Store(1)
	l := newLimits(s, slog.New(slog.DiscardHandler))
	admit := func(key string, limits v1alpha1.Limits) *Admission {
		t.Helper()
		a, err := l.bucket(key, &limits).admit(t.Context(), false, SlotAndRate)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	four := v1alpha1.Limits{Concurrency: 4}
	first, second, third := admit("four", four), admit("four", four), admit("four", four)
	s.n.Store(2)
	first.Release()
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := l.bucket("four", &four).admit(short, false, SlotAndRate); err == nil {
		t.Error("a process takes more than its half")
	}
	second.Release()
	admit("four", four).Release()
	third.Release()
	s.n.Store(3)
	one := admit("one", v1alpha1.Limits{Concurrency: 1})
	if s.taken.Load() != 1 {
		t.Fatalf("took %d slots of all processes, want 1", s.taken.Load())
	}
	if one.Release(); s.taken.Load() != 0 {
		t.Error("the slot of all processes is not released")
	}
	b := l.bucket("rate", &v1alpha1.Limits{RatePerSecond: 9})
	if b.shareRate(); b.rate.Limit() != 3 {
		t.Errorf("the rate is %v, want 3", b.rate.Limit())
	}
}
