package session

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
)

// LimitMode selects the limits of a ProviderConfig for which a caller waits.
type LimitMode int

const (
	// RateOnly waits only for the rate limits. A caller uses it if its resource already holds a slot, since waiting for a
	// second one could block forever.
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

// Processes are the processes that share the limits.
type Processes interface {
	// Processes returns the number of live processes, at least 1.
	Processes() int
	// TakeSlot waits for one of a number of slots, which is less than that of the processes. The caller calls release after its
	// call.
	TakeSlot(ctx context.Context, config string, slots int) (release func(), err error)
}

// limits holds the limits of each provider configuration. They apply to all plans of all processes together: each process has an
// equal share.
type limits struct {
	logger *slog.Logger
	// processes is nil for one process.
	processes Processes

	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	key  string
	spec v1alpha1.Limits
	// processes is that of limits. shares is the number of processes among which rate is shared now.
	processes Processes
	shares    atomic.Int64
	// slots limits single calls, and batched limits calls of types that the provider takes in batches. They are the
	// same if the spec has a limit.
	slots, batched *slots
	// rate is the limit of the spec. governor adapts to the limit that the provider's API shows by throttling.
	rate     *rate.Limiter
	governor *governor
}

func newLimits(processes Processes, logger *slog.Logger) *limits {
	return &limits{processes: processes, logger: logger, buckets: map[string]*bucket{}}
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
		var sharers func() int
		if l.processes != nil {
			sharers = l.processes.Processes
		}
		b = &bucket{
			key: key, spec: s, processes: l.processes, slots: newSlots(defaultConcurrency, sharers), batched: newSlots(batchConcurrency, sharers),
			rate: rate.NewLimiter(rate.Inf, 1), governor: newGovernor(l.logger.With("config", key)),
		}
		b.shares.Store(1)
		if s.Concurrency > 0 {
			b.slots = newSlots(int(s.Concurrency), sharers)
			b.batched = b.slots
		}
		if s.RatePerSecond > 0 {
			b.rate = rate.NewLimiter(rate.Limit(s.RatePerSecond), int(s.RatePerSecond))
		}
		l.buckets[key] = b
	}
	return b
}

// Admission is the permission for the call of a provider.
type Admission struct {
	bucket *bucket
	slots  *slots // nil without a slot
	// common releases the slot of all processes; nil without one.
	common func()
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
		if b.processes != nil && a.slots.max < b.processes.Processes() {
			var err error
			if a.common, err = b.processes.TakeSlot(ctx, b.key, a.slots.max); err != nil {
				a.Release()
				return nil, err
			}
		}
	}
	b.shareRate()
	err := b.rate.Wait(ctx)
	if err == nil {
		a.call, err = b.governor.wait(ctx)
	}
	if err != nil {
		a.Release()
		return nil, err
	}
	return a, nil
}

// shareRate gives this process its share of the limit of the spec.
func (b *bucket) shareRate() {
	if b.processes == nil || b.spec.RatePerSecond == 0 {
		return
	}
	n := int64(b.processes.Processes())
	if b.shares.Swap(n) != n {
		b.rate.SetLimit(rate.Limit(b.spec.RatePerSecond) / rate.Limit(n))
		b.rate.SetBurst(max(1, int(b.spec.RatePerSecond)/int(n)))
	}
}

// Release ends the call. Further calls do nothing.
func (a *Admission) Release() {
	a.once.Do(func() {
		if a.common != nil {
			a.common()
		}
		if a.slots != nil {
			a.slots.release()
		}
	})
}

// answered reports to the governor whether the provider's API throttled the call.
func (a *Admission) answered(ds []*tfprotov6.Diagnostic) {
	a.bucket.governor.answered(a.call, diag.IsThrottling(ds))
}
