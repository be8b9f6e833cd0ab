package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// doubler is a Group that records the inputs of its calls.
type doubler struct {
	Group[int, int]
	mu    sync.Mutex
	calls [][]int
}

func newDoubler() *doubler {
	d := &doubler{}
	d.Call = func(_ context.Context, in []int) []Result[int] {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.calls = append(d.calls, slices.Sorted(slices.Values(in)))
		out := make([]Result[int], len(in))
		for i, n := range in {
			if out[i].Value = 2 * n; n < 0 {
				out[i] = Result[int]{Err: fmt.Errorf("%d is negative", n)}
			}
		}
		return out
	}
	return d
}

// run runs the members of a batch.
func run(members ...func(ctx context.Context)) {
	b := &batch{over: context.Background(), active: len(members), waiting: map[any]*waiting{}}
	var all sync.WaitGroup
	for _, m := range members {
		all.Go(func() {
			defer b.ended()
			m(context.WithValue(context.Background(), contextKey{}, b))
		})
	}
	all.Wait()
}

// doubles is a member that doubles a number.
func (d *doubler) doubles(t *testing.T, n int) func(context.Context) {
	return func(ctx context.Context) {
		if got, err := d.Do(ctx, n); err != nil || got != 2*n {
			t.Errorf("Do(%d) = %d, %v", n, got, err)
		}
	}
}

func TestABatchMakesOneCall(t *testing.T) {
	d := newDoubler()
	run(d.doubles(t, 1), d.doubles(t, 2), func(context.Context) {}, func(ctx context.Context) {
		if _, err := d.Do(ctx, -3); err == nil || err.Error() != "-3 is negative" {
			t.Errorf("Do(-3): error %v", err)
		}
	}, d.doubles(t, 4))
	if len(d.calls) != 1 || !slices.Equal(d.calls[0], []int{-3, 1, 2, 4}) {
		t.Errorf("calls %v, want one", d.calls)
	}
}

// TestMembersOfABatchShareLaterCalls lets the members of a batch make one call of a group after the other.
func TestMembersOfABatchShareLaterCalls(t *testing.T) {
	d, e := newDoubler(), newDoubler()
	var members []func(context.Context)
	for n := range 5 {
		members = append(members, func(ctx context.Context) {
			d.doubles(t, n)(ctx)
			e.doubles(t, n)(ctx)
			d.doubles(t, 10*n)(ctx)
		})
	}
	run(members...)
	if len(d.calls) != 2 || len(e.calls) != 1 {
		t.Errorf("calls %v and %v, want two and one", d.calls, e.calls)
	}
}

// TestAMemberThatIsBusyDelaysOthersBriefly lets a member of a batch work for an hour.
func TestAMemberThatIsBusyDelaysOthersBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, began := newDoubler(), time.Now()
		run(func(ctx context.Context) {
			time.Sleep(time.Hour)
			d.doubles(t, 3)(ctx)
		}, d.doubles(t, 1), func(ctx context.Context) {
			d.doubles(t, 2)(ctx)
			if took := time.Since(began); took != maxWait {
				t.Errorf("a member waited %s for another one, want %s", took, maxWait)
			}
		})
		if len(d.calls) != 2 || !slices.Equal(d.calls[0], []int{1, 2}) {
			t.Errorf("calls %v, want one of 1 and 2, and one of 3", d.calls)
		}
	})
}

func TestOutsideOfABatchEachInputIsACall(t *testing.T) {
	d := newDoubler()
	for n := range 3 {
		d.doubles(t, n)(t.Context())
	}
	if len(d.calls) != 3 {
		t.Errorf("calls %v, want three", d.calls)
	}
}

func TestAMemberWhoseContextEndsWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := errors.New("late")
		g := &Group[int, int]{Call: func(ctx context.Context, in []int) []Result[int] {
			time.Sleep(time.Hour)
			if ctx.Err() != nil {
				t.Error("the context of the call ended with that of a member")
			}
			return make([]Result[int], len(in))
		}}
		run(func(ctx context.Context) {
			ctx, cancel := context.WithTimeoutCause(ctx, time.Second, late)
			defer cancel()
			if _, err := g.Do(ctx, 1); !errors.Is(err, late) {
				t.Errorf("error %v, want %v", err, late)
			}
		}, func(ctx context.Context) {
			if _, err := g.Do(ctx, 2); err != nil {
				t.Error(err)
			}
		})
	})
}

func TestACallWithTooFewResultsFailsForAll(t *testing.T) {
	g := &Group[int, int]{Call: func(context.Context, []int) []Result[int] { return make([]Result[int], 1) }}
	fails := func(ctx context.Context) {
		if _, err := g.Do(ctx, 1); err == nil {
			t.Error("a call with one result for two inputs did not fail")
		}
	}
	run(fails, fails)
}

// TestStoppedBatchReturnsTheResultsOfItsCall ends the context of a batch during a call. The members return the results of
// the call, and not the end of their contexts. A member whose call has not started returns the cause.
func TestStoppedBatchReturnsTheResultsOfItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over, stop := context.WithCancelCause(t.Context())
		b := &batch{over: over, active: 3, waiting: map[any]*waiting{}}
		ctx := context.WithValue(over, contextKey{}, b)
		g := &Group[int, int]{Call: func(ctx context.Context, in []int) []Result[int] {
			<-ctx.Done()
			out := make([]Result[int], len(in))
			for i, n := range in {
				out[i].Value = 10 * n
			}
			return out
		}}
		other := &Group[int, int]{Call: func(context.Context, []int) []Result[int] {
			t.Error("a call started after the end")
			return make([]Result[int], 1)
		}}
		var all sync.WaitGroup
		for n := range 2 {
			all.Go(func() {
				defer b.ended()
				if got, err := g.Do(ctx, n); err != nil || got != 10*n {
					t.Errorf("Do(%d) = %d, %v", n, got, err)
				}
			})
		}
		all.Go(func() {
			defer b.ended()
			time.Sleep(time.Minute) // the others begin their call
			all.Go(func() {
				time.Sleep(time.Millisecond)
				stop(errStopped)
			})
			if _, err := other.Do(ctx, 1); !errors.Is(err, errStopped) {
				t.Errorf("error %v, want %v", err, errStopped)
			}
		})
		all.Wait()
	})
}

func TestNoCallStartsAfterTheEndOfABatch(t *testing.T) {
	over, stop := context.WithCancelCause(t.Context())
	stop(errStopped)
	b := &batch{over: over, active: 1, waiting: map[any]*waiting{}}
	d := newDoubler()
	if _, err := d.Do(context.WithValue(t.Context(), contextKey{}, b), 1); !errors.Is(err, errStopped) || len(d.calls) > 0 {
		t.Errorf("error %v and calls %v, want %v and none", err, d.calls, errStopped)
	}
}
