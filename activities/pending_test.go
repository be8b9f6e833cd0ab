package activities

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/resource"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAChangeOfAConfigMapAwaitsAPlan changes what a ConfigMap says. The object that refers to it waits for the plan
// that found the change, and for another one when that was discarded. An object that only refers to such an object is
// what its spec asks for.
func TestAChangeOfAConfigMapAwaitsAPlan(t *testing.T) {
	sc := newCrashScenario(t)
	sc.Data["configmaps/team/cm"] = map[string][]byte{"k": []byte("1")}
	sc.put("test-thing/a", m{"name": "a", "size": "${configmap.cm.k}"}, nil)
	sc.put("test-thing/b", m{"name": "b", "size": "${test_thing.a.size}"}, nil)
	sc.apply()
	says := func(when, object, reason string) {
		t.Helper()
		ready := meta.FindStatusCondition(resource.StatusOf(sc.Stored["team:test-thing/"+object]).Conditions, v1alpha1.ConditionReady)
		if ready.Reason != reason {
			t.Errorf("%s: %s says %s: %s, want %s", when, object, ready.Reason, ready.Message, reason)
		}
	}
	sc.Data["configmaps/team/cm"] = map[string][]byte{"k": []byte("2")}
	discarded := sc.newRun()
	sc.until(discarded, approving)
	says("while the plan waits", "a", v1alpha1.ReasonAwaitingApproval)
	says("while the plan waits", "b", v1alpha1.ReasonApplied)
	if err := changes.Settle(t.Context(), sc.Sources, discarded.Plan); err != nil {
		t.Fatal(err)
	}
	says("after the plan was discarded", "a", v1alpha1.ReasonAwaitingPlan)
	says("after the plan was discarded", "b", v1alpha1.ReasonApplied)
	sc.Data["configmaps/team/cm"] = map[string][]byte{"k": []byte("1")}
	sc.until(sc.newRun(), over)
	says("after the ConfigMap was put back", "a", v1alpha1.ReasonApplied)
	sc.Data["configmaps/team/cm"] = map[string][]byte{"k": []byte("3")}
	sc.apply()
	says("after an apply", "a", v1alpha1.ReasonApplied)
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

// TestAFailureReturnsAfterADiscard plans an object whose apply failed. While plans wait, the object waits for approval.
// After a discard, it has the failure again; after an edit, it does not.
func TestAFailureReturnsAfterADiscard(t *testing.T) {
	for name, prepare := range map[string]func(*crashScenario){
		"create": func(sc *crashScenario) { sc.cloud.faults["create a"] = []string{"refused"} },
		"update": func(sc *crashScenario) {
			sc.apply()
			sc.cloud.faults["update a"] = []string{"refused"}
			sc.put("test-thing/a", m{"name": "a", "size": "2"}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.put("test-thing/a", m{"name": "a", "size": "1"}, nil)
			prepare(sc)
			sc.apply()
			ready := func() *metav1.Condition {
				return meta.FindStatusCondition(resource.StatusOf(sc.Stored["team:test-thing/a"]).Conditions, v1alpha1.ConditionReady)
			}
			failed := ready()
			if failed.Reason != v1alpha1.ReasonApplyFailed {
				t.Fatalf("after the apply: %s: %s", failed.Reason, failed.Message)
			}
			var last *planRun
			for range 2 {
				last = sc.newRun()
				sc.until(last, approving)
				if now := ready(); now.Reason != v1alpha1.ReasonAwaitingApproval {
					t.Errorf("while a plan waits: %s: %s", now.Reason, now.Message)
				}
			}
			if err := changes.Settle(t.Context(), sc.Sources, last.Plan); err != nil {
				t.Fatal(err)
			}
			if now := ready(); now.Reason != failed.Reason || now.Message != failed.Message {
				t.Errorf("after the discard: %s: %s, want %s: %s", now.Reason, now.Message, failed.Reason, failed.Message)
			}
			sc.put("test-thing/a", m{"name": "a", "size": "3"}, nil)
			last = sc.newRun()
			sc.until(last, approving)
			if err := changes.Settle(t.Context(), sc.Sources, last.Plan); err != nil {
				t.Fatal(err)
			}
			if now := ready(); now.Reason != v1alpha1.ReasonAwaitingPlan {
				t.Errorf("after the discard of an edit: %s: %s", now.Reason, now.Message)
			}
		})
	}
}
