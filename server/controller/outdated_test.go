package controller

import (
	"context"
	"slices"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/server/kinds"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
)

// TestAWaitingPlanSaysThatItIsStale marks a plan whose object was written. A plan that does not wait stays as it is.
func TestAWaitingPlanSaysThatItIsStale(t *testing.T) {
	for reason, tc := range map[string]struct {
		change func(*v1alpha1.Plan)
		want   string
	}{
		"it waits":        {nil, v1alpha1.ReasonStale},
		"it was approved": {approve, v1alpha1.ReasonAwaitingApproval},
		"it was applied":  {finish, v1alpha1.ReasonApplied},
	} {
		p := planAt("p", 0, tc.change)
		noteStale(p.DeepCopy(), "sim-network/main", &p.Status.Conditions)
		if ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); ready.Reason != tc.want {
			t.Errorf("%s: %s %s", reason, ready.Reason, ready.Message)
		}
		if tc.change == nil && (!waits(p) || awaitsApproval(p)) {
			t.Errorf("%s: it can still be approved, and is marked once", reason)
		}
	}
}

// TestAWrittenObjectOutdatesWaitingPlans writes and deletes an object after plans of it were made. A plan of the written
// generation, a plan of the deletion and a plan of another object stay as they are.
func TestAWrittenObjectOutdatesWaitingPlans(t *testing.T) {
	e, b := newEstate(t), newBindings()
	for plan, change := range map[string]func(*ledger.Change){
		"older": nil, "newer": func(c *ledger.Change) { c.Object.Generation = 5 }, "destroys": func(c *ledger.Change) { c.Preconditions.Deleting = true },
	} {
		e.change(plan, 0, "main", change)
	}
	e.change("elsewhere", 0, "other", nil)
	for _, plan := range []types.UID{"older", "newer", "destroys", "elsewhere"} {
		if err := b.add(t.Context(), e.Ledger, plan); err != nil {
			t.Fatal(err)
		}
	}
	uid := e.ref("main").UID
	for what, tc := range map[string]struct {
		written kinds.Written
		want    []types.UID
	}{
		"written": {kinds.Written{UID: uid, Generation: 5}, []types.UID{"destroys", "older"}},
		"deleted": {kinds.Written{UID: uid}, []types.UID{"newer", "older"}},
		"unknown": {kinds.Written{UID: "no such object", Generation: 5}, nil},
	} {
		if got := slices.Sorted(slices.Values(b.outdated(t.Context(), e.Ledger, tc.written))); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", what, got, tc.want)
		}
	}
}

// TestAWaitingPlanFollowsTheRightsOfItsRequester looks at a waiting plan before and after its requester loses the rights. Nobody writes
// anything.
func TestAWaitingPlanFollowsTheRightsOfItsRequester(t *testing.T) {
	r := newPlanRuns(t)
	why := ""
	r.LostRights = func(context.Context, *v1alpha1.Plan) (string, error) { return why, nil }
	r.see("prod", "p", func(s *v1alpha1.PlanStatus) {
		condition.Set(&s.Conditions, 1, v1alpha1.ConditionPlanned, true, v1alpha1.ReasonPlanned, "1 to create")
		condition.Waiting(&s.Conditions, 1, v1alpha1.ReasonAwaitingApproval, "1 to create")
	})
	if !awaitsApproval(r.objs.plans["p"]) {
		t.Error("with the rights, the plan does not wait for approval")
	}
	why = `the user "ada", who made the plan, has no rights`
	r.see("prod", "p", nil)
	reason, message := readyOf(r.objs.plans["p"])
	if reason != v1alpha1.ReasonStale || r.objs.plans["p"].Status.StaleAt == nil ||
		message != `The user "ada", who made the plan, has no rights. No approval can apply the plan. Give the right back, or make a new plan as another user.` {
		t.Errorf("%s: %s", reason, message)
	}
}
