package applying

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/plan"
)

const setUID = types.UID("fleet")

// pacing runs the steps of a plan by hand, with a clock of its own.
type pacing struct {
	*rollouts
	work    *changes.Stored
	clock   time.Time
	reports []string
}

// pace returns a plan that updates a number of instances with a rollout. deps has the steps that each step depends on.
func pace(t *testing.T, rollout v1alpha1.PlanRollout, instances int, deps map[int][]int) *pacing {
	t.Helper()
	rollout.ResourceSet, rollout.UID = "fleet", setUID
	p := &pacing{work: &changes.Stored{}, clock: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}
	for i := range instances {
		c := changes.StoredChange{Brief: changes.Brief{Action: v1alpha1.ActionUpdate, State: v1alpha1.ChangePending, Rolled: true}, Index: int32(i)}
		c.Object.SetUID, c.Object.Name = setUID, fmt.Sprintf("web[%d]", i)
		p.work.Changes = append(p.work.Changes, c)
		p.work.Steps = append(p.work.Steps, plan.Step{Change: i, DependsOn: deps[i]})
	}
	p.resume(rollout)
	return p
}

// resume begins anew from the states of the changes, as a server does after a restart.
func (p *pacing) resume(rollout v1alpha1.PlanRollout) {
	po := &v1alpha1.Plan{}
	po.Status.Rollouts = []v1alpha1.PlanRollout{rollout}
	tracker := graph.NewTracker(len(p.work.Steps), func(i int) []int { return p.work.Steps[i].DependsOn })
	p.rollouts = newRollouts(po, p.work, tracker)
	p.now = func() time.Time { return p.clock }
	p.report = func(text string) { p.reports = append(p.reports, text) }
}

// ready expects the steps that may begin now.
func (p *pacing) ready(t *testing.T, want ...int) {
	t.Helper()
	got := p.Ready()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps that begin (-want +got):\n%s", diff)
	}
}

func (p *pacing) done(steps ...int) {
	for _, i := range steps {
		p.Done(i)
	}
}

func TestRolloutChangesAFewAtOnce(t *testing.T) {
	p := pace(t, v1alpha1.PlanRollout{Waves: []int32{5}, MaxUnavailable: 2}, 5, nil)
	p.ready(t, 0, 1)
	p.ready(t)
	p.done(1)
	p.ready(t, 2)
	p.done(0, 2)
	p.ready(t, 3, 4)
	p.done(3, 4)
	p.ready(t)
}

