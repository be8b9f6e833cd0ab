package activities

import (
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/resource"

	"k8s.io/apimachinery/pkg/api/meta"
)

func imports(id string) m { return m{"import": m{"id": id}} }

// TestTwoObjectsOfAPlanImportTheSame plans two imports of one resource. The plan fails, and names both objects.
func TestTwoObjectsOfAPlanImportTheSame(t *testing.T) {
	sc := newCrashScenario(t)
	sc.cloud.put("x", map[string]string{"name": "x"})
	sc.put("test-thing/a", m{"name": "x"}, imports("x"))
	sc.put("test-thing/b", m{"name": "x"}, imports("x"))
	po := sc.apply()
	if said := sc.said(po); !strings.Contains(said, "Error Resource is imported twice: test_thing.a and test_thing.b ") {
		t.Errorf("the plan says %q", said)
	}
	if sc.recordOf("test-thing/a").Exists() || sc.recordOf("test-thing/b").Exists() {
		t.Error("one of the two has the resource")
	}
}

// plansOfOneImport makes a plan for each of two objects that import one resource. The second plan is in a phase.
func (sc *crashScenario) plansOfOneImport(phase int) (one, other *planRun) {
	sc.cloud.put("x", map[string]string{"name": "x"})
	sc.put("test-thing/a", m{"name": "x"}, imports("x"))
	one = sc.newRun()
	sc.until(one, approving)
	sc.put("test-thing/b", m{"name": "x"}, imports("x"))
	sc.spec = v1alpha1.PlanSpec{Targets: []string{"test-thing/b"}}
	other = sc.newRun()
	sc.until(other, phase)
	return one, other
}

// TestTwoPlansImportTheSame plans an import in each of two plans. The second plan to be applied is stale, and planned
// again it is refused.
func TestTwoPlansImportTheSame(t *testing.T) {
	sc := newCrashScenario(t)
	sc.ProviderConfigs["team/test"].Spec.Config = providerConfig("team", "a").Spec.Config
	one, other := sc.plansOfOneImport(approving)
	// The same ID with other arguments of the ProviderConfig, of an object of another namespace, is another resource.
	sc.ProviderConfigs["other/c"] = providerConfig("other", "b")
	sc.owns("other", "x", "c")
	if found, err := changes.Verify(t.Context(), sc.Sources, sc.plans.get(other.Name)); err != nil || len(found.Stale) > 0 {
		t.Errorf("verified: %+v, %v", found, err)
	}
	sc.resume(one)
	if found, err := changes.Verify(t.Context(), sc.Sources, sc.plans.get(other.Name)); err != nil || len(found.Stale) != 1 || found.Stale[0].Stale != v1alpha1.StaleImportedElsewhere || !strings.Contains(found.Stale[0].Why, "test_thing.a ") {
		t.Errorf("verified: %+v, %v", found, err)
	}
	sc.resume(other)
	if sc.recordOf("test-thing/b").Exists() {
		t.Error("both have the resource")
	}
	again := sc.until(sc.newRun(), approving)
	if said := sc.said(again); !again.PlanFailed() || !strings.Contains(said, "Error Resource is managed already: test_thing.a ") {
		t.Errorf("planned again, it said %q", said)
	}
}

// TestTwoPlansThatBeganImportTheSame begins two plans before either imports. Only one of them gets the resource. The
// other owner may be an object of another namespace, which the message does not name.
func TestTwoPlansThatBeganImportTheSame(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		sc := newCrashScenario(t)
		configure(sc.World, "ops")
		one, other := sc.plansOfOneImport(stepping)
		want := "test_thing.a "
		if elsewhere {
			sc.owns("ops", "hidden", "test")
			want = "another namespace"
		} else {
			sc.until(one, stepping)
			sc.resume(one)
		}
		sc.resume(other)
		if c := sc.changeOf(other, 0); sc.recordOf("test-thing/b").Exists() || c.StaleReason != v1alpha1.StaleImportedElsewhere || !strings.Contains(c.Message, want) || strings.Contains(c.Message, "hidden") {
			t.Errorf("elsewhere %t: the other plan has it too, or said %q", elsewhere, c.Message)
		}
	}
}

// TestAnImportThatFindsNothing plans an import to which the provider answers with nothing. The plan says what to
// remove.
func TestAnImportThatFindsNothing(t *testing.T) {
	sc := newCrashScenario(t)
	sc.put("test-thing/a", m{"name": "x"}, imports("x"))
	po := sc.until(sc.newRun(), approving)
	if said := sc.said(po); !po.PlanFailed() || !strings.Contains(said, "To create the resource instead, remove lifecycle.import and plan again.") {
		t.Errorf("said %q", said)
	}
}

