package activities

import (
	"log/slog"
	"testing"
	"time"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/session"
)

// TestCancelledWhileItWaits cancels a plan whose step waits for the limit of a ProviderConfig, or for the provider's
// plan. The provider is not called, and the change counts as not tried.
func TestCancelledWhileItWaits(t *testing.T) {
	for name, lane := range map[string]bool{"steps": false, "lane": true} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.lane = lane
			sc.put("test-thing/a", map[string]any{"name": "a", "size": "1"}, nil)
			run := sc.newRun()
			po := sc.until(run, stepping)
			plans := &activitiestest.OnePlan{Plan: *po.DeepCopy()}
			sc.use(crashPlans{sc}, changes.CancelReader{Plans: plans, Logger: slog.New(slog.DiscardHandler), Interval: time.Millisecond})
			// Another plan uses the only concurrent call that the ProviderConfig permits.
			limits := &v1alpha1.Limits{Concurrency: 1}
			sc.Config(limits)
			admitted, err := sc.Sessions.Wait(t.Context(), "team/test/default", limits, false, session.SlotAndRate)
			if err != nil {
				t.Fatal(err)
			}
			defer admitted.Release()
			time.AfterFunc(20*time.Millisecond, plans.Cancel)
			sc.until(run, finishing)
			po.Status.Cancel = &v1alpha1.PlanCancel{}
			sc.resume(run)
			if len(sc.cloud.made) != 0 {
				t.Errorf("made %v", sc.cloud.made)
			}
			c, err := sc.Ledger.Change(t.Context(), po.UID, 0)
			if err != nil || c.State != v1alpha1.ChangeSkipped || c.StartedAt != nil {
				t.Errorf("%v: %s %q, begun %v", err, c.State, c.Message, c.StartedAt)
			}
			stalled := v1alpha1.TrueReason(resource.StatusOf(sc.Stored["team:test-thing/a"]).Conditions, v1alpha1.ConditionStalled)
			if stalled != v1alpha1.ReasonCancelled {
				t.Errorf("the object is stalled because of %q, want %q", stalled, v1alpha1.ReasonCancelled)
			}
		})
	}
}
