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

// waiting tracks the changes whose providers are planning them. It names the slow ones in the Plan's status, and says
// there how far the planning is.
type waiting struct {
	*Planner
	plan *v1alpha1.Plan
	// total returns the number of changes that the plan has so far.
	total func() int
	began time.Time

	mu       sync.Mutex
	since    map[*ledger.Change]time.Time
	planned  int
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
		w.planned++
	}
}

// progressText says how many changes are planned, and how long the others may take.
func (w *waiting) progressText() string {
	w.mu.Lock()
	planned, total := w.planned, w.total()
	w.mu.Unlock()
	text := fmt.Sprintf("%d of %d changes are planned", planned, total)
	if left := total - planned; planned > 0 && left > 0 {
		text += fmt.Sprintf(", about %s left",
			(time.Since(w.began) * time.Duration(left) / time.Duration(planned)).Round(time.Second))
	}
	return text + "."
}

// text names the changes that have waited for long; "" if there are none.
func (w *waiting) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	slow := maps.Clone(w.since)
	maps.DeleteFunc(slow, func(_ *ledger.Change, began time.Time) bool {
		return time.Since(began) < cmp.Or(w.LongCall, longCall)
	})
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
	reason := v1alpha1.ReasonAwaitingProvider
	if text == "" {
		reason, text = v1alpha1.ReasonPlanning, w.progressText()
	}
	if text == w.reported {
		return
	}
	err := w.Plans.UpdateStatus(ctx, w.plan.Namespace, w.plan.Name, w.plan.UID, func(s *v1alpha1.PlanStatus) {
		if !s.Ended() && s.Cancel == nil && ctx.Err() == nil {
			condition.Reconciling(&s.Conditions, w.plan.Generation, reason, text)
		}
	})
	switch {
	case err == nil:
		w.reported = text
	case ctx.Err() == nil && !errors.Is(err, store.ErrGone):
		w.Logger.Warn("report the resources for which a plan waits", "namespace", w.plan.Namespace, "plan", w.plan.Name,
			"error", err)
	}
}
