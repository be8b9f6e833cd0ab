package stack

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestAskedBy names the user whose drift check caused a plan.
func TestAskedBy(t *testing.T) {
	p := &v1alpha1.Plan{}
	p.Status.RequestedBy = &v1alpha1.Identity{Username: "ann"}
	for by, want := range map[string]string{"": "ann", "ann": "ann", "eve": "eve, with the rights of ann"} {
		p.Status.Stack = &v1alpha1.PlanStack{}
		if by != "" {
			p.Status.Stack.CheckRequestedBy = &v1alpha1.Identity{Username: by}
		}
		if got := askedBy(p); got != want {
			t.Errorf("%q: %q, want %q", by, got, want)
		}
	}
}
