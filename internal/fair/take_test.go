package fair

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// take takes a slot in the background, and returns a channel with the function that gives it back.
func take(t *testing.T, s *Slots, key string) <-chan func() {
	t.Helper()
	taken := make(chan func(), 1)
	go func() {
		_, done, err := s.Take(t.Context(), key)
		if err != nil {
			t.Error(err)
		}
		taken <- done
	}()
	return taken
}

func has(taken <-chan func()) bool {
	synctest.Wait()
	return len(taken) > 0
}

// TestOneKeyLeavesAProcessorForOthers lets one namespace want all processors.
func TestOneKeyLeavesAProcessorForOthers(t *testing.T) {
	for processors, want := range map[int]int{1: 1, 2: 1, 3: 2, 4: 3, 8: 6} {
		s := NewProcessors(processors)
		held := 0
		for range 20 {
			if granted(s.Request("hog")) {
				held++
			}
		}
		if held != want {
			t.Errorf("one key holds %d of %d processors, want %d", held, processors, want)
		}
		if !granted(s.Request("quiet")) {
			t.Errorf("a newcomer waits for %d processors", processors)
		}
	}
}

// TestOneNamespaceAloneGetsAllProcessors lets one namespace want all processors before and after another one requested
// any.
func TestOneNamespaceAloneGetsAllProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const processors = 8
		s := NewProcessors(processors)
		held := func() (n int) {
			var all []*Slot
			for range 20 {
				all = append(all, s.Request("hog"))
			}
			for _, r := range all {
				if granted(r) {
					n++
				}
			}
			for _, r := range slices.Backward(all) {
				r.Release()
			}
			return n
		}
		other := s.Request("quiet")
		other.Release()
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{0, 6}, {quietProcessors - 1, 6}, {1, processors}, {time.Hour, processors}} {
			time.Sleep(step.after)
			if got := held(); got != step.want {
				t.Errorf("%s later, one key holds %d of %d processors, want %d", step.after, got, processors, step.want)
			}
		}
		s.Request("quiet").Release()
		if got := held(); got != 6 {
			t.Errorf("after another key's request, one key holds %d of %d processors, want 6", got, processors)
		}
	})
}

// TestABusyNamespaceLetsOthersCompute lets one namespace compute without a pause, beside another one that computes now
// and then.
func TestABusyNamespaceLetsOthersCompute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewProcessors(2)
		// compute holds a slot for a while and reports how long it waited for it.
		compute := func(key string, d time.Duration) (waited time.Duration) {
			began := time.Now()
			_, done, err := s.Take(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			waited = time.Since(began)
			time.Sleep(d)
			done()
			return waited
		}
		busy := func(total time.Duration, beside bool) (computed time.Duration) {
			for began := time.Now(); time.Since(began) < total; computed += 10 * time.Millisecond {
				compute("busy", 10*time.Millisecond)
				if beside {
					if waited := compute("quiet", time.Millisecond); waited > 0 {
						t.Errorf("the other namespace waits %s", waited)
					}
				}
			}
			return computed
		}
		if got := busy(3*time.Second, true); got < 1800*time.Millisecond || got > 2100*time.Millisecond {
			t.Errorf("beside another namespace, one computes %s of 3s, want two thirds", got)
		}
		compute("busy", time.Millisecond)
		time.Sleep(quietProcessors)
		if got := busy(3*time.Second, false); got < 2990*time.Millisecond {
			t.Errorf("alone, a namespace computes %s of 3s, want all", got)
		}
	})
}

// TestANewNamespaceDoesNotStopOthers lets one namespace compute on all processors for a minute, before another one
// comes.
func TestANewNamespaceDoesNotStopOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewProcessors(2)
		compute := func(key string) (waited time.Duration) {
			began := time.Now()
			_, done, err := s.Take(t.Context(), key)
			if err != nil {
				t.Error(err)
				return 0
			}
			waited = time.Since(began)
			time.Sleep(50 * time.Millisecond)
			done()
			return waited
		}
		compute("busy")
		time.Sleep(quietProcessors)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				for began := time.Now(); time.Since(began) < time.Minute; {
					compute("busy")
				}
			})
		}
		both.Wait()
		compute("quiet")
		if waited := compute("busy"); waited > maxAhead {
			t.Errorf("after a minute alone, a namespace waits %s when another one comes", waited)
		}
	})
}

