package activities

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/plan"
)

// read evaluates an expression in a scope.
func read(t *testing.T, s *scope, expression string) (cty.Value, error) {
	t.Helper()
	e, diags := plan.ParseExpression(expression, "spec.x", plan.ExpressionOptions{Functions: s.functions()})
	if plan.HasErrors(diags) {
		t.Fatalf("%s: %+v", expression, diags)
	}
	l := &look{ctx: t.Context(), scope: s}
	v, diags := e.Evaluate(l.up, cty.NilVal)
	if l.err == nil && plan.HasErrors(diags) {
		return v, errors.New(describe(diags))
	}
	return v, l.err
}

func TestScope(t *testing.T) {
	w := newWorld(t)
	w.record(w.put("test-thing/made", nil, nil), `{"id":"made-1","password":"hush"}`)
	w.put("test-thing/new", nil, nil)
	w.record(w.put("shared:test-thing/net", nil, nil), `{"id":"net-1"}`)
	w.put("shared:test-thing/new", nil, nil)
	w.record(w.put("private:test-thing/net", nil, nil), `{"id":"net-2"}`)
	w.record(w.put("data-test-image/base", nil, nil), `{"id":"image-1","token":"hush"}`)
	w.data["configmaps/team/app"] = map[string][]byte{"region": []byte("eu"), "a.b": []byte("dotted"), "icon": {0xff, 0xfe}}
	w.data["configmaps/shared/app"] = map[string][]byte{"region": []byte("us")}
	w.data["configmaps/team/private"] = map[string][]byte{"region": []byte("eu")}
	w.data["secrets/team/db"] = map[string][]byte{"password": []byte("hush")}
	for _, name := range []string{"team/configmaps/private", "private/test-things/net"} {
		w.forbidden[name] = true
	}
	planned := func(addr plan.Address) (cty.Value, bool) {
		if addr == (plan.Address{Type: "test_thing", Name: "planned"}) {
			return cty.ObjectVal(map[string]cty.Value{"id": cty.UnknownVal(cty.String)}), true
		}
		return cty.NilVal, false
	}
	hush := cty.StringVal("hush").Mark(plan.Sensitive)
	for name, tc := range map[string]struct {
		expression string
		want       cty.Value
		failed     string
	}{
		"what the plan will make":                      {"${test_thing.planned.id}", cty.UnknownVal(cty.String), ""},
		"what is recorded":                             {"${test_thing.made.id}", cty.StringVal("made-1"), ""},
		"a secret of what is recorded":                 {"${test_thing.made.password}", hush, ""},
		"an object that nothing was made of":           {"${test_thing.new.id}", cty.NilVal, "test_thing.new"},
		"a data source":                                {"${data.test_image.base.id}", cty.StringVal("image-1"), ""},
		"a secret of a data source":                    {"${data.test_image.base.token}", hush, ""},
		"another namespace":                            {"${namespace.shared.test_thing.net.id}", cty.StringVal("net-1"), ""},
		"nothing made yet in another namespace":        {"${namespace.shared.test_thing.new.id}", cty.NilVal, `apply a plan in the namespace "shared" first`},
		"its own namespace by name":                    {"${namespace.team.test_thing.made.id}", cty.StringVal("made-1"), ""},
		"a namespace that the user may not read":       {"${namespace.private.test_thing.net.id}", cty.NilVal, `"ann" may not read "net" of test-things.test.hykube.io in the namespace "private"`},
		"a key of a ConfigMap":                         {"${configmap.app.region}", cty.StringVal("eu"), ""},
		"a key with a dot":                             {`${configmap.app["a.b"]}`, cty.StringVal("dotted"), ""},
		"a key that holds no text":                     {"${configmap.app.icon}", cty.StringVal("//4="), ""},
		"a key that is not there":                      {"${configmap.app.zone}", cty.NilVal, "zone"},
		"a ConfigMap of another namespace":             {"${namespace.shared.configmap.app.region}", cty.StringVal("us"), ""},
		"a ConfigMap that is not there":                {"${configmap.other.region}", cty.NilVal, `there is no ConfigMap "other" in the namespace "team"`},
		"a ConfigMap that the user may not read":       {"${configmap.private.region}", cty.NilVal, "may not read"},
		"a Secret":                                     {"${secret.db.password}", hush, ""},
		"a Secret that is not there":                   {"${secret.other.password}", cty.NilVal, `there is no Secret "other"`},
		"a function of a provider":                     {`${provider::test::upper("eu")}`, cty.StringVal("EU"), ""},
		"a function of a provider, of an unknown text": {`${provider::test::upper(test_thing.planned.id)}`, cty.UnknownVal(cty.String), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := w.newScope(w.plan(), "team", planned)
			got, err := read(t, s, tc.expression)
			if tc.failed != "" {
				if err == nil || !strings.Contains(err.Error(), tc.failed) {
					t.Errorf("got %v, want an error with %q", err, tc.failed)
				}
				return
			}
			if err != nil || !unrefinedEquals(got, tc.want) {
				t.Errorf("got %#v, %v; want %#v", got, err, tc.want)
			}
		})
	}
}

// unrefinedEquals compares without what is known about unknown values.
func unrefinedEquals(a, b cty.Value) bool {
	return a.RawEquals(b) || !a.IsKnown() && !b.IsKnown()
}

func TestScopeAsksForRightsOnce(t *testing.T) {
	w := newWorld(t)
	w.data["secrets/team/db"] = map[string][]byte{"password": []byte("hush")}
	w.record(w.put("shared:test-thing/net", nil, nil), `{"id":"net-1"}`)
	s := w.newScope(w.plan(), "team", nil)
	for range 3 {
		for _, expression := range []string{"${secret.db.password}", "${namespace.shared.test_thing.net.id}"} {
			if _, err := read(t, s, expression); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff([]string{"team/secrets/db", "shared/test-things/net"}, w.asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	v, _, err := s.value(t.Context(), plan.Address{Type: plan.TypeSecret, Name: "db"})
	if err != nil || !v.GetAttr("password").HasMark(plan.Sensitive) {
		t.Errorf("got %#v, %v; want a value that is marked", v, err)
	}
	s = w.scopeOf(nil, "team", nil)
	if _, err := read(t, s, "${secret.db.password}"); err == nil {
		t.Error("a Secret was read for nobody")
	}
	if _, _, err := s.value(t.Context(), plan.Address{Mode: v1alpha1.ModeAction, Type: "test_reboot", Name: "now"}); err != nil {
		t.Errorf("the value of an action: %v, want none", err)
	}
}
