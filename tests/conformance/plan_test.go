package conformance

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/tests/conformance/cloud"
)

// TestPlan breaks the rules of PROVIDER_CLIENT 4.3 one by one. The number in a name is the rule's.
func TestPlan(t *testing.T) {
	t.Parallel()
	const create, update = false, true
	for name, tc := range map[string]struct {
		reason    string
		update    bool
		before    attrs
		config    attrs
		behaviour string
		action    v1alpha1.Action
		refused   string
	}{
		"4.3/1 validation refuses":       {"a provider may refuse what the schema allows", create, nil, nil, "validate-error", "", "Failed on command"},
		"4.3/6 provider refuses to plan": {"the whole error of the provider", create, nil, nil, "plan-error", "", "Failed on command"},

		"4.3/7 honest plan":                       {"what is unknown is computed", create, nil, attrs{"note": "n"}, "", v1alpha1.ActionCreate, ""},
		"4.3/7 planned value differs from config": {"neither config nor prior", create, nil, nil, "planned-not-config", "", `planned value "somebody else" does not match config value`},
		"4.3/7 planned value differs from config and prior": {"a third value", update, nil, attrs{"note": "n"}, "planned-not-config", "",
			"does not match config value"},
		"4.3/7 planned value is the prior one": {"the provider calls the new value equivalent to the old", update, attrs{"note": "a"}, attrs{"note": "A"}, "planned-prior", v1alpha1.ActionNoOp, ""},
		"4.3/7 planned prior where config is null": {"what is not computed goes when it is no longer configured", update, attrs{"note": "a"}, nil, "planned-prior", "",
			"for a non-computed attribute"},
		"4.3/7 planned value for what is not configured": {"only computed attributes may get a value", create, nil, nil, "planned-unconfigured", "", "for a non-computed attribute"},
		"4.3/7 planned value for optional and computed":  {"the choice is the provider's", create, nil, nil, "planned-computed", v1alpha1.ActionCreate, ""},
		"4.3/7 planned value instead of configured computed": {"what is configured is not the provider's choice", create, nil, attrs{"size": 4}, "planned-computed", "",
			"does not match config value"},
		"4.3/7 planned unknown for what is configured": {"a configured value is known", create, nil, nil, "planned-unknown", "", "(known after apply) does not match config value"},
		"4.3/7 secret that differs":                    {"no secret gets into an error", create, nil, attrs{"password": "hunter2"}, "planned-secret-not-config", "", "sensitive planned value does not match config value"},
		"4.3/7 write-only value in the plan":           {"a state never holds it", create, nil, attrs{"token": "t0ken"}, "planned-write-only", "", "write-only"},
		"4.3/7 fewer blocks":                           {"as many as configured", create, nil, attrs{"rule": cty.ListVal([]cty.Value{rule(1)})}, "planned-fewer-blocks", "", "block count in plan (0) disagrees with count in config (1)"},
		"4.3/7 unknown blocks":                         {"blocks are never unknown themselves", create, nil, attrs{"rule": cty.ListVal([]cty.Value{rule(1)})}, "planned-unknown-blocks", "", "must not be unknown itself"},
		"4.3/7 value of another type":                  {"always fatal", create, nil, nil, "planned-misfit", "", "does not fit its schema"},
		"4.3/7 nothing planned":                        {"config wants existence", create, nil, nil, "planned-null", "", "planned for absence but config wants existence"},
		"4.3/7 put off without our leave":              {"we did not say that we can handle it", create, nil, nil, "plan-deferred", "", "did not allow that"},

		"4.3/8 replace path that does not change": {"the provider names more than what changes", update, nil, attrs{"note": "n"}, "replace-for-name", v1alpha1.ActionUpdate, ""},
		"4.3/8 replace path that changes":         {"as the provider says", update, nil, attrs{"note": "n"}, "replace-for-note", v1alpha1.ActionReplace, ""},
		"4.3/8 replace for an unknown value":      {"it may turn out to be another", update, nil, attrs{"note": "n"}, "replace-for-serial", v1alpha1.ActionReplace, ""},
		"4.3/8 replace for a write-only value":    {"no state can tell whether it changed", update, attrs{"token": "a"}, attrs{"token": "b", "note": "n"}, "replace-for-token", v1alpha1.ActionReplace, ""},
		"4.3/8 replace path that leads nowhere":   {"a bug of the provider", update, nil, attrs{"note": "n"}, "replace-for-nothing", "", "no_such_attribute"},
		"4.3/8 replace paths of a create":         {"there is nothing to replace", create, nil, attrs{"note": "n"}, "replace-for-note,replace-for-nothing", v1alpha1.ActionCreate, ""},

		"4.3/9 nothing changes":        {"equal is equal", update, attrs{"note": "n"}, attrs{"note": "n"}, "", v1alpha1.ActionNoOp, ""},
		"4.3/9 something changes":      {"without a path to replace for", update, attrs{"note": "n"}, attrs{"note": "m"}, "", v1alpha1.ActionUpdate, ""},
		"4.3/9 something forces a new": {"the schema's own", update, attrs{"zone": "a"}, attrs{"zone": "b"}, "", v1alpha1.ActionReplace, ""},

		"4.3/11 identity unknown at create":  {"the id is not known yet", create, nil, nil, "planned-unknown-identity", v1alpha1.ActionCreate, ""},
		"4.3/11 identity unknown at update":  {"it is known since the create", update, nil, attrs{"note": "n"}, "planned-unknown-identity", "", "identity"},
		"4.3/11 identity unknown at replace": {"the new one has another", update, attrs{"zone": "a"}, attrs{"zone": "b"}, "planned-unknown-identity", v1alpha1.ActionReplace, ""},
		"4.3/11 identity of another shape":   {"it must fit its schema", create, nil, nil, "planned-misfit-identity", "", "identity"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := about(t, shared["conform6"], "conform6_thing")
			prior := s.Type.Null()
			if tc.update {
				prior = s.create(tc.before)
			}
			s.command(tc.behaviour)
			p, _, err := s.Type.Plan(t.Context(), prior, s.config(tc.config), false)
			if refused(t, err, tc.refused); err != nil {
				if strings.Contains(err.Error(), "hunter") {
					t.Errorf("an error has a secret: %v", err)
				}
				return
			}
			if p.Action != tc.action {
				t.Errorf("%s: action %s, want %s", tc.reason, p.Action, tc.action)
			}
		})
	}
}

