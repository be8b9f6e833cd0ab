package activities

import (
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/resource"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestADeposedInstanceKeepsItsContributors has a record that another user pushed, with a deposed instance. A plan updates the current
// instance, and the destroy of the deposed one fails or succeeds. The user contributes as long as there is a deposed instance.
func TestADeposedInstanceKeepsItsContributors(t *testing.T) {
	for _, refused := range []bool{true, false} {
		sc := newAccounts(t)
		sc.put("test-thing/a", m{"name": "a"}, nil)
		sc.apply()
		sc.depose()
		rec := sc.recordOf("test-thing/a")
		rec.Contributors = []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "mallory"}, Wrote: []string{"state"}, At: metav1.NowMicro()}}
		if err := sc.Ledger.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		if refused {
			sc.cloud.faults["delete a"] = []string{"refused"}
		}
		sc.put("test-thing/a", m{"name": "a", "size": "2"}, nil)
		asks := func(when string) {
			t.Helper()
			if got := contributor.Names(sc.apply().Status.Contributors); !slices.Equal(got, []string{"mallory"}) {
				t.Errorf("%s, the contributors are %v, want mallory", when, got)
			}
		}
		asks("of the push")
		rec = sc.recordOf("test-thing/a")
		if left := len(rec.Deposed) > 0; left != refused || !strings.Contains(string(rec.Attributes), `"size":"2"`) {
			t.Fatalf("a deposed instance is left: %t, beside %s", left, rec.Attributes)
		}
		if !refused {
			if len(rec.Contributors) > 0 {
				t.Errorf("after all of it was applied, the record has the contributors %v", rec.Contributors)
			}
			continue
		}
		asks("of the destroy that failed before")
		if left := sc.recordOf("test-thing/a").Deposed; len(left) > 0 {
			t.Errorf("the deposed instances %v are left", left)
		}
	}
}
