package session

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
)

func quiet() *limits { return newLimits(ledger.Alone(), slog.New(slog.DiscardHandler)) }

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

// sharing is the database of processes that share limits.
type sharing struct {
	mu    sync.Mutex
	parts map[string][]ledger.Part
}

// rest are the methods that no limit needs.
type rest = ledger.Processes

// process is one of the processes.
type process struct {
	rest
	name string
	of   *sharing
}

func (process) Shared() bool { return true }

func (p process) Share(_ context.Context, limit string, total int64, own ledger.Share) (ledger.Share, error) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	part, share := ledger.Part{Process: p.name, Want: own.Want, Held: own.Held}.Grow(total, p.of.parts[limit])
	parts := slices.DeleteFunc(p.of.parts[limit], func(o ledger.Part) bool { return o.Process == p.name })
	p.of.parts[limit] = append(parts, part)
	return share, nil
}

// newSharing returns the limits of two processes that share them.
func newSharing() (first, second *limits) {
	of := &sharing{parts: map[string][]ledger.Part{}}
	quiet := slog.New(slog.DiscardHandler)
	return newLimits(process{name: "first", of: of}, quiet), newLimits(process{name: "second", of: of}, quiet)
}

// callers makes calls without a pause, width at once, until stop. calls counts those that ended, and running those that run.
func callers(t *testing.T, l *limits, spec *v1alpha1.Limits, width int, calls, running *atomic.Int64) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range width {
		all.Go(func() {
			for ctx.Err() == nil {
				a, err := l.bucket("config", spec).admit(ctx, false, SlotAndRate)
				if err != nil {
					return
				}
				if running.Add(1) > int64(spec.Concurrency) {
					t.Errorf("more than %d calls at once", spec.Concurrency)
				}
				time.Sleep(time.Millisecond)
				calls.Add(1)
				running.Add(-1)
				a.Release()
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// eventually waits until done holds.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// TestProcessesShareLimits has two processes call, one after the other and both at once. A process alone has the whole limit, also
// while the other one is idle. They never make more calls at once than the limit, and neither waits for ever for the other.
func TestProcessesShareLimits(t *testing.T) {
	t.Parallel()
	for _, n := range []int32{1, 2, 4} {
		t.Run(strconv.Itoa(int(n)), func(t *testing.T) {
			t.Parallel()
			spec := &v1alpha1.Limits{Concurrency: n}
			first, second := newSharing()
			var running atomic.Int64
			for range 2 {
				for _, alone := range []*limits{first, second} {
					var calls atomic.Int64
					stop := callers(t, alone, spec, 8, &calls, &running)
					eventually(t, "a process does not get the whole limit", func() bool { return running.Load() == int64(n) })
					stop()
				}
				var calls, others atomic.Int64
				stop, stopOther := callers(t, first, spec, 8, &calls, &running), callers(t, second, spec, 8, &others, &running)
				for range 3 {
					before, otherBefore := calls.Load(), others.Load()
					eventually(t, "a process waits for ever", func() bool { return calls.Load() > before && others.Load() > otherBefore })
				}
				stop()
				stopOther()
			}
		})
	}
}

// TestProcessesShareRates has two processes call with a rate.
func TestProcessesShareRates(t *testing.T) {
	t.Parallel()
	spec := &v1alpha1.Limits{Concurrency: 100, RatePerSecond: 30}
	first, second := newSharing()
	limit := func(l *limits) float64 { return float64(l.bucket("config", spec).rate.limiter.Limit()) }
	var calls, running atomic.Int64
	stop := callers(t, first, spec, 8, &calls, &running)
	eventually(t, "a process alone does not get the whole rate", func() bool { return limit(first) == 30 })
	stopOther := callers(t, second, spec, 8, &calls, &running)
	eventually(t, "two processes do not get a half each", func() bool { return limit(first) == 15 && limit(second) == 15 })
	stop()
	eventually(t, "the rate of an idle process is lost", func() bool { return limit(second) == 30 })
	stopOther()
}
