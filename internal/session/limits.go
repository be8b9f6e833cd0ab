package session

import (
	"context"
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// defaultConcurrency is what v1alpha1.Limits documents.
const defaultConcurrency = 16

// limits bounds what is asked of each provider configuration, over all plans of this server.
type limits struct {
	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	spec  v1alpha1.Limits
	slots *semaphore.Weighted
	rate  *rate.Limiter
}

func newLimits() *limits { return &limits{buckets: map[string]*bucket{}} }

// acquire waits until the configuration may be asked for one more call; the caller calls release when it ended.
func (l *limits) acquire(ctx context.Context, key string, spec *v1alpha1.Limits) (release func(), err error) {
	b := l.bucket(key, spec)
	if err := b.slots.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	if err := b.rate.Wait(ctx); err != nil {
		b.slots.Release(1)
		return nil, err
	}
	return func() { b.slots.Release(1) }, nil
}

// waitForRate waits for the rate alone, for a call that must not wait for those under way.
func (l *limits) waitForRate(ctx context.Context, key string, spec *v1alpha1.Limits) error {
	return l.bucket(key, spec).rate.Wait(ctx)
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
		b = &bucket{spec: s, slots: semaphore.NewWeighted(defaultConcurrency), rate: rate.NewLimiter(rate.Inf, 1)}
		if s.Concurrency > 0 {
			b.slots = semaphore.NewWeighted(int64(s.Concurrency))
		}
		if s.RatePerSecond > 0 {
			b.rate = rate.NewLimiter(rate.Limit(s.RatePerSecond), int(s.RatePerSecond))
		}
		l.buckets[key] = b
	}
	return b
}
