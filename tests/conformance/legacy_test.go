package conformance

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/plan"
)

// TestLegacyPlan checks what a provider with the legacy type system may plan, and what it may not.
func TestLegacyPlan(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason    string
		before    attrs // nil: a create
		config    attrs
		behaviour string
		action    v1alpha1.Action
		refused   string
		planned   map[string]string
	}{
		"4.3/7 a default without computed":        {"the SDK's defaults", nil, nil, "", v1alpha1.ActionCreate, "", map[string]string{"level": "info"}},
		"4.3/7 a value kept in another form":      {"a StateFunc", nil, attrs{"shout": "hey"}, "", v1alpha1.ActionCreate, "", map[string]string{"shout": "HEY"}},
		"4.3/7 planned value differs from config": {"tolerated", nil, nil, "planned-not-config", v1alpha1.ActionCreate, "", map[string]string{"name": "somebody else"}},
		"4.3/7 another form is no change":         {"what is planned equals what is there", attrs{"shout": "hey"}, attrs{"shout": "hey"}, "", v1alpha1.ActionNoOp, "", nil},
		"4.3/7 a suppressed difference":           {"planned as before", attrs{"address": "a"}, attrs{"address": "A"}, "", v1alpha1.ActionNoOp, "", nil},
		"4.3/7 an empty string for null":          {"the SDK does not distinguish them", attrs{"note": ""}, attrs{}, "", v1alpha1.ActionNoOp, "", nil},

		"4.3/7 without the flag": {"it is the flag that counts, not the protocol", nil, attrs{"shout": "hey"}, "not-legacy", "", "does not match config value", nil},

		"4.3/7 value of another type":   {"always fatal", nil, nil, "planned-misfit", "", "does not fit its schema", nil},
		"4.3/7 write-only value":        {"always fatal", nil, attrs{"token": "t"}, "planned-write-only", "", "write-only", nil},
		"4.3/8 path that leads nowhere": {"always fatal", attrs{}, attrs{"note": "n"}, "replace-for-nothing", "", "no_such_attribute", nil},
		"4.3/8 replace":                 {"ForceNew", attrs{"zone": "a"}, attrs{"zone": "b"}, "", v1alpha1.ActionReplace, "", nil},
		"4.3/9 update":                  {"with what is computed again", attrs{"note": "a"}, attrs{"note": "b"}, "", v1alpha1.ActionUpdate, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := about(t, shared["conform5"], "conform5_thing")
			prior := s.Type.Null()
			if tc.before != nil {
				prior = s.saved(s.create(tc.before))
			}
			s.command(tc.behaviour)
			p, _, err := s.Type.Plan(t.Context(), prior, s.config(tc.config), false)
			if refused(t, err, tc.refused); err != nil {
				return
			}
			if p.Action != tc.action {
				t.Errorf("%s: action %s, want %s", tc.reason, p.Action, tc.action)
			}
			if !p.Legacy {
				t.Error("the plan does not say that it is legacy")
			}
			for attr, want := range tc.planned {
				same(t, attr, attribute(p.Value, attr), cty.StringVal(want))
			}
		})
	}
}

func TestLegacyIgnoreChangesAgain(t *testing.T) {
	t.Parallel()
	s := about(t, shared["conform5"], "conform5_thing")
	prior := s.saved(s.create(attrs{"note": "made", "shout": "one"}))
	s.command("changes-ignored")
	c := s.config(attrs{"note": "changed", "shout": "one"})
	c.Ignored = []string{"note"}
	var err error
	c.Effective, err = plan.IgnoreChanges(s.Type.Schema.Block, c.Written, prior.Value, c.Ignored)
	must(t, err)
	p := s.plan(prior, c)
	same(t, "4.3/7: ignored changes are taken back from what was planned", attribute(p.Value, "note"), cty.StringVal("made"))
	if p.Action != v1alpha1.ActionNoOp {
		t.Errorf("4.3/7: action %s, want none", p.Action)
	}
}

