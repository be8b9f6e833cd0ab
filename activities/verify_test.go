package activities

import (
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
)

// estate creates two resources that depend on each other, an independent one, and one that the two read.
func (sc *crashScenario) estate(a, b, c string) {
	sc.put("test-thing/net", m{"name": "net", "size": "1"}, nil)
	sc.put("test-thing/a", m{"name": a, "size": "${test_thing.net.size}"}, nil)
	sc.put("test-thing/b", m{"name": b, "size": "1", "uses": "${test_thing.a.id}"}, nil)
	sc.put("test-thing/c", m{"name": c, "size": "${configmap.settings.size}"}, nil)
}

// TestWhatMovedIsFoundBeforeAnythingIsApplied changes, one by one, all preconditions of the replace of a. Nothing of
// the pair may then be destroyed. A partial approval applies the change of c, and another approval applies nothing.
func TestWhatMovedIsFoundBeforeAnythingIsApplied(t *testing.T) {
	state := func(change func(*ledger.Instance), name string) func(*crashScenario) {
		return func(sc *crashScenario) {
			rec := sc.recordOf(name)
			change(rec)
			if err := sc.Ledger.Save(sc.T.Context(), rec); err != nil {
				sc.T.Fatal(err)
			}
		}
	}
	for name, test := range map[string]struct {
		move   func(*crashScenario)
		reason v1alpha1.StaleReason
		names  string
	}{
		"the object was changed":                     {func(sc *crashScenario) { sc.put("test-thing/a", m{"name": "a", "size": "1"}, nil) }, v1alpha1.StaleObjectChanged, ""},
		"the object was marked for deletion":         {func(sc *crashScenario) { sc.delete("test-thing/a") }, v1alpha1.StaleObjectDeleted, ""},
		"the object is gone":                         {func(sc *crashScenario) { delete(sc.Stored, "team:test-thing/a") }, v1alpha1.StaleObjectDeleted, ""},
		"the object is another one of the same name": {func(sc *crashScenario) { sc.Stored["team:test-thing/a"].SetUID("another") }, v1alpha1.StaleObjectDeleted, ""},
		"the state moved":                            {state(func(rec *ledger.Instance) { rec.Tainted = true }, "test-thing/a"), v1alpha1.StaleStateChanged, ""},
		"another plan is changing it":                {state(func(rec *ledger.Instance) { rec.Intent = &ledger.Intent{Plan: "p0", Action: v1alpha1.ActionCreate} }, "test-thing/a"), v1alpha1.StaleCreateUnknown, ""},
		"the ProviderConfig says something else": {func(sc *crashScenario) {
			sc.ProviderConfigs["team/default"].Spec.SecretRefs = []v1alpha1.SecretArgument{{}}
		}, v1alpha1.StaleProviderConfigChanged, `"default"`},
		"the ProviderConfig is gone": {func(sc *crashScenario) { clear(sc.ProviderConfigs) }, v1alpha1.StaleProviderConfigChanged, `"default"`},
		"the provider is of another version": {func(sc *crashScenario) {
			sc.Catalog.Put(catalog.Entry{Name: "test", Schema: cloudSchema(), Package: provider.Package{Version: "2.0.0"}})
		}, v1alpha1.StaleProviderChanged, "2.0.0"},
		"a value that it refers to moved": {state(func(rec *ledger.Instance) {
			rec.Attributes = []byte(strings.ReplaceAll(string(rec.Attributes), `"size":"1"`, `"size":"2"`))
		}, "test-thing/net"), v1alpha1.StaleReferenceChanged, "test_thing.net"},
	} {
		for _, partial := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				sc := newCrashScenario(t)
				sc.Config(nil)
				sc.Data["configmaps/team/settings"] = map[string][]byte{"size": []byte("1")}
				sc.estate("a", "b", "c")
				sc.apply()
				sc.estate("a2", "b2", "c")
				sc.Stored["team:test-thing/c"].Object["spec"] = m{"name": "c", "size": "3"}
				run := sc.newRun()
				sc.until(run, approving)
				calls := len(sc.cloud.log)
				test.move(sc)
				po := sc.plans.get(run.Name)
				found, err := changes.Verify(t.Context(), sc.Sources, po)
				if err != nil || !slices.ContainsFunc(found.Stale, func(o changes.Obstacle) bool {
					return o.Address == "test_thing.a" && o.Stale == test.reason && strings.Contains(o.Why, test.names)
				}) {
					t.Fatalf("%+v, %v; want test_thing.a: %s %s", found.Stale, err, test.reason, test.names)
				}
				left := found.Left
				sc.partial = partial
				po = sc.resume(run)
				var want []string
				if partial && left > 0 {
					want = []string{"update c"}
				}
				if diff := cmp.Diff(want, slices.Clone(sc.cloud.log[calls:]), cmp.Transformer("", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
					t.Errorf("calls, partial %t (-want +got)\n%s", partial, diff)
				}
				if !meta.IsStatusConditionTrue(po.Status.Conditions, v1alpha1.ConditionStale) {
					t.Errorf("conditions: %+v", po.Status.Conditions)
				}
				for i := range int32(4) {
					c, err := sc.Ledger.Change(t.Context(), po.UID, i)
					if err == nil && c.Address == "test_thing.a" && (c.State != v1alpha1.ChangeStale || c.StaleReason != test.reason) {
						t.Errorf("a ended as %s %s, want it stale: %s", c.State, c.StaleReason, test.reason)
					}
					if err == nil && c.Address == "test_thing.b" && c.State != v1alpha1.ChangeSkipped && c.State != v1alpha1.ChangeStale {
						t.Errorf("b, which refers to a, ended as %s", c.State)
					}
				}
			})
		}
	}
}

