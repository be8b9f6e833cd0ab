package scope_test

import (
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
)

// TestWritersNeedTheRightToWhatWasPassedOn has a resource to which a plan gave the secret of another object. No schema says that
// its attribute is secret, so the writer of an expression about it was not checked.
func TestWritersNeedTheRightToWhatWasPassedOn(t *testing.T) {
	w := activitiestest.NewWorld(t)
	r := w.Put("test-thing/made", nil, nil)
	w.Record(r, `{"id":"made-1","password":"own","uses":"hush"}`)
	rec := w.Instance(r)
	rec.Sensitive = []byte(`[[{"attr":"uses"},{"origins":[{"address":{"Namespace":"prod","Type":"test_thing","Name":"safe"}}]}]]`)
	if err := w.Ledger.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	w.Forbidden["bob!team/test-things/state/made"] = true
	for reason, tc := range map[string]struct {
		writers []v1alpha1.Contributor
		held    bool
	}{
		"no writer but the requester":   {nil, false},
		"a writer with the right":       {[]v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "eve"}}}, false},
		"a writer without it":           {[]v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "bob"}}}, true},
		"a writer whom nobody recorded": {[]v1alpha1.Contributor{{More: true}}, true},
	} {
		s := w.NewScope(w.Plan(), "team", nil).WrittenBy(tc.writers)
		v, ok, err := s.Value(t.Context(), lang.Address{Type: "test_thing", Name: "made"})
		if err != nil || !ok {
			t.Fatal(err)
		}
		if _, held := lang.HoldsPassOnly(v.GetAttr("uses")); held != tc.held {
			t.Errorf("%s: pass only %t, want %t", reason, held, tc.held)
		}
	}
	rec.Sensitive = nil // then only the schema says what is secret, and the server checked the writer of an expression about that
	if err := w.Ledger.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	v, _, err := w.NewScope(w.Plan(), "team", nil).WrittenBy([]v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "bob"}}}).Value(t.Context(), lang.Address{Type: "test_thing", Name: "made"})
	if _, held := lang.HoldsPassOnly(v); err != nil || held {
		t.Errorf("%v, pass only %t", err, held)
	}
}
