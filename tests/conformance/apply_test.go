package conformance

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/diag"
)

// TestApply breaks the rules of PROVIDER_CLIENT 4.4 one by one. It checks the error and the resulting state.
func TestApply(t *testing.T) {
	t.Parallel()
	const create, update, remove = "create", "update", "delete"
	anything := func(*testing.T, cty.Value) {}
	nothing := func(t *testing.T, v cty.Value) {
		if !v.IsNull() {
			t.Errorf("recorded %#v, want nothing", v)
		}
	}
	with := func(name, want string) func(*testing.T, cty.Value) {
		return func(t *testing.T, v cty.Value) {
			t.Helper()
			if v.IsNull() {
				t.Fatal("nothing is recorded")
			}
			null := want == "" && attribute(v, name).IsNull()
			if !null && !attribute(v, name).RawEquals(cty.StringVal(want)) {
				t.Errorf("recorded %s %#v, want %q", name, attribute(v, name), want)
			}
		}
	}
	for name, tc := range map[string]struct {
		reason      string
		verb        string
		behaviour   string
		refused     string
		state       func(*testing.T, cty.Value)
		tainted     bool
		quarantined bool
	}{
		"4.4/5 honest create": {"what was unknown has become known", create, "", "", with("note", "new"), false, false},
		"4.4/5 honest update": {"", update, "", "", with("note", "new"), false, false},
		"4.4/5 honest delete": {"", remove, "", "", nothing, false, false},
		"4.4/5 warning":       {"no error", create, "warned-after-apply", "", with("note", "new"), false, false},

		"4.4/5 known value changed, create": {"it is there all the same, and what failed at create is tainted", create, "changed-after-apply", `was "`, with("name", "somebody else"), true, false},
		"4.4/5 known value changed, update": {"what is there is recorded", update, "changed-after-apply", `was "`, with("name", "somebody else"), false, false},
		"4.4/5 null after create":           {"success and nothing is no answer", create, "null-after-apply", "returns no state", nothing, false, false},
		"4.4/5 null after update":           {"what was there is kept", update, "null-after-apply", "returns no state", with("note", "old"), false, false},
		"4.4/5 something after delete":      {"it may still be there", remove, "left-after-delete", "still returns the instance", with("note", "old"), false, false},
		"4.4/5 set that grew":               {"sets may shrink, not grow", update, "grown-set", "set", with("note", "new"), false, false},

		"4.4/4 unknown left, create":      {"recorded as null", create, "unknown-after-apply", "left values unknown", with("serial", ""), true, false},
		"4.4/4 unknown left, update":      {"recorded as null, and as good as before", update, "unknown-after-apply", "left values unknown", with("serial", ""), false, false},
		"4.4/4 no state, create":          {"nothing is known to be there", create, "no-state-after-apply", "returns no state", nothing, false, false},
		"4.4/4 no state, update":          {"what was there is kept", update, "no-state-after-apply", "returns no state", with("note", "old"), false, false},
		"4.4/4 another type, create":      {"the answer is kept as it came", create, "misfit-after-apply", "does not fit its schema", nothing, false, true},
		"4.4/4 another type, update":      {"what was there is kept", update, "misfit-after-apply", "does not fit its schema", with("note", "old"), false, true},
		"4.4/4 write-only value, update":  {"it is never stored", update, "write-only-after-apply", "write-only", with("note", "old"), false, true},
		"4.4/4 write-only value, create":  {"it is never stored", create, "write-only-after-apply", "write-only", nothing, false, true},
		"4.4/5 error without state":       {"nothing was made", create, "create-fails-without-state", "Failed on command", nothing, false, false},
		"4.4/5 error with null, create":   {"nothing was made", create, "create-fails-with-null", "Failed on command", nothing, false, false},
		"4.4/5 error with null, update":   {"what was there is kept", update, "update-fails-with-null", "Failed on command", with("note", "old"), false, false},
		"4.4/5 error with prior, update":  {"as before", update, "update-fails", "Failed on command", with("note", "old"), false, false},
		"4.4/5 error, delete":             {"it is still there", remove, "delete-fails", "Failed on command", with("note", "old"), false, false},
		"4.4/5 error with null, delete":   {"an error, so the effect is unknown: the record stays", remove, "delete-fails-with-null", "Failed on command", with("note", "old"), false, false},
		"4.4/6 error with part, create":   {"what was made is recorded, and replaced next time", create, "partial-create", "Failed on command", with("note", "half done"), true, false},
		"4.4/6 error with whole, create":  {"an error during create taints", create, "whole-but-failed-create", "Failed on command", with("note", "new"), true, false},
		"4.4/6 error with part, update":   {"what was done is recorded, and not tainted", update, "partial-update", "Failed on command", with("note", "half done"), false, false},
		"4.4/4 error and unknown, create": {"the error of the provider counts; the rest is null", create, "partial-create,unknown-after-apply", "Failed on command", with("serial", ""), true, false},
		"4.4/5 identity unknown":          {"it must be known after an apply", update, "unknown-identity-after-apply", "identity", anything, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := about(t, shared["conform6"], "conform6_thing")
			prior := s.Type.Null()
			if tc.verb != create {
				prior = s.create(attrs{"note": "old"})
			}
			c := s.config(attrs{"note": "new", "token": "t0ken", "bag": cty.SetVal([]cty.Value{cty.StringVal("a"), cty.StringVal("b")})})
			p, _, err := s.Type.PlanDelete(t.Context(), prior, nil)
			config := s.Type.Null().Value
			if tc.verb != remove {
				p, _, err = s.Type.Plan(t.Context(), prior, c, false)
				config = c.Written
			}
			must(t, err)
			s.command(tc.behaviour)
			o := s.Type.Apply(t.Context(), prior, p, config)
			refused(t, o.Err, tc.refused)
			tc.state(t, o.State.Value)
			if o.State.Tainted != tc.tainted {
				t.Errorf("%s: tainted is %t, want %t", tc.reason, o.State.Tainted, tc.tainted)
			}
			if got := o.Quarantine != nil; got != tc.quarantined {
				t.Errorf("%s: quarantined is %t, want %t", tc.reason, got, tc.quarantined)
			}
			if strings.Contains(string(o.Quarantine), "leaked") {
				t.Error("a write-only value is kept")
			}
			if diag.IsFailure(o.Err, diag.Lost) {
				t.Error("the outcome is called lost although an answer came")
			}
			if o.State.Exists() {
				if !o.State.Value.IsWhollyKnown() {
					t.Errorf("recorded %#v, which the ledger cannot store", o.State.Value)
				}
				s.record(o.State)
			}
		})
	}
}

