package graph

import (
	"context"
	"sync"
)

// Run does the work that a tracker hands out, up to width items side by side, without barriers. work says whether
// the item is done; what depends on one that is not is left out. An error stops the handing out and is returned once
// everything under way has ended.
func Run(ctx context.Context, tracker *Tracker, width int, work func(ctx context.Context, i int) (ok bool, err error)) error {
	type ended struct {
		i   int
		ok  bool
		err error
	}
	results := make(chan ended)
	var wg sync.WaitGroup
	defer wg.Wait()
	var waiting []int
	var failure error
	running := 0
	for {
		waiting = append(waiting, tracker.Ready()...)
		for failure == nil && ctx.Err() == nil && len(waiting) > 0 && running < width {
			i := waiting[0]
			waiting = waiting[1:]
			running++
			wg.Go(func() {
				ok, err := work(ctx, i)
				results <- ended{i, ok, err}
			})
		}
		if running == 0 {
			if failure == nil {
				failure = ctx.Err()
			}
			return failure
		}
		e := <-results
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