// TestAnUnrelatedEditVoidsNothing changes an object to which no change of the plan refers.
func TestAnUnrelatedEditVoidsNothing(t *testing.T) {
	sc := newCrashScenario(t)
	sc.Data["configmaps/team/settings"] = map[string][]byte{"size": []byte("1")}
	sc.estate("a", "b", "c")
	sc.apply()
	sc.put("test-thing/a", m{"name": "a2", "size": "${test_thing.net.size}"}, nil)
	run := sc.newRun()
	sc.until(run, approving)
	rec := sc.recordOf("test-thing/net")
	rec.Attributes = []byte(strings.ReplaceAll(string(rec.Attributes), `"name":"net"`, `"name":"other"`))
	if err := sc.Ledger.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	sc.put("test-thing/c", m{"name": "c", "size": "9"}, nil)
	if found, err := changes.Verify(t.Context(), sc.Sources, sc.plans.get(run.Name)); err != nil || len(found.Stale) > 0 || found.Left == 0 {
		t.Errorf("%+v, %v", found, err)
	}
	if po := sc.resume(run); !meta.IsStatusConditionTrue(po.Status.Conditions, v1alpha1.ConditionApplied) {
		t.Errorf("conditions: %+v", po.Status.Conditions)
	}
}

// TestCancelBeforeItIsBegun cancels a plan that was approved, before and while it is begun.
func TestCancelBeforeItIsBegun(t *testing.T) {
	sc := newCrashScenario(t)
	things("a", "b")(sc)
	run := sc.newRun()
	sc.until(run, beginning)
	sc.cancel(run)
	po := sc.resume(run)
	if len(sc.cloud.log) > 0 {
		t.Errorf("calls: %v", sc.cloud.log)
	}
	ready := meta.FindStatusCondition(po.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonCancelled || po.Status.FinishedAt == nil {
		t.Errorf("ready: %+v", ready)
	}
}

// TestServerIsKilledDuringAPartialPlan kills the server at each point of a partial apply of a plan with a stale and a
// blocked change, in lanes and without.
func TestServerIsKilledDuringAPartialPlan(t *testing.T) {
	for _, lane := range []bool{false, true} {
		for at := 0; ; at++ {
			sc := newCrashScenario(t)
			sc.lane = lane
			things("a", "b", "c", "d")(sc)
			sc.put("test-thing/b", m{"name": "b", "size": "1", "uses": "${test_thing.a.id}"}, nil)
			sc.put("test-thing/d", m{"name": "d", "size": "1"}, m{"preventDestroy": true})
			sc.apply()
			sc.put("test-thing/a", m{"name": "a2", "size": "1"}, nil)
			sc.put("test-thing/b", m{"name": "b2", "size": "1", "uses": "${test_thing.a.id}"}, nil)
			sc.put("test-thing/c", m{"name": "c2", "size": "1"}, nil)
			sc.put("test-thing/d", m{"name": "d2", "size": "1"}, m{"preventDestroy": true})
			sc.partial = true
			run := sc.newRun()
			sc.until(run, beginning)
			sc.put("test-thing/a", m{"name": "a", "size": "1"}, nil)
			sc.injector.seen, sc.injector.at = 0, at
			sc.until(run, finishing)
			po := sc.resume(run)
			reached := sc.injector.seen >= at
			if sc.lost() {
				continue // the server was killed during the create of c2, which a user must check
			}
			if diff := cmp.Diff([]string{"a 1", "b 1", "c2 1", "d 1"}, sc.cloud.there()); diff != "" {
				t.Fatalf("killed at %d, lane %t: in the cloud (-want +got)\n%s%v", at, lane, diff, sc.cloud.log)
			}
			if !meta.IsStatusConditionTrue(po.Status.Conditions, v1alpha1.ConditionStale) || po.Status.Progress.Done != 1 {
				t.Fatalf("killed at %d, lane %t: %+v", at, lane, po.Status)
			}
			message := meta.FindStatusCondition(po.Status.Conditions, v1alpha1.ConditionStalled).Message
			if !strings.HasPrefix(message, "1 of 3 changes were made, 0 failed, 1 stale, 1 were not tried.") {
				t.Fatalf("killed at %d, lane %t: %s", at, lane, message)
			}
			if at > 0 && !reached {
				break
			}
		}
	}
}

// A move is stale if its old object is wanted again, because both objects would have the same infrastructure.
func TestAMoveFromAnObjectThatIsWantedAgain(t *testing.T) {
	for name, at := range map[string]int{"before it is approved": approving, "before it is begun": beginning, "before its step": stepping} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			run := sc.planOfAMove()
			sc.until(run, at)
			sc.Stored["team:test-thing/a"].SetDeletionTimestamp(nil)
			if found, err := changes.Verify(t.Context(), sc.Sources, sc.plans.get(run.Name)); err != nil || len(found.Stale) == 0 || found.Stale[0].Address != "test_thing.n" {
				t.Errorf("verified: %+v, %v", found, err)
			}
			sc.resume(run)
			if a, n := sc.recordOf("test-thing/a"), sc.recordOf("test-thing/n"); !a.Exists() || n.Exists() {
				t.Errorf("the record moved: old %t, new %t", a.Exists(), n.Exists())
			}
		})
	}
}

