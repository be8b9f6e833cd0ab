package activities

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type m = map[string]any

// story is a scenario with its start, a user's edit, and the expected end.
type story struct {
	before, change func(*crashScenario)
	// want lists the objects in the cloud at the end, each as "name size". made is the maximum number of creates by
	// name.
	want []string
	made map[string]int
	// foreign lists names in the cloud that need not be recorded.
	foreign []string
}

// TestServerIsKilledAtEachPoint kills the server at each point of each story, once, and starts it again. Then every
// object in the cloud must be recorded, or its create must be reported as unknown. Nothing may be created twice, and
// the end must be as expected.
func TestServerIsKilledAtEachPoint(t *testing.T) {
	for name, s := range stories() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, lane := range []bool{false, true} {
				for at := 0; ; at++ {
					if reached := s.tell(t, at, lane); at > 0 && !reached {
						break
					}
					if t.Failed() {
						t.Fatalf("killed at %d, lane %t", at, lane)
					}
				}
				if strings.Contains(name, "throttled") {
					break // a lane pauses before it retries
				}
			}
		})
	}
}

// start applies the state before the story, and makes the user's edit.
func (s story) start(t *testing.T) *crashScenario {
	sc := newCrashScenario(t)
	if s.before != nil {
		s.before(sc)
		if len(sc.Stored) > 0 {
			sc.apply()
		}
	}
	if s.change != nil {
		s.change(sc)
	}
	return sc
}

// changesNothing reports whether a plan was made and has no changes.
func changesNothing(po *v1alpha1.Plan) bool {
	return v1alpha1.TrueReason(po.Status.Conditions, v1alpha1.ConditionReady) == v1alpha1.ReasonNoChanges
}

// tell runs the story and kills the server at a point of it. reached is false if the story has no such point.
func (s story) tell(t *testing.T, at int, lane bool) (reached bool) {
	sc := s.start(t)
	sc.lane = lane
	sc.injector.seen, sc.injector.at = 0, at
	sc.apply()
	reached = sc.injector.seen >= at
	sc.injector.at = 0
	sc.accounted(s.foreign)
	for range 4 {
		if sc.lost() {
			break
		}
		if po := sc.apply(); changesNothing(po) {
			break
		}
		sc.accounted(s.foreign)
	}
	if diff := cmp.Diff(append([]string{}, s.want...), sc.cloud.there()); diff != "" && !sc.lost() {
		t.Errorf("in the cloud (-want +got)\n%s", diff)
	}
	for name, n := range sc.cloud.made {
		if n > s.made[name] {
			t.Errorf("%s was created %d times, want %d", name, n, s.made[name])
		}
	}
	if sc.lost() || strings.Contains(t.Name(), "postcondition") {
		return reached
	}
	for key, obj := range sc.Stored {
		if !resource.StatusOf(obj).Good() {
			t.Errorf("%s: %v", key, obj.Object["status"])
		}
	}
	if t.Failed() {
		t.Logf("calls: %v", sc.cloud.log)
	}
	return reached
}

// records returns all records.
func (sc *crashScenario) records() []*ledger.Instance {
	var out []*ledger.Instance
	for rec, err := range sc.Ledger.Instances(sc.T.Context(), "") {
		if err != nil {
			sc.T.Fatal(err)
		}
		out = append(out, rec)
	}
	return out
}

// lost reports whether a plan reported that the outcome of a create is unknown.
func (sc *crashScenario) lost() bool { return sc.lostCreates() > 0 }

// lostCreates returns the number of creates that are reported as unknown. A lane makes several at once.
func (sc *crashScenario) lostCreates() (n int) {
	for _, rec := range sc.records() {
		if rec.Intent != nil && rec.Intent.Action == v1alpha1.ActionCreate {
			n++
		}
	}
	return n
}

// loseTheCreate applies a plan with a create, and kills the server before it receives the answer to the create.
func (sc *crashScenario) loseTheCreate() {
	run := sc.newRun()
	sc.until(run, stepping)
	sc.cloud.while = func() { sc.injector.at = sc.injector.seen + 2 } // after the create, and before its answer
	sc.resume(run)
	if !sc.lost() {
		sc.T.Fatal("no create is reported as unknown")
	}
}

