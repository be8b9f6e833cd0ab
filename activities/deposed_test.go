package activities

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/resource"

	"k8s.io/apimachinery/pkg/api/meta"
)

// TestPlanLeavesAReplacementIncomplete makes plans while a deposed instance exists. Only its destroy makes the object
// Ready.
func TestPlanLeavesAReplacementIncomplete(t *testing.T) {
	sc := newCrashScenario(t)
	cbd := map[string]any{"createBeforeDestroy": true}
	sc.put("test-thing/a", map[string]any{"name": "a", "size": "1"}, cbd)
	sc.apply()
	sc.cloud.faults["delete a"] = []string{"refused"}
	sc.put("test-thing/a", map[string]any{"name": "a2", "size": "1"}, cbd)
	sc.apply()
	says := func(when, reason string) {
		t.Helper()
		s := resource.StatusOf(sc.Stored["team:test-thing/a"])
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
		if c == nil || c.Reason != reason {
			t.Errorf("%s: %+v; want %s", when, c, reason)
		}
	}
	says("after the apply", v1alpha1.ReasonReplaceIncomplete)
	sc.until(sc.newRun(), approving)
	says("while a plan waits", v1alpha1.ReasonReplaceIncomplete)
	sc.cloud.faults["delete a"] = []string{"refused"}
	sc.apply()
	says("after another destroy failed", v1alpha1.ReasonReplaceIncomplete)
	sc.apply()
	says("in the end", v1alpha1.ReasonApplied)
}
