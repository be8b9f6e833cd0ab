package fair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func granted(r *Slot) bool {
	select {
	case <-r.Granted():
		return true
	default:
		return false
	}
}

// TestOneKeyLeavesSlotsForNewKeys lets one key hold all that it can for ever.
func TestOneKeyLeavesSlotsForNewKeys(t *testing.T) {
	s := New(64)
	held := 0
	for range 200 {
		if granted(s.Request("hog")) {
			held++
		}
	}
	if held != 48 {
		t.Errorf("one key holds %d of 64 slots, want 48", held)
	}
	for i := range 8 {
		if !granted(s.Request(fmt.Sprint("quiet", i))) {
			t.Errorf("newcomer %d has to wait", i)
		}
	}
}

// TestAWaitingRequestFollowsTheFewestSlots checks to which request a released slot goes.
func TestAWaitingRequestFollowsTheFewestSlots(t *testing.T) {
	s := New(3)
	held := []*Slot{s.Request("a"), s.Request("a"), s.Request("a")}
	again, first, second := s.Request("a"), s.Request("b"), s.Request("b")
	newcomer := s.Request("c")
	held[0].Release()
	if granted(again) || !granted(first) || granted(second) || granted(newcomer) {
		t.Fatal("the first slot must go to the oldest request of a key that holds none")
	}
	held[1].Release()
	if granted(again) || granted(second) || !granted(newcomer) {
		t.Fatal("the second slot must go to the key that holds none, although others have waited longer")
	}
	held[2].Release()
	if !granted(again) || granted(second) {
		t.Error("the third slot must go to the key that holds none by now")
	}
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	s := New(1)
	held, err := s.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the plan was cancelled")
	cancel(reason)
	if _, err := s.Acquire(ctx, "b"); !errors.Is(err, reason) {
		t.Errorf("error %v, want the cause of the cancel", err)
	}
	held.Release()
	held.Release() // does nothing
	if !granted(s.Request("c")) || granted(s.Request("c")) {
		t.Error("one slot must be free after a withdrawn request and a release")
	}
}

// TestSlotsProperties makes random requests and releases and checks the slots against their rules after each.
func TestSlotsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 20).Draw(t, "size")
		s := New(size)
		var open []*Slot
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			before := waiting(open)
			if len(open) == 0 || rapid.Bool().Draw(t, "request") {
				open = append(open, s.Request(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "key")))
			} else {
				i := rapid.IntRange(0, len(open)-1).Draw(t, "release")
				open[i].Release()
				if rapid.Bool().Draw(t, "twice") {
					open[i].Release()
				}
				open = slices.Delete(open, i, i+1)
			}
			checkSlots(t, s, size, open, before)
		}
		for _, r := range open {
			r.Release()
		}
		if s.free != size || len(s.held) > 0 || len(s.queues) > 0 {
			t.Fatalf("%d of %d slots are free after all were released; held %v, waiting %v", s.free, size, s.held, s.queues)
		}
	})
}

func waiting(open []*Slot) []*Slot {
	return slices.DeleteFunc(slices.Clone(open), granted)
}

// checkSlots compares the slots with the requests that were not released. before are those that waited before the last
// step.
func checkSlots(t *rapid.T, s *Slots, size int, open, before []*Slot) {
	held, queued := map[string]int{}, map[string]int{}
	for _, r := range open {
		if granted(r) {
			held[r.key]++
		} else {
			queued[r.key]++
		}
	}
	total := 0
	for _, n := range held {
		total += n
	}
	if total+s.free != size || s.free < 0 {
		t.Fatalf("%d slots are held and %d are free of %d", total, s.free, size)
	}
	for key := range queued {
		switch {
		case held[key] == 0 && s.free > 0:
			t.Fatalf("%q holds none and waits, and %d slots are free", key, s.free)
		case held[key] < freeFactor*s.free:
			t.Fatalf("%q holds %d and waits, and %d slots are free", key, held[key], s.free)
		}
	}
	for _, r := range before {
		if !granted(r) {
			continue
		}
		for _, other := range before {
			if !slices.Contains(open, other) || granted(other) {
				continue
			}
			if other.key == r.key && other.number < r.number {
				t.Fatalf("request %d of %q was granted before request %d", r.number, r.key, other.number)
			}
			if held[other.key] < held[r.key]-1 {
				t.Fatalf("%q got its slot number %d while %q holds %d and waits", r.key, held[r.key], other.key, held[other.key])
			}
		}
	}
}