// accounted checks that each object in the cloud is recorded once, except for those of lost creates.
func (sc *crashScenario) accounted(foreign []string) {
	sc.T.Helper()
	known := map[string]string{}
	for _, rec := range sc.records() {
		states := []ledger.State{rec.State}
		keys := map[string]bool{}
		for _, d := range rec.Deposed {
			states = append(states, d.State)
			if keys[d.Key] {
				sc.T.Errorf("%s has two deposed instances %s", rec.Object.Name, d.Key)
			}
			keys[d.Key] = true
		}
		for _, s := range states {
			for id := range sc.cloud.things {
				if strings.Contains(string(s.Attributes), fmt.Sprintf(`"id":%q`, id)) {
					if other, twice := known[id]; twice {
						sc.T.Errorf("%s is recorded for %s and for %s", id, other, rec.Object.Name)
					}
					known[id] = rec.Object.Name
				}
			}
		}
	}
	unknown := 0
	for id, thing := range sc.cloud.things {
		if _, ok := known[id]; !ok && !slices.Contains(foreign, thing["name"]) {
			if unknown++; unknown > sc.lostCreates() {
				sc.T.Errorf("%s (%s) is an orphan; calls: %v", id, thing["name"], sc.cloud.log)
			}
		}
	}
}

// TestPlansAtOnce applies a plan during a provider call of another plan, and applies a plan late. In any order, nothing
// may be created twice, and no answer of the provider may be lost.
func TestPlansAtOnce(t *testing.T) {
	for name, s := range stories() {
		if strings.Contains(name, "half-way") || strings.HasPrefix(name, "forget one") {
			continue // they have no other plan, or their own plans
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, late := range []bool{false, true} {
				sc := s.start(t)
				one, other := sc.newRun(), sc.newRun()
				sc.until(one, beginning)
				sc.until(other, beginning)
				if late {
					sc.resume(one)
					sc.accounted(s.foreign)
				} else {
					sc.cloud.while = func() {
						sc.resume(other)
						sc.apply() // and one that was made now
					}
					sc.resume(one)
				}
				sc.resume(other)
				sc.accounted(s.foreign)
				if sc.lost() {
					t.Error("a create whose outcome is unknown")
				}
				for name, n := range sc.cloud.made {
					if n > s.made[name] {
						t.Errorf("%s was created %d times, want %d; late %t, calls: %v", name, n, s.made[name], late, sc.cloud.log)
					}
				}
				for range 3 {
					sc.apply()
				}
				if diff := cmp.Diff(append([]string{}, s.want...), sc.cloud.there()); diff != "" {
					t.Errorf("in the cloud, late %t (-want +got)\n%s%v", late, diff, sc.cloud.log)
				}
			}
		})
	}
}

// TestAPlanThatIsMadeMeanwhile makes a plan during the destroy of a replace. The plan finds no change. It must not
// write that to the object yet, and the provider's answer must not be lost.
func TestAPlanThatIsMadeMeanwhile(t *testing.T) {
	sc := newCrashScenario(t)
	things("a")(sc)
	sc.apply()
	things("a")(sc) // a new generation with the same spec
	sc.cloud.faults["delete a"] = []string{"refused"}
	sc.spec.Replace = []string{"test_thing.a"}
	run := sc.newRun()
	sc.spec.Replace = nil
	sc.until(run, stepping)
	sc.cloud.while = func() {
		sc.apply()
		if resource.StatusOf(sc.Stored["team:test-thing/a"]).Good() {
			t.Error("it is Ready while it is being changed")
		}
	}
	po := sc.resume(run)
	c, err := sc.Ledger.Change(t.Context(), po.UID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if c.State != v1alpha1.ChangeFailed || len(c.Diagnostics) != 1 || c.Diagnostics[0].Summary != "refused" {
		t.Errorf("%s: %v, want what the provider said", c.State, c.Diagnostics)
	}
	if rec := sc.recordOf("test-thing/a"); rec.Intent != nil || rec.Object.Generation != 0 {
		t.Errorf("recorded: intent %v, generation %d", rec.Intent, rec.Object.Generation)
	}
}

// TestAnswerOfACreateIsKept writes the record during a create, which the intent should prevent.
func TestAnswerOfACreateIsKept(t *testing.T) {
	for name, write := range map[string]func(*crashScenario, *ledger.Instance) error{
		"written": func(sc *crashScenario, rec *ledger.Instance) error { return sc.Ledger.Save(sc.T.Context(), rec) },
		"removed": func(sc *crashScenario, rec *ledger.Instance) error { return sc.Ledger.Forget(sc.T.Context(), rec) },
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			things("a")(sc)
			sc.cloud.while = func() {
				if err := write(sc, sc.recordOf("test-thing/a")); err != nil {
					t.Error(err)
				}
			}
			sc.apply()
			sc.accounted(nil)
			if rec := sc.recordOf("test-thing/a"); rec.Intent != nil || !rec.Exists() {
				t.Errorf("recorded: intent %v, %s", rec.Intent, rec.Attributes)
			}
		})
	}
}

