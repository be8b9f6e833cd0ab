package activities

import (
	"slices"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/workflows"
)

// TestTheDestroyOfWhatIsGoneIsKilled destroys a resource that is removed outside after the plan was made. An earlier plan left the intent
// of its destroy, so the step reads it. The server is killed at each point of the apply.
func TestTheDestroyOfWhatIsGoneIsKilled(t *testing.T) {
	for _, lane := range []bool{false, true} {
		for at, reached := 0, true; reached; at++ {
			sc := newCrashScenario(t)
			things("a")(sc)
			sc.apply()
			sc.delete("test-thing/a")
			sc.cloud.faults["delete a"] = slices.Repeat([]string{"lost"}, session.Attempts)
			sc.apply()
			if rec := sc.recordOf("test-thing/a"); rec.Intent == nil || len(sc.cloud.things) != 1 {
				t.Fatalf("the first destroy left the intent %v, and %v in the cloud", rec.Intent, sc.cloud.there())
			}
			run := sc.newRun()
			sc.until(run, stepping)
			clear(sc.cloud.things)
			sc.lane, sc.injector.seen, sc.injector.at = lane, 0, at
			po := sc.resume(run)
			reached = at == 0 || sc.injector.seen >= at
			if v1alpha1.TrueReason(po.Status.Conditions, v1alpha1.ConditionReady) != v1alpha1.ReasonApplied || len(sc.Stored) > 0 || len(sc.records()) > 0 {
				t.Errorf("killed at %d, lane %t: %v; objects %v, records %d", at, lane, po.Status.Conditions, sc.Stored, len(sc.records()))
			}
		}
	}
}

// TestAStepAfterTheFirstHalfOfAReplace destroys a resource after the first half of a replace, whose second half then fails.
func TestAStepAfterTheFirstHalfOfAReplace(t *testing.T) {
	sc := newCrashScenario(t)
	things("a")(sc)
	sc.put("test-thing/b", m{"name": "b", "uses": "${test_thing.a.id}"}, nil)
	sc.apply()
	sc.delete("test-thing/a")
	sc.put("test-thing/b", m{"name": "b2"}, nil)
	sc.cloud.faults["create b2"] = []string{"refused"}
	run := sc.newRun()
	sc.until(run, stepping)
	// As in Terraform, what b referred to is destroyed between its two halves.
	for _, want := range []struct {
		address     string
		destroy, ok bool
	}{{"test_thing.b", true, true}, {"test_thing.a", true, true}, {"test_thing.b", false, false}} {
		for _, step := range run.begun.Steps {
			c, err := sc.Ledger.Change(t.Context(), workflows.ObjectUID(run.Plan), int32(step.Change))
			if err != nil {
				t.Fatal(err)
			}
			if c.Address != want.address || step.Destroy != want.destroy {
				continue
			}
			result, err := sc.applier.Step(t.Context(), workflows.StepInput{Plan: run.Plan, Change: step.Change, Destroy: step.Destroy}, 1)
			if err != nil || result.OK != want.ok {
				t.Errorf("step of %s, destroy %t: %+v, %v", want.address, want.destroy, result, err)
			}
		}
	}
	if got := sc.cloud.there(); len(got) > 0 {
		t.Errorf("in the cloud: %v, calls: %v", got, sc.cloud.log)
	}
}