// TestLegacyApply checks what a provider with the legacy type system may answer to an apply, and what it may not.
func TestLegacyApply(t *testing.T) {
	t.Parallel()
	const create, update, remove = "create", "update", "delete"
	for name, tc := range map[string]struct {
		reason, verb, behaviour, refused string
		note                             string // recorded; empty means nothing
		tainted, quarantined             bool
	}{
		"4.4/5 honest":                        {"", create, "", "", "new", false, false},
		"4.4/5 known value changed, create":   {"tolerated", create, "sets-another-note", "", "another note", false, false},
		"4.4/5 known value changed, update":   {"tolerated", update, "sets-another-note", "", "another note", false, false},
		"4.4/5 another name":                  {"tolerated", create, "changed-after-apply", "", "new", false, false},
		"4.4/5 without the flag":              {"each answer has a flag of its own", create, "sets-another-note,not-legacy-after-apply", "note: was", "another note", true, false},
		"4.4/4 unknown left":                  {"always fatal", create, "unknown-after-apply", "left values unknown", "new", true, false},
		"4.4/4 another type":                  {"always fatal", update, "misfit-after-apply", "does not fit its schema", "old", false, true},
		"4.4/4 write-only value":              {"always fatal", update, "write-only-after-apply", "write-only", "old", false, true},
		"4.4/5 null after create":             {"always fatal", create, "null-after-apply", "returns no state", "", false, false},
		"4.4/5 something after delete":        {"always fatal", remove, "left-after-delete", "still returns the instance", "old", false, false},
		"4.4/6 error after SetId":             {"tainted", create, "partial-create", "Failed on command", "new", true, false},
		"4.4/6 error during update":           {"the SDK records what was planned", update, "partial-update", "Failed on command", "new", false, false},
		"4.4/6 error before anything is done": {"d.Partial", update, "failed-update", "Failed on command", "old", false, false},
		"4.4/5 error during delete":           {"it is still there", remove, "delete-fails", "Failed on command", "old", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := about(t, shared["conform5"], "conform5_thing")
			prior := s.Type.Null()
			if tc.verb != create {
				prior = s.create(attrs{"note": "old"})
			}
			c := s.config(attrs{"note": "new"})
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
			switch {
			case tc.note == "" && o.State.Exists():
				t.Errorf("recorded %#v, want nothing", o.State.Value)
			case tc.note != "" && !o.State.Exists():
				t.Error("nothing is recorded")
			case tc.note != "":
				same(t, "note", attribute(o.State.Value, "note"), cty.StringVal(tc.note))
			}
			if o.State.Tainted != tc.tainted {
				t.Errorf("%s: tainted is %t, want %t", tc.reason, o.State.Tainted, tc.tainted)
			}
			if got := o.Quarantine != nil; got != tc.quarantined {
				t.Errorf("quarantined is %t, want %t", got, tc.quarantined)
			}
		})
	}
}

// TestTimeouts checks the timeouts block. The SDK keeps it in private data. A delete has no configuration, so the SDK
// reads it only from there.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	timeouts := func(s *subject) attrs {
		b := s.Type.Schema.Block.NestedBlock("timeouts")
		if b == nil {
			t.Fatal("the type has no timeouts")
		}
		return attrs{"timeouts": object(s.T, b.Block, attrs{"create": "21m", "read": "22m", "update": "23m", "delete": "24m"})}
	}
	with := func(a attrs, name, v string) attrs { a[name] = v; return a }
	seen := func(s *subject) []string {
		var out []string
		for _, c := range s.calls("Timeout") {
			out = append(out, c.Action+" "+c.Detail)
		}
		return out
	}
	t.Run("survive update and read", func(t *testing.T) {
		t.Parallel()
		s := about(t, shared["conform5"], "conform5_thing")
		st := s.saved(s.create(with(timeouts(s), "note", "1")))
		if !strings.Contains(string(st.Private), "e2bfb730-ecaa-11e6-8f88-34363bc7c4c0") || !strings.Contains(string(st.Private), "schema_version") {
			t.Errorf("4.4/8: private data is %s", st.Private)
		}
		for range 2 {
			var err error
			st, _, err = s.Type.Read(t.Context(), st)
			must(t, err)
			st = s.saved(st)
		}
		st = s.saved(s.apply(st, with(timeouts(s), "note", "2")))
		st, _, err := s.Type.Read(t.Context(), st)
		must(t, err)
		must(t, s.destroy(s.saved(st)).Err)
		want := []string{"Create 21m0s", "Read 22m0s", "Read 22m0s", "Update 23m0s", "Read 22m0s", "Delete 24m0s"}
		if d := cmp.Diff(want, seen(s)); d != "" {
			t.Errorf("4.4/8: timeouts (-want +got):\n%s", d)
		}
	})
	t.Run("survive a replace", func(t *testing.T) {
		t.Parallel()
		s := about(t, shared["conform5"], "conform5_thing")
		st := s.saved(s.create(with(timeouts(s), "zone", "a")))
		c := s.config(with(timeouts(s), "zone", "b"))
		p := s.plan(st, c)
		if p.Action != v1alpha1.ActionReplace {
			t.Fatalf("action %s", p.Action)
		}
		must(t, s.destroy(st).Err)
		o := s.Type.Apply(t.Context(), s.Type.Null(), p, c.Written)
		must(t, o.Err)
		must(t, s.destroy(s.saved(o.State)).Err)
		want := []string{"Create 21m0s", "Delete 24m0s", "Create 21m0s", "Delete 24m0s"}
		if d := cmp.Diff(want, seen(s)); d != "" {
			t.Errorf("4.3/10: timeouts (-want +got):\n%s", d)
		}
	})
	t.Run("come with the first update after an import", func(t *testing.T) {
		t.Parallel()
		s := about(t, shared["conform5"], "conform5_thing")
		made := s.create(attrs{"note": "1"})
		st, _, err := s.Type.Import(t.Context(), instance.ImportBy{ID: attribute(made.Value, "id").AsString()})
		must(t, err)
		st = s.saved(st)
		st = s.saved(s.apply(st, with(timeouts(s), "note", "2")))
		must(t, s.destroy(st).Err)
		got := seen(s)
		want := []string{"Create 10m0s", "Read 5m0s", "Update 23m0s", "Delete 24m0s"}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("4.4/8: timeouts (-want +got):\n%s", d)
		}
	})
	t.Run("defaults are kept, too", func(t *testing.T) {
		t.Parallel()
		s := about(t, shared["conform5"], "conform5_thing")
		st := s.saved(s.create(nil))
		must(t, s.destroy(st).Err)
		if d := cmp.Diff([]string{"Create 10m0s", "Delete 10m0s"}, seen(s)); d != "" {
			t.Errorf("timeouts (-want +got):\n%s", d)
		}
	})
}

