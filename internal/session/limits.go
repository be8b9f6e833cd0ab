package session

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"

	"golang.org/x/time/rate"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/ledger"
)

// LimitMode selects the limits of a ProviderConfig for which a caller waits.
type LimitMode int

const (
	// RateOnly waits only for the rate limits. A caller uses it if its resource already holds a slot, since waiting for
	// a second one could block forever.
	RateOnly LimitMode = iota
	// SlotAndRate waits for a concurrency slot and for the rate limits.
	SlotAndRate
	// ApplySlotAndRate is SlotAndRate for a step of an apply. Steps have priority for most of the slots.
	ApplySlotAndRate
)

// defaultConcurrency and batchConcurrency are the defaults that v1alpha1.Limits documents.
const (
	defaultConcurrency = 16
	batchConcurrency   = 256
)

// limits holds the limits of each provider configuration. They apply to all plans of all processes together; see share.
type limits struct {
	logger    *slog.Logger
	processes ledger.Processes

	mu      sync.Mutex
	buckets map[string]*bucket
	// slots and rates are those of all buckets, by the names of their limits. A change of one limit keeps the others.
	slots map[string]*slots
	rates map[string]*callRate
}

type bucket struct {
	spec v1alpha1.Limits
	// slots limits single calls, and batched limits calls of types that the provider takes in batches. They are the
	// same if the spec has a limit.
	slots, batched *slots
	// rate is the limit of the spec. governor adapts to the limit that the provider's API shows by throttling.
	rate     *callRate
	governor *governor
}

func newLimits(processes ledger.Processes, logger *slog.Logger) *limits {
	return &limits{
		processes: processes, logger: logger,
		buckets: map[string]*bucket{}, slots: map[string]*slots{}, rates: map[string]*callRate{},
	}
}

// slotsOf returns the n slots of a kind of calls.
func (l *limits) slotsOf(key, calls string, n int) *slots {
	name := fmt.Sprintf("%s %s %d", key, calls, n)
	if l.slots[name] == nil {
		l.slots[name] = newSlots(n, l.shareOf(name, int64(n)))
	}
	return l.slots[name]
}

// rateOf returns the limit of calls a second; 0 means none.
func (l *limits) rateOf(key string, perSecond int) *callRate {
	if perSecond == 0 {
		return &callRate{limiter: rate.NewLimiter(rate.Inf, 1)}
	}
	name := fmt.Sprintf("%s rate %d", key, perSecond)
	if l.rates[name] == nil {
		l.rates[name] = &callRate{
			limiter: rate.NewLimiter(rate.Limit(perSecond), perSecond),
			share:   l.shareOf(name, int64(perSecond)*rateUnits),
		}
	}
	return l.rates[name]
}

// shareOf returns the share of a limit; nil if no other process can have a part of it.
func (l *limits) shareOf(name string, total int64) *share {
	if !l.processes.Shared() {
		return nil
	}
	return &share{processes: l.processes, logger: l.logger, limit: name, total: total, changed: make(chan struct{}, 1)}
}

func (l *limits) bucket(key string, spec *v1alpha1.Limits) *bucket {
	var s v1alpha1.Limits
	if spec != nil {
		s = *spec
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[key]
	if b == nil || b.spec != s {
		b = &bucket{
			spec: s, slots: l.slotsOf(key, "calls", cmp.Or(int(s.Concurrency), defaultConcurrency)),
			rate: l.rateOf(key, int(s.RatePerSecond)), governor: newGovernor(l.logger.With("config", key)),
		}
		b.batched = b.slots
		if s.Concurrency == 0 {
			b.batched = l.slotsOf(key, "batched calls", batchConcurrency)
		}
		l.buckets[key] = b
	}
	return b
}

// Admission is the permission for the call of a provider.
type Admission struct {
	bucket *bucket
	slots  *slots // nil without a slot
	call   governed
	once   sync.Once
}

// admit waits for a slot, if the mode has one, and for both rates. batched is true for a type whose calls the provider
// takes in batches.
func (b *bucket) admit(ctx context.Context, batched bool, mode LimitMode) (*Admission, error) {
	a := &Admission{bucket: b}
	if mode != RateOnly {
		a.slots = b.slots
		if batched {
			a.slots = b.batched
		}
		if err := a.slots.acquire(ctx, mode == ApplySlotAndRate); err != nil {
			return nil, err
		}
	}
	err := b.rate.wait(ctx)
	if err == nil {
		a.call, err = b.governor.wait(ctx)
	}
	if err != nil {
		a.Release()
		return nil, err
	}
	return a, nil
}

// Release ends the call. Further calls do nothing.
func (a *Admission) Release() {
	a.once.Do(func() {
		if a.slots != nil {
			a.slots.release()
		}
	})
}

// answered reports to the governor whether the provider's API throttled the call.
func (a *Admission) answered(ds []*tfprotov6.Diagnostic) {
	a.bucket.governor.answered(a.call, diag.IsThrottling(ds))
}
