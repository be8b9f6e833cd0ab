package activities

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/activities/applying"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/workflows"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"k8s.io/apimachinery/pkg/api/meta"
)

// answers is a cloud whose answers a test can replace; nil keeps an answer.
type answers struct {
	*cloud
	planned func(*tfprotov6.PlanResourceChangeResponse)
	applied func(*tfprotov6.ApplyResourceChangeResponse) error
}

func (a answers) PlanResourceChange(ctx context.Context, r *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	resp, err := a.cloud.PlanResourceChange(ctx, r)
	if err == nil && a.planned != nil {
		a.planned(resp)
	}
	return resp, err
}

func (a answers) ApplyResourceChange(ctx context.Context, r *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	resp, err := a.cloud.ApplyResourceChange(ctx, r)
	if err == nil && a.applied != nil {
		err = a.applied(resp)
	}
	return resp, err
}

// says replaces the cloud's answers to plans or to applies.
func (sc *crashScenario) says(planned func(*tfprotov6.PlanResourceChangeResponse), applied func(*tfprotov6.ApplyResourceChangeResponse) error) {
	sc.provides = func(provider.Configuration) tfprotov6.ProviderServer { return answers{sc.cloud, planned, applied} }
}

// attempt makes one attempt at a step of a plan, and returns the stored change.
func (sc *crashScenario) attempt(run *planRun, index, attempt int, destroy bool) (*ledger.Change, error) {
	sc.T.Helper()
	_, err := sc.applier.Step(sc.T.Context(), workflows.StepInput{Plan: run.Plan, Change: index, Destroy: destroy}, attempt)
	return sc.changeOf(run, index), err
}

func (sc *crashScenario) changeOf(run *planRun, index int) *ledger.Change {
	sc.T.Helper()
	c, err := sc.Ledger.Change(sc.T.Context(), sc.plans.get(run.Name).UID, int32(index))
	if err != nil {
		sc.T.Fatal(err)
	}
	return c
}

// TestALostAnswerIsNotTriedAgain loses the answer to a create. The resource may exist, so the create is not repeated.
func TestALostAnswerIsNotTriedAgain(t *testing.T) {
	sc := newCrashScenario(t)
	sc.says(nil, func(*tfprotov6.ApplyResourceChangeResponse) error { return errors.New("connection lost") })
	things("a")(sc)
	run := sc.newRun()
	sc.until(run, stepping)
	c, err := sc.attempt(run, 0, 1, false)
	if err != nil || c.State != v1alpha1.ChangeUnknown || sc.recordOf("test-thing/a").Intent == nil {
		t.Errorf("%s, %v; want a create whose outcome is unknown, and its intent", c.State, err)
	}
}

// TestAnUnreadableAnswerKeepsTheIntent has a provider answer a create with an invalid state.
func TestAnUnreadableAnswerKeepsTheIntent(t *testing.T) {
	sc := newCrashScenario(t)
	sc.says(nil, func(resp *tfprotov6.ApplyResourceChangeResponse) error {
		resp.NewState = &tfprotov6.DynamicValue{MsgPack: []byte{0xc1}}
		return nil
	})
	things("a")(sc)
	run := sc.newRun()
	sc.until(run, stepping)
	c, err := sc.attempt(run, 0, 1, false)
	rec := sc.recordOf("test-thing/a")
	if err != nil || c.State != v1alpha1.ChangeUnknown || rec.Intent == nil || len(rec.Quarantine) == 0 {
		t.Errorf("%s, %v, intent %v, kept %x", c.State, err, rec.Intent, rec.Quarantine)
	}
}

// TestACreateThatTimedOutIsNotTriedAgain fails a create with an error after which a read is retried.
func TestACreateThatTimedOutIsNotTriedAgain(t *testing.T) {
	for _, said := range []string{"timeout", "Gateway Timeout", "connection reset"} {
		sc := newCrashScenario(t)
		sc.says(nil, func(resp *tfprotov6.ApplyResourceChangeResponse) error {
			resp.NewState, resp.Diagnostics = nil, activitiestest.Refusal(said)
			return nil
		})
		things("a")(sc)
		sc.apply()
		if sc.cloud.made["a"] != 1 {
			t.Errorf("%s: it was created %d times", said, sc.cloud.made["a"])
		}
	}
}

// TestABrokenCreateIsNotMade fails a create that leaves an instance, and kills the server before it updates the change.
func TestABrokenCreateIsNotMade(t *testing.T) {
	sc := newCrashScenario(t)
	sc.cloud.faults["create a"] = []string{"broken"}
	things("a")(sc)
	run := sc.newRun()
	sc.resume(run)
	if rec := sc.recordOf("test-thing/a"); !rec.Exists() || !rec.Tainted || rec.Intent != nil {
		t.Errorf("recorded: %+v; want what the create left, to be replaced", rec)
	}
	if c := sc.restarted(run, 0); c.State != v1alpha1.ChangeFailed {
		t.Errorf("the next attempt says %s", c.State)
	}
}

