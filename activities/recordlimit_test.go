package activities

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/ledger/ledgertest"
	"github.com/hykube/hykube/internal/resource"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"k8s.io/apimachinery/pkg/api/meta"
)

const testLimit = 4 << 10

// limited returns a scenario with a low limit on records.
func limited(t *testing.T) *crashScenario {
	sc := newCrashScenario(t)
	sc.Ledger.Limit = testLimit
	return sc
}

// saysTooLarge reports whether diagnostics name the resource, the limit and the flag.
func saysTooLarge(ds []v1alpha1.Diagnostic, address string) bool {
	for _, d := range ds {
		if d.Address == address && strings.Contains(d.Detail, address) && strings.Contains(d.Detail, "limit on a stored record is 4096 bytes") && strings.Contains(d.Detail, "--record-limit") {
			return true
		}
	}
	return false
}

func TestTooLargeChangeFailsThePlan(t *testing.T) {
	sc := limited(t)
	sc.put("test-thing/a", m{"name": "a", "size": strings.Repeat("x", testLimit)}, nil)
	sc.put("test-thing/b", m{"name": "b", "uses": "${test_thing.a.size}"}, nil)
	po := sc.apply()
	if !po.PlanFailed() || !saysTooLarge(po.Status.Diagnostics, "test_thing.a") {
		t.Errorf("conditions %v, diagnostics %v", po.Status.Conditions, po.Status.Diagnostics)
	}
	for c, err := range sc.Ledger.Changes(t.Context(), po.UID, 0) {
		if err != nil || len(c.Planned)+len(c.PlannedPrivate) > testLimit || c.After != nil && len(c.After.Raw) > testLimit {
			t.Errorf("%s holds its values, %v", c.Address, err)
		}
	}
	if len(sc.cloud.log) > 0 {
		t.Errorf("calls: %v", sc.cloud.log)
	}
	sc.Ledger.Limit = 0
	sc.apply()
	if sc.cloud.made["a"] != 1 || sc.cloud.made["b"] != 1 {
		t.Errorf("made with the default limit: %v", sc.cloud.made)
	}
}

// TestTooLargeValueIsNotMade has an argument that is unknown in the plan, and too large in the apply.
func TestTooLargeValueIsNotMade(t *testing.T) {
	sc := limited(t)
	sc.put("test-thing/a", m{"name": "a"}, nil)
	sc.put("test-thing/b", m{"name": "b", "size": `${join(",", [for i in range(1000) : test_thing.a.id])}`}, nil)
	po := sc.apply()
	if sc.cloud.made["a"] != 1 || sc.cloud.made["b"] != 0 {
		t.Errorf("made: %v, want a alone", sc.cloud.made)
	}
	c, err := sc.Ledger.Change(t.Context(), po.UID, 1)
	if err != nil || c.State != v1alpha1.ChangeFailed || !saysTooLarge(c.Diagnostics, "test_thing.b") {
		t.Errorf("change %+v, %v", c.PlanChange, err)
	}
	if sc.recordOf("test-thing/b").Intent != nil {
		t.Error("the refused change left an intent")
	}
}

// answersMuch makes the cloud answer changes with more than was planned.
func (sc *crashScenario) answersMuch() {
	sc.says(nil, func(r *tfprotov6.ApplyResourceChangeResponse) error {
		r.Private = make([]byte, testLimit)
		return nil
	})
}

func TestTooLargeAnswerIsKept(t *testing.T) {
	sc := limited(t)
	sc.answersMuch()
	things("a")(sc)
	po := sc.apply()
	rec := sc.recordOf("test-thing/a")
	if !rec.Exists() || len(rec.Private) != testLimit || rec.Intent != nil || sc.cloud.made["a"] != 1 {
		t.Errorf("%d bytes of private data, intent %v, made %v", len(rec.Private), rec.Intent, sc.cloud.made)
	}
	c, err := sc.Ledger.Change(t.Context(), po.UID, 0)
	if err != nil || c.State != v1alpha1.ChangeDone || !saysTooLarge(c.Diagnostics, "test_thing.a") {
		t.Errorf("change %+v, %v", c.PlanChange, err)
	}
	sc.delete("test-thing/a")
	sc.apply()
	if there := sc.cloud.there(); len(there) > 0 {
		t.Errorf("%v cannot be destroyed", there)
	}
}

// narrowStore is a database that cannot store large values.
type narrowStore struct{ crashStore }

func (s narrowStore) Persist(ctx context.Context, writes []ledger.Write, spool bool) ([]int64, error) {
	for _, w := range writes {
		if len(w.Value) > testLimit && strings.HasPrefix(w.Key, "instances/") {
			return nil, errors.New("the value is too long for the column")
		}
	}
	return s.crashStore.Persist(ctx, writes, spool)
}

// TestAnswerThatTheDatabaseRefuses expects the intent to stay, so that the resource is neither forgotten nor made
// twice.
func TestAnswerThatTheDatabaseRefuses(t *testing.T) {
	sc := newCrashScenario(t)
	sc.ledgerKV = narrowStore{crashStore{ledgertest.New(), sc.injector, sc.World}}
	sc.Ledger = ledger.New(sc.ledgerKV)
	sc.answersMuch()
	sc.restart()
	things("a")(sc)
	sc.apply()
	ready := meta.FindStatusCondition(resource.StatusOf(sc.Stored["team:test-thing/a"]).Conditions, v1alpha1.ConditionReady)
	if rec := sc.recordOf("test-thing/a"); rec.Intent == nil || ready == nil || ready.Reason != v1alpha1.ReasonCreateUnknown {
		t.Errorf("intent %v, ready %v", rec.Intent, ready)
	}
	sc.apply()
	if sc.cloud.made["a"] != 1 {
		t.Errorf("made: %v, want a once", sc.cloud.made)
	}
}
