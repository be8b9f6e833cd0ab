package activities

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/resource"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestAPlanAloneChangesNoObject makes plans and approves none. The objects keep their conditions, and a default plan
// finds the same changes again.
func TestAPlanAloneChangesNoObject(t *testing.T) {
	sc := newCrashScenario(t)
	sc.Data["configmaps/team/cm"] = map[string][]byte{"k": []byte("1")}
	sc.put("test-thing/a", m{"name": "a", "size": "${configmap.cm.k}"}, nil)
	sc.put("test-thing/b", m{"name": "b", "size": "${test_thing.a.size}"}, nil)
	sc.put("test-thing/c", m{"name": "c", "size": "1"}, nil)
	sc.put("test-thing/d", m{"name": "d"}, nil)
	sc.apply()
	sc.put("test-thing/d", m{"name": "d"}, m{"preventDestroy": true}) // needs no change
	sc.cloud.faults["update c"] = []string{"refused"}
	sc.put("test-thing/c", m{"name": "c", "size": "2"}, nil)
	sc.spec = v1alpha1.PlanSpec{Targets: []string{"test_thing.c"}}
	sc.apply()
	sc.spec = v1alpha1.PlanSpec{}
	ready := func(object string) metav1.Condition {
		return *meta.FindStatusCondition(resource.StatusOf(sc.Stored["team:test-thing/"+object]).Conditions, v1alpha1.ConditionReady)
	}
	before := map[string]metav1.Condition{"a": ready("a"), "b": ready("b"), "c": ready("c"), "d": ready("d")}
	if got := before["c"].Reason; got != v1alpha1.ReasonApplyFailed {
		t.Fatalf("c: %s, want a failed apply", got)
	}
	sc.Data["configmaps/team/cm"] = map[string][]byte{"k": []byte("2")}
	for range 2 {
		run := sc.newRun()
		if po := sc.until(run, approving); po.Status.Summary.Update != 3 {
			t.Errorf("%s, want three updates", po.Status.Summary.Text)
		}
		for object, want := range before {
			if now := ready(object); now != want {
				t.Errorf("%s while %s waits: %+v, want %+v", object, run.Name, now, want)
			}
		}
	}
	sc.apply()
	for object := range before {
		if now := ready(object); now.Reason != v1alpha1.ReasonApplied || now.ObservedGeneration != sc.Stored["team:test-thing/"+object].GetGeneration() {
			t.Errorf("%s after the apply: %+v", object, now)
		}
	}
}

// TestAReferenceToADeletedObjectNamesUndelete deletes what another object refers to. The plan is refused, and says how
// the deletion is taken back.
func TestAReferenceToADeletedObjectNamesUndelete(t *testing.T) {
	sc := newCrashScenario(t)
	sc.put("test-thing/a", m{"name": "a"}, nil)
	sc.put("test-thing/b", m{"name": "b", "uses": "${test_thing.a.id}"}, nil)
	sc.apply()
	sc.delete("test-thing/a")
	po := sc.apply()
	if d := po.Status.Diagnostics; len(d) != 1 || !strings.Contains(d[0].Detail, "kubectl hykube undelete test-thing/a -n team") {
		t.Errorf("diagnostics %+v, want undelete", d)
	}
}

// TestAPlanDoesNotRecordOverANewerOne approves a plan after another one recorded newer values of what the first read and
// left unchanged. These stay, and a change that refers to them is stale.
func TestAPlanDoesNotRecordOverANewerOne(t *testing.T) {
	g := newScenario(t)
	g.put("test-server/a", m{"name": "a", "size": "1"}, nil)
	g.put("test-server/c", m{"name": "c", "size": "1"}, nil)
	g.resume(g.newRun())
	id := ""
	for k, thing := range g.backend.things {
		if thing["name"] == "a" {
			id = k
		}
	}
	g.put("data-test-image/d", m{"of": id}, nil)
	g.put("test-server/b", m{"name": "b", "size": "${data.test_image.d.text}"}, nil)
	g.put("test-server/e", m{"name": "e", "size": "1"}, nil)
	g.spec, g.partial = v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshAll}, true
	run := g.newRun()
	g.until(run, approving)

	g.backend.things[id]["size"] = "2"
	g.put("test-server/c", m{"name": "c", "size": "2"}, nil)
	g.spec = v1alpha1.PlanSpec{Targets: []string{"test_server.c", "data.test_image.d"}}
	g.resume(g.newRun())
	g.resume(run)

	if got := string(g.recordOf("data-test-image/d").Attributes); !strings.Contains(got, "size-2") {
		t.Errorf("the data source is recorded as %s, want the newer read", got)
	}
	if got := g.recordOf("test-server/c").Object.Generation; got != 2 {
		t.Errorf("c is recorded with generation %d, want 2", got)
	}
	for c, err := range g.Ledger.Changes(t.Context(), types.UID(run.UID), 0) {
		want := map[string]v1alpha1.ChangeState{"test_server.b": v1alpha1.ChangeStale, "test_server.e": v1alpha1.ChangeDone}[c.Address]
		if err != nil || want != "" && c.State != want {
			t.Errorf("%s: %s: %s, %v; want %s", c.Address, c.State, c.Message, err, want)
		}
	}
}
