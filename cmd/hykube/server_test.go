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
	limitHeap(slog.New(slog.DiscardHandler))
	if got := debug.SetMemoryLimit(-1); got <= 0 || got >= 1<<50 {
		t.Errorf("the heap may use %d bytes", got)
	}
}
