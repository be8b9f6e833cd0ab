package resource

import (
	"encoding/json"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// TestFactsIn compares the facts in the JSON of a status with those of an object that has the status and its applied generation.
func TestFactsIn(t *testing.T) {
	const generation = 8725724278030350 // a float does not have such a number
	for name, change := range map[string]func(*Status){
		"new":       func(*Status) {},
		"waiting":   func(s *Status) { s.Wait(generation, v1alpha1.ReasonAwaitingPlan, "no plan") },
		"ready":     func(s *Status) { s.Ready(generation, v1alpha1.MessageApplied) },
		"applying":  func(s *Status) { s.Reconcile(generation, "a plan has started") },
		"drifted":   func(s *Status) { s.Ready(generation, ""); s.Drift(generation, v1alpha1.ReasonDrifted, "drifted") },
		"gone":      func(s *Status) { s.Ready(generation, ""); s.Drift(generation, v1alpha1.ReasonGone, "gone") },
		"failed":    func(s *Status) { s.Stall(generation, v1alpha1.ReasonApplyFailed, "failed") },
		"cancelled": func(s *Status) { s.Stall(generation, v1alpha1.ReasonCancelled, "cancelled") },
	} {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		s := StatusOf(u)
		s.Attributes = map[string]any{"id": "a", "conditions": []any{"b"}}
		change(s)
		raw, err := json.Marshal(s.ToMap())
		if err != nil {
			t.Fatal(err)
		}
		var status map[string]any
		if err := utiljson.Unmarshal(raw, &status); err != nil {
			t.Fatal(err)
		}
		u.Object["status"] = status
		u.SetGeneration(s.Applied)
		got, err := FactsIn(raw)
		want := StoredFacts{Facts: FactsOf(u), Applied: s.Applied, Applying: condition.IsTrue(u, v1alpha1.ConditionReconciling), Observed: s.Observed}
		if ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady); ready != nil {
			want.Ready, want.Reason = ready.Status, ready.Reason
		}
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
	if _, err := FactsIn([]byte("[]")); err == nil {
		t.Error("a list is no status")
	}
}
