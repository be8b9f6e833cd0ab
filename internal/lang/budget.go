package lang

import (
	"context"
	"sync/atomic"
)

// Limits on the expressions of one request; see Budget.
const (
	// maxRequestWork is the work of all evaluations of one request: that of four specs at the limit of one.
	maxRequestWork = 4 * maxWork
	// costlyWork is the work after which an evaluation waits for a slot. Nearly all specs stay below it.
	costlyWork = maxWork / 32
)

// Budget limits the work of all evaluations of one request or activity together. Each evaluation also has a limit of
// its own. When the request ends, its evaluations end. A nil Budget has no limit and does not end.
type Budget struct {
	*requestBudget
	done <-chan struct{}
}

// requestBudget is the part of a Budget that all evaluations of one request share. nil has no limit.
type requestBudget struct {
	left atomic.Int64
	// slots admits one costly evaluation for each element of its capacity. All requests share it.
	slots chan struct{}
}

type requestBudgetKey struct{}

// WithBudget returns the context of a request with a common limit for all its expressions. All requests share slots,
// whose capacity bounds the number of costly evaluations at once.
func WithBudget(ctx context.Context, slots chan struct{}) context.Context {
	b := &requestBudget{slots: slots}
	b.left.Store(maxRequestWork)
	return context.WithValue(ctx, requestBudgetKey{}, b)
}

// BudgetOf returns the budget of the request with the context. It ends with the context. In a context without
// WithBudget, it has no other limit.
func BudgetOf(ctx context.Context) *Budget {
	b, _ := ctx.Value(requestBudgetKey{}).(*requestBudget)
	return &Budget{b, ctx.Done()}
}

// ended reports whether the request has ended.
func (b *Budget) ended() bool {
	if b == nil {
		return false
	}
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// take takes work units from the request's budget. It returns false if too few are left.
func (b *Budget) take(n int) bool {
	return b == nil || b.requestBudget == nil || b.left.Add(-int64(n)) >= 0
}

// wait waits for a slot for a costly evaluation, or for the end of the request. It returns a function that frees the
// slot.
func (b *Budget) wait() (free func()) {
	if b == nil || b.requestBudget == nil || b.slots == nil {
		return func() {}
	}
	select {
	case b.slots <- struct{}{}:
		return func() { <-b.slots }
	case <-b.done:
		return func() {}
	}
}
