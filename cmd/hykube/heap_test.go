package main

import (
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"testing"
)

// TestTheHeapHasALimit starts without GOMEMLIMIT. The limit is below the memory of the machine.
func TestTheHeapHasALimit(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "") // restores it
	if err := os.Unsetenv("GOMEMLIMIT"); err != nil {
		t.Fatal(err)
	}
	before, growth := debug.SetMemoryLimit(math.MaxInt64), debug.SetGCPercent(100)
	t.Cleanup(func() {
		debug.SetMemoryLimit(before)
		debug.SetGCPercent(growth)
	})
	limitHeap(t.Context(), slog.New(slog.DiscardHandler))
	if got := debug.SetMemoryLimit(-1); got <= 0 || got >= 1<<50 {
		t.Errorf("the heap may use %d bytes", got)
	}
}

func TestALargeHeapGrowsLess(t *testing.T) {
	const mib = 1 << 20
	for live, want := range map[uint64]int{0: 200, 100 * mib: 200, 512 * mib: 200, 1024 * mib: 200, 1536 * mib: 100, 2048 * mib: 50, 4096 * mib: 50, 1 << 50: 50} {
		if got := heapGrowth(live); got != want {
			t.Errorf("a heap of %d MiB may grow by %d %%, want %d %%", live/mib, got, want)
		}
	}
}