// TestAnOldInstanceStaysUnderWhatIsBlocked has an old instance on which a dependant depends that the plan may not
// change.
func TestAnOldInstanceStaysUnderWhatIsBlocked(t *testing.T) {
	sc := newCrashScenario(t)
	sc.cloud.strict = true
	estate := func(a, b string, lifecycle m) {
		sc.put("test-thing/a", m{"name": a}, m{"createBeforeDestroy": true})
		sc.put("test-thing/b", m{"name": b, "uses": "${test_thing.a.id}"}, lifecycle)
	}
	estate("a", "b", nil)
	sc.apply()
	sc.cloud.faults["update b"] = []string{"refused"}
	estate("a2", "b", nil)
	sc.apply() // which leaves a, because b depends on it
	estate("a2", "b2", m{"preventDestroy": true})
	sc.partial = true
	po := sc.apply()
	if want := []string{"a", "a2", "b"}; !slices.Equal(sc.cloud.there(), want) {
		t.Errorf("in the cloud: %v, want %v; %s", sc.cloud.there(), want, po.Status.Summary.Text)
	}
	estate("a2", "b2", nil)
	sc.apply()
	if want := []string{"a2", "b2"}; !slices.Equal(sc.cloud.there(), want) {
		t.Errorf("in the cloud: %v, want %v", sc.cloud.there(), want)
	}
}

// TestALostCreateIsFoundAgain loses the answer to a create, of a first instance, of a replacement, and of one for a resource
// that was removed outside. It imports the instance.
func TestALostCreateIsFoundAgain(t *testing.T) {
	for name, before := range map[string]string{"the first": "", "one that replaces another": "old", "one for a resource that was removed outside": "gone"} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			cbd := m{"createBeforeDestroy": true}
			if before != "" {
				sc.put("test-thing/a", m{"name": before}, cbd)
				sc.apply()
			}
			if before == "gone" {
				clear(sc.cloud.things)
				sc.spec.Refresh = v1alpha1.RefreshAll
			}
			sc.put("test-thing/a", m{"name": "a"}, cbd)
			sc.loseTheCreate()
			id := fmt.Sprintf("id-%d", sc.cloud.last)
			told := func(when string) {
				t.Helper()
				ready := meta.FindStatusCondition(resource.StatusOf(sc.Stored["team:test-thing/a"]).Conditions, v1alpha1.ConditionReady)
				if ready.Reason != v1alpha1.ReasonCreateUnknown || !strings.Contains(ready.Message, "If it exists: kubectl hykube resolve test-thing/a -n team --adopt ID. If it does not: kubectl hykube resolve test-thing/a -n team --retry.") {
					t.Errorf("%s: %s: %s, want it to say that the create is unknown", when, ready.Reason, ready.Message)
				}
			}
			told("after the apply")
			sc.apply()
			told("after a plan that creates")
			sc.put("test-thing/a", m{"name": "a", "uses": "b"}, cbd)
			sc.apply()
			told("after a plan that creates it with another spec")
			sc.put("test-thing/a", m{"name": "a"}, m{"createBeforeDestroy": true, "import": m{"id": "nothing"}})
			if po := sc.apply(); len(po.Status.Diagnostics) != 1 || !strings.Contains(po.Status.Diagnostics[0].Summary, "nothing to import") {
				t.Errorf("diagnostics %+v, want why the import failed", po.Status.Diagnostics)
			}
			told("after an import of nothing")
			sc.put("test-thing/b", m{"name": "b"}, nil)
			sc.cloud.faults["create b"] = []string{"refused"}
			sc.put("test-thing/a", m{"name": "a"}, m{"createBeforeDestroy": true, "import": m{"id": id}, "dependsOn": []any{"test_thing.b"}})
			sc.apply()
			told("after an import that was not tried")
			sc.delete("test-thing/b")
			sc.put("test-thing/a", m{"name": "a"}, m{"createBeforeDestroy": true, "import": m{"id": id}})
			sc.apply()
			sc.accounted(nil)
			if got := sc.cloud.there(); sc.lost() || !slices.Equal(got, []string{"a"}) || sc.cloud.made["a"] != 1 {
				t.Errorf("in the cloud: %v, calls: %v, records: %+v", got, sc.cloud.log, sc.recordOf("test-thing/a"))
			}
		})
	}
}

