package condition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestEditLeavesTheSharedStatus(t *testing.T) {
	stalled := map[string]any{"type": v1alpha1.ConditionStalled, "status": "True", "reason": "Invalid", "message": "no", "lastTransitionTime": "2026-03-01T12:00:00Z"}
	status := map[string]any{"observedGeneration": int64(2), "conditions": []any{stalled}}
	u := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	Edit(u, func(c *[]metav1.Condition) { Stalled(c, 3, "Failed", "still no") })
	if len(status["conditions"].([]any)) != 1 || stalled["reason"] != "Invalid" {
		t.Errorf("the old status changed: %v", status)
	}
	want := map[string]any{"type": v1alpha1.ConditionStalled, "status": "True", "reason": "Failed", "message": "still no", "lastTransitionTime": "2026-03-01T12:00:00Z", "observedGeneration": int64(3)}
	if diff := cmp.Diff(want, Find(u, v1alpha1.ConditionStalled)); diff != "" {
		t.Error(diff)
	}
	if IsTrue(u, v1alpha1.ConditionReady) || !IsTrue(u, v1alpha1.ConditionStalled) || IsTrue(u, "Unknown") {
		t.Errorf("conditions: %v", u.Object["status"])
	}
	empty := &unstructured.Unstructured{Object: map[string]any{}}
	Edit(empty, func(c *[]metav1.Condition) { Ready(c, 1, "Applied", "") })
	if !IsTrue(empty, v1alpha1.ConditionReady) {
		t.Errorf("conditions: %v", empty.Object["status"])
	}
}
