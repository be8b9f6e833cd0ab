package main

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// maxHeapGrowth is the percentage by which a small heap may grow between two garbage collections, unless GOGC is
	// set. At 200, the collector runs half as often as at 100, the default of Go. The memory of an idle server does not
	// depend on it.
	maxHeapGrowth = 200
	// minHeapGrowth is that percentage for a very large heap.
	minHeapGrowth = 50
	// fullHeap is the number of bytes up to which a heap may grow if that is between these.
	fullHeap = 3 << 30
	// heapInterval is the time between two adaptions to the size of the heap.
	heapInterval = time.Second
)

// memoryShare is the part of the memory of the container or the machine from which on the collector runs more often,
// unless GOMEMLIMIT is set. The rest is for the providers' processes. Otherwise a large heap could grow to three times
// the size that is in use, until the kernel ends the process.
const memoryShare = 0.5

// limitHeap limits the growth of the heap, until ctx ends.
func limitHeap(ctx context.Context, logger *slog.Logger) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(maxHeapGrowth)
		go adaptHeapGrowth(ctx)
	}
	_, err := memlimit.Set(memlimit.WithRatio(memoryShare),
		memlimit.WithProvider(memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)))
	if err != nil {
		logger.Warn("read the memory limit of the container or the machine; the heap has no limit", "error", err)
	}
}

// adaptHeapGrowth applies heapGrowth until ctx ends.
func adaptHeapGrowth(ctx context.Context) {
	ticker := time.NewTicker(heapInterval)
	defer ticker.Stop()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for now := maxHeapGrowth; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		metrics.Read(live)
		if next := heapGrowth(live[0].Value.Uint64()); next != now {
			debug.SetGCPercent(next)
			now = next
		}
	}
}

// heapGrowth returns the percentage by which a heap of a size in bytes may grow, in steps of ten.
func heapGrowth(live uint64) int {
	if live == 0 {
		return maxHeapGrowth
	}
	return int(min(max((fullHeap-min(live, fullHeap))*100/live, minHeapGrowth), maxHeapGrowth)) / 10 * 10
}
