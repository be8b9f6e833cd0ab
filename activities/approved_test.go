package activities

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/workflows"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	"go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestBeginRefuses expects Begin to refuse a plan whose approval or whose rights do not hold any more.
func TestBeginRefuses(t *testing.T) {
	for reason, test := range map[string]struct {
		prevent bool
		change  func(*crashScenario, *v1alpha1.PlanStatus)
		begins  bool
	}{
		"approved":    {change: func(*crashScenario, *v1alpha1.PlanStatus) {}, begins: true},
		"no decision": {change: func(_ *crashScenario, s *v1alpha1.PlanStatus) { s.Approval = nil }},
		"discarded":   {change: func(_ *crashScenario, s *v1alpha1.PlanStatus) { s.Approval.Decision = v1alpha1.DecisionDiscarded }},
		"no condition": {change: func(_ *crashScenario, s *v1alpha1.PlanStatus) {
			meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionApproved)
		}},
		"an approval of another plan": {change: func(_ *crashScenario, s *v1alpha1.PlanStatus) { s.Approval.Digest = "sha256:other" }},
		"other changes are stored": {change: func(_ *crashScenario, s *v1alpha1.PlanStatus) {
			s.Digest, s.Approval.Digest = "sha256:other", "sha256:other"
		}},
		"a blocked change":               {prevent: true, change: func(*crashScenario, *v1alpha1.PlanStatus) {}},
		"no right to the ProviderConfig": {change: func(sc *crashScenario, _ *v1alpha1.PlanStatus) { sc.Forbidden["team/providerconfigs/default"] = true }},
		"the plan has no requester":      {change: func(_ *crashScenario, s *v1alpha1.PlanStatus) { s.RequestedBy = nil }},
	} {
		sc := newCrashScenario(t)
		sc.Config(nil)
		sc.put("test-thing/a", m{"name": "a"}, m{"preventDestroy": test.prevent})
		sc.apply()
		sc.put("test-thing/a", m{"name": "a2"}, m{"preventDestroy": test.prevent})
		run := sc.newRun()
		sc.until(run, beginning)
		sc.plans.change(run.Name, func(po *v1alpha1.Plan) { test.change(sc, &po.Status) })
		begun, err := sc.applier.Begin(t.Context(), run.Plan)
		if err != nil || (begun.Refused == "") != test.begins || (sc.plans.get(run.Name).Status.Progress != nil) != test.begins {
			t.Errorf("%s: refused %q, %v", reason, begun.Refused, err)
		}
	}
}

// TestAStepMakesWhatWasApproved has a provider plan another change when all values are known.
func TestAStepMakesWhatWasApproved(t *testing.T) {
	id := func(sc *crashScenario, resp *tfprotov6.PlanResourceChangeResponse, id cty.Value) {
		vals := sc.cloud.value(resp.PlannedState).AsValueMap()
		vals["id"] = id
		resp.PlannedState = sc.cloud.wire(cty.ObjectVal(vals))
	}
	for reason, test := range map[string]struct {
		made          bool
		first, second func(*crashScenario, *tfprotov6.PlanResourceChangeResponse)
	}{
		"a replacement instead of an update": {
			made: true, first: func(sc *crashScenario, resp *tfprotov6.PlanResourceChangeResponse) {
				id(sc, resp, cty.UnknownVal(cty.String))
			},
			second: func(_ *crashScenario, resp *tfprotov6.PlanResourceChangeResponse) {
				resp.RequiresReplace = []*tftypes.AttributePath{tftypes.NewAttributePath().WithAttributeName("size")}
			},
		},
		"another value": {
			first: func(sc *crashScenario, resp *tfprotov6.PlanResourceChangeResponse) {
				id(sc, resp, cty.StringVal("one"))
			},
			second: func(sc *crashScenario, resp *tfprotov6.PlanResourceChangeResponse) {
				id(sc, resp, cty.StringVal("two"))
			},
		},
	} {
		sc := newCrashScenario(t)
		if test.made {
			things("a")(sc)
			sc.apply()
		}
		sc.put("test-thing/a", m{"name": "a", "size": "2"}, nil)
		sc.says(func(resp *tfprotov6.PlanResourceChangeResponse) { test.first(sc, resp) }, nil)
		run := sc.newRun()
		sc.until(run, stepping)
		calls := len(sc.cloud.log)
		sc.says(func(resp *tfprotov6.PlanResourceChangeResponse) { test.second(sc, resp) }, nil)
		c, err := sc.attempt(run, 0, 1, false)
		if err != nil || c.State != v1alpha1.ChangeStale || len(sc.cloud.log) > calls {
			t.Errorf("%s: %s, %v; calls: %v", reason, c.State, err, sc.cloud.log)
		}
	}
}