// TestTaintedIsReplaced plans again after a create that failed half-way: the plan replaces the instance that remains.
func TestTaintedIsReplaced(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, w *world, typeName string) {
		s := about(t, w, typeName)
		s.command("partial-create")
		c := s.config(nil)
		o := s.Type.Apply(t.Context(), s.Type.Null(), s.plan(s.Type.Null(), c), c.Written)
		refused(t, o.Err, "Failed on command")
		left := s.saved(o.State)
		if !left.Tainted {
			t.Fatal("4.4/6: what the failed create left is not tainted")
		}
		s.command("none")
		p := s.plan(left, c)
		if p.Action != "Replace" {
			t.Fatalf("4.4/6: action %s, want a replace", p.Action)
		}
		must(t, s.destroy(left).Err)
		o = s.Type.Apply(t.Context(), s.Type.Null(), p, c.Written)
		must(t, o.Err)
		if o.State.Tainted {
			t.Error("4.4/6: the new one is tainted, too")
		}
		same(t, "4.4/6: the old one is gone and the new one there", attribute(o.State.Value, "id"), cty.StringVal(s.name+"-2"))
	})
}

// TestPlanAgainAtApply lets the apply plan again with known values. The result must match the plan that was approved
// with unknown values.
func TestPlanAgainAtApply(t *testing.T) {
	t.Parallel()
	s := about(t, shared["conform6"], "conform6_thing")
	open := s.config(attrs{"note": cty.UnknownVal(cty.String)})
	p := s.plan(s.Type.Null(), open)
	if attribute(p.Value, "note").IsKnown() {
		t.Fatalf("the note is planned as %#v", attribute(p.Value, "note"))
	}
	o := s.Type.Apply(t.Context(), s.Type.Null(), p, open.Written)
	refused(t, o.Err, "not known yet") // 4.4/1
	if n := len(s.calls("ApplyResourceChange")); n != 0 {
		t.Errorf("4.4/1: the provider was called %d times with what is not known", n)
	}
}
