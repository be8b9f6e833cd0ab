package activities

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

// rolledOut returns a plan that updates two instances of a set in two waves. Its first step may begin.
func rolledOut(t *testing.T, pause time.Duration) (*crashScenario, *planRun) {
	sc := newCrashScenario(t)
	write := func(size string) {
		for i, name := range []string{"web[0]", "web[1]"} {
			name := "test-thing/" + name
			sc.put(name, m{"name": name, "size": size}, nil)
			sc.Stored["team:"+name].Object[v1alpha1.FieldInstance] = map[string]any{"set": "fleet", "setUID": "s", "index": int64(i)}
		}
	}
	sc.lane = true
	write("1")
	sc.until(sc.newRun(), over)
	write("2")
	run := sc.newRun()
	sc.until(run, stepping)
	sc.plans.change(run.Name, func(po *v1alpha1.Plan) {
		po.Status.Rollouts = []v1alpha1.PlanRollout{{ResourceSet: "fleet", UID: "s", Waves: []int32{1, 1}, Pause: &metav1.Duration{Duration: pause}}}
	})
	return sc, run
}

// TestALaneEndsAtAPause pauses between two waves. The lane does nothing before the controller has ended the pause.
func TestALaneEndsAtAPause(t *testing.T) {
	sc, run := rolledOut(t, time.Second)
	before := len(sc.cloud.log)
	lane := func(wantPaused bool) (calls int) {
		t.Helper()
		lane, err := sc.applier.Lane(t.Context(), run.Plan, unreported)
		if err != nil || lane.Paused != wantPaused {
			t.Fatalf("%+v, %v; want paused %t", lane, err, wantPaused)
		}
		return len(sc.cloud.log) - before
	}
	first := lane(true)
	until := sc.plans.get(run.Name).Status.PausedUntil
	if first == 0 || until == nil {
		t.Fatalf("%d calls in the first wave, and a pause until %v", first, until)
	}
	time.Sleep(time.Until(until.Time))
	if calls := lane(true); calls != first {
		t.Errorf("calls before the controller has ended the pause: %v", sc.cloud.log[before+first:])
	}
	sc.plans.change(run.Name, func(po *v1alpha1.Plan) { po.Status.PausedUntil = nil })
	if calls := lane(false); calls != 2*first {
		t.Errorf("%d calls after both waves, want %d", calls, 2*first)
	}
}

// TestACancelledPlanDoesNotPause cancels a plan before its first pause.
func TestACancelledPlanDoesNotPause(t *testing.T) {
	sc, run := rolledOut(t, time.Hour)
	sc.cancel(run)
	_, err := sc.applier.Lane(t.Context(), run.Plan, unreported)
	if until := sc.plans.get(run.Name).Status.PausedUntil; err != nil || until != nil {
		t.Errorf("%v; a cancelled plan pauses until %v", err, until)
	}
}
