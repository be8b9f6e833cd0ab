package activities

import (
	"testing"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/resource"

	"k8s.io/apimachinery/pkg/api/meta"
)

// TestPlanLeavesAReplacementIncomplete makes plans while an old instance is left. Only its end makes the object Ready.
func TestPlanLeavesAReplacementIncomplete(t *testing.T) {
	tn := newCrashScenario(t)
	cbd := map[string]any{"createBeforeDestroy": true}
	tn.put("test-thing/a", map[string]any{"name": "a", "size": "1"}, cbd)
	tn.apply()
	tn.cloud.faults["delete a"] = []string{"refused"}
	tn.put("test-thing/a", map[string]any{"name": "a2", "size": "1"}, cbd)
	tn.apply()
	says := func(when, reason, pending string) {
		t.Helper()
		s := resource.StatusOf(tn.Stored["team:test-thing/a"])
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
		if c == nil || c.Reason != reason || s.Pending != pending {
			t.Errorf("%s: %+v, pending %q; want %s, %q", when, c, s.Pending, reason, pending)
		}
	}
	says("after the apply", v1alpha1.ReasonReplaceIncomplete, "")
	discarded := tn.newRun()
	tn.until(discarded, approving)
	says("while a plan waits", v1alpha1.ReasonReplaceIncomplete, discarded.Name)
	if err := changes.Settle(t.Context(), tn.Sources, discarded.Plan); err != nil {
		t.Fatal(err)
	}
	says("after the plan was discarded", v1alpha1.ReasonReplaceIncomplete, "")
	tn.cloud.faults["delete a"] = []string{"refused"}
	tn.apply()
	says("after another destroy failed", v1alpha1.ReasonReplaceIncomplete, "")
	tn.apply()
	says("in the end", v1alpha1.ReasonApplied, "")
}
