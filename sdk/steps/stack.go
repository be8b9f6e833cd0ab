package steps

import (
	"encoding/json"

	"github.com/hykube/hykube/api/v1alpha1"
)

// StackInput is the argument of a workflow that a Stack names in spec.workflow. The server starts the workflow with it
// when the stack needs a plan.
type StackInput struct {
	// Namespace and Stack name the stack.
	Namespace string `json:"namespace"`
	Stack     string `json:"stack"`
	// Reason is the trigger of the run: Change or Schedule.
	Reason v1alpha1.PlanTrigger `json:"reason"`
	// Generation is the generation of the spec of the stack.
	Generation int64 `json:"generation"`
	// Plan is the spec of a plan of all resources of the stack; see PlanOptions.
	Plan v1alpha1.PlanSpec `json:"plan"`
	// Input is spec.workflow.input; empty if the spec has none.
	Input json.RawMessage `json:"input,omitempty"`
}

// PlanOptions returns the options for a plan of exactly the resources of the stack. The stack becomes Ready after the
// apply of such a plan, or if the plan has no changes.
func (i StackInput) PlanOptions() PlanOptions {
	return PlanOptions{Namespace: i.Namespace, Spec: *i.Plan.DeepCopy()}
}

// Decode decodes Input. Without an input, it does nothing. A mismatch is an error of the type Invalid, which Temporal
// does not retry.
func (i StackInput) Decode(into any) error {
	if len(i.Input) == 0 {
		return nil
	}
	if err := json.Unmarshal(i.Input, into); err != nil {
		return failure(Invalid, "decode spec.workflow.input of stack %q: %v", i.Stack, err)
	}
	return nil
}