// A plan in a namespace that is being deleted destroys or forgets all its resources. It is stale if the deletion is
// reverted, even for an object that was not marked when the plan was made.
func TestDestroyOfANamespaceThatStays(t *testing.T) {
	for action, lifecycle := range map[string]m{"destroy": nil, "forget": {"destroy": false}} {
		for name, at := range map[string]int{"before it is approved": approving, "before it is begun": beginning} {
			t.Run(action+" "+name, func(t *testing.T) {
				sc := newCrashScenario(t)
				sc.put("test-thing/a", m{"name": "a", "size": "1"}, lifecycle)
				sc.apply()
				sc.Terminating = true
				run := sc.newRun()
				if po := sc.until(run, at); po.Status.Summary == nil || po.Status.Summary.Delete+po.Status.Summary.Forget != 1 {
					t.Fatalf("the plan has the summary %+v, want one change", po.Status.Summary)
				}
				sc.Terminating = false
				if found, err := changes.Verify(t.Context(), sc.Sources, sc.plans.get(run.Name)); err != nil || len(found.Stale) != 1 || found.Stale[0].Address != "test_thing.a" {
					t.Errorf("verified: %+v, %v", found, err)
				}
				sc.resume(run)
				if diff := cmp.Diff([]string{"a 1"}, sc.cloud.there()); diff != "" || !sc.recordOf("test-thing/a").Exists() {
					t.Errorf("there (-want +got):\n%s, and the record is %+v", diff, sc.recordOf("test-thing/a"))
				}
			})
		}
	}
}