// TestAnAttemptFindsWhatWasMade kills the server after it recorded an instance and before it updates the change.
func TestAnAttemptFindsWhatWasMade(t *testing.T) {
	sc := newCrashScenario(t)
	things("a")(sc)
	run := sc.newRun()
	sc.resume(run)
	if c := sc.restarted(run, 0); c.State != v1alpha1.ChangeDone || sc.cloud.made["a"] != 1 {
		t.Errorf("the next attempt says %s: %s; calls: %v", c.State, c.Message, sc.cloud.log)
	}
}

// TestARestartWritesTheObject kills the server after it recorded that a create may have made a resource, and before it wrote that to
// the object. The lane that begins anew writes it.
func TestARestartWritesTheObject(t *testing.T) {
	for name, tc := range map[string]struct {
		fault  string
		reason string
		failed bool // the object has status.failedCreate
	}{
		"the answer is lost": {"lost", v1alpha1.ReasonCreateUnknown, false},
		"an error":           {"says connection closed", v1alpha1.ReasonApplyFailed, true},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.cloud.faults["create a"] = []string{tc.fault}
			things("a")(sc)
			run := sc.newRun()
			sc.until(run, stepping)
			for range 2 {
				if _, err := sc.attempt(run, 0, 1, false); err != nil {
					t.Fatal(err)
				}
				s := resource.StatusOf(sc.Stored["team:test-thing/a"])
				ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
				if ready == nil || ready.Reason != tc.reason || (s.FailedCreate != "") != tc.failed {
					t.Errorf("the object says %+v and %q, want the reason %s", ready, s.FailedCreate, tc.reason)
				}
				delete(sc.Stored["team:test-thing/a"].Object, "status")
			}
		})
	}
}

// restarted makes a second attempt at a change without the outcome of the first one, in a plan that has not ended.
func (sc *crashScenario) restarted(run *planRun, index int) *ledger.Change {
	sc.T.Helper()
	sc.plans.change(run.Name, func(po *v1alpha1.Plan) { po.Status.FinishedAt = nil })
	c := sc.changeOf(run, index)
	c.State, c.FinishedAt = v1alpha1.ChangeRunning, nil
	if err := sc.Ledger.SaveChange(sc.T.Context(), sc.plans.get(run.Name).UID, c); err != nil {
		sc.T.Fatal(err)
	}
	c, err := sc.attempt(run, index, 2, false)
	if err != nil {
		sc.T.Fatal(err)
	}
	return c
}

// TestAFailedReplacementKeepsTheOldInstance fails the create of a replacement that creates first.
func TestAFailedReplacementKeepsTheOldInstance(t *testing.T) {
	sc := newCrashScenario(t)
	cbd := m{"createBeforeDestroy": true}
	sc.put("test-thing/a", m{"name": "a"}, cbd)
	sc.apply()
	before := sc.recordOf("test-thing/a").Digest()
	sc.cloud.faults["create a2"] = []string{"refused"}
	sc.put("test-thing/a", m{"name": "a2"}, cbd)
	sc.apply()
	if rec := sc.recordOf("test-thing/a"); rec.Digest() != before || len(rec.Deposed) > 0 {
		t.Errorf("recorded: %+v; want the instance from before as the current one", rec)
	}
}

func TestAnObjectIsHeldBeforeItsCreate(t *testing.T) {
	sc := newCrashScenario(t)
	things("a")(sc)
	sc.cloud.while = func() {
		if !slices.Contains(sc.Stored["team:test-thing/a"].GetFinalizers(), v1alpha1.FinalizerState) {
			t.Error("the object can go while its infrastructure is made")
		}
	}
	sc.apply()
}

// TestAFailedStepShowsNoSecret has a provider repeat an argument that came from a Secret.
func TestAFailedStepShowsNoSecret(t *testing.T) {
	const secret = "hunter22-hunter22"
	for name, text := range map[string]string{"a failure": "no such size: " + secret, "a failure that passes": "429 Too Many Requests: " + secret} {
		sc := newCrashScenario(t)
		sc.Data["secrets/team/db"] = map[string][]byte{"password": []byte(secret)}
		sc.put("test-thing/a", m{"name": "a", "size": "${secret.db.password}"}, nil)
		run := sc.newRun()
		sc.until(run, stepping)
		sc.says(nil, func(resp *tfprotov6.ApplyResourceChangeResponse) error {
			resp.NewState, resp.Diagnostics = nil, activitiestest.Refusal(text)
			return nil
		})
		c, _ := sc.attempt(run, 0, 1, false)
		said := c.Message
		for _, d := range c.Diagnostics {
			said += d.Summary + d.Detail
		}
		if said == "" || strings.Contains(c.Message, secret) || strings.Contains(said, secret) {
			t.Errorf("%s: the change says %q", name, said)
		}
	}
}

