package activities

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestAnAppliedMoveWarnsNoMore destroys a moved resource. The plan that creates it again does not warn that it found
// nothing to move. A move that no plan applied still warns.
func TestAnAppliedMoveWarnsNoMore(t *testing.T) {
	tn := newCrashScenario(t)
	tn.put("test-thing/a", m{"name": "a"}, nil)
	tn.apply()
	tn.put("test-thing/n", m{"name": "a"}, m{"moved": m{"from": "test_thing.a"}})
	tn.delete("test-thing/a")
	tn.apply()
	if !tn.recordOf("test-thing/n").Exists() {
		t.Fatal("nothing was moved")
	}
	tn.spec = v1alpha1.PlanSpec{Destroy: true}
	tn.apply()
	tn.spec = v1alpha1.PlanSpec{}
	po := tn.until(tn.newRun(), approving)
	if said := tn.said(po); po.PlanFailed() || strings.Contains(said, "No resource to move") {
		t.Errorf("after the destroy, the plan says %q", said)
	}
	tn.put("test-thing/n", m{"name": "a"}, m{"moved": m{"from": "test_thing.misspelled"}})
	if said := tn.said(tn.until(tn.newRun(), approving)); !strings.Contains(said, "Warning No resource to move") {
		t.Errorf("after the address changed, the plan says %q", said)
	}
}
