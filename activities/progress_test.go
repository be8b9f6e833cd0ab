package activities

import (
	"log/slog"
	"testing"
	"time"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/workflows"
)

// TestProgressGoesOnAfterARestart restarts the server before the first step of an apply. The plan shows the progress before its
// apply ends.
func TestProgressGoesOnAfterARestart(t *testing.T) {
	for name, lane := range map[string]bool{"steps": false, "lane": true} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.put("test-thing/a", m{"name": "a"}, nil)
			run := sc.newRun()
			plans := &activitiestest.OnePlan{Plan: *sc.until(run, stepping).DeepCopy()}
			sc.restart()
			sc.use(plans, changes.CancelReader{Plans: plans, Logger: slog.New(slog.DiscardHandler), Interval: time.Hour})
			sc.applier.ProgressInterval = time.Millisecond
			var err error
			if lane {
				_, err = sc.applier.Lane(t.Context(), run.Plan, unreported)
			} else {
				_, err = sc.applier.Step(t.Context(), workflows.StepInput{Plan: run.Plan}, 1)
			}
			if err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
				po, err := plans.Get(t.Context(), "", "", "")
				if err != nil {
					t.Fatal(err)
				}
				if p := po.Status.Progress; p.Done == 1 && p.Running == 0 {
					return
				} else if time.Now().After(deadline) {
					t.Fatalf("the plan shows %+v", p)
				}
			}
		})
	}
}
