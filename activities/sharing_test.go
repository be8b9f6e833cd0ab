package activities

import (
	"context"
	"testing"
	"time"

	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/workflows"
)

// TestActivitiesOfOneNamespaceLeaveRoomForOthers blocks the activities of one namespace.
func TestActivitiesOfOneNamespaceLeaveRoomForOthers(t *testing.T) {
	entered := make(chan string, 10)
	hang := withSlot(fair.New(4), func(ctx context.Context, in workflows.StepInput) (any, error) {
		entered <- in.Plan.Namespace
		<-ctx.Done()
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 8 {
		go hang(ctx, workflows.StepInput{Plan: workflows.Plan{Namespace: "hog"}})
	}
	next := func() string {
		select {
		case namespace := <-entered:
			return namespace
		case <-ctx.Done():
			return "none"
		}
	}
	for range 3 {
		next()
	}
	go hang(ctx, workflows.StepInput{Plan: workflows.Plan{Namespace: "quiet"}})
	if got := next(); got != "quiet" {
		t.Errorf("the next activity is that of %q, want the one of the namespace without a running one", got)
	}
}