func TestRolloutWaitsForEachWaveAndItsPause(t *testing.T) {
	p := pace(t, v1alpha1.PlanRollout{Waves: []int32{1, 2, 1}, Pause: &metav1.Duration{Duration: time.Minute}}, 4, nil)
	p.ready(t, 0)
	p.done(0)
	p.ready(t)
	if p.Wake() == nil {
		t.Error("nothing wakes the plan at the end of the pause")
	}
	p.clock = p.clock.Add(59 * time.Second)
	p.ready(t)
	p.clock = p.clock.Add(time.Second)
	p.ready(t, 1, 2)
	p.done(1)
	p.ready(t)
	p.done(2)
	p.ready(t)
	p.clock = p.clock.Add(time.Minute)
	p.ready(t, 3)
	p.done(3)
	p.ready(t)
	if p.Wake() != nil {
		t.Error("a plan without further steps waits")
	}
	want := []string{
		`The rollout of the ResourceSet "fleet" pauses until 12:01:00Z, after wave 1 of 3.`, "",
		`The rollout of the ResourceSet "fleet" pauses until 12:02:00Z, after wave 2 of 3.`, "",
	}
	if diff := cmp.Diff(want, p.reports); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

func TestRolloutStopsAfterItsFailures(t *testing.T) {
	p := pace(t, v1alpha1.PlanRollout{Waves: []int32{1, 3}, MaxFailures: 1, MaxUnavailable: 1}, 4, nil)
	p.ready(t, 0)
	p.Fail(0)
	p.ready(t, 1) // one may fail
	p.Fail(1)
	p.ready(t)
	if p.Wake() != nil {
		t.Error("a stopped rollout waits")
	}
}

// TestRolloutResumes expects that a restart neither repeats a pause nor forgets a failure.
func TestRolloutResumes(t *testing.T) {
	rollout := v1alpha1.PlanRollout{ResourceSet: "fleet", UID: setUID, Waves: []int32{2, 2}, MaxFailures: 1, Pause: &metav1.Duration{Duration: time.Minute}}
	p := pace(t, rollout, 4, nil)
	ended := p.clock.Add(-30 * time.Second)
	p.work.Changes[0].State, p.work.Changes[0].FinishedAt = v1alpha1.ChangeFailed, ended
	p.work.Changes[1].State, p.work.Changes[1].FinishedAt = v1alpha1.ChangeDone, ended
	p.resume(rollout)
	p.ready(t, 0, 1) // their steps return the recorded outcome
	p.Fail(0)
	p.done(1)
	p.ready(t)
	p.clock = p.clock.Add(30 * time.Second)
	p.ready(t, 2, 3)
	p.Fail(2)
	if !p.sets[0].stopped() {
		t.Error("the failure before the restart does not count")
	}
}

func TestRolloutResumesWhatWasRunning(t *testing.T) {
	rollout := v1alpha1.PlanRollout{ResourceSet: "fleet", UID: setUID, Waves: []int32{3}, MaxUnavailable: 1}
	p := pace(t, rollout, 3, nil)
	p.work.Changes[2].State = v1alpha1.ChangeRunning
	p.resume(rollout)
	p.ready(t, 2)
	p.done(2)
	p.ready(t, 0)
}

// TestDependenciesPrecedeWaves has an instance of the first wave that depends on one of the last wave.
func TestDependenciesPrecedeWaves(t *testing.T) {
	p := pace(t, v1alpha1.PlanRollout{Waves: []int32{1, 1}}, 2, map[int][]int{0: {1}})
	p.ready(t, 1)
	p.done(1)
	p.ready(t, 0)
}

// TestSkippedInstancesEndTheirWave has an instance whose dependency fails outside of the set.
func TestSkippedInstancesEndTheirWave(t *testing.T) {
	p := pace(t, v1alpha1.PlanRollout{Waves: []int32{2, 1}}, 4, map[int][]int{1: {3}})
	p.work.Changes[3].Rolled = false
	p.resume(v1alpha1.PlanRollout{ResourceSet: "fleet", UID: setUID, Waves: []int32{2, 1}})
	p.ready(t, 0, 3)
	p.Fail(3)
	p.done(0)
	p.ready(t, 2)
}

// TestASkippedInstanceBeginsNoPause fails a dependency of an instance in the first wave, and continues after the pause as a new
// lane does.
func TestASkippedInstanceBeginsNoPause(t *testing.T) {
	rollout := v1alpha1.PlanRollout{ResourceSet: "fleet", UID: setUID, Waves: []int32{2, 1}, Pause: &metav1.Duration{Duration: time.Minute}}
	p := pace(t, rollout, 4, map[int][]int{1: {3}})
	p.work.Changes[3].Rolled = false
	p.resume(rollout)
	p.ready(t, 0, 3)
	p.done(0)
	p.Fail(3)
	p.ready(t)
	ended := p.clock
	p.work.Changes[0].State, p.work.Changes[0].FinishedAt = v1alpha1.ChangeDone, ended
	p.work.Changes[3].State, p.work.Changes[3].FinishedAt = v1alpha1.ChangeFailed, ended
	p.clock = p.clock.Add(time.Minute)
	p.resume(rollout)
	p.ready(t, 0, 3)
	p.done(0)
	p.Fail(3)
	p.ready(t, 2)
}

func TestACancelEndsThePause(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := pace(t, v1alpha1.PlanRollout{Waves: []int32{1, 1}, Pause: &metav1.Duration{Duration: time.Hour}}, 2, nil)
	p.cancelled, p.clock = ctx, time.Now()
	p.ready(t, 0)
	p.done(0)
	p.ready(t)
	wake := p.Wake()
	cancel()
	select {
	case <-wake:
	case <-time.After(time.Second):
		t.Fatal("the pause goes on")
	}
	p.ready(t)
	if p.Wake() != nil {
		t.Error("a cancelled plan waits")
	}
}

// TestPoliciesStopARollout writes a policy during a pause. No later wave begins, and no step after one, until the policies permit it.
func TestPoliciesStopARollout(t *testing.T) {
	p := pace(t, v1alpha1.PlanRollout{Waves: []int32{1, 2, 1}, Pause: &metav1.Duration{Duration: time.Minute}, MaxUnavailable: 1}, 4, nil)
	// A step of no rollout depends on the first instance of the second wave.
	p.work.Changes = append(p.work.Changes, changes.StoredChange{Brief: changes.Brief{Action: v1alpha1.ActionCreate, State: v1alpha1.ChangePending}, Index: 4})
	p.work.Steps = append(p.work.Steps, plan.Step{Change: 4, DependsOn: []int{1}})
	p.resume(v1alpha1.PlanRollout{ResourceSet: "fleet", UID: setUID, Waves: []int32{1, 2, 1}, Pause: &metav1.Duration{Duration: time.Minute}, MaxUnavailable: 1})
	refused, judged := "", 0
	p.gate.judge = func() string { judged++; return refused }
	p.ready(t, 0)
	p.done(0)
	p.ready(t)
	refused = "A policy refuses the plan. PlanPolicy/freeze/incident: stop."
	p.clock = p.clock.Add(time.Minute)
	p.ready(t)
	if p.pausedUntil().IsZero() || judged != 1 {
		t.Fatalf("paused until %s, judged %d times", p.pausedUntil(), judged)
	}
	p.clock = p.clock.Add(judgeAgain)
	p.ready(t)
	refused = ""
	p.clock = p.clock.Add(judgeAgain)
	p.ready(t, 1)
	// A policy within a wave stops the next instance, and the step of no rollout.
	p.done(1)
	refused = "A policy refuses the plan. PlanPolicy/freeze/incident: stop."
	p.clock = p.clock.Add(judgeEvery)
	p.ready(t)
	refused = ""
	p.clock = p.clock.Add(judgeAgain)
	p.ready(t, 2, 4)
	p.done(2, 4)
	p.ready(t)
	// A cancelled plan does not wait for policies.
	want := []string{
		`The rollout of the ResourceSet "fleet" pauses until 12:01:00Z, after wave 1 of 3.`,
		`The rollout of the ResourceSet "fleet" waits after wave 1 of 3. A policy refuses the plan. PlanPolicy/freeze/incident: stop. The server judges the plan again at 12:02:00Z. kubectl hykube cancel ends the plan.`,
	}
	if diff := cmp.Diff(want, p.reports[:2]); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

// TestPoliciesOfTheFirstWave expects that begin alone judges the first wave.
func TestPoliciesOfTheFirstWave(t *testing.T) {
	p := pace(t, v1alpha1.PlanRollout{Waves: []int32{2}}, 2, nil)
	p.gate.judge = func() string { return "no" }
	p.ready(t, 0, 1)
}
