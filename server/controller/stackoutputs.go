package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/query"
)

// outputs evaluates and writes the outputs of a stack whose infrastructure matches the specs, unless it did so for the
// same values. It returns the change of the status. If an output fails, it sets the step to the failure.
func (c *Stacks) outputs(ctx context.Context, state *stackState, next *stackStep) func(*v1alpha1.StackStatus) {
	s := state.stack
	if len(s.Spec.Outputs) == 0 {
		return func(status *v1alpha1.StackStatus) { status.Outputs, status.OutputsVersion = nil, "" }
	}
	if !next.good {
		return func(*v1alpha1.StackStatus) {}
	}
	// The version has the targets from before the write, so that an edit during the write is not missed. The next
	// reconcile therefore evaluates the outputs once more, and finds nothing to write.
	written, err := c.Written(ctx, s)
	version := outputsVersion(state, written)
	if err == nil && version == s.Status.OutputsVersion {
		return func(*v1alpha1.StackStatus) {}
	}
	var values []v1alpha1.StackOutput
	if err == nil {
		values, err = c.Outputs(ctx, s)
	}
	if refused, ok := errors.AsType[*query.OutputError](err); ok {
		next.stall(v1alpha1.ReasonOutputsFailed, "The infrastructure matches the spec, but "+refused.Problem)
		return func(status *v1alpha1.StackStatus) { status.OutputsVersion = "" }
	}
	if err != nil {
		c.Logger.Warn("evaluate the outputs of a stack; trying again", "namespace", s.Namespace, "name", s.Name,
			"error", err)
		*next = work(v1alpha1.ReasonOutputsFailed, "The server evaluates the outputs again in %s, after an error.",
			pause)
		next.after = pause
		return func(*v1alpha1.StackStatus) {}
	}
	return func(status *v1alpha1.StackStatus) { status.Outputs, status.OutputsVersion = values, version }
}

// outputsVersion returns a digest of all data that the outputs of a stack depend on, and of the objects that have them.
func outputsVersion(state *stackState, written string) string {
	s := state.stack
	text, err := json.Marshal([]any{s.Spec.Outputs, s.Spec.WriteOutputsTo, s.Status.Author, s.Generation,
		state.selected.Contents, state.selected.Values, written})
	if err != nil {
		text = fmt.Append(nil, s.UID, s.Generation) // cannot happen: the list has only types that JSON can encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
