package applying

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestAStepIsMadeByOneAttemptAtATime(t *testing.T) {
	a := newObjectLocks()
	leave, err := a.lock(t.Context(), "plan", "object")
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.lock(ended, "plan", "object"); !errors.Is(err, context.Canceled) {
		t.Errorf("a second attempt: got %v, want it to wait until its context ends", err)
	}
	for _, other := range []struct{ plan, object types.UID }{{"plan", "other"}, {"other", "object"}} {
		if leave, err := a.lock(ended, other.plan, other.object); err != nil {
			t.Errorf("%v: %v", other, err)
		} else {
			leave()
		}
	}
	entered := make(chan error)
	go func() {
		leave, err := a.lock(t.Context(), "plan", "object")
		if err == nil {
			leave()
		}
		entered <- err
	}()
	leave()
	if err := <-entered; err != nil {
		t.Errorf("after the first left: %v", err)
	}
}