func TestPlanTaintedAsNew(t *testing.T) {
	t.Parallel()
	s := about(t, shared["conform6"], "conform6_thing")
	prior := s.create(attrs{"size": 5})
	prior.Tainted = true
	p := s.plan(prior, s.config(nil))
	if p.Action != v1alpha1.ActionReplace || p.Reason != plan.ReasonTainted {
		t.Errorf("4.3/2: %s because %q, want a replace of what is tainted", p.Action, p.Reason)
	}
	for _, name := range []string{"id", "size"} {
		if attribute(p.Value, name).IsKnown() {
			t.Errorf("4.3/2: %s is planned as %#v: nothing of the tainted instance may be kept", name, attribute(p.Value, name))
		}
	}
	plans := s.calls("PlanResourceChange")
	if last := plans[len(plans)-1]; last.Action != "Create" {
		t.Errorf("4.3/2: the provider was asked for a plan to %s", last.Action)
	}
}

func TestPlanIgnoresChangesInConfig(t *testing.T) {
	t.Parallel()
	s := about(t, shared["conform6"], "conform6_thing")
	prior := s.create(attrs{"note": "made", "zone": "a"})
	c := s.config(attrs{"note": "changed", "zone": "b"})
	c.Ignored = []string{"note"}
	var err error
	c.Effective, err = plan.IgnoreChanges(s.Type.Schema.Block, c.Written, prior.Value, c.Ignored)
	must(t, err)
	p := s.plan(prior, c)
	if p.Action != v1alpha1.ActionReplace {
		t.Fatalf("action %s, want a replace because of the zone", p.Action)
	}
	same(t, "4.3/10: the second plan has the original configuration, with nothing ignored", attribute(p.Value, "note"), cty.StringVal("changed"))

	c = s.config(attrs{"note": "changed", "zone": "a"})
	c.Ignored = []string{"note"}
	c.Effective, err = plan.IgnoreChanges(s.Type.Schema.Block, c.Written, prior.Value, c.Ignored)
	must(t, err)
	if p := s.plan(prior, c); p.Action != v1alpha1.ActionNoOp {
		t.Errorf("4.3/3: action %s, want none: the change is ignored", p.Action)
	}
}

func TestPlanToReplaceAsksTwice(t *testing.T) {
	t.Parallel()
	s := about(t, shared["conform6"], "conform6_thing")
	prior := s.create(attrs{"zone": "a", "size": 5})
	before := len(s.calls("PlanResourceChange"))
	s.command("plan-private", "plan-warning")
	p, diags, err := s.Type.Plan(t.Context(), prior, s.config(attrs{"zone": "b"}), false)
	must(t, err)
	plans := s.calls("PlanResourceChange")[before:]
	if len(plans) != 2 || plans[0].Action != "Update" || plans[1].Action != "Create" {
		t.Fatalf("4.3/10: plans %+v, want an update and a create", plans)
	}
	if string(plans[1].Private) != string(p.Private) || string(plans[0].Private) == string(plans[1].Private) {
		t.Errorf("4.3/10: the second plan got %q as the prior private data, want what the first had planned", plans[1].Private)
	}
	if attribute(p.Value, "id").IsKnown() || attribute(p.Value, "size").IsKnown() {
		t.Errorf("4.3/10: planned %#v: what is computed must be new", p.Value)
	}
	if n := len(diags); n != 1 || !warned(diags) {
		t.Errorf("4.3/10: %d diagnostics, want the first plan's warning alone", n)
	}
	if len(p.Replace) != 1 {
		t.Errorf("4.3/12: replace paths %v", p.Replace)
	}
}

