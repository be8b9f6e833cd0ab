package applying

import (
	"errors"
	"slices"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
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
