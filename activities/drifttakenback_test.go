package activities

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/resource"
)

// TestDriftThatWasTakenBack records drift. Then the cloud has the old value again, and a plan that reads it needs no change. After
// that, the resource counts as applied, for its dependants too.
func TestDriftThatWasTakenBack(t *testing.T) {
	sc := newCrashScenario(t)
	const name = "test-thing/a"
	sc.put(name, m{"name": "a", "size": "1"}, nil)
	sc.until(sc.newRun(), over)
	thing := sc.cloud.things[sc.recordOf(name).ID()]
	thing["size"] = "rogue"
	sc.spec = v1alpha1.PlanSpec{RefreshOnly: true}
	sc.until(sc.newRun(), over)
	if !resource.StatusOf(sc.Stored["team:"+name]).Drifted() {
		t.Fatal("the drift is not recorded")
	}
	thing["size"] = "1"
	sc.spec = v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshAll}
	po := sc.until(sc.newRun(), over)
	if po.Status.Approval != nil {
		t.Fatalf("the plan has changes: %s", po.Status.Summary.Text)
	}
	known, rec := resource.StatusOf(sc.Stored["team:"+name]), sc.recordOf(name)
	if known.Drifted() || !known.Good() || rec.Object.Generation != sc.Stored["team:"+name].GetGeneration() {
		t.Errorf("drifted %t, good %t, generation %d of the record; want a resource that is applied", known.Drifted(), known.Good(), rec.Object.Generation)
	}
	if !strings.Contains(string(rec.Attributes), `"size":"1"`) {
		t.Errorf("the record has %s", rec.Attributes)
	}
}