// TestAStackDestroysNoNamespaceByItself makes plans of an automatic stack. That of a namespace which is being deleted waits for a person.
func TestAStackDestroysNoNamespaceByItself(t *testing.T) {
	for _, terminating := range []bool{false, true} {
		sc := newCrashScenario(t)
		sc.put("test-thing/a", m{"name": "a", "size": "1"}, nil)
		sc.apply()
		sc.put("test-thing/a", m{"name": "a", "size": "2"}, nil)
		sc.Terminating = terminating
		run := sc.newRun()
		sc.plans.change(run.Name, func(po *v1alpha1.Plan) {
			po.Spec.Approval, po.Status.Stack = v1alpha1.ApprovalAutomatic, &v1alpha1.PlanStack{Stack: "s"}
			po.Status.AutomaticApproval = &v1alpha1.AutomaticApproval{Granted: true}
		})
		got := sc.until(run, approving).Status.AutomaticApproval
		if got.Granted || strings.Contains(got.Message, "which is being deleted") != terminating { // in this test, nobody may approve
			t.Errorf("the namespace is being deleted %t: %+v", terminating, got)
		}
	}
}

// A namespace may be deleted, or its deletion taken back, while a plan is being made. The plan is what it would be if
// it were made afterwards.
func TestANamespaceIsDeletedWhileAPlanIsMade(t *testing.T) {
	for name, deleted := range map[string]bool{"deleted": true, "undeleted": false} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.put("test-thing/a", m{"name": "a", "size": "1"}, nil)
			sc.apply()
			sc.put("test-thing/a", m{"name": "a", "size": "2"}, nil)
			sc.put("test-thing/b", m{"name": "b", "uses": "${test_thing.a.id}"}, nil)
			sc.Terminating = !deleted
			run := sc.newRun()
			sc.until(run, proposing)
			sc.Terminating = deleted
			sc.resume(run)
			want := []string{"a 2", "b"}
			if deleted {
				want = []string{}
			}
			if diff := cmp.Diff(want, sc.cloud.there()); diff != "" {
				t.Errorf("there (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCreateInADeletedNamespace deletes the namespace after a plan was approved, and during its apply. The plan then
// creates nothing more, although its objects are not marked for deletion.
func TestCreateInADeletedNamespace(t *testing.T) {
	for phase, want := range map[int][]string{approving: {}, beginning: {}, stepping: {}} {
		sc := newCrashScenario(t)
		sc.put("test-thing/a", m{"name": "a"}, nil)
		sc.put("test-thing/b", m{"name": "b", "uses": "${test_thing.a.id}"}, nil)
		run := sc.newRun()
		sc.until(run, phase)
		sc.Terminating = true
		sc.resume(run)
		if diff := cmp.Diff(want, sc.cloud.there()); diff != "" {
			t.Errorf("phase %d: there (-want +got):\n%s", phase, diff)
		}
		if c := sc.changeOf(run, 0); phase == stepping && (c.State != v1alpha1.ChangeStale || c.StaleReason != v1alpha1.StaleObjectDeleted) {
			t.Errorf("phase %d: %s: %s", phase, c.State, c.Message)
		}
	}
}
