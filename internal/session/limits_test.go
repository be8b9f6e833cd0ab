package session

import (
	"context"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestLimitsAreSharedByConfiguration(t *testing.T) {
	l := newLimits()
	one := &v1alpha1.Limits{Concurrency: 1}
	release, err := l.acquire(t.Context(), "prod/sim/default", one, false)
	if err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.acquire(impatient, "prod/sim/default", one, false); err == nil {
		t.Error("a second call of a configuration that allows one")
	}
	if other, err := l.acquire(t.Context(), "prod/sim/other", one, false); err != nil {
		t.Errorf("another configuration has to wait: %v", err)
	} else {
		other()
	}
	release()
	again, err := l.acquire(t.Context(), "prod/sim/default", one, false)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// TestBatchesHaveSlotsOfTheirOwn holds all slots of calls one by one. Batched calls have others, unless the user set a
// limit.
func TestBatchesHaveSlotsOfTheirOwn(t *testing.T) {
	for _, tt := range []struct {
		limits *v1alpha1.Limits
		want   int // batched calls
	}{{nil, batchConcurrency}, {&v1alpha1.Limits{Concurrency: defaultConcurrency}, 0}} {
		l := newLimits()
		for range defaultConcurrency {
			if _, err := l.acquire(t.Context(), "prod/sim/default", tt.limits, false); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		for b := l.bucket("prod/sim/default", tt.limits); n <= batchConcurrency && b.batched.TryAcquire(1); n++ {
		}
		if n != tt.want {
			t.Errorf("limits %v: %d batched calls at once beside %d others, want %d", tt.limits, n, defaultConcurrency, tt.want)
		}
	}
}
