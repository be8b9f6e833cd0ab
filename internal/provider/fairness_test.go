package provider

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// acquireLater acquires a lease in the background and returns it, or the error, through a channel.
func acquireLater(ctx context.Context, t *testing.T, p *Pool, pkg Package, c Configuration) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	go func() {
		l, err := p.Acquire(ctx, pkg, c)
		if err == nil {
			t.Cleanup(l.Release)
		}
		result <- err
	}()
	return result
}

// waitForRequests waits until a number of requests wait for a slot.
func waitForRequests(t *testing.T, p *Pool, want int) {
	t.Helper()
	waitFor(t, fmt.Sprintf("%d waiting requests", want), func() bool { return p.slots.Waiting() == want })
}

// TestPoolLeavesProcessesForOtherNamespaces lets one namespace hold all processes that it can get, for ever.
func TestPoolLeavesProcessesForOtherNamespaces(t *testing.T) {
	t.Parallel()
	pkg := tinyPackage(t)
	p := newPool(t, PoolConfig{MaxProcesses: 4})
	for i := range 3 {
		acquire(t, p, pkg, Configuration{Key: fmt.Sprint("hog", i), Namespace: "hog"})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	shared := acquireLater(ctx, t, p, pkg, Configuration{Key: "shared", Namespace: "hog"})
	more := acquireLater(ctx, t, p, pkg, Configuration{Key: "more", Namespace: "hog"})
	waitForRequests(t, p, 2)

	// The configuration that the other namespace waits for serves the newcomer, which has the right to a slot.
	inTime, done := context.WithTimeout(t.Context(), 20*time.Second)
	defer done()
	if err := <-acquireLater(inTime, t, p, pkg, Configuration{Key: "shared", Namespace: "quiet"}); err != nil {
		t.Fatalf("a namespace without a process: %v", err)
	}
	if err := <-shared; err != nil {
		t.Errorf("a lease of the process that another namespace started: %v", err)
	}
	waitForRequests(t, p, 1)
	reason := errors.New("the plan was cancelled")
	cancel(reason)
	if err := <-more; !errors.Is(err, reason) {
		t.Errorf("a request beyond the share of its namespace: %v, want to wait until the cancel", err)
	}
}

// TestPoolEndsIdleProcessesOfTheLargestNamespace checks which process makes room for another.
func TestPoolEndsIdleProcessesOfTheLargestNamespace(t *testing.T) {
	t.Parallel()
	pkg := tinyPackage(t)
	p := newPool(t, PoolConfig{MaxProcesses: 3})
	small := acquire(t, p, pkg, Configuration{Key: "small", Namespace: "small"})
	small.Release() // idle for longer than those of the other namespace
	for i := range 4 {
		acquire(t, p, pkg, Configuration{Key: fmt.Sprint("large", i), Namespace: "large"}).Release()
	}
	if again := acquire(t, p, pkg, Configuration{Key: "small", Namespace: "small"}); again.process != small.process {
		t.Error("the only process of a namespace was ended, although another namespace had two idle ones")
	}
}

// TestPoolEndsAnUnwantedStart gives up a start that hangs, when another process needs its place.
func TestPoolEndsAnUnwantedStart(t *testing.T) {
	t.Parallel()
	pkg := tinyPackage(t)
	hanging, other := pkg, tinyPackage(t)
	other.Grants.Environment = nil // so TINY_MODE reaches only the first
	p := newPool(t, PoolConfig{MaxProcesses: 1, StartTimeout: time.Hour}, "TINY_MODE=hang")
	ctx, cancel := context.WithCancel(t.Context())
	hangs := acquireLater(ctx, t, p, hanging, Configuration{Key: "hangs", Namespace: "a"})
	waitForProcesses(t, p, 1)
	cancel()
	if err := <-hangs; !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled start: %v", err)
	}
	acquire(t, p, other, Configuration{Key: "works", Namespace: "a"})
	waitForProcesses(t, p, 1)
}