func TestPlanForced(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, w *world, typeName string) {
		s := about(t, w, typeName)
		prior := s.create(nil)
		p, _, err := s.Type.Plan(t.Context(), prior, s.config(nil), true)
		must(t, err)
		if p.Action != v1alpha1.ActionReplace || p.Reason != plan.ReasonReplaceRequested {
			t.Errorf("4.3/9: %s because %q, want the replace that was asked for", p.Action, p.Reason)
		}
	})
}

func TestPlanSecretsOnly(t *testing.T) {
	t.Parallel()
	s := about(t, shared["conform6"], "conform6_thing")
	prior := s.create(attrs{"note": "n"})
	before := len(s.calls("ApplyResourceChange"))
	c := s.config(attrs{"note": cty.StringVal("n").Mark(lang.Sensitive)})
	p := s.plan(prior, c)
	if p.Action != v1alpha1.ActionUpdate {
		t.Fatalf("4.3/9: action %s, want an update: the note became a secret", p.Action)
	}
	o := s.Type.Apply(t.Context(), prior, p, c.Written)
	must(t, o.Err)
	if !o.State.Value.GetAttr("note").IsMarked() {
		t.Error("4.3/9: the note is not recorded as a secret")
	}
	if n := len(s.calls("ApplyResourceChange")) - before; n != 0 {
		t.Errorf("4.3/9: the provider was called %d times for a change that is none to it", n)
	}
}

func TestPlanDestroy(t *testing.T) {
	t.Parallel()
	t.Run("asked", func(t *testing.T) {
		t.Parallel()
		s := about(t, shared["conform6"], "conform6_thing")
		prior := s.create(attrs{"behaviour": "binary-private"})
		p, _, err := s.Type.PlanDelete(t.Context(), prior, nil)
		must(t, err)
		plans := s.calls("PlanResourceChange")
		if last := plans[len(plans)-1]; last.Action != "Delete" || string(last.Private) != string(prior.Private) {
			t.Errorf("4.3/5: the last plan was to %s, with private %q", last.Action, last.Private)
		}
		if !p.Value.IsNull() || p.Action != v1alpha1.ActionDelete {
			t.Errorf("4.3/5: planned to %s %#v", p.Action, p.Value)
		}
	})
	t.Run("its private data goes on", func(t *testing.T) {
		t.Parallel()
		s := about(t, shared["conform6"], "conform6_thing")
		prior := s.create(nil)
		s.command("plan-private")
		must(t, s.destroy(prior).Err)
		planned, applied := s.calls("PlanResourceChange"), s.calls("ApplyResourceChange")
		if got := applied[len(applied)-1].Private; len(got) == 0 || string(got) == string(planned[len(planned)-1].Private) {
			t.Errorf("4.3/5: the delete got private data %q, want what its plan answered", got)
		}
	})
	for behaviour, why := range map[string]string{
		"destroy-planned-to-stay": "does not remove everything", "plan-error": "Failed on command", "plan-deferred": "did not allow that",
	} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			s := about(t, shared["conform6"], "conform6_thing")
			prior := s.create(nil)
			s.command(behaviour)
			_, _, err := s.Type.PlanDelete(t.Context(), prior, nil)
			refused(t, err, why)
		})
	}
	t.Run("not asked", func(t *testing.T) {
		t.Parallel()
		s := about(t, ownWorld(t, "conform6", cloud.Options{NoPlanDestroy: true}), "conform6_thing")
		prior := s.create(attrs{"behaviour": "binary-private"})
		before := len(s.calls("PlanResourceChange"))
		s.command("destroy-planned-to-stay")
		must(t, s.destroy(prior).Err)
		if n := len(s.calls("PlanResourceChange")) - before; n != 0 {
			t.Errorf("4.3/5: %d plans of a destroy for a provider that does not want to be asked", n)
		}
		applied := s.calls("ApplyResourceChange")
		if got := applied[len(applied)-1].Private; string(got) != string(prior.Private) {
			t.Errorf("4.3/5: the delete got private data %q, want %q", got, prior.Private)
		}
	})
}

func TestDeferred(t *testing.T) {
	t.Parallel()
	s := about(t, shared["conform6"], "conform6_thing")
	prior := s.create(nil)
	capable := s.Type
	capable.Deferral = true
	s.command("plan-deferred", "planned-not-config", "read-deferred")

	_, _, err := capable.Plan(t.Context(), s.Type.Null(), s.config(nil), false)
	deferredFor(t, err, "absent_prereq") // 4.3/7: the checks are skipped
	_, _, err = capable.PlanDelete(t.Context(), prior, nil)
	deferredFor(t, err, "absent_prereq")
	_, _, err = capable.Read(t.Context(), prior)
	deferredFor(t, err, "provider_config_unknown")
	_, _, err = capable.Import(t.Context(), instance.ImportBy{ID: "deferred!"})
	deferredFor(t, err, "resource_config_unknown")

	for what, err := range map[string]error{
		"read":   second(s.Type.Read(t.Context(), prior)),
		"import": second(s.Type.Import(t.Context(), instance.ImportBy{ID: "deferred!"})),
	} {
		t.Run(what, func(t *testing.T) { refused(t, err, "did not allow that") })
	}
}

func second(_ instance.State, _ diag.Diagnostics, err error) error { return err }
