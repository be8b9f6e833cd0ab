package activities

import (
	"log/slog"
	"strings"
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
			sc.cancel(run)
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

// TestACancelAfterACrash kills the server during the call of a large plan's first step. The plan is cancelled before its next server
// continues. The step that began has an outcome of its own, and only the step after it was not tried.
func TestACancelAfterACrash(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string // the sizes of the resource; "" for none
		// at is 1 if the server is killed before the effect of the call, and 2 if it is killed after it. left is the size in the cloud.
		at   int
		left string
		want v1alpha1.ChangeState
	}{
		"before the effect of a create":  {"", "1", 1, "", v1alpha1.ChangeUnknown},
		"after the effect of a create":   {"", "1", 2, "1", v1alpha1.ChangeUnknown},
		"before the effect of an update": {"1", "2", 1, "1", v1alpha1.ChangeFailed},
		"after the effect of an update":  {"1", "2", 2, "2", v1alpha1.ChangeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.lane = true
			if test.before != "" {
				sc.put("test-thing/a", m{"name": "a", "size": test.before}, nil)
				sc.apply()
			}
			sc.put("test-thing/a", m{"name": "a", "size": test.after}, nil)
			sc.put("test-thing/b", m{"name": "b", "uses": "${test_thing.a.size}"}, nil)
			run := sc.newRun()
			sc.until(run, stepping)
			sc.cloud.while = func() { sc.injector.at = sc.injector.seen + test.at }
			if err := sc.advance(run); sc.injector.alive() == nil {
				t.Fatalf("the server was not killed: %v", err)
			}
			sc.restart()
			sc.cancel(run)
			po := sc.resume(run)
			states := map[string]v1alpha1.ChangeState{}
			for i := range 2 {
				c := sc.changeOf(run, i)
				states[c.Object.Name] = c.State
				if c.State == v1alpha1.ChangeUnknown && (len(c.Diagnostics) != 1 || c.Diagnostics[0].Summary != "Outcome of a create is unknown" || strings.Contains(c.Diagnostics[0].Detail, "Outcome")) {
					t.Errorf("diagnostics: %+v", c.Diagnostics)
				}
			}
			if states["a"] != test.want || states["b"] != v1alpha1.ChangeSkipped {
				t.Errorf("changes %v, want %s and %s", states, test.want, v1alpha1.ChangeSkipped)
			}
			if p := po.Status.Progress; p == nil || p.Failed != 1 || p.Skipped != 1 {
				t.Errorf("progress %+v", p)
			}
			left := ""
			for _, thing := range sc.cloud.things {
				left += thing["size"]
			}
			if left != test.left {
				t.Errorf("the cloud has the size %q, want %q", left, test.left)
			}
		})
	}
}

// TestAnEditAfterACrash kills the server during the call of an update or a destroy. The object is edited before the next server
// continues. The step does not repeat the call, and does not claim that it was not made.
func TestAnEditAfterACrash(t *testing.T) {
	for name, edited := range map[string]m{
		"update":  {"name": "a", "size": "2"},
		"destroy": {"name": "other", "size": "1"}, // a replace
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.lane = true
			sc.put("test-thing/a", m{"name": "a", "size": "1"}, nil)
			sc.apply()
			sc.put("test-thing/a", edited, nil)
			run := sc.newRun()
			sc.until(run, stepping)
			sc.cloud.while = func() { sc.injector.at = sc.injector.seen + 2 }
			if err := sc.advance(run); sc.injector.alive() == nil {
				t.Fatalf("the server was not killed: %v", err)
			}
			sc.restart()
			sc.put("test-thing/a", m{"name": "a", "size": "3"}, nil)
			sc.resume(run)
			if c := sc.changeOf(run, 0); c.State != v1alpha1.ChangeFailed || !strings.Contains(c.Message, "may have been made") {
				t.Errorf("%s: %s", c.State, c.Message)
			}
		})
	}
}
