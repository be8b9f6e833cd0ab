package steps

import (
	"encoding/json"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestStackInput reads the argument of a workflow that a stack starts, as the server writes it.
func TestStackInput(t *testing.T) {
	var in StackInput
	text := `{"namespace": "prod", "stack": "web", "reason": "Change", "generation": 3, "plan": {"targets": ["sim_disk.d"], "refresh": "Changed"}, "input": {"max": 2}}`
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		t.Fatal(err)
	}
	var input struct{ Max int }
	if err := in.Decode(&input); err != nil || input.Max != 2 || in.Reason != v1alpha1.TriggerChange || in.Generation != 3 {
		t.Errorf("%+v, %+v, %v", in, input, err)
	}
	o := in.PlanOptions()
	if o.Namespace != "prod" || o.Spec.Refresh != v1alpha1.RefreshChanged || len(o.Spec.Targets) != 1 {
		t.Errorf("the options of a plan: %+v", o)
	}
	o.Spec.Targets[0] = "sim_disk.other"
	if in.Plan.Targets[0] != "sim_disk.d" {
		t.Error("a change of the options changes the argument")
	}
	if err := in.Decode(&[]string{}); !Is(err, Invalid) {
		t.Errorf("an input of another type: %v, want an error of the type Invalid", err)
	}
	in.Input = nil
	if err := in.Decode(&[]string{}); err != nil {
		t.Errorf("without an input: %v", err)
	}
}
