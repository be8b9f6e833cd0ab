package loopback

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
)

// TestResolve drops creates with an unknown outcome. Nothing else is dropped: that could make a resource twice, or lose
// one.
func TestResolve(t *testing.T) {
	begun := func(rec *ledger.Instance) {
		rec.Intent = &ledger.Intent{Plan: "p1", Action: v1alpha1.ActionCreate}
	}
	living := func(rec *ledger.Instance) { rec.Attributes = json.RawMessage(`{"id":"1"}`) }
	marked := func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(new(metav1.Now())) }
	unknown := func(u *unstructured.Unstructured) {
		condition.Edit(u, func(c *[]metav1.Condition) { condition.Stalled(c, 1, v1alpha1.ReasonCreateUnknown, "") })
	}
	for reason, test := range map[string]struct {
		record func(*ledger.Instance) // nil for none
		change v1alpha1.ChangeState   // of the plan that left the intent; empty if the plan was deleted
		object func(*unstructured.Unstructured)
		// refused is false for a create that is dropped.
		refused bool
		// kept is true if a record stays. The finalizer always does.
		kept bool
	}{
		"a lost create":                    {record: begun, change: v1alpha1.ChangeUnknown, object: unknown},
		"of a plan that was deleted":       {record: begun, object: unknown},
		"with an answer that was no state": {record: func(rec *ledger.Instance) { begun(rec); rec.Quarantine = []byte("?") }, change: v1alpha1.ChangeUnknown},
		"that was to replace another": {record: func(rec *ledger.Instance) {
			begun(rec)
			rec.Quarantine, rec.Deposed = []byte("?"), []ledger.Deposed{{Key: "0a1b2c3d", State: ledger.State{Attributes: json.RawMessage(`{"id":"old"}`)}}}
		}, change: v1alpha1.ChangeUnknown, kept: true},
		"a create of a running plan": {record: begun, change: v1alpha1.ChangeRunning, object: unknown, refused: true, kept: true},
		"a pending create":           {record: begun, change: v1alpha1.ChangePending, refused: true, kept: true},
		"with an instance":           {record: func(rec *ledger.Instance) { begun(rec); living(rec) }, change: v1alpha1.ChangeUnknown, object: unknown, refused: true, kept: true},
		"an applied object":          {record: living, refused: true, kept: true},
		"an update": {record: func(rec *ledger.Instance) { begun(rec); rec.Intent.Action = v1alpha1.ActionDelete }, change: v1alpha1.ChangeUnknown,
			refused: true, kept: true},
		"of a deleted object":            {record: begun, change: v1alpha1.ChangeUnknown, object: marked, refused: true, kept: true},
		"nothing was begun":              {refused: true},
		"the object alone is left":       {object: unknown},
		"the object alone, with deposed": {record: func(rec *ledger.Instance) { rec.Deposed = []ledger.Deposed{{Key: "0a1b2c3d"}} }, object: unknown, kept: true},
	} {
		t.Run(reason, func(t *testing.T) {
			o, ref := newObjects(t)
			a := newAnswers(t)
			a.Stored, a.Kinds = o.Stored, o.Kinds
			obj, err := o.Get(t.Context(), ref)
			if err == nil {
				_, err = o.AddFinalizer(t.Context(), obj)
			}
			if err != nil {
				t.Fatal(err)
			}
			if test.object != nil {
				test.object(obj)
			}
			rec, err := a.Ledger.Instance(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			if test.record != nil {
				test.record(rec)
				if err := a.Ledger.Save(t.Context(), rec); err != nil {
					t.Fatal(err)
				}
			}
			if test.change != "" {
				c := &ledger.Change{}
				c.State = test.change
				if err := a.Ledger.SaveChange(t.Context(), "p1", c); err != nil {
					t.Fatal(err)
				}
			}
			err = a.Resolve(t.Context(), obj, network)
			if test.refused != (err != nil) || err != nil && !apierrors.IsConflict(err) {
				t.Errorf("got %v, want a conflict: %t", err, test.refused)
			}
			after, err := a.Ledger.Instance(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			if test.record != nil && (after.Revision() != 0) != test.kept || !test.refused && (after.Intent != nil || after.Quarantine != nil) ||
				test.refused && after.Revision() != rec.Revision() {
				t.Errorf("the record is %+v", after)
			}
			now, err := o.Get(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			if held := slices.Contains(now.GetFinalizers(), v1alpha1.FinalizerState); !held {
				t.Errorf("the object has the finalizer: %t", held)
			}
		})
	}
}

// A step that begins at the same moment keeps its record.
func TestResolveAgainstAPlan(t *testing.T) {
	a := newAnswers(t)
	record(t, a, "main", func(rec *ledger.Instance) {
		rec.Intent = &ledger.Intent{Plan: "p1", Action: v1alpha1.ActionCreate}
	})
	importing, err := a.record(t.Context(), newObject("main"), network)
	if err != nil {
		t.Fatal(err)
	}
	record(t, a, "main", func(rec *ledger.Instance) { rec.Attributes = json.RawMessage(`{"id":"1"}`) })
	if err := a.dropCreate(t.Context(), importing); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("got %v, want a conflict", err)
	}
}
