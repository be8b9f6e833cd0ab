package loopback

import (
	"encoding/json"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/server/kinds"
)

// TestUndelete takes deletions back, some of them while a step of an approved plan begins: either the step sees that
// the object is wanted again, or the deletion is not taken back.
func TestUndelete(t *testing.T) {
	living := func(rec *ledger.Instance) { rec.Attributes, rec.Object.Generation = json.RawMessage(`{"id":"1"}`), 3 }
	begun := func(rec *ledger.Instance) {
		rec.Intent = &ledger.Intent{Plan: "p1", Action: v1alpha1.ActionCreate}
	}
	for reason, test := range map[string]struct {
		record     func(*ledger.Instance)
		generation int64
		change     v1alpha1.ChangeState // of the plan that left an intent; empty when that was deleted
		meanwhile  func(t *testing.T, a *Answers, rec *ledger.Instance)
		how        kinds.Undeleted
		refused    bool
		marked     bool // again
	}{
		"as it was applied":               {record: living, generation: 4, how: kinds.UndeletedApplied},
		"changed after it was applied":    {record: living, generation: 5, how: kinds.UndeletedUnplanned},
		"tainted":                         {record: func(rec *ledger.Instance) { living(rec); rec.Tainted = true }, generation: 4, how: kinds.UndeletedUnplanned},
		"nothing is recorded":             {record: func(*ledger.Instance) {}, generation: 2, how: kinds.UndeletedUnplanned},
		"a change is under way":           {record: func(rec *ledger.Instance) { living(rec); begun(rec) }, generation: 4, refused: true},
		"a create is under way":           {record: begun, generation: 2, change: v1alpha1.ChangeRunning, refused: true},
		"a create was lost":               {record: begun, generation: 2, change: v1alpha1.ChangeUnknown, how: kinds.UndeletedUnknown},
		"a create was lost with its plan": {record: begun, generation: 2, how: kinds.UndeletedUnknown},
		"a destroy begins": {record: living, generation: 4, refused: true, marked: true, how: kinds.UndeletedApplied,
			meanwhile: func(t *testing.T, a *Answers, rec *ledger.Instance) {
				rec.Intent = &ledger.Intent{Plan: "p2", Action: v1alpha1.ActionDelete}
				if err := a.Ledger.Save(t.Context(), rec); err != nil {
					t.Error(err)
				}
			}},
		"the record of a lost create is forgotten": {record: begun, generation: 2, refused: true, marked: true, how: kinds.UndeletedUnknown,
			meanwhile: func(t *testing.T, a *Answers, rec *ledger.Instance) {
				if err := a.Ledger.Forget(t.Context(), rec); err != nil {
					t.Error(err)
				}
			}},
	} {
		t.Run(reason, func(t *testing.T) {
			a := newAnswers(t)
			record(t, a, "main", test.record)
			if test.change != "" {
				c := &ledger.Change{}
				c.State = test.change
				if err := a.Ledger.SaveChange(t.Context(), types.UID("p1"), c); err != nil {
					t.Fatal(err)
				}
			}
			obj := newObject("main")
			obj.SetGeneration(test.generation)
			how, marked := kinds.Undeleted(-1), false
			clear := func(as kinds.Undeleted) error {
				if how = as; test.meanwhile != nil {
					rec, err := a.record(t.Context(), obj, network)
					if err != nil {
						t.Fatal(err)
					}
					test.meanwhile(t, a, rec)
				}
				return nil
			}
			err := a.Undelete(t.Context(), obj, network, clear, func() error { marked = true; return nil })
			if apierrors.IsConflict(err) != test.refused || !test.refused && err != nil {
				t.Errorf("answer: %v, want refused %t", err, test.refused)
			}
			if marked != test.marked {
				t.Errorf("marked again: %t", marked)
			}
			if cleared := how >= 0; cleared != (!test.refused || test.marked) || cleared && how != test.how {
				t.Errorf("cleared as %d, want %d", how, test.how)
			}
			rec, err := a.record(t.Context(), obj, network)
			if err != nil {
				t.Fatal(err)
			}
			if applied := rec.Object.Generation == test.generation+1; applied != (test.how == kinds.UndeletedApplied && !test.refused) {
				t.Errorf("the recorded generation is %d, that of the object was %d", rec.Object.Generation, test.generation)
			}
		})
	}
}

// TestProviderConfigIsInUseDuringAReplace expects a ProviderConfig to stay while a replacement is between its destroy
// and its create, and no longer.
func TestProviderConfigIsInUseDuringAReplace(t *testing.T) {
	for state, want := range map[v1alpha1.ChangeState]int{v1alpha1.ChangeRunning: 1, v1alpha1.ChangeFailed: 0, "": 0} {
		a := newAnswers(t)
		record(t, a, "main", func(rec *ledger.Instance) {
			rec.ProviderConfig, rec.LastOutcome = "eu", &ledger.Outcome{Plan: "p1", Destroy: true}
		})
		if state != "" {
			c := &ledger.Change{}
			c.State = state
			if err := a.Ledger.SaveChange(t.Context(), "p1", c); err != nil {
				t.Fatal(err)
			}
		}
		for name, want := range map[string]int{"eu": want, "us": 0} {
			cfg := &v1alpha1.ProviderConfig{}
			cfg.Namespace, cfg.Name = "team", name
			if n, _, err := a.InUse(t.Context(), cfg); err != nil || n != want {
				t.Errorf("change %q: %d resources need %q (%v), want %d", state, n, name, err, want)
			}
		}
	}
}
