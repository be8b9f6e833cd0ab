package activities

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/resource"

	"k8s.io/apimachinery/pkg/api/meta"
)

// TestAChangeOfAConfigMapAwaitsAPlan changes what a ConfigMap says. The object that refers to it waits for the plan that found the change,
// and for another one when that was discarded. An object that only refers to such an object is what its spec asks for.
func TestAChangeOfAConfigMapAwaitsAPlan(t *testing.T) {
	tn := newCrashScenario(t)
	tn.Data["configmaps/team/cm"] = map[string][]byte{"k": []byte("1")}
	tn.put("test-thing/a", m{"name": "a", "size": "${configmap.cm.k}"}, nil)
	tn.put("test-thing/b", m{"name": "b", "size": "${test_thing.a.size}"}, nil)
	tn.apply()
	says := func(when, object, reason string) {
		t.Helper()
		ready := meta.FindStatusCondition(resource.StatusOf(tn.Stored["team:test-thing/"+object]).Conditions, v1alpha1.ConditionReady)
		if ready.Reason != reason {
			t.Errorf("%s: %s says %s: %s, want %s", when, object, ready.Reason, ready.Message, reason)
		}
	}
	tn.Data["configmaps/team/cm"] = map[string][]byte{"k": []byte("2")}
	discarded := tn.newRun()
	tn.until(discarded, approving)
	says("while the plan waits", "a", v1alpha1.ReasonAwaitingApproval)
	says("while the plan waits", "b", v1alpha1.ReasonApplied)
	if err := changes.Settle(t.Context(), tn.Sources, discarded.Plan); err != nil {
		t.Fatal(err)
	}
	says("after the plan was discarded", "a", v1alpha1.ReasonAwaitingPlan)
	says("after the plan was discarded", "b", v1alpha1.ReasonApplied)
	tn.Data["configmaps/team/cm"] = map[string][]byte{"k": []byte("1")}
	tn.until(tn.newRun(), over)
	says("after the ConfigMap was put back", "a", v1alpha1.ReasonApplied)
	tn.Data["configmaps/team/cm"] = map[string][]byte{"k": []byte("3")}
	tn.apply()
	says("after an apply", "a", v1alpha1.ReasonApplied)
}

// TestAReferenceToADeletedObjectNamesUndelete deletes what another object refers to. The plan is refused, and says how the deletion is taken
// back.
func TestAReferenceToADeletedObjectNamesUndelete(t *testing.T) {
	tn := newCrashScenario(t)
	tn.put("test-thing/a", m{"name": "a"}, nil)
	tn.put("test-thing/b", m{"name": "b", "uses": "${test_thing.a.id}"}, nil)
	tn.apply()
	tn.delete("test-thing/a")
	po := tn.apply()
	if d := po.Status.Diagnostics; len(d) != 1 || !strings.Contains(d[0].Detail, "kubectl hykube undelete test-thing/a -n team") {
		t.Errorf("diagnostics %+v, want undelete", d)
	}
}
