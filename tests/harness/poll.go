package harness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// waitLimit is the maximum time that a test waits on a busy machine.
const waitLimit = time.Minute

// Poll calls try until it returns no error. If the context ends first, Poll also returns the last error.
func Poll(ctx context.Context, every time.Duration, try func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// Within polls until there is no error, at most for the limit.
func Within(limit time.Duration, try func() error) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("not within %s", limit))
	defer cancel()
	return Poll(ctx, 100*time.Millisecond, try)
}

// Eventually polls until there is no error, and fails the test after a minute.
func Eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	if err := Within(waitLimit, try); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// tail returns the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