// TestAStepKeepsToItsProviderConfig changes the ProviderConfig between the begin of a plan and its step.
func TestAStepKeepsToItsProviderConfig(t *testing.T) {
	for reason, change := range map[string]func(*crashScenario){
		"it is gone": func(sc *crashScenario) { delete(sc.ProviderConfigs, "team/default") },
		"it says something else": func(sc *crashScenario) {
			sc.ProviderConfigs["team/default"].Spec.Config = &runtime.RawExtension{Raw: []byte(`{}`)}
		},
		"another one comes before": func(sc *crashScenario) { sc.ProviderConfigs["team/default"].Name = "other" },
	} {
		sc := newCrashScenario(t)
		sc.Config(nil)
		things("a")(sc)
		run := sc.newRun()
		sc.until(run, stepping)
		change(sc)
		if c, err := sc.attempt(run, 0, 1, false); err != nil || c.State != v1alpha1.ChangeStale || len(sc.cloud.log) > 0 {
			t.Errorf("%s: %s, %v; calls: %v", reason, c.State, err, sc.cloud.log)
		}
	}
}

// planOfAMove applies the object a, and begins a plan that moves its record to the object n.
func (sc *crashScenario) planOfAMove() *planRun {
	things("a")(sc)
	sc.apply()
	sc.delete("test-thing/a")
	sc.put("test-thing/n", m{"name": "a", "size": "1"}, m{"moved": m{"from": "test_thing.a"}})
	return sc.newRun()
}

// TestAMoveIsBoundToItsSource changes the source of a move after the plan was begun.
func TestAMoveIsBoundToItsSource(t *testing.T) {
	sc := newCrashScenario(t)
	run := sc.planOfAMove()
	sc.until(run, stepping)
	from := sc.changeOf(run, 0).Preconditions.From
	if from == nil {
		t.Fatal("nothing is moved")
	}
	sc.taint("test-thing/a")
	c, err := sc.attempt(run, 0, 1, false)
	if err != nil || c.State != v1alpha1.ChangeStale || sc.recordOf("test-thing/n").Exists() {
		t.Errorf("%s, %v, recorded: %+v", c.State, err, sc.recordOf("test-thing/n"))
	}
}

// TestAnOldInstanceIsBoundToItsState changes the record of an old instance after its destroy was approved.
func TestAnOldInstanceIsBoundToItsState(t *testing.T) {
	sc := newCrashScenario(t)
	cbd := m{"createBeforeDestroy": true}
	sc.put("test-thing/a", m{"name": "a"}, cbd)
	sc.apply()
	sc.cloud.faults["delete a"] = []string{"refused"}
	sc.put("test-thing/a", m{"name": "a2"}, cbd)
	sc.apply()
	run := sc.newRun()
	sc.until(run, stepping)
	rec := sc.recordOf("test-thing/a")
	rec.Deposed[0].Tainted = true
	if err := sc.Ledger.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	calls := len(sc.cloud.log)
	sc.resume(run)
	if len(sc.cloud.log) > calls {
		t.Errorf("calls: %v", sc.cloud.log[calls:])
	}
}

// TestAPlanOfAnObjectThatMoves edits an object between the survey and the proposal.
func TestAPlanOfAnObjectThatMoves(t *testing.T) {
	sc := newCrashScenario(t)
	things("a")(sc)
	run := sc.newRun()
	sc.until(run, proposing)
	sc.put("test-thing/a", m{"name": "b"}, nil)
	_, err := sc.planner.Propose(t.Context(), workflows.Propose{Plan: run.Plan, Whole: run.surveyed.Whole})
	if ae, ok := errors.AsType[*temporal.ApplicationError](err); !ok || ae.Type() != workflows.ErrorObjectChanged {
		t.Errorf("got %v, want a new survey", err)
	}
}

