package plan_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

// The first line of a plan that cannot be approved any more says why.
func TestShowOfPlansInEachState(t *testing.T) {
	approved := &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, By: &v1alpha1.Identity{Username: "bob"}}
	for _, tc := range []struct {
		reason string
		end    func(f *clitest.Server, p *v1alpha1.Plan)
		want   string // the first line; "" for none
	}{
		{"it waits", func(*clitest.Server, *v1alpha1.Plan) {}, ""},
		{"superseded", func(f *clitest.Server, p *v1alpha1.Plan) {
			f.Set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonSuperseded, "Superseded by plan plan-new, a later plan of the same resources.")
		}, "Plan plan-x7k2d can no longer be approved. Superseded by plan plan-new, a later plan of the same resources."},
		{"a dependency changed", func(f *clitest.Server, _ *v1alpha1.Plan) {
			f.MovedSince = clitest.Status(409, metav1.StatusReasonConflict, "1 of its changes is stale (sim_network.main: the object was changed)")
			f.MovedSince.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: v1alpha1.CauseStale, Field: "sim_network.main"}}}
		}, "Plan plan-x7k2d is stale: something that it depends on changed after planning."},
		{"applied in part", func(f *clitest.Server, p *v1alpha1.Plan) {
			p.Status.Approval, p.Status.Progress = approved, &v1alpha1.PlanProgress{Total: 3, Done: 3, Blocked: 4}
			f.Set(p, v1alpha1.ConditionReady, true, v1alpha1.ReasonAppliedInPart, "")
		}, "Plan plan-x7k2d was applied in part: 3 of 7 made, 4 blocked."},
		{"applied", func(f *clitest.Server, p *v1alpha1.Plan) {
			p.Status.Approval, p.Status.Progress = approved, &v1alpha1.PlanProgress{Total: 3, Done: 3}
			f.Set(p, v1alpha1.ConditionApplied, true, v1alpha1.ReasonApplied, "3 of 3 changes were made.")
			f.Set(p, v1alpha1.ConditionReady, true, v1alpha1.ReasonApplied, "3 of 3 changes were made.")
		}, "Plan plan-x7k2d was approved by bob. 3 of 3 changes were made."},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.Run("plan", "--target", "sim_network.main")
			p := f.Plans["default/plan-x7k2d"]
			f.Mu.Lock()
			tc.end(f, p)
			f.Mu.Unlock()
			out, errOut, code := f.Run("show", "plan-x7k2d")
			first, _, _ := strings.Cut(out, "\n")
			if tc.want != "" && first != tc.want || tc.want == "" && strings.HasPrefix(first, "Plan ") || code != exit.Done {
				t.Errorf("code %d, %q: %s", code, first, errOut)
			}
			if waits := strings.Contains(out, "\nIt waits for approval: "); waits != (tc.reason == "it waits") {
				t.Errorf("says that it waits for approval: %v:\n%s", waits, out)
			}
			if p.Status.Approval != nil && p.Status.Approval != approved {
				t.Error("show approved the plan")
			}
		})
	}
}
