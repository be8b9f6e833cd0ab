package activities

import (
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
	tn := newCrashScenario(t)
	tn.cloud.put("x", map[string]string{"name": "x"})
	tn.put("test-thing/a", m{"name": "x"}, imports("x"))
	tn.put("test-thing/b", m{"name": "x"}, imports("x"))
	po := tn.apply()
	var said []string
	for _, d := range po.Status.Diagnostics {
		said = append(said, string(d.Severity)+" "+d.Summary+": "+d.Detail)
	}
	if all := strings.Join(said, "\n"); !strings.Contains(all, "Error Resource is imported twice: test_thing.a and test_thing.b import the same resource.") {
		t.Errorf("the plan says %q", all)
	}
	if tn.recordOf("test-thing/a").Exists() || tn.recordOf("test-thing/b").Exists() {
		t.Error("one of the two has the resource")
	}
}

// TestTwoPlansImportTheSame plans an import in each of two plans. The second plan to be applied is stale, and planned again it is refused.
func TestTwoPlansImportTheSame(t *testing.T) {
	tn := newCrashScenario(t)
	tn.ProviderConfigs["team/test"].Spec.Config = providerConfig("team", "a").Spec.Config
	tn.cloud.put("x", map[string]string{"name": "x"})
	tn.put("test-thing/a", m{"name": "x"}, imports("x"))
	one := tn.newRun()
	tn.until(one, approving)
	tn.put("test-thing/b", m{"name": "x"}, imports("x"))
	tn.spec = v1alpha1.PlanSpec{Targets: []string{"test-thing/b"}}
	other := tn.newRun()
	tn.until(other, approving)
	// The same ID with other arguments of the ProviderConfig, of an object of another namespace, is another resource.
	tn.ProviderConfigs["other/c"] = providerConfig("other", "b")
	tn.owns("other", "x", "c")
	if found, err := changes.Verify(t.Context(), tn.Sources, tn.plans[other.Name]); err != nil || len(found.Stale) > 0 {
		t.Errorf("verified: %+v, %v", found, err)
	}
	tn.resume(one)
	if found, err := changes.Verify(t.Context(), tn.Sources, tn.plans[other.Name]); err != nil || len(found.Stale) != 1 || !strings.Contains(found.Stale[0].Why, "test_thing.a imported the same resource") {
		t.Errorf("verified: %+v, %v", found, err)
	}
	tn.resume(other)
	if tn.recordOf("test-thing/b").Exists() {
		t.Error("both have the resource")
	}
	again := tn.until(tn.newRun(), approving)
	if said := tn.said(again); !again.PlanFailed() || !strings.Contains(said, "Error Resource is managed already: test_thing.a manages the resource to import") {
		t.Errorf("planned again, it said %q", said)
	}
}

// TestTwoPlansThatBeganImportTheSame begins two plans before either imports. Only one of them gets the resource. The other owner may be an
// object of another namespace, which the message does not name.
func TestTwoPlansThatBeganImportTheSame(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		tn := newCrashScenario(t)
		configure(tn.World, "ops")
		tn.cloud.put("x", map[string]string{"name": "x"})
		tn.put("test-thing/a", m{"name": "x"}, imports("x"))
		one := tn.newRun()
		tn.until(one, approving)
		tn.put("test-thing/b", m{"name": "x"}, imports("x"))
		tn.spec = v1alpha1.PlanSpec{Targets: []string{"test-thing/b"}}
		other := tn.newRun()
		tn.until(other, stepping)
		want := "test_thing.a imported the same resource"
		if elsewhere {
			tn.owns("ops", "hidden", "test")
			want = "an object of another namespace imported the same resource"
		} else {
			tn.until(one, stepping)
			tn.resume(one)
		}
		tn.resume(other)
		if c := tn.changeOf(other, 0); tn.recordOf("test-thing/b").Exists() || !strings.Contains(c.Message, want) || strings.Contains(c.Message, "hidden") {
			t.Errorf("elsewhere %t: the other plan has it too, or said %q", elsewhere, c.Message)
		}
	}
}

