package scheduled

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"
)

// oneStack has a stack, or none.
type oneStack struct{ stack *v1alpha1.Stack }

func (o *oneStack) Get(_ context.Context, _, _ string, uid types.UID) (*v1alpha1.Stack, error) {
	if o.stack == nil || o.stack.UID != uid {
		return nil, store.ErrGone
	}
	return o.stack.DeepCopy(), nil
}

func (o *oneStack) UpdateStatus(_ context.Context, _, _ string, uid types.UID, change func(*v1alpha1.StackStatus)) error {
	if o.stack != nil && o.stack.UID == uid {
		change(&o.stack.Status)
	}
	return nil
}

// request is one of the stack with the UID u.
func request(id string) workflows.StackRequest {
	return workflows.StackRequest{Stack: workflows.Stack{Namespace: "prod", Name: "web", UID: "u"}, ID: id}
}

func TestRequestCheck(t *testing.T) {
	scheduled := &v1alpha1.StackDrift{Schedule: "@hourly"}
	for why, tc := range map[string]struct {
		stack *v1alpha1.Stack
		// outcome is that of a request that ends at once. requested is the request that the stack has afterwards.
		outcome, requested string
	}{
		"a check":                          {&v1alpha1.Stack{Spec: v1alpha1.StackSpec{Drift: scheduled}}, "", "run"},
		"no stack":                         {nil, workflows.CheckGone, ""},
		"a stack that takes none":          {&v1alpha1.Stack{}, workflows.CheckSkipped, ""},
		"a stack without a schedule":       {&v1alpha1.Stack{Spec: v1alpha1.StackSpec{Drift: &v1alpha1.StackDrift{}}}, workflows.CheckSkipped, ""},
		"a suspended stack":                {&v1alpha1.Stack{Spec: v1alpha1.StackSpec{Drift: scheduled, Suspend: true}}, workflows.CheckSkipped, ""},
		"an earlier check is asked for":    {stackWith(scheduled, &v1alpha1.StackDriftStatus{Requested: &v1alpha1.StackRequest{ID: "old"}}), workflows.CheckSkipped, "old"},
		"an earlier check runs":            {stackWith(scheduled, &v1alpha1.StackDriftStatus{Running: &v1alpha1.DriftCheck{ID: "old"}}), workflows.CheckSkipped, ""},
		"an earlier check waits":           {stackWith(scheduled, &v1alpha1.StackDriftStatus{Requested: &v1alpha1.StackRequest{ID: "old"}, Running: &v1alpha1.DriftCheck{ID: "old", AwaitsApproval: true}}), "", "run"},
		"an earlier check has ended":       {stackWith(scheduled, &v1alpha1.StackDriftStatus{Requested: &v1alpha1.StackRequest{ID: "old"}, Last: &v1alpha1.DriftCheck{ID: "old"}}), "", "run"},
		"an earlier attempt asked":         {stackWith(scheduled, &v1alpha1.StackDriftStatus{Requested: &v1alpha1.StackRequest{ID: "run"}}), "", "run"},
		"an earlier attempt, and it began": {stackWith(scheduled, &v1alpha1.StackDriftStatus{Requested: &v1alpha1.StackRequest{ID: "run"}, Running: &v1alpha1.DriftCheck{ID: "run"}}), "", "run"},
	} {
		if tc.stack != nil {
			tc.stack.UID = "u"
		}
		state, err := (&Requests{Stacks: &oneStack{tc.stack}}).RequestCheck(t.Context(), request("run"))
		if err != nil || state.Outcome != tc.outcome || state.Ended != (tc.outcome != "") {
			t.Errorf("%s: %+v, %v", why, state, err)
		}
		got := ""
		if tc.stack != nil && tc.stack.Status.Drift != nil && tc.stack.Status.Drift.Requested != nil {
			got = tc.stack.Status.Drift.Requested.ID
		}
		if got != tc.requested {
			t.Errorf("%s: the request is %q, want %q", why, got, tc.requested)
		}
	}
}

func stackWith(drift *v1alpha1.StackDrift, status *v1alpha1.StackDriftStatus) *v1alpha1.Stack {
	return &v1alpha1.Stack{Spec: v1alpha1.StackSpec{Drift: drift}, Status: v1alpha1.StackStatus{Drift: status}}
}

func TestCheckState(t *testing.T) {
	asked := &v1alpha1.StackRequest{ID: "run", At: metav1.Now()}
	for why, tc := range map[string]struct {
		stack *v1alpha1.Stack
		want  workflows.CheckState
	}{
		"asked":    {stackWith(nil, &v1alpha1.StackDriftStatus{Requested: asked}), workflows.CheckState{Text: "requested"}},
		"runs":     {stackWith(nil, &v1alpha1.StackDriftStatus{Requested: asked, Running: &v1alpha1.DriftCheck{ID: "run", Read: 3, Drifted: 1}}), workflows.CheckState{Text: "3 resources read, 1 drifted"}},
		"ended":    {stackWith(nil, &v1alpha1.StackDriftStatus{Requested: asked, Last: &v1alpha1.DriftCheck{ID: "run", Outcome: v1alpha1.DriftNone}}), workflows.CheckState{Ended: true, Outcome: "NoDrift", Text: "0 resources read, 0 drifted"}},
		"deleted":  {nil, gone},
		"replaced": {stackWith(nil, &v1alpha1.StackDriftStatus{Requested: &v1alpha1.StackRequest{ID: "later"}}), skipped("a later check replaced this one")},
		"replaced, and it had ended": {stackWith(nil, &v1alpha1.StackDriftStatus{Requested: &v1alpha1.StackRequest{ID: "later"}, Last: &v1alpha1.DriftCheck{ID: "run", Outcome: v1alpha1.DriftFound}}),
			workflows.CheckState{Ended: true, Outcome: "Drifted", Text: "0 resources read, 0 drifted"}},
	} {
		if tc.stack != nil {
			tc.stack.UID = "u"
		}
		if got, err := (&Requests{Stacks: &oneStack{tc.stack}}).CheckState(t.Context(), request("run")); err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v, want %+v", why, got, err, tc.want)
		}
	}
}

func TestRequestPlan(t *testing.T) {
	triggered := v1alpha1.StackSpec{Plan: v1alpha1.StackPlanPolicy{Triggers: []v1alpha1.PlanTrigger{v1alpha1.TriggerChange, v1alpha1.TriggerSchedule}}}
	suspended := triggered
	suspended.Suspend = true
	for why, tc := range map[string]struct {
		spec v1alpha1.StackSpec
		want bool
	}{"a plan": {triggered, true}, "a suspended stack": {suspended, false}, "a stack without the trigger": {v1alpha1.StackSpec{}, false}} {
		s := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: tc.spec}
		for range 2 {
			if _, err := (&Requests{Stacks: &oneStack{s}}).RequestPlan(t.Context(), request("run")); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Status.Scheduled != nil && s.Status.Scheduled.ID == "run"; got != tc.want {
			t.Errorf("%s: %+v", why, s.Status.Scheduled)
		}
	}
	if _, err := (&Requests{Stacks: &oneStack{}}).RequestPlan(t.Context(), request("run")); err != nil {
		t.Errorf("a deleted stack: %v", err)
	}
}
