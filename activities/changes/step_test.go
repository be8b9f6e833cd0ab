package changes

import (
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func TestCheckStale(t *testing.T) {
	for reason, test := range map[string]struct {
		move  func(r *resource.Resource, c *ledger.Change)
		stale v1alpha1.StaleReason
	}{
		"nothing moved":      {func(*resource.Resource, *ledger.Change) {}, ""},
		"another generation": {func(r *resource.Resource, _ *ledger.Change) { r.Ref.Generation++ }, v1alpha1.StaleObjectChanged},
		"another content": {func(r *resource.Resource, c *ledger.Change) {
			c.Preconditions.Content = "planned"
			r.Object = &unstructured.Unstructured{Object: map[string]any{v1alpha1.FieldInstance: map[string]any{"content": "other"}}}
		}, v1alpha1.StaleObjectChanged},
		"marked for deletion":         {func(r *resource.Resource, _ *ledger.Change) { r.Deleting = true }, v1alpha1.StaleObjectDeleted},
		"the deletion was taken back": {func(_ *resource.Resource, c *ledger.Change) { c.Preconditions.Deleting = true }, v1alpha1.StaleUndeleted},
		"another provider version":    {func(r *resource.Resource, _ *ledger.Change) { r.Entry.Package.Version = "2.0.0" }, v1alpha1.StaleProviderChanged},
		"infrastructure moves to what the plan creates": {func(r *resource.Resource, c *ledger.Change) {
			r.Ref.Name, r.Lifecycle.Moved, c.Action = "module.net:b", &resource.MovedFrom{From: "module.net.test_thing.a"}, v1alpha1.ActionCreate
			r.Object = &unstructured.Unstructured{}
		}, v1alpha1.StaleObjectChanged},
		"another state": {func(_ *resource.Resource, c *ledger.Change) { c.Preconditions.State = "other" }, v1alpha1.StaleStateChanged},
	} {
		r, c := &resource.Resource{}, &ledger.Change{Preconditions: ledger.Preconditions{State: "none"}}
		test.move(r, c)
		err := Step{Plan: &v1alpha1.Plan{}, Change: c}.CheckStale(r, &ledger.Instance{})
		if StaleReasonOf(err) != test.stale {
			t.Errorf("%s: %v, want %q", reason, err, test.stale)
		}
	}
}

// TestAStepLeavesAnothersIntentAlone takes over what another plan gave up, and nothing else.
func TestAStepLeavesAnothersIntentAlone(t *testing.T) {
	for reason, test := range map[string]struct {
		state  v1alpha1.ChangeState
		action v1alpha1.Action
		stale  v1alpha1.StaleReason
	}{
		"the other is at work":     {v1alpha1.ChangeRunning, v1alpha1.ActionUpdate, v1alpha1.StalePlanRunning},
		"the other waits":          {v1alpha1.ChangePending, v1alpha1.ActionUpdate, v1alpha1.StalePlanRunning},
		"the other gave up":        {v1alpha1.ChangeFailed, v1alpha1.ActionUpdate, ""},
		"the other lost a create":  {v1alpha1.ChangeUnknown, v1alpha1.ActionCreate, v1alpha1.StaleCreateUnknown},
		"the other lost a destroy": {v1alpha1.ChangeFailed, v1alpha1.ActionDelete, ""},
	} {
		w := activitiestest.NewWorld(t)
		r := w.Put("test-thing/a", nil, nil)
		other := activitiestest.ChangeOf(r, 0)
		other.State = test.state
		w.Save(other)
		c := activitiestest.ChangeOf(r, 0)
		c.Action = v1alpha1.ActionUpdate
		rec := &ledger.Instance{Intent: &ledger.Intent{Plan: "plan-1", Action: test.action}}
		step := Step{Plan: w.Plan(), Change: c}
		if takes, err := step.TakesOverIntent(t.Context(), w.Ledger, rec); takes != (test.stale == "") || (err == nil) != takes || StaleReasonOf(err) != test.stale {
			t.Errorf("%s: %t, %v", reason, takes, err)
		}
	}
}

// TestTakingUpAStep checks that an attempt recognizes from the ledger what an earlier one did.
func TestTakingUpAStep(t *testing.T) {
	const before, after = `{"size":1}`, `{"size":2}`
	record := func(attributes string, by types.UID, generation int64) *ledger.Instance {
		return &ledger.Instance{State: ledger.State{Attributes: []byte(attributes)}, Plan: by, Object: v1alpha1.ObjectReference{Generation: generation}}
	}
	made := func(rec *ledger.Instance, destroy bool) *ledger.Instance {
		rec.LastOutcome = &ledger.Outcome{Plan: "this", Destroy: destroy}
		return rec
	}
	tainted := made(record(after, "this", 0), false)
	tainted.Tainted, tainted.LastOutcome.Failed = true, true
	marked := made(record(after, "this", 2), false)
	marked.Tainted = true
	asked := record(before, "older", 1)
	asked.Intent = &ledger.Intent{Plan: "this", Action: v1alpha1.ActionUpdate}
	for name, test := range map[string]struct {
		action  v1alpha1.Action
		destroy bool
		begun   bool
		record  *ledger.Instance
		made    bool
		stale   bool
	}{
		"nothing was tried":                                    {v1alpha1.ActionUpdate, false, false, record(before, "older", 1), false, false},
		"another plan changed it":                              {v1alpha1.ActionUpdate, false, false, record(after, "other", 2), false, true},
		"the intent alone does not move the state":             {v1alpha1.ActionUpdate, false, true, asked, false, false},
		"an update was made":                                   {v1alpha1.ActionUpdate, false, true, made(record(after, "this", 2), false), true, true},
		"an update was made that shows nowhere":                {v1alpha1.ActionUpdate, false, true, made(record(before, "this", 2), false), true, false},
		"an update was made, and a postcondition doesn't hold": {v1alpha1.ActionUpdate, false, true, made(record(after, "this", 0), false), true, false},
		"an update was made, and a user tainted it":            {v1alpha1.ActionUpdate, false, true, marked, true, true},
		"an update failed and left half of it":                 {v1alpha1.ActionUpdate, false, true, record(after, "this", 0), false, false},
		"an update failed and left nothing":                    {v1alpha1.ActionUpdate, false, true, record(before, "this", 0), false, false},
		"a create left something broken":                       {v1alpha1.ActionReplace, false, true, tainted, false, false},
		"a delete was made":                                    {v1alpha1.ActionDelete, true, true, record("", "", 0), true, true},
		"another plan deleted it":                              {v1alpha1.ActionDelete, true, false, record("", "", 0), false, true},
		"a delete failed and moved the state":                  {v1alpha1.ActionDelete, true, true, record(after, "this", 0), false, false},
		"the first half of a replace was made":                 {v1alpha1.ActionReplace, true, true, made(record("", "this", 2), true), true, true},
		"the second half of a replace is to be made":           {v1alpha1.ActionReplace, false, true, made(record("", "this", 2), true), false, false},
		"drift was accepted":                                   {v1alpha1.ActionRead, false, true, record(after, "this", 0), false, false},
		"a removal was accepted":                               {v1alpha1.ActionRead, false, true, record("", "this", 0), false, false},
	} {
		c := &ledger.Change{Preconditions: ledger.Preconditions{State: record(before, "", 0).Digest()}}
		c.Action, c.Object.Generation = test.action, 2
		s := Step{Plan: &v1alpha1.Plan{}, Change: c, Destroy: test.destroy, Begun: test.begun}
		s.Plan.UID = "this"
		if made := s.OutcomeRecorded(test.record); made != test.made {
			t.Errorf("%s: made before: %t, want %t", name, made, test.made)
		}
		if broken := s.FailureRecorded(test.record); broken != (test.record == tainted) {
			t.Errorf("%s: broke before: %t", name, broken)
		}
		r := &resource.Resource{Ref: c.Object, Entry: catalog.Entry{}, Object: &unstructured.Unstructured{}}
		err := s.CheckStale(r, test.record)
		if (StaleReasonOf(err) == v1alpha1.StaleStateChanged) != test.stale || (err != nil) != test.stale {
			t.Errorf("%s: %v, want stale %t", name, err, test.stale)
		}
	}
}