// TestAnImportThatFindsNothing plans an import to which the provider answers with nothing. The plan says what to remove.
func TestAnImportThatFindsNothing(t *testing.T) {
	tn := newCrashScenario(t)
	tn.put("test-thing/a", m{"name": "x"}, imports("x"))
	po := tn.until(tn.newRun(), approving)
	if said := tn.said(po); !po.PlanFailed() || !strings.Contains(said, "To create the resource instead, remove lifecycle.import and plan again.") {
		t.Errorf("said %q", said)
	}
}

// TestAnImportCountsAgainAfterADestroy destroys what was imported. The object does not promise that the next plan creates it: that plan
// imports, as Terraform does with an import block.
func TestAnImportCountsAgainAfterADestroy(t *testing.T) {
	tn := newCrashScenario(t)
	tn.cloud.put("x", map[string]string{"name": "x"})
	tn.put("test-thing/a", m{"name": "x"}, imports("x"))
	tn.apply()
	tn.spec = v1alpha1.PlanSpec{Destroy: true}
	tn.apply()
	ready := meta.FindStatusCondition(resource.StatusOf(tn.Stored["team:test-thing/a"]).Conditions, v1alpha1.ConditionReady)
	if !strings.Contains(ready.Message, "imports the resource that lifecycle.import names") || strings.Contains(ready.Message, "creates it again") {
		t.Errorf("%s: %s, want it to name lifecycle.import", ready.Reason, ready.Message)
	}
	tn.spec = v1alpha1.PlanSpec{}
	if po := tn.apply(); len(tn.cloud.made) > 0 || po.Status.Summary != nil && po.Status.Summary.Create > 0 {
		t.Errorf("created %v, plan %+v; want the import to fail", tn.cloud.made, po.Status.Summary)
	}
}

// TestARefreshedImportIsCreated accepts by a refresh that an imported resource is gone. The next plan imports it if it
// exists again and creates it otherwise. Another import must find its resource.
func TestARefreshedImportIsCreated(t *testing.T) {
	for name, want := range map[string]struct{ create, imported int32 }{"gone": {create: 1}, "restored": {imported: 1}, "another import": {}} {
		t.Run(name, func(t *testing.T) {
			tn := newCrashScenario(t)
			tn.cloud.put("x", map[string]string{"name": "x"})
			tn.put("test-thing/a", m{"name": "x"}, imports("x"))
			tn.apply()
			clear(tn.cloud.things)
			tn.spec = v1alpha1.PlanSpec{RefreshOnly: true}
			tn.apply()
			ready := meta.FindStatusCondition(resource.StatusOf(tn.Stored["team:test-thing/a"]).Conditions, v1alpha1.ConditionReady)
			if ready.Reason != v1alpha1.ReasonGone || !strings.Contains(ready.Message, "if it exists again, and otherwise creates it") {
				t.Errorf("%s: %s", ready.Reason, ready.Message)
			}
			switch name {
			case "restored":
				tn.cloud.put("x", map[string]string{"name": "x"})
			case "another import":
				tn.put("test-thing/a", m{"name": "x"}, imports("y"))
			}
			tn.spec = v1alpha1.PlanSpec{}
			po := tn.until(tn.newRun(), approving)
			if name == "another import" {
				if !po.PlanFailed() {
					t.Errorf("the plan has %+v, want the import to fail", po.Status.Summary)
				}
				return
			}
			if got := po.Status.Summary; po.PlanFailed() || got.Create != want.create || got.Import != want.imported {
				t.Errorf("the plan has %+v, want %+v; it says %q", got, want, tn.said(po))
			}
			if said := tn.said(po); strings.Contains(said, "Warning Imported resource is gone") != (name == "gone") {
				t.Errorf("the plan says %q", said)
			}
		})
	}
}
