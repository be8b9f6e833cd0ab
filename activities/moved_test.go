package activities

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestAnAppliedMoveWarnsNoMore destroys a moved resource. The plan that creates it again does not warn that it found
// nothing to move. A move that no plan applied still warns.
func TestAnAppliedMoveWarnsNoMore(t *testing.T) {
	sc := newCrashScenario(t)
	sc.put("test-thing/a", m{"name": "a"}, nil)
	sc.apply()
	sc.put("test-thing/n", m{"name": "a"}, m{"moved": m{"from": "test_thing.a"}})
	sc.delete("test-thing/a")
	sc.apply()
	if !sc.recordOf("test-thing/n").Exists() {
		t.Fatal("nothing was moved")
	}
	sc.spec = v1alpha1.PlanSpec{Destroy: true}
	sc.apply()
	sc.spec = v1alpha1.PlanSpec{}
	po := sc.until(sc.newRun(), approving)
	if said := sc.said(po); po.PlanFailed() || strings.Contains(said, "No resource to move") {
		t.Errorf("after the destroy, the plan says %q", said)
	}
	sc.put("test-thing/n", m{"name": "a"}, m{"moved": m{"from": "test_thing.misspelled"}})
	if said := sc.said(sc.until(sc.newRun(), approving)); !strings.Contains(said, "Warning No resource to move") {
		t.Errorf("after the address changed, the plan says %q", said)
	}
}

// TestAMoveOfALivingObject names the old object of a move, which is not deleted. Both objects are recorded, so no plan destroys anything.
func TestAMoveOfALivingObject(t *testing.T) {
	sc := newCrashScenario(t)
	things("a")(sc)
	sc.apply()
	sc.put("test-thing/b", m{"name": "a"}, m{"moved": m{"from": "test_thing.a"}})
	said := sc.said(sc.apply())
	if !strings.Contains(said, "Delete the old object (kubectl delete test-thing/a -n team --wait=false)") || strings.Contains(said, "First record") {
		t.Error(said)
	}
}
