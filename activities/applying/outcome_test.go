package applying

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"

	"github.com/zclconf/go-cty/cty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAnObjectIsReleasedLast destroys an instance of an object that was deleted: the object goes when nothing is left,
// or under way.
func TestAnObjectIsReleasedLast(t *testing.T) {
	for reason, test := range map[string]struct {
		leave    func(*ledger.Instance)
		released bool
	}{
		"nothing is left": {func(*ledger.Instance) {}, true},
		"an old instance": {func(rec *ledger.Instance) {
			rec.Deposed = []ledger.Deposed{{Key: "1", State: ledger.State{Attributes: []byte(`{}`)}}}
		}, false},
		"a create is underway": {func(rec *ledger.Instance) { rec.Intent = &ledger.Intent{Plan: "p", Action: v1alpha1.ActionCreate} }, false},
	} {
		w := activitiestest.NewWorld(t)
		r := w.Put("test-thing/a", nil, nil)
		rec := &ledger.Instance{Object: r.Ref, Provider: "test"}
		test.leave(rec)
		if rec.Living() || rec.Intent != nil {
			if err := w.Ledger.Save(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
		}
		c := activitiestest.ChangeOf(r, 0)
		c.Action, c.State, c.Preconditions.Deleting = v1alpha1.ActionDelete, v1alpha1.ChangeDone, true
		if err := stepOf(w, r, c).publish(t.Context()); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(w.Released, "a") != test.released {
			t.Errorf("%s: released: %v", reason, w.Released)
		}
	}
}

// TestContributorsEndWithTheApply ends what users wrote of an object with a change that applies it, and with no other one.
func TestContributorsEndWithTheApply(t *testing.T) {
	for action, ends := range map[v1alpha1.Action]bool{
		v1alpha1.ActionCreate: true, v1alpha1.ActionUpdate: true, v1alpha1.ActionReplace: true,
		v1alpha1.ActionRead: false, v1alpha1.ActionDelete: false, v1alpha1.ActionForget: false,
	} {
		c := &ledger.Change{}
		c.Contributors = []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "eve"}, Wrote: []string{"spec"}}}
		c.Action, c.State = action, v1alpha1.ChangeDone
		st := &resource.Status{Contributors: c.Contributors}
		(&stepRun{Step: changes.Step{Change: c, Plan: &v1alpha1.Plan{}}}).statusOf("", "")(st)
		if (len(st.Contributors) == 0) != ends {
			t.Errorf("after %s the contributors are %+v", action, st.Contributors)
		}
	}
}

// TestContributorsOfAnImpureSpecStay has a spec whose value depends on the time. Its writers contribute to the later values, too.
func TestContributorsOfAnImpureSpecStay(t *testing.T) {
	for text, stays := range map[string]bool{"x": false, "${test_thing.b.id}": false, `${timestamp() < "2027" ? "x" : "y"}`: true} {
		w := activitiestest.NewWorld(t)
		c := &ledger.Change{}
		c.Contributors = []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "eve"}, Wrote: []string{"spec"}}}
		c.Action, c.State = v1alpha1.ActionUpdate, v1alpha1.ChangeDone
		s := stepOf(w, w.Put("test-thing/a", map[string]any{"uses": text}, nil), c)
		st := &resource.Status{Contributors: c.Contributors}
		s.statusOf("", "")(st)
		if (len(st.Contributors) == 1) != stays {
			t.Errorf("after the apply of %s the contributors are %+v", text, st.Contributors)
		}
	}
}

