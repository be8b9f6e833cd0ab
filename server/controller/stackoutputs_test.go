package controller

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestOutputsAreEvaluatedAgain changes the objects on which the outputs of a stack depend. Each change evaluates them once.
func TestOutputsAreEvaluatedAgain(t *testing.T) {
	written, evaluated, failed := "", 0, error(nil)
	c := NewStacks(StacksConfig{
		Written: func(context.Context, *v1alpha1.Stack) (string, error) { return written, failed },
		Outputs: func(context.Context, *v1alpha1.Stack) ([]v1alpha1.StackOutput, error) {
			evaluated++
			written = "both"
			return []v1alpha1.StackOutput{{Name: "url", Value: "1"}}, nil
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	state := stackWith(asWritten)
	state.stack.Spec.Outputs = map[string]string{"url": "${1}"}
	for _, tc := range []struct {
		why    string
		change func()
		want   int
	}{
		{"at first", func() {}, 2}, // once more after the write
		{"the value of a resource changed", func() { state.selected.Values = "new" }, 1},
		{"a user deleted the ConfigMap", func() { written = "one" }, 2},
		{"the server cannot read the ConfigMap", func() { failed = errors.New("timeout") }, 0},
	} {
		tc.change()
		evaluated = 0
		for range 4 {
			step := state.decide()
			c.outputs(t.Context(), state, &step)(&state.stack.Status)
			if failed != nil && (step.reason != v1alpha1.ReasonOutputsFailed || step.after == 0) {
				t.Errorf("%s: the next step is %+v", tc.why, step)
			}
		}
		if evaluated != tc.want {
			t.Errorf("%s: evaluated %d times, want %d", tc.why, evaluated, tc.want)
		}
		if len(state.stack.Status.Outputs) != 1 {
			t.Errorf("%s: the status has %+v", tc.why, state.stack.Status.Outputs)
		}
	}
}