// TestAnImportCountsAgainAfterADestroy destroys what was imported. The object does not promise that the next plan
// creates it: that plan imports, as Terraform does with an import block.
func TestAnImportCountsAgainAfterADestroy(t *testing.T) {
	sc := newCrashScenario(t)
	sc.cloud.put("x", map[string]string{"name": "x"})
	sc.put("test-thing/a", m{"name": "x"}, imports("x"))
	sc.apply()
	sc.spec = v1alpha1.PlanSpec{Destroy: true}
	sc.apply()
	ready := meta.FindStatusCondition(resource.StatusOf(sc.Stored["team:test-thing/a"]).Conditions, v1alpha1.ConditionReady)
	if !strings.Contains(ready.Message, "imports the resource that lifecycle.import names") || strings.Contains(ready.Message, "creates it again") {
		t.Errorf("%s: %s, want it to name lifecycle.import", ready.Reason, ready.Message)
	}
	sc.spec = v1alpha1.PlanSpec{}
	if po := sc.apply(); len(sc.cloud.made) > 0 || po.Status.Summary != nil && po.Status.Summary.Create > 0 {
		t.Errorf("created %v, plan %+v; want the import to fail", sc.cloud.made, po.Status.Summary)
	}
}

// TestARefreshedImportIsCreated accepts by a refresh that an imported resource is gone. The next plan imports it if it
// exists again and creates it otherwise. Another import must find its resource.
func TestARefreshedImportIsCreated(t *testing.T) {
	for name, want := range map[string]struct{ create, imported int32 }{"gone": {create: 1}, "restored": {imported: 1}, "another import": {}} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.cloud.put("x", map[string]string{"name": "x"})
			sc.put("test-thing/a", m{"name": "x"}, imports("x"))
			sc.apply()
			clear(sc.cloud.things)
			sc.spec = v1alpha1.PlanSpec{RefreshOnly: true}
			sc.apply()
			ready := meta.FindStatusCondition(resource.StatusOf(sc.Stored["team:test-thing/a"]).Conditions, v1alpha1.ConditionReady)
			if ready.Reason != v1alpha1.ReasonGone || !strings.Contains(ready.Message, "if it exists again, and otherwise creates it") {
				t.Errorf("%s: %s", ready.Reason, ready.Message)
			}
			switch name {
			case "restored":
				sc.cloud.put("x", map[string]string{"name": "x"})
			case "another import":
				sc.put("test-thing/a", m{"name": "x"}, imports("y"))
			}
			sc.spec = v1alpha1.PlanSpec{}
			po := sc.until(sc.newRun(), approving)
			if name == "another import" {
				if !po.PlanFailed() {
					t.Errorf("the plan has %+v, want the import to fail", po.Status.Summary)
				}
				return
			}
			if got := po.Status.Summary; po.PlanFailed() || got.Create != want.create || got.Import != want.imported {
				t.Errorf("the plan has %+v, want %+v; it says %q", got, want, sc.said(po))
			}
			if said := sc.said(po); strings.Contains(said, "Warning Imported resource is gone") != (name == "gone") {
				t.Errorf("the plan says %q", said)
			}
		})
	}
}

// TestAnImportOfADeposedInstance adopts the old instance of a replacement whose create has an unknown outcome. The plan is refused.
func TestAnImportOfADeposedInstance(t *testing.T) {
	sc := newCrashScenario(t)
	sc.put("test-thing/a", m{"name": "a", "size": "1"}, m{"createBeforeDestroy": true})
	sc.apply()
	sc.cloud.faults["create a2"] = []string{"lost"}
	sc.put("test-thing/a", m{"name": "a2", "size": "1"}, m{"createBeforeDestroy": true})
	sc.apply()
	rec := sc.recordOf("test-thing/a")
	if rec.Exists() || len(rec.Deposed) != 1 || rec.Intent == nil {
		t.Fatalf("after the replacement: %+v", rec)
	}
	if says := sc.said(sc.until(sc.newRun(), approving)); !strings.Contains(says, "Do not adopt "+rec.Deposed[0].ID()+": the replacement deposed it") {
		t.Errorf("the plan after the replacement says %q", says)
	}
	sc.put("test-thing/a", m{"name": "a2", "size": "1"}, m{"createBeforeDestroy": true, "import": m{"id": rec.Deposed[0].ID()}})
	po := sc.apply()
	if said := sc.said(po); !po.PlanFailed() || !strings.Contains(said, "Error Resource to import is a deposed object: ") || !strings.Contains(said, "--retry") {
		t.Errorf("the plan says %q", said)
	}
	if there := sc.cloud.there(); !slices.Contains(there, "a 1") {
		t.Errorf("the cloud has only %v", there)
	}
}
