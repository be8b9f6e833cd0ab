package session

import (
	"context"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestLimitsAreSharedByConfiguration(t *testing.T) {
	l := newLimits()
	one := &v1alpha1.Limits{Concurrency: 1}
	release, err := l.acquire(t.Context(), "prod/sim/default", one)
	if err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.acquire(impatient, "prod/sim/default", one); err == nil {
		t.Error("a second call of a configuration that allows one")
	}
	if other, err := l.acquire(t.Context(), "prod/sim/other", one); err != nil {
		t.Errorf("another configuration has to wait: %v", err)
	} else {
		other()
	}
	release()
	again, err := l.acquire(t.Context(), "prod/sim/default", one)
	if err != nil {
		t.Fatal(err)
	}
	again()
}
