package activities

import (
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/resource"

	"k8s.io/apimachinery/pkg/api/meta"
)

// TestALostCreateIsForgotten deletes an object whose create has an unknown outcome. The provider is not asked to
// destroy anything, so no count may include a destroy. The plan warns that the resource may exist.
func TestALostCreateIsForgotten(t *testing.T) {
	for name, before := range map[string]string{"the first": "", "one that replaces another": "old"} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			cbd := m{"createBeforeDestroy": true}
			destroyed := int32(0)
			if before != "" {
				sc.put("test-thing/a", m{"name": before}, cbd)
				sc.apply()
				destroyed = 1 // the old instance
			}
			sc.put("test-thing/a", m{"name": "a"}, cbd)
			sc.loseTheCreate()
			sc.Stored["team:test-thing/a"].SetFinalizers([]string{v1alpha1.FinalizerState})
			sc.delete("test-thing/a")
			po := sc.apply()
			if s := po.Status.Summary; s == nil || s.Delete != destroyed || s.Forget != 1 {
				t.Errorf("summary %+v, want 1 to forget and %d to delete", s, destroyed)
			}
			warned := slices.ContainsFunc(po.Status.Diagnostics, func(d v1alpha1.Diagnostic) bool {
				return d.Severity == v1alpha1.SeverityWarning && d.Summary == "The resource may exist" && strings.Contains(d.Detail, "undelete test-thing/a -n team")
			})
			if !warned {
				t.Errorf("diagnostics: %v, want a warning that it may exist", po.Status.Diagnostics)
			}
			if got := sc.cloud.there(); !slices.Equal(got, []string{"a"}) || len(sc.Stored) > 0 || len(sc.records()) > 0 {
				t.Errorf("in the cloud: %v, objects: %v, records: %v; want the lost one in the cloud alone", got, sc.Stored, sc.records())
			}
		})
	}
}

// TestDestroyForgetsWhatIsGone destroys all resources of a namespace, of which one was removed outside of Hykube. After
// one plan, nothing is recorded, and no object has a finalizer.
func TestDestroyForgetsWhatIsGone(t *testing.T) {
	for name, test := range map[string]struct {
		deleted bool
		find    bool // whether a plan found that it is gone before
		left    int
	}{
		"objects that stay":            {left: 2},
		"objects that stay, found out": {find: true, left: 2},
		"deleted objects":              {deleted: true},
		"deleted objects, found out":   {deleted: true, find: true},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			things("a", "b")(sc)
			sc.apply()
			for id, thing := range sc.cloud.things {
				if thing["name"] == "a" {
					delete(sc.cloud.things, id)
				}
			}
			if test.find {
				sc.spec = v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshAll}
				sc.until(sc.newRun(), approving)
			}
			if test.deleted {
				sc.delete("test-thing/a")
				sc.delete("test-thing/b")
			}
			sc.spec = v1alpha1.PlanSpec{Destroy: true}
			po := sc.apply()
			if s := po.Status.Summary; s.Delete != 1 || s.Forget != 1 {
				t.Errorf("summary %+v, want 1 to delete and 1 to forget", s)
			}
			if len(sc.records()) > 0 || len(sc.Stored) != test.left {
				t.Errorf("records: %v, objects: %v; want no record, and %d objects", sc.records(), sc.Stored, test.left)
			}
			for name, obj := range sc.Stored {
				ready := meta.FindStatusCondition(resource.StatusOf(obj).Conditions, v1alpha1.ConditionReady)
				if ready.Reason != v1alpha1.ReasonDestroyed || len(obj.GetFinalizers()) > 0 || resource.StatusOf(obj).Drifted() {
					t.Errorf("%s: %+v, finalizers %v", name, ready, obj.GetFinalizers())
				}
			}
			if po := sc.apply(); !changesNothing(po) {
				t.Errorf("the next destroy plans %+v", po.Status.Summary)
			}
		})
	}
}

// TestARefreshReleasesWhatIsGone records with a refresh that a resource was removed outside of Hykube. Its object then
// has no finalizer.
func TestARefreshReleasesWhatIsGone(t *testing.T) {
	sc := newCrashScenario(t)
	things("a")(sc)
	sc.apply()
	clear(sc.cloud.things)
	sc.spec = v1alpha1.PlanSpec{RefreshOnly: true}
	sc.apply()
	obj := sc.Stored["team:test-thing/a"]
	if ready := meta.FindStatusCondition(resource.StatusOf(obj).Conditions, v1alpha1.ConditionReady); ready.Reason != v1alpha1.ReasonGone {
		t.Errorf("ready: %+v, want the reason Gone", ready)
	}
	if len(obj.GetFinalizers()) > 0 || len(sc.records()) > 0 {
		t.Errorf("finalizers %v, records %v; want none", obj.GetFinalizers(), sc.records())
	}
}
