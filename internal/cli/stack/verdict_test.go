package stack

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/condition"
)

// TestStackVerdict decides for each kind of state whether a wait goes on. Only a state that needs a person ends it early.
func TestStackVerdict(t *testing.T) {
	for why, tc := range map[string]struct {
		set      func(*[]metav1.Condition, int64, string, string)
		reason   string
		observed int64
		ready    bool
		code     int
	}{
		"all matches the specs":         {condition.Ready, v1alpha1.ReasonApplied, 2, true, 0},
		"the status is of an old spec":  {condition.Ready, v1alpha1.ReasonApplied, 1, false, 0},
		"a plan is applied":             {condition.Reconciling, v1alpha1.ReasonApplying, 2, false, 0},
		"a person must approve":         {condition.Waiting, v1alpha1.ReasonAwaitingApproval, 2, false, 0},
		"an apply failed":               {condition.Stalled, v1alpha1.ReasonApplyFailed, 2, false, exit.Failed},
		"an old spec failed":            {condition.Stalled, v1alpha1.ReasonApplyFailed, 1, false, 0},
		"preventDestroy blocks a plan":  {condition.Stalled, v1alpha1.ReasonBlocked, 2, false, exit.Refused},
		"the author lost a right":       {condition.Stalled, v1alpha1.ReasonMissingRights, 2, false, exit.Refused},
		"a policy denies the next plan": {condition.Stalled, v1alpha1.ReasonPolicyDenied, 2, false, exit.Refused},
	} {
		t.Run(why, func(t *testing.T) {
			s := &v1alpha1.Stack{}
			s.Name, s.Generation, s.Status.ObservedGeneration = "web", 2, tc.observed
			tc.set(&s.Status.Conditions, tc.observed, tc.reason, "The message.")
			ready, _, err := stackVerdict(s)
			code := 0
			if exit, ok := errors.AsType[*exit.Error](err); ok {
				code = exit.Code
			}
			if ready != tc.ready || code != tc.code {
				t.Errorf("ready %t, exit code %d, want %t and %d: %v", ready, code, tc.ready, tc.code, err)
			}
		})
	}
}
