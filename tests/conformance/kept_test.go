package conformance

import (
	"bytes"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestPlannedPrivateKept uses a provider that plans a random value. It may return the value in the plan, because it
// reads the value from the private data when the apply plans again.
func TestPlannedPrivateKept(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before attrs // nil: a create
		after  attrs
		want   v1alpha1.Action
	}{
		"create":  {nil, attrs{"note": "new"}, v1alpha1.ActionCreate},
		"update":  {attrs{"note": "old"}, attrs{"note": "new"}, v1alpha1.ActionUpdate},
		"replace": {attrs{"zone": "a"}, attrs{"zone": "b"}, v1alpha1.ActionReplace},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := about(t, shared["conform6"], "conform6_thing")
			prior := s.Type.Null()
			if tc.before != nil {
				prior = s.saved(s.create(tc.before))
			}
			s.command("plan-kept")
			c := s.config(tc.after)
			approved := s.plan(prior, c)
			serial := attribute(approved.Value, "serial")
			if approved.Action != tc.want || !serial.IsKnown() {
				t.Fatalf("4.1: planned to %s with the serial %#v, want to %s with a known one", approved.Action, serial, tc.want)
			}
			if tc.want == v1alpha1.ActionReplace {
				must(t, s.destroy(prior).Err)
				prior = s.Type.Null()
			}
			again := s.plan(prior, c)
			if attribute(again.Value, "serial").RawEquals(serial) {
				t.Fatal("the provider plans the same without help, so this test shows nothing")
			}
			c.PlannedPrivate = bytes.Clone(approved.Private)
			again = s.plan(prior, c)
			same(t, "4.4/2: the serial when planned again", attribute(again.Value, "serial"), serial)
			o := s.Type.Apply(t.Context(), prior, again, c.Written)
			must(t, o.Err)
			same(t, "4.4/5: the serial that was made", attribute(o.State.Value, "serial"), serial)

			calls := s.calls("PlanKept")
			for i, call := range calls {
				if call.Detail != "announced true, computed blocks false" {
					t.Errorf("4.1: call %d: %s, want what is handled and no more", i, call.Detail)
				}
			}
			if last := calls[len(calls)-1]; !bytes.Equal(last.Private, approved.Private) {
				t.Errorf("4.4/8: planned private data %q came back as %q", approved.Private, last.Private)
			}
			if first := calls[0]; first.Private != nil {
				t.Errorf("4.1: the first plan came with planned private data %q", first.Private)
			}
		})
	}
}
