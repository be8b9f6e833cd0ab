package planning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/store"

	"k8s.io/apimachinery/pkg/util/wait"
)

// longCall is the default time after which a plan names the resource whose provider it waits for.
const longCall = 10 * time.Second

// waiting tracks the changes whose providers are planning them, and names the slow ones in the Plan's status.
type waiting struct {
	*Planner
	plan *v1alpha1.Plan

	mu       sync.Mutex
	since    map[*ledger.Change]time.Time
	reported string
}

// watch reports until ctx ends.
func (w *waiting) watch(ctx context.Context) {
	go wait.UntilWithContext(ctx, w.report, cmp.Or(w.LongCall, longCall)/4)
}

// begin notes that a provider begins to plan a change. The caller must call end.
func (w *waiting) begin(c *ledger.Change) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since == nil {
		w.since = map[*ledger.Change]time.Time{}
	}
	w.since[c] = time.Now()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.since, c)
	}
}

// text names the changes that have waited for long; "" if there are none.
func (w *waiting) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	slow := maps.Clone(w.since)
	maps.DeleteFunc(slow, func(_ *ledger.Change, began time.Time) bool { return time.Since(began) < cmp.Or(w.LongCall, longCall) })
	switch len(slow) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("Waiting for the provider of 1 resource: %s.", changes.ListRunning(slow))
	default:
		return fmt.Sprintf("Waiting for the providers of %d resources: %s.", len(slow), changes.ListRunning(slow))
	}
}

// report writes the text to the Plan if it has changed.
func (w *waiting) report(ctx context.Context) {
	text := w.text()
	if text == w.reported {
		return
	}
	err := w.Plans.UpdateStatus(ctx, w.plan.Namespace, w.plan.Name, w.plan.UID, func(s *v1alpha1.PlanStatus) {
		switch {
		case s.Ended() || s.Cancel != nil || ctx.Err() != nil:
		case text == "":
			condition.Reconciling(&s.Conditions, w.plan.Generation, v1alpha1.ReasonPlanning, "The plan is being made.")
		default:
			condition.Reconciling(&s.Conditions, w.plan.Generation, v1alpha1.ReasonAwaitingProvider, text)
		}
	})
	switch {
	case err == nil:
		w.reported = text
	case ctx.Err() == nil && !errors.Is(err, store.ErrGone):
		w.Logger.Warn("report the resources for which a plan waits", "namespace", w.plan.Namespace, "plan", w.plan.Name, "error", err)
	}
}