// TestABlockedDestroyLeavesWhatMatches plans the destroy of a resource that matches its spec and on which an earlier plan failed. The
// destroy is blocked, so the resource stays as it is.
func TestABlockedDestroyLeavesWhatMatches(t *testing.T) {
	sc := newCrashScenario(t)
	sc.put("test-thing/main", m{"name": "main"}, m{"preventDestroy": true})
	sc.put("test-thing/front", m{"name": "front", "uses": "${test_thing.main.id}"}, nil)
	sc.put("test-thing/edited", m{"name": "edited", "uses": "${test_thing.main.id}"}, nil)
	sc.put("test-thing/free", m{"name": "free"}, nil)
	sc.apply()
	ready := func(name string) string {
		c := meta.FindStatusCondition(resource.StatusOf(sc.Stored["team:test-thing/"+name]).Conditions, v1alpha1.ConditionReady)
		return c.Reason
	}
	main := sc.Stored["team:test-thing/main"]
	main.SetDeletionTimestamp(new(metav1.Now()))
	sc.apply()
	main.SetDeletionTimestamp(nil)
	sc.put("test-thing/edited", m{"name": "edited", "size": "2", "uses": "${test_thing.main.id}"}, nil)
	sc.spec, sc.partial = v1alpha1.PlanSpec{Destroy: true}, true
	sc.apply()
	// What the plan should not have destroyed has the state of main; what it leaves with an old spec says why.
	for name, want := range map[string]string{
		"main": v1alpha1.ReasonApplied, "front": v1alpha1.ReasonApplied, "edited": v1alpha1.ReasonBlocked, "free": v1alpha1.ReasonDestroyed,
	} {
		if got := ready(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestAnInterruptedCallIsAudited kills the server during a call. The next process records once that the outcome is unknown; a call whose
// outcome this process recorded has no second one.
func TestAnInterruptedCallIsAudited(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*crashScenario)
		want   []string
	}{
		"create": {things("a"), []string{"create a", "create a since the intent: Lost"}},
		"update": {func(sc *crashScenario) {
			sc.put("test-thing/a", m{"name": "a"}, nil)
			sc.apply()
			sc.put("test-thing/a", m{"name": "a", "size": "2"}, nil)
		}, []string{"update a", "update a since the intent: Lost", "update a", "update a: answered"}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			var log []string
			sc.Sources.Record = func(c audit.Call) (func(error), error) {
				text := fmt.Sprintf("%s %s", c.Operation, c.Object.Name)
				if c.Began.IsZero() {
					log = append(log, text)
				} else {
					text += " since the intent"
				}
				if c.Cause.Plan == "" || c.Provider != "test" || c.ProviderConfig != "test" || c.Plural == "" {
					t.Errorf("the call is %+v", c)
				}
				return func(err error) {
					if sc.injector.alive() != nil {
						return // this process is dead
					}
					outcome := "answered"
					if diag.IsFailure(err, diag.Lost) {
						outcome = "Lost"
					}
					log = append(log, text+": "+outcome)
				}, nil
			}
			sc.restart()
			tc.change(sc)
			log = nil
			run := sc.newRun()
			sc.until(run, stepping)
			sc.cloud.while = func() { sc.injector.at = sc.injector.seen + 1 }
			sc.resume(run)
			if d := cmp.Diff(tc.want, log); d != "" {
				t.Error(d)
			}
		})
	}
}