// TestAnActionThatTimedOutIsNotRunAgain has a provider say that an action took too long: it may have run.
func TestAnActionThatTimedOutIsNotRunAgain(t *testing.T) {
	w := activitiestest.NewWorld(t)
	r := w.Put("action-test-reboot/now", map[string]any{"target": "host-1"}, nil)
	c := activitiestest.ChangeOf(r, 0)
	c.Planned = planned(t, r, cty.ObjectVal(map[string]cty.Value{"password": cty.NullVal(cty.String), "target": cty.StringVal("host-1")}))
	w.Save(c)
	w.Provider.Fails["invoke host-1 "] = activitiestest.Refusal("Gateway Timeout")
	err := stepOf(w, r, c).invoke(t.Context())
	if _, again := errors.AsType[*RetryError](err); err == nil || again {
		t.Errorf("got %v, want an error that is final", err)
	}
}

// A step that is tried again after its intent was written configures its instance with the hash of the attempt before.
func TestEachAttemptUsesTheSameHash(t *testing.T) {
	w := activitiestest.NewWorld(t)
	r := w.Put("test-thing/a", map[string]any{"password": `${bcrypt("hunter2", 4)}`}, nil)
	c := activitiestest.ChangeOf(r, 0)
	w.Save(c)
	attempt := func() cty.Value {
		c, err := w.Ledger.Change(t.Context(), "plan-1", 0)
		if err != nil {
			t.Fatal(err)
		}
		s := stepOf(w, r, c)
		s.Plan.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, At: new(metav1.Now())}
		defer s.openScope(t.Context(), r)()
		config, err := (&scope.Evaluator{Ctx: t.Context(), Scope: s.scope}).Config(r, instance.State{})
		if err == nil {
			err = s.writeIntent(t.Context(), w.Instance(r), v1alpha1.ActionUpdate, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		return config.Written.GetAttr("password")
	}
	if first, second := attempt(), attempt(); !first.IsWhollyKnown() || !first.RawEquals(second) {
		t.Errorf("first %#v, then %#v", first, second)
	}
}

// The message of a plan says of each half of a replacement whether it was made. What a failed create left is not called
// missing.
func TestMessageOfHalfReplacements(t *testing.T) {
	half := func(left v1alpha1.LeftInstance) changes.StoredChange {
		c := changes.StoredChange{HalfDone: true, Left: left, Message: "it failed"}
		c.Address, c.State = "a.b", v1alpha1.ChangeFailed
		return c
	}
	for left, want := range map[v1alpha1.LeftInstance]string{
		"":                     " 1 destroyed and not created again: a.b: it failed; the next plan creates it.",
		v1alpha1.LeftTainted:   " 1 destroyed, and the new instance exists and is tainted, so the next plan replaces it: a.b: it failed.",
		v1alpha1.LeftUnchecked: " 1 destroyed, and the new instance exists, but a postcondition failed; the next plan checks it again: a.b: it failed.",
	} {
		w := &changes.Stored{Changes: []changes.StoredChange{half(left)}}
		if got := halfReplaced(w); got != want {
			t.Errorf("%q: %q, want %q", left, got, want)
		}
		if n := w.Progress().HalfDone; (n == 1) != (left == "") {
			t.Errorf("%q: %d half done", left, n)
		}
	}
}

// Unknown creates of instances cannot be resolved with --forget, so no message advises it.
func TestNextStepAfterUnknownOutcomes(t *testing.T) {
	unknown := func(name string) *changes.StoredChange {
		c := &changes.StoredChange{}
		c.Action, c.Object = v1alpha1.ActionCreate, v1alpha1.ObjectReference{Kind: "sim-network", Name: name}
		return c
	}
	for name, tc := range map[string]struct {
		unknown []*changes.StoredChange
		forget  bool
	}{
		"instances":                 {[]*changes.StoredChange{unknown("web[0]"), unknown("web[1]")}, false},
		"an instance and an object": {[]*changes.StoredChange{unknown("web[0]"), unknown("main")}, true},
		"an object and no instance": {[]*changes.StoredChange{unknown("main")}, true},
	} {
		if got := nextStepText(&v1alpha1.Plan{}, tc.unknown); strings.Contains(got, "--forget") != tc.forget || !strings.Contains(got, "--adopt ID | --retry") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
