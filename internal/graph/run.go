package graph

import (
	"context"
	"sync"
)

// Source returns items that are ready, as a Tracker does. Run calls its methods from one goroutine.
type Source interface {
	Ready() []int
	Done(i int)
	Fail(i int) (skipped []int)
}

// Waker is a Source in which items also become ready with time. Wake returns a channel that is closed when Ready may
// return further items; nil if only Done and Fail make items ready. Run calls it after Ready, while items run.
type Waker interface {
	Source
	Wake() <-chan struct{}
}

// Run calls work for the items that a tracker returns, at most width at a time. If work returns false, Run skips the
// dependents of the item. It ends when no item runs and none is ready. After an error, Run starts no more work, waits
// for the running calls, and returns the error.
func Run(ctx context.Context, tracker Source, width int,
	work func(ctx context.Context, i int) (ok bool, err error)) error {
	type ended struct {
		i   int
		ok  bool
		err error
	}
	// Workers run many items each, so that their stacks grow once.
	items, results, workers := make(chan int, width), make(chan ended, width), 0
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(items)
	var waiting []int
	var failure error
	running := 0
	for {
		waiting = append(waiting, tracker.Ready()...)
		for failure == nil && ctx.Err() == nil && len(waiting) > 0 && running < width {
			items <- waiting[0]
			waiting = waiting[1:]
			if running++; running > workers {
				workers++
				wg.Go(func() {
					for i := range items {
						ok, err := work(ctx, i)
						results <- ended{i, ok, err}
					}
				})
			}
		}
		if running == 0 {
			if failure == nil {
				failure = ctx.Err()
			}
			return failure
		}
		var wake <-chan struct{}
		if w, ok := tracker.(Waker); ok && failure == nil && ctx.Err() == nil {
			wake = w.Wake()
		}
		var e ended
		select {
		case e = <-results:
		case <-wake:
			continue
		}
		running--
		switch {
		case e.err != nil && failure == nil:
			failure = e.err
		case e.ok:
			tracker.Done(e.i)
		default:
			tracker.Fail(e.i)
		}
	}
}
