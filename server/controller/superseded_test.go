package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/ledger/ledgertest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// planAt returns a waiting plan that was created a number of seconds after the first.
func planAt(name string, second int, change func(*v1alpha1.Plan)) *v1alpha1.Plan {
	p := &v1alpha1.Plan{}
	p.Name, p.Namespace, p.UID, p.ResourceVersion = name, "team", types.UID(name), fmt.Sprint(100+second)
	p.CreationTimestamp = metav1.Unix(int64(1000+second), 0)
	p.Status.PlannedAt = new(p.CreationTimestamp)
	condition.Set(&p.Status.Conditions, 1, v1alpha1.ConditionPlanned, true, v1alpha1.ReasonPlanned, "1 to create")
	condition.Waiting(&p.Status.Conditions, 1, v1alpha1.ReasonAwaitingApproval, "1 to create")
	if change != nil {
		change(p)
	}
	return p
}

func approve(p *v1alpha1.Plan) {
	p.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved}
}

func finish(p *v1alpha1.Plan) {
	approve(p)
	p.Status.FinishedAt = new(metav1.NewTime(p.CreationTimestamp.Add(time.Minute)))
	condition.Set(&p.Status.Conditions, 1, v1alpha1.ConditionApplied, true, v1alpha1.ReasonApplied, "")
	condition.Ready(&p.Status.Conditions, 1, v1alpha1.ReasonApplied, "")
}