// TestUsageOfIdleNamespacesIsForgotten lets many namespaces compute once.
func TestUsageOfIdleNamespacesIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewProcessors(2)
		for i := range 10 * maxSpent {
			slot := s.Request(strconv.Itoa(i))
			time.Sleep(time.Millisecond)
			slot.Release()
		}
		if len(s.spent) > maxSpent+1 {
			t.Errorf("the use of %d namespaces is kept", len(s.spent))
		}
	})
}

// TestAPauseLetsOthersCompute pauses a holder. Its resume precedes the requests of holders that have not begun.
func TestAPauseLetsOthersCompute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewProcessors(2)
		ctx, done, err := s.Take(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		second, third := take(t, s, "a"), take(t, s, "a")
		if has(second) || has(third) {
			t.Fatal("two holders of one key compute at once")
		}
		resume, nested := Pause(ctx), Pause(ctx)
		if has(second) == has(third) {
			t.Fatal("a pause must let one other holder compute")
		}
		nested()
		resumed := make(chan func(), 1)
		go func() { resume(); resumed <- done }()
		if has(resumed) {
			t.Fatal("a holder resumes without a slot")
		}
		if len(second) > 0 {
			(<-second)()
		} else {
			(<-third)()
		}
		if !has(resumed) || has(second) || has(third) {
			t.Error("a resume must precede a holder that has not begun")
		}
		done()
		if !has(second) && !has(third) {
			t.Error("the last holder waits, and no other one computes")
		}
	})
}

// TestResumesKeepTheirOrder lets three holders resume.
func TestResumesKeepTheirOrder(t *testing.T) {
	s := NewProcessors(2)
	holder := s.Request("a")
	var order []*Slot
	last := s.request("a", false)
	for range 3 {
		order = append(order, s.request("a", true))
	}
	for i, want := range append(order, last) {
		holder.Release()
		if holder = want; !granted(want) {
			t.Fatalf("request %d does not get the slot", i)
		}
	}
}

// TestLockPauses lets a holder wait for a mutex, whose holder waits for a slot.
func TestLockPauses(t *testing.T) {
	s := NewProcessors(2)
	var mu sync.Mutex
	ctx, done, err := s.Take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	Lock(ctx, &mu)
	resume := Pause(ctx)
	other, otherDone, err := s.Take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		Lock(other, &mu)
		mu.Unlock()
		otherDone()
	})
	resume() // gets the slot of the holder that waits for the mutex
	mu.Unlock()
	done()
	wg.Wait()
}

// TestAHolderThatWaitsLosesItsSlot lets a holder wait without a pause for one that waits for a slot.
func TestAHolderThatWaitsLosesItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewProcessors(2)
		began := time.Now()
		ctx, done, err := s.Take(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		resume := Pause(ctx)
		_, otherDone, err := s.Take(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		resume()
		if waited := time.Since(began); waited != timeSlice {
			t.Errorf("waited %s, want %s", waited, timeSlice)
		}
		otherDone()
		if waiting := take(t, s, "a"); has(waiting) {
			t.Error("the end of a holder that lost its slot freed the slot of another one")
		} else {
			done()
			(<-waiting)()
		}
	})
}

func TestTakeTwiceInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewProcessors(2)
		ctx, done, err := s.Take(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		again, undo, err := s.Take(ctx, "a")
		if err != nil || again != ctx {
			t.Errorf("a second slot in the same call (%v)", err)
		}
		undo()
		limited, cancel := context.WithCancelCause(ctx)
		gone := errors.New("gone")
		cancel(gone)
		if _, _, err := TakeToo(limited); !errors.Is(err, gone) {
			t.Errorf("TakeToo: %v, want the end of the context", err)
		}
		done()
		_, done, err = TakeToo(ctx)
		if err != nil {
			t.Error(err)
		}
		done()
		Pause(ctx)()
		if held := take(t, s, "a"); !has(held) {
			t.Error("a pause after the end took a slot")
		}
		if ctx, done, err := TakeToo(t.Context()); err != nil || ctx != t.Context() {
			t.Errorf("TakeToo without a slot: %v", err)
		} else {
			done()
			Pause(ctx)()
		}
	})
}
