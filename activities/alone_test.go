package activities

import (
	"context"
	"errors"
	"testing"

	"github.com/hykube/hykube/workflows"
)

func TestAStepIsMadeByOneAttemptAtATime(t *testing.T) {
	a := newAlone()
	in := workflows.StepInput{Change: 1}
	leave, err := a.enter(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.enter(ended, in); !errors.Is(err, context.Canceled) {
		t.Errorf("a second attempt: got %v, want it to wait until its context ends", err)
	}
	if other, err := a.enter(ended, workflows.StepInput{Change: 2}); err != nil {
		t.Errorf("another step: %v", err)
	} else {
		other()
	}
	entered := make(chan error)
	go func() {
		leave, err := a.enter(t.Context(), in)
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