func TestLaterPlansSupersedeEarlierOnes(t *testing.T) {
	both := func(a, b func(*v1alpha1.Plan)) func(*v1alpha1.Plan) {
		return func(p *v1alpha1.Plan) { a(p); b(p) }
	}
	targets := func(list ...string) func(*v1alpha1.Plan) {
		return func(p *v1alpha1.Plan) { p.Spec.Targets = list }
	}
	requestedAt := func(microseconds int64, version string) func(*v1alpha1.Plan) {
		return func(p *v1alpha1.Plan) {
			p.Status.RequestedAt = new(metav1.NewMicroTime(p.CreationTimestamp.Add(time.Duration(microseconds) * time.Microsecond)))
			p.ResourceVersion = version
		}
	}
	speculative := func(p *v1alpha1.Plan) { p.Spec.Speculative = true }
	blocked := func(p *v1alpha1.Plan) {
		condition.Stalled(&p.Status.Conditions, 1, v1alpha1.ReasonBlocked, "sim_disk.a is blocked")
	}
	noChanges := func(p *v1alpha1.Plan) {
		p.Status.FinishedAt = new(p.CreationTimestamp)
		condition.Ready(&p.Status.Conditions, 1, v1alpha1.ReasonNoChanges, "")
	}
	for _, tc := range []struct {
		reason string
		plans  []*v1alpha1.Plan
		want   map[string]string
	}{
		{"one plan waits", []*v1alpha1.Plan{planAt("a", 0, nil)}, nil},
		{"the latest supersedes all others", []*v1alpha1.Plan{planAt("b", 1, nil), planAt("c", 2, nil), planAt("a", 0, nil)},
			map[string]string{"a": "Superseded by plan c, a later plan of the same resources. To read it: kubectl hykube show c -n team.", "b": "Superseded by plan c, a later plan of the same resources. To read it: kubectl hykube show c -n team."}},
		{"in one second, the one that was requested last is the latest", []*v1alpha1.Plan{planAt("a", 0, requestedAt(1, "100")), planAt("b", 0, requestedAt(2, "99"))},
			map[string]string{"a": "Superseded by plan b, a later plan of the same resources. To read it: kubectl hykube show b -n team."}},
		{"another scope is another plan", []*v1alpha1.Plan{planAt("a", 0, targets("x.y")), planAt("b", 1, nil), planAt("c", 2, func(p *v1alpha1.Plan) { p.Spec.Destroy = true })}, nil},
		{"targets are a set", []*v1alpha1.Plan{planAt("a", 0, targets("x.y", "x.z")), planAt("b", 1, targets("x.z", "x.y"))},
			map[string]string{"a": "Superseded by plan b, a later plan of the same resources. To read it: kubectl hykube show b -n team."}},
		{"who approves makes no difference", []*v1alpha1.Plan{planAt("a", 0, nil), planAt("b", 1, both(approve, func(p *v1alpha1.Plan) { p.Spec.Approval = v1alpha1.ApprovalAutomatic }))},
			map[string]string{"a": "Superseded by plan b, which was approved. To read it: kubectl hykube show b -n team."}},
		{"an approved plan is never superseded", []*v1alpha1.Plan{planAt("a", 0, approve), planAt("b", 1, nil)}, nil},
		{"an ended plan is not, either", []*v1alpha1.Plan{planAt("a", 0, finish), planAt("b", 1, nil)}, nil},
		{"a plan that approves itself does not wait", []*v1alpha1.Plan{planAt("a", 0, func(p *v1alpha1.Plan) {
			p.Spec.Approval, p.Status.AutomaticApproval = v1alpha1.ApprovalAutomatic, &v1alpha1.AutomaticApproval{Granted: true}
		}), planAt("b", 1, nil)}, nil},
		{"blocked changes wait for a person", []*v1alpha1.Plan{planAt("a", 0, blocked), planAt("b", 1, blocked)},
			map[string]string{"a": "Superseded by plan b, a later plan of the same resources. To read it: kubectl hykube show b -n team."}},
		{"also those of a plan that would approve itself", []*v1alpha1.Plan{planAt("a", 0, both(blocked, func(p *v1alpha1.Plan) {
			p.Spec.Approval, p.Status.AutomaticApproval = v1alpha1.ApprovalAutomatic, &v1alpha1.AutomaticApproval{Granted: true}
		})), planAt("b", 1, nil)}, map[string]string{"a": "Superseded by plan b, a later plan of the same resources. To read it: kubectl hykube show b -n team."}},
		{"a later one found nothing to do", []*v1alpha1.Plan{planAt("a", 0, nil), planAt("b", 1, noChanges)},
			map[string]string{"a": "Superseded by plan b, which has no changes."}},
		{"a later one could do nothing yet", []*v1alpha1.Plan{planAt("a", 0, nil), planAt("b", 1, func(p *v1alpha1.Plan) {
			condition.Ready(&p.Status.Conditions, 1, v1alpha1.ReasonDeferred, "")
		})}, nil},
		{"a later one is still being made", []*v1alpha1.Plan{planAt("a", 0, nil), planAt("b", 1, func(p *v1alpha1.Plan) { p.Status = v1alpha1.PlanStatus{} })}, nil},
		{"a later one could not be made", []*v1alpha1.Plan{planAt("a", 0, nil), planAt("b", 1, func(p *v1alpha1.Plan) {
			condition.Set(&p.Status.Conditions, 1, v1alpha1.ConditionPlanned, false, v1alpha1.ReasonPlanFailed, "")
		})}, nil},
		{"a later one was cancelled", []*v1alpha1.Plan{planAt("a", 0, nil), planAt("b", 1, func(p *v1alpha1.Plan) { p.Status.Cancel = &v1alpha1.PlanCancel{} })}, nil},
		{"an approved one by a plan of its requester", []*v1alpha1.Plan{planAt("a", 0, halfApproved), planAt("b", 1, madeBy("alice"))},
			map[string]string{"a": "Superseded by plan b, a later plan of the same resources. To read it: kubectl hykube show b -n team."}},
		{"by a plan of an approver", []*v1alpha1.Plan{planAt("a", 0, halfApproved), planAt("b", 1, madeBy("erin"))},
			map[string]string{"a": "Superseded by plan b, a later plan of the same resources. To read it: kubectl hykube show b -n team."}},
		{"not by a plan of another user", []*v1alpha1.Plan{planAt("a", 0, halfApproved), planAt("b", 1, madeBy("mallory"))}, nil},
		{"not by a plan of another user's worker", []*v1alpha1.Plan{planAt("a", 0, halfApproved), planAt("b", 1, madeBy("alice", "mallory"))}, nil},
		{"speculative plans supersede nothing", []*v1alpha1.Plan{planAt("a", 0, nil), planAt("b", 1, speculative)}, nil},
		{"and nothing supersedes them", []*v1alpha1.Plan{planAt("a", 0, speculative), planAt("b", 1, speculative), planAt("c", 2, nil)}, nil},
	} {
		got := map[string]string{}
		for p, by := range superseded(tc.plans) {
			got[p.Name] = supersededBy(by)
		}
		if tc.want == nil {
			tc.want = map[string]string{}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

// A plan that was superseded names the plan that waits now, not one that was superseded in turn.
func TestASupersededPlanNamesTheCurrentOne(t *testing.T) {
	over := func(by string, ago time.Duration) func(*v1alpha1.Plan) {
		return func(p *v1alpha1.Plan) {
			p.Status.FinishedAt = new(metav1.NewTime(time.Now().Add(-ago)))
			condition.Stalled(&p.Status.Conditions, 1, v1alpha1.ReasonSuperseded, supersededBy(planAt(by, 2, nil)))
		}
	}
	decided := func(p *v1alpha1.Plan) { approve(p); finish(p) }
	for name, tc := range map[string]struct {
		plans []*v1alpha1.Plan
		want  map[string]string
	}{
		"the one that it names is superseded": {[]*v1alpha1.Plan{planAt("a", 0, over("b", time.Minute)), planAt("b", 1, over("c", time.Second)), planAt("c", 2, nil)},
			map[string]string{"a": "c"}},
		"it was long ago":              {[]*v1alpha1.Plan{planAt("a", 0, over("b", time.Hour)), planAt("c", 2, nil)}, map[string]string{}},
		"the latest one does not wait": {[]*v1alpha1.Plan{planAt("a", 0, over("b", time.Minute)), planAt("c", 2, decided)}, map[string]string{}},
		"the latest one looks at something else": {[]*v1alpha1.Plan{planAt("a", 0, over("b", time.Minute)), planAt("c", 2, func(p *v1alpha1.Plan) { p.Spec.Destroy = true })},
			map[string]string{}},
	} {
		got := map[string]string{}
		for p, by := range outdatedSuccessors(tc.plans, time.Now()) {
			got[p.Name] = by.Name
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// estate is a namespace of recorded resources.
type estate struct {
	*ledger.Ledger
	t  *testing.T
	kv *ledgertest.KV
}

func newEstate(t *testing.T) *estate {
	kv := ledgertest.New()
	return &estate{ledger.New(kv), t, kv}
}

func (e *estate) ref(name string) v1alpha1.ObjectReference {
	return v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: "team", Name: name, UID: types.UID("uid-" + name), Generation: 1}
}

// set writes the record of a resource.
func (e *estate) set(name, attributes string) {
	e.t.Helper()
	rec, err := e.Instance(e.t.Context(), e.ref(name))
	if err != nil {
		e.t.Fatal(err)
	}
	rec.Attributes = []byte(attributes)
	if err := e.Save(e.t.Context(), rec); err != nil {
		e.t.Fatal(err)
	}
}

// change stores a change of a resource as it is recorded now.
func (e *estate) change(plan string, index int, name string, more func(*ledger.Change)) {
	e.t.Helper()
	rec, err := e.Instance(e.t.Context(), e.ref(name))
	if err != nil {
		e.t.Fatal(err)
	}
	c := &ledger.Change{PlanChange: v1alpha1.PlanChange{
		Index: int32(index), Address: "sim_network." + name, Object: e.ref(name), Action: v1alpha1.ActionUpdate, State: v1alpha1.ChangePending,
	}, Preconditions: ledger.Preconditions{State: rec.Digest()}}
	if more != nil {
		more(c)
	}
	if err := e.SaveChange(e.t.Context(), types.UID(plan), c); err != nil {
		e.t.Fatal(err)
	}
}

func done(c *ledger.Change) { c.State = v1alpha1.ChangeDone }

func (e *estate) superseded(b *bindings, plan string) map[string]string {
	e.t.Helper()
	got := map[string]string{}
	if err := b.endDependents(e.t.Context(), e.Ledger, types.UID(plan), func(uid types.UID, address string) error {
		got[string(uid)] = address
		return nil
	}); err != nil {
		e.t.Fatal(err)
	}
	return got
}

func TestAppliedPlansSupersedeWhatIsBoundToTheirChanges(t *testing.T) {
	e, b := newEstate(t), newBindings()
	for _, name := range []string{"main", "other", "read"} {
		e.set(name, `{"id":"1"}`)
	}
	e.change("bound", 0, "other", nil)
	e.change("bound", 1, "main", nil)
	e.change("creates", 0, "new", func(c *ledger.Change) { c.Action = v1alpha1.ActionCreate })
	e.change("moves", 0, "target", func(c *ledger.Change) {
		c.Preconditions.From, c.Preconditions.FromState = new(e.ref("main")), c.Preconditions.State
		rec, _ := e.Instance(t.Context(), e.ref("main"))
		c.Preconditions.FromState = rec.Digest()
	})
	e.change("elsewhere", 0, "other", nil)
	e.change("only looks", 0, "main", func(c *ledger.Change) { c.Action = v1alpha1.ActionNoOp })
	e.change("reads", 0, "read", nil)

	e.change("applied", 0, "main", done)
	e.change("applied", 1, "new", done)
	e.change("applied", 2, "read", func(c *ledger.Change) {
		c.Action, c.Refreshed = v1alpha1.ActionNoOp, &ledger.State{}
	})
	e.change("applied", 3, "other", func(c *ledger.Change) { c.State = v1alpha1.ChangeSkipped })
	e.set("main", `{"id":"2"}`)
	e.set("new", `{"id":"3"}`)
	e.set("read", `{"id":"4"}`)
	e.change("made afterwards", 0, "main", nil)

	for _, plan := range []types.UID{"bound", "creates", "moves", "elsewhere", "only looks", "reads", "made afterwards"} {
		if err := b.add(t.Context(), e.Ledger, plan); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"bound": "sim_network.main", "creates": "sim_network.new", "moves": "sim_network.target", "reads": "sim_network.read"}
	if diff := cmp.Diff(want, e.superseded(b, "applied")); diff != "" {
		t.Errorf("superseded (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{}, e.superseded(b, "applied")); diff != "" {
		t.Errorf("superseded again (-want +got):\n%s", diff)
	}
}

// TestManyWaitingPlansCostLittle applies plan after plan beside hundreds that wait, and counts the reads of the store.
func TestManyWaitingPlansCostLittle(t *testing.T) {
	const waiting, changes, applies = 300, 40, 20
	e, b := newEstate(t), newBindings()
	for i := range changes {
		e.set(fmt.Sprint("shared", i), `{"id":"1"}`)
	}
	for p := range waiting {
		for i := range changes {
			e.change(fmt.Sprint("waits", p), i, fmt.Sprint("shared", i), nil)
		}
		if err := b.add(t.Context(), e.Ledger, types.UID(fmt.Sprint("waits", p))); err != nil {
			t.Fatal(err)
		}
	}
	for a := range applies {
		for i := range changes {
			e.change(fmt.Sprint("applied", a), i, fmt.Sprint("own", a, "-", i), done)
		}
	}
	e.kv.Reads = 0
	for a := range applies {
		if got := e.superseded(b, fmt.Sprint("applied", a)); len(got) > 0 {
			t.Errorf("apply %d overtook %v", a, got)
		}
	}
	if most := applies * (changes + 2); e.kv.Reads > most {
		t.Errorf("%d reads for %d applies of %d changes beside %d waiting plans, want at most %d", e.kv.Reads, applies, changes, waiting, most)
	}

	// One that all are bound to ends them all, for two lists of its rows and one read of the record each. The count of a
	// list includes its entries.
	e.change("last", 0, "shared7", done)
	e.set("shared7", `{"id":"2"}`)
	e.kv.Reads = 0
	if got := e.superseded(b, "last"); len(got) != waiting {
		t.Errorf("%d plans were superseded, want %d", len(got), waiting)
	}
	if most := 5*waiting + 5; e.kv.Reads > most {
		t.Errorf("%d reads to supersede %d plans, want at most %d", e.kv.Reads, waiting, most)
	}
	if len(b.byObject) != 0 || b.gone != 0 {
		t.Errorf("nothing waits, and %d objects are remembered", len(b.byObject))
	}
}

// halfApproved makes a plan of alice that has the first of several approvals.
func halfApproved(p *v1alpha1.Plan) {
	madeBy("alice")(p)
	p.Status.Approvals = []v1alpha1.PlanApproval{{Decision: v1alpha1.DecisionApproved, By: &v1alpha1.Identity{Username: "erin"}}}
}

// madeBy sets the requester of a plan, and the users of the workers who made it for the requester.
func madeBy(name string, workers ...string) func(*v1alpha1.Plan) {
	return func(p *v1alpha1.Plan) {
		p.Status.RequestedBy = &v1alpha1.Identity{Username: name}
		for _, worker := range workers {
			p.Status.RequestedBy.Through = append(p.Status.RequestedBy.Through, v1alpha1.WorkflowUser{Username: worker})
		}
	}
}