// TestAnEditLeavesOutItsOwnChange edits objects after the survey, one that the survey selected and one that the plan
// reaches through its dependency. A plan that is not made again leaves out these and what refers to them, and has the rest.
func TestAnEditLeavesOutItsOwnChange(t *testing.T) {
	g := newScenario(t)
	g.put("test-server/a", m{"name": "a", "size": "1"}, nil)
	g.put("test-server/reached", m{"name": "reached", "size": "${test_server.a.size}"}, nil)
	g.put("test-server/beside", m{"name": "beside", "size": "${test_server.a.size}"}, nil)
	g.resume(g.newRun())
	g.put("test-server/a", m{"name": "a", "size": "2"}, nil)
	g.put("test-server/new", m{"name": "new", "size": "1"}, nil)
	g.put("test-server/edited", m{"name": "edited", "size": "1"}, nil)
	g.put("test-server/refers", m{"name": "refers", "size": "${test_server.edited.size}"}, nil)
	run := g.newRun()
	g.until(run, proposing)
	g.put("test-server/edited", m{"name": "edited", "size": "5"}, nil)
	g.put("test-server/reached", m{"name": "renamed", "size": "${test_server.a.size}"}, nil)
	if _, err := g.planner.Propose(t.Context(), workflows.Propose{Plan: run.Plan, Whole: run.surveyed.Whole, Last: true}); err != nil {
		t.Fatal(err)
	}
	run.phase = publishing
	po := g.until(run, approving)
	if po.PlanFailed() || po.Status.Summary.Create != 1 || po.Status.Summary.Update != 2 {
		t.Errorf("%s: %s", po.Status.Summary.Text, diag.Describe(po.Status.Diagnostics))
	}
	got := map[string]v1alpha1.ChangeState{}
	for c, err := range g.Ledger.Changes(t.Context(), po.UID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		got[c.Address] = c.State
	}
	want := map[string]v1alpha1.ChangeState{
		"test_server.a": v1alpha1.ChangePending, "test_server.beside": v1alpha1.ChangePending, "test_server.new": v1alpha1.ChangePending,
		"test_server.edited": v1alpha1.ChangeSkipped, "test_server.refers": v1alpha1.ChangeSkipped, "test_server.reached": v1alpha1.ChangeSkipped,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if po := g.resume(run); po.Status.Progress == nil || po.Status.Progress.Done != 3 {
		t.Error(describePlan(po))
	}
}

// TestAChangeThatCannotBePlannedShowsNoSecret has a provider repeat a secret while the plan is made.
func TestAChangeThatCannotBePlannedShowsNoSecret(t *testing.T) {
	const secret = "hunter22-hunter22"
	sc := newCrashScenario(t)
	sc.Data["secrets/team/db"] = map[string][]byte{"password": []byte(secret)}
	sc.put("test-thing/a", m{"name": "a", "size": "${secret.db.password}"}, nil)
	sc.says(func(resp *tfprotov6.PlanResourceChangeResponse) {
		resp.Diagnostics = activitiestest.Refusal("no such size: " + secret)
	}, nil)
	run := sc.newRun()
	sc.until(run, approving)
	c := sc.changeOf(run, 0)
	if c.Message == "" || strings.Contains(c.Message, secret) {
		t.Errorf("the message is %q", c.Message)
	}
	for _, d := range c.Diagnostics {
		if strings.Contains(d.Summary+d.Detail, secret) {
			t.Errorf("a diagnostic says %q", d.Summary)
		}
	}
}

// leavingConfigs marks every ProviderConfig for deletion after it was read.
type leavingConfigs struct{ activitiestest.FakeConfigs }

func (leavingConfigs) Leaving(context.Context, *v1alpha1.ProviderConfig) (string, error) {
	return "the ProviderConfig", nil
}

// TestAConfigIsDeletedBeforeTheIntent deletes the ProviderConfig of a create after the step read it and before it
// writes the intent.
func TestAConfigIsDeletedBeforeTheIntent(t *testing.T) {
	sc := newCrashScenario(t)
	sc.Config(nil)
	things("a")(sc)
	run := sc.newRun()
	sc.until(run, stepping)
	sc.Configs = leavingConfigs{activitiestest.FakeConfigs{World: sc.World}}
	c, err := sc.attempt(run, 0, 1, false)
	if rec := sc.recordOf("test-thing/a"); err != nil || c.State != v1alpha1.ChangeFailed || len(sc.cloud.log) > 0 || rec.Intent != nil {
		t.Errorf("%s, %v, intent %v; calls: %v", c.State, err, rec.Intent, sc.cloud.log)
	}
}