func TestLegacyUpgradeState(t *testing.T) {
	t.Parallel()
	s := about(t, shared["conform5"], "conform5_thing")
	rec := s.record(s.create(nil))
	if rec.SchemaVersion != 1 || !strings.Contains(string(rec.Private), `"schema_version":"1"`) {
		t.Errorf("recorded version %d, private %s", rec.SchemaVersion, rec.Private)
	}
	rec.SchemaVersion, rec.Attributes = 0, json.RawMessage(`{"id":"x-1","name":"x","remark":"was a remark"}`)
	st, err := s.Type.Load(t.Context(), rec)
	must(t, err)
	same(t, "4.2: note", attribute(st.Value, "note"), cty.StringVal("was a remark"))
	rec.SchemaVersion = 2
	_, err = s.Type.Load(t.Context(), rec)
	refused(t, err, "newer provider")
}

// TestLegacyValues sends values of the SDK's types through create, read, update and delete.
func TestLegacyValues(t *testing.T) {
	t.Parallel()
	member := func(key string, val any) cty.Value {
		v := cty.NullVal(cty.String)
		if s, ok := val.(string); ok {
			v = cty.StringVal(s)
		}
		return cty.ObjectVal(map[string]cty.Value{"key": cty.StringVal(key), "value": v})
	}
	for name, set := range map[string]attrs{
		"nothing":     {},
		"primitives":  {"size": 4, "flag": true, "ratio": cty.NumberFloatVal(2.5), "note": "n"},
		"false":       {"flag": false},
		"collections": {"tags": cty.MapVal(map[string]cty.Value{"a": cty.StringVal("b")}), "bag": cty.SetVal([]cty.Value{cty.StringVal("x"), cty.StringVal("y")})},
		"list blocks": {"rule": cty.ListVal([]cty.Value{rule(80), rule(443)})},
		"set blocks":  {"member": cty.SetVal([]cty.Value{member("a", nil), member("b", "given")})},
		"secret":      {"password": "hunter2"},
		"write-only":  {"token": "t0ken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := about(t, shared["conform5"], "conform5_thing")
			st := s.saved(s.create(set))
			st, _, err := s.Type.Read(t.Context(), st)
			must(t, err)
			st = s.saved(st)
			if p := s.plan(st, s.config(set)); p.Action != v1alpha1.ActionNoOp {
				t.Errorf("planned to %s\nprior   %#v\nplanned %#v", p.Action, st.Value, p.Value)
			}
			must(t, s.destroy(st).Err)
		})
	}
}