// TestALaneStopsWhenItsPlanIsCancelled cancels a plan in the middle of its first step.
func TestALaneStopsWhenItsPlanIsCancelled(t *testing.T) {
	sc := newCrashScenario(t)
	sc.lane = true
	things("a")(sc)
	sc.put("test-thing/b", m{"name": "b", "uses": "${test_thing.a.id}"}, nil)
	run := sc.newRun()
	sc.until(run, stepping)
	sc.cloud.while = func() { sc.cancel(run) }
	sc.resume(run)
	if !slices.Equal(sc.cloud.log, []string{"create a"}) {
		t.Errorf("calls: %v", sc.cloud.log)
	}
}

// TestTwoAttemptsMakeOneStep begins a second attempt during the call of the first one.
func TestTwoAttemptsMakeOneStep(t *testing.T) {
	sc := newCrashScenario(t)
	things("a")(sc)
	run := sc.newRun()
	sc.until(run, stepping)
	ended, second := make(chan struct{}), make(chan struct{})
	sc.cloud.while = func() {
		go func() {
			defer close(ended)
			close(second)
			_, _ = sc.attempt(run, 0, 2, false)
		}()
		<-second
		if c := sc.changeOf(run, 0); c.State != v1alpha1.ChangeRunning {
			t.Errorf("the second attempt ends the change as %s before the first one does", c.State)
		}
	}
	_, err := sc.attempt(run, 0, 1, false)
	<-ended
	if c := sc.changeOf(run, 0); err != nil || c.State != v1alpha1.ChangeDone || sc.cloud.made["a"] != 1 {
		t.Errorf("%s, %v, calls: %v", c.State, err, sc.cloud.log)
	}
}

// TestPreventDestroyBlocks plans to destroy, and to replace, a protected resource.
func TestPreventDestroyBlocks(t *testing.T) {
	for _, name := range []string{"destroy", "replace"} {
		sc := newCrashScenario(t)
		sc.put("test-thing/a", m{"name": "a"}, m{"preventDestroy": true})
		sc.apply()
		if name == "destroy" {
			sc.spec.Destroy = true
		} else {
			sc.put("test-thing/a", m{"name": "a2"}, m{"preventDestroy": true})
		}
		po := sc.apply()
		if !slices.Equal(sc.cloud.there(), []string{"a"}) || po.Status.Summary == nil || po.Status.Summary.Blocked != 1 {
			t.Errorf("%s: in the cloud: %v; %+v", name, sc.cloud.there(), po.Status.Summary)
		}
	}
}

// TestAPlanLeavesABusyResourceAlone makes a plan during another plan's update.
func TestAPlanLeavesABusyResourceAlone(t *testing.T) {
	sc := newCrashScenario(t)
	things("a")(sc)
	sc.apply()
	sc.put("test-thing/a", m{"name": "a", "size": "2"}, nil)
	first := sc.newRun()
	sc.until(first, stepping)
	sc.cloud.while = func() {
		second := sc.newRun()
		sc.until(second, approving)
		if c := sc.changeOf(second, 0); c.State != v1alpha1.ChangeSkipped || c.WaitsFor == nil || c.WaitsFor.UID != sc.plans.get(first.Name).UID {
			t.Errorf("the second plan would %s, in the state %s", c.Action, c.State)
		}
	}
	if po := sc.resume(first); !meta.IsStatusConditionTrue(po.Status.Conditions, v1alpha1.ConditionApplied) {
		t.Errorf("conditions: %+v", po.Status.Conditions)
	}
}

// TestAStepGivesUp has a provider reject a call each time.
func TestAStepGivesUp(t *testing.T) {
	sc := newCrashScenario(t)
	sc.says(nil, func(resp *tfprotov6.ApplyResourceChangeResponse) error {
		resp.NewState, resp.Diagnostics = nil, activitiestest.Refusal("429 Too Many Requests")
		return nil
	})
	things("a")(sc)
	run := sc.newRun()
	sc.until(run, stepping)
	c, err := sc.attempt(run, 0, session.Attempts-1, false)
	if _, again := errors.AsType[*applying.RetryError](err); !again {
		t.Errorf("before the last attempt: %s, %v", c.State, err)
	}
	if c, err = sc.attempt(run, 0, session.Attempts, false); err != nil || c.State != v1alpha1.ChangeFailed {
		t.Errorf("after the last attempt: %s, %v", c.State, err)
	}
}

// TestALostCreateIsNotPlannedAgain makes a plan after the answer to a create was lost. First a user must check whether
// the resource exists.
func TestALostCreateIsNotPlannedAgain(t *testing.T) {
	sc := newCrashScenario(t)
	sc.says(nil, func(*tfprotov6.ApplyResourceChangeResponse) error { return errors.New("connection lost") })
	things("a")(sc)
	sc.apply()
	next := sc.newRun()
	sc.until(next, approving)
	if c := sc.changeOf(next, 0); c.State != v1alpha1.ChangeFailed || c.Action == v1alpha1.ActionCreate {
		t.Errorf("the next plan would %s, in the state %s", c.Action, c.State)
	}
}
