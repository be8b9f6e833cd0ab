package scope_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/store"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/zclconf/go-cty/cty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestScopeWithoutAUser(t *testing.T) {
	w := activitiestest.NewWorld(t)
	po := w.Plan()
	po.Status.RequestedBy = nil
	s := w.NewScope(po, "team", nil)
	if err := s.MayRead(t.Context(), store.Right{Namespace: "team", Resource: "secrets", Name: "db"}); err == nil {
		t.Error("a plan without a requester may read a Secret")
	}
}

// read evaluates an expression in a scope.
func read(t *testing.T, s *scope.Scope, expression string) (cty.Value, error) {
	t.Helper()
	e, diags := lang.ParseExpression(expression, "spec.x", lang.ExpressionOptions{Functions: s.Functions(), Namespace: "team"})
	if diag.HasErrors(diags) {
		t.Fatalf("%s: %+v", expression, diags)
	}
	l := &scope.Evaluator{Ctx: t.Context(), Scope: s}
	v, diags := e.Evaluate(l.Resolve, cty.NilVal)
	err := l.Unresolved(e.References())
	if err == nil && diag.HasErrors(diags) {
		err = &diag.Failure{Diagnostics: diags}
	}
	if de, ok := errors.AsType[*diag.Failure](err); ok {
		var text strings.Builder
		for _, d := range de.Diagnostics {
			fmt.Fprintf(&text, "%s: %s\n", d.Attribute, d.Detail)
		}
		return v, errors.New(text.String())
	}
	return v, err
}

// TestValuesOfASetTakeTheRightToTheirConfigMap evaluates an instance of a ResourceSet whose keys come from a ConfigMap.
func TestValuesOfASetTakeTheRightToTheirConfigMap(t *testing.T) {
	for reason, test := range map[string]struct {
		source string
		lost   bool
		want   string
	}{
		"the right to it":        {source: "keys"},
		"without the right":      {source: "keys", lost: true, want: `The keys of the ResourceSet come from the ConfigMap "keys", and the user "ann" may not read "keys" of configmaps`},
		"inline keys take none":  {lost: true},
		"a right to another one": {source: "others", lost: true},
	} {
		w := activitiestest.NewWorld(t)
		w.Forbidden["team/configmaps/keys"] = test.lost
		r := w.Put(`test-thing/web["a"]`, map[string]any{"password": "${each.value}"}, map[string]any{
			"preconditions": []any{map[string]any{"condition": `${each.value == "v"}`, "errorMessage": "e"}},
		})
		of := map[string]any{"set": "web", "setUID": "s", "key": "a", "value": "v"}
		if test.source != "" {
			of["source"] = test.source
		}
		r.Object.Object[v1alpha1.FieldInstance] = of
		r, err := w.NewScope(w.Plan(), "team", nil).Decoder.Decode(r.Object)
		if err != nil {
			t.Fatal(err)
		}
		l := &scope.Evaluator{Ctx: t.Context(), Scope: w.NewScope(w.Plan(), "team", nil)}
		_, specErr := l.Config(r, instance.State{})
		_, conditionErr := l.Holds(r, resource.Preconditions, cty.NilVal)
		for of, err := range map[string]error{"spec": specErr, "condition": conditionErr} {
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s, %s: %v, want %q", reason, of, err, test.want)
			}
		}
	}
}

func TestScope(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Record(w.Put("test-thing/made", nil, nil), `{"id":"made-1","password":"hush"}`)
	w.Record(w.Put("shared:test-thing/safe", nil, nil), `{"id":"safe-1","password":"hush"}`)
	w.Put("test-thing/new", nil, nil)
	w.Record(w.Put("test-thing/secret", nil, nil), `{"id":"secret-1"}`)
	w.Record(w.Put("shared:test-thing/net", nil, nil), `{"id":"net-1"}`)
	w.Put("shared:test-thing/new", nil, nil)
	w.Record(w.Put("private:test-thing/net", nil, nil), `{"id":"net-2"}`)
	w.Record(w.Put("data-test-image/base", nil, nil), `{"id":"image-1","token":"hush"}`)
	w.Data["configmaps/team/app"] = map[string][]byte{"region": []byte("eu"), "a.b": []byte("dotted"), "icon": {0xff, 0xfe}}
	w.Data["configmaps/shared/app"] = map[string][]byte{"region": []byte("us")}
	w.Data["configmaps/closed/app"] = map[string][]byte{"region": []byte("eu")}
	w.Data["secrets/team/db"] = map[string][]byte{"password": []byte("hush")}
	w.Data["configmaps/private/app"] = map[string][]byte{"region": []byte("us")}
	for _, name := range []string{"closed/configmaps/app", "team/test-things/secret", "private/test-things/net", "private/configmaps/"} {
		w.Forbidden[name] = true
	}
	planned := func(addr lang.Address) (cty.Value, bool) {
		if addr == (lang.Address{Type: "test_thing", Name: "planned"}) {
			return cty.ObjectVal(map[string]cty.Value{"id": cty.UnknownVal(cty.String)}), true
		}
		return cty.NilVal, false
	}
	hush := func(key string, of ...lang.Address) cty.Value {
		v := cty.StringVal("hush").Mark(lang.Sensitive)
		for _, a := range of {
			v = v.Mark(lang.Origin{Address: a})
		}
		if key != "" {
			v = v.Mark(lang.Origin{Address: of[0], Key: key})
		}
		return v
	}
	for name, tc := range map[string]struct {
		expression string
		want       cty.Value
		failed     string
	}{
		"what the plan will make":                      {"${test_thing.planned.id}", cty.UnknownVal(cty.String), ""},
		"what is recorded":                             {"${test_thing.made.id}", cty.StringVal("made-1"), ""},
		"a secret of what is recorded":                 {"${test_thing.made.password}", hush("", lang.Address{Namespace: "team", Type: "test_thing", Name: "made"}), ""},
		"a secret of another namespace":                {"${namespace.shared.test_thing.safe.password}", hush("", lang.Address{Namespace: "shared", Type: "test_thing", Name: "safe"}), ""},
		"an object that nothing was made of":           {"${test_thing.new.id}", cty.NilVal, "test_thing.new"},
		"a data source":                                {"${data.test_image.base.id}", cty.StringVal("image-1"), ""},
		"a secret of a data source":                    {"${data.test_image.base.token}", hush("", lang.Address{Namespace: "team", Mode: v1alpha1.ModeData, Type: "test_image", Name: "base"}), ""},
		"another namespace":                            {"${namespace.shared.test_thing.net.id}", cty.StringVal("net-1"), ""},
		"nothing made yet in another namespace":        {"${namespace.shared.test_thing.new.id}", cty.NilVal, `apply a plan in the namespace "shared" first`},
		"its own namespace by name":                    {"${namespace.team.test_thing.made.id}", cty.StringVal("made-1"), ""},
		"a namespace that the user may not read":       {"${namespace.private.test_thing.net.id}", cty.NilVal, `"ann" may not read "net" of test-things.test.hykube.io in the namespace "private"`},
		"a key of a ConfigMap":                         {"${configmap.app.region}", cty.StringVal("eu"), ""},
		"a key with a dot":                             {`${configmap.app["a.b"]}`, cty.StringVal("dotted"), ""},
		"a key that holds no text":                     {"${configmap.app.icon}", cty.StringVal("//4="), ""},
		"a key that is not there":                      {"${configmap.app.regoin}", cty.NilVal, `spec.x, column 16: configmap.app has no key "regoin". Did you mean "region"?`},
		"a ConfigMap of another namespace":             {"${namespace.shared.configmap.app.region}", cty.StringVal("us"), ""},
		"a ConfigMap that is not there":                {"${configmap.other.region}", cty.NilVal, `there is no ConfigMap "other" in the namespace "team"`},
		"a ConfigMap that the user may not read":       {"${namespace.closed.configmap.app.region}", cty.NilVal, "may not read"},
		"a resource that the user may not read":        {"${test_thing.secret.id}", cty.NilVal, `spec.x, column 3: the user "ann" may not read "secret" of test-things.test.hykube.io in the namespace "team": ask for the verb "get" on it`},
		"a Secret":                                     {"${secret.db.password}", hush("password", lang.Address{Namespace: "team", Type: lang.TypeSecret, Name: "db"}), ""},
		"a ConfigMap with a near name":                 {"${upper(configmap.ap.region)}", cty.NilVal, `spec.x, column 9: configmap.ap: there is no ConfigMap "ap" in the namespace "team"; did you mean configmap.app?`},
		"one of another namespace":                     {"${namespace.shared.configmap.ap.region}", cty.NilVal, `did you mean namespace.shared.configmap.app?`},
		"one where not all may be read":                {"${namespace.private.configmap.ap.region}", cty.NilVal, `no ConfigMap "ap" in the namespace "private"; create it, or correct the reference` + "\n"},
		"a key of a Secret that is not there":          {"${secret.db.pasword}", cty.NilVal, `spec.x, column 12: secret.db has no key "pasword". kubectl describe secret db -n team lists the keys.` + "\n"},
		"a Secret with a near name":                    {"${secret.dbs.password}", cty.NilVal, `there is no Secret "dbs" in the namespace "team"; create it, or correct the reference` + "\n"},
		"a Secret that is not there":                   {"${secret.other.password}", cty.NilVal, `there is no Secret "other"`},
		"a function of a provider":                     {`${provider::test::upper("eu")}`, cty.StringVal("EU"), ""},
		"a function of a provider, of an unknown text": {`${provider::test::upper(test_thing.planned.id)}`, cty.UnknownVal(cty.String), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := w.NewScope(w.Plan(), "team", planned)
			got, err := read(t, s, tc.expression)
			if tc.failed != "" {
				if err == nil || !strings.Contains(err.Error(), tc.failed) {
					t.Errorf("got %v, want an error with %q", err, tc.failed)
				}
				return
			}
			if err != nil || !activitiestest.UnrefinedEquals(got, tc.want) {
				t.Errorf("got %#v, %v; want %#v", got, err, tc.want)
			}
		})
	}
}

func TestScopeAsksForRightsOnce(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Data["secrets/team/db"] = map[string][]byte{"password": []byte("hush")}
	w.Record(w.Put("shared:test-thing/net", nil, nil), `{"id":"net-1"}`)
	s := w.NewScope(w.Plan(), "team", nil)
	for range 3 {
		for _, expression := range []string{"${secret.db.password}", "${namespace.shared.test_thing.net.id}"} {
			if _, err := read(t, s, expression); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff([]string{"team/secrets/", "shared/test-things/", "shared/test-things/state/"}, w.Asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	v, _, err := s.Value(t.Context(), lang.Address{Type: lang.TypeSecret, Name: "db"})
	if err != nil || !v.GetAttr("password").HasMark(lang.Sensitive) {
		t.Errorf("got %#v, %v; want a value that is marked", v, err)
	}
	s = w.ScopeOf(nil, "team", nil)
	if _, err := read(t, s, "${secret.db.password}"); err == nil {
		t.Error("a Secret was read without a user")
	}
	if _, _, err := s.Value(t.Context(), lang.Address{Mode: v1alpha1.ModeAction, Type: "test_reboot", Name: "now"}); err != nil {
		t.Errorf("the value of an action: %v, want none", err)
	}
}

// TestScopeReadsAProviderConfigOnce leases the provider of many resources, as a plan does.
func TestScopeReadsAProviderConfigOnce(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.ProviderConfigs["team/test"] = &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "test"}, Spec: v1alpha1.ProviderConfigSpec{Provider: "test"}}
	s := w.NewScope(w.Plan(), "team", nil)
	for i := range 20 {
		r := w.Put(fmt.Sprintf("test-thing/%d", i), nil, nil)
		l, err := s.Lease(t.Context(), r, &ledger.State{}, true, session.SlotAndRate)
		if err != nil {
			t.Fatal(err)
		}
		l.Release()
	}
	if want := 2; w.ConfigReads != want { // "default" and "test"
		t.Errorf("%d reads of ProviderConfigs, want %d", w.ConfigReads, want)
	}
}

// TestImpureFunctions checks the impure functions. Planning leaves their results unknown, and all attempts at a step
// get the same.
func TestImpureFunctions(t *testing.T) {
	w := activitiestest.NewWorld(t)
	po := w.Plan()
	po.CreationTimestamp = metav1.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC)
	thing, other := w.Put("test-thing/a", nil, nil), w.Put("test-thing/b", nil, nil)
	ignoreFunctions := cmpopts.IgnoreFields(lang.EvaluationContext{}, "Functions", "Budget")
	nothing := func(lang.Address) (cty.Value, bool) { return cty.NilVal, false }
	contextOf := func(planned func(lang.Address) (cty.Value, bool), r *resource.Resource) lang.EvaluationContext {
		at, err := w.NewScope(po, "team", planned).EvaluationContext(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	if got, want := contextOf(nothing, thing), (lang.EvaluationContext{Planned: po.CreationTimestamp.Time}); !cmp.Equal(got, want, ignoreFunctions) {
		t.Errorf("while planning: %+v", got)
	}
	po.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, At: new(metav1.Date(2026, 3, 2, 11, 0, 0, 0, time.UTC))}
	first := contextOf(nil, thing)
	if again := contextOf(nil, thing); !cmp.Equal(again, first, ignoreFunctions) || !first.Applied.Equal(po.Status.Approval.At.Time) || first.Seed == "" {
		t.Errorf("first %+v, then %+v", first, again)
	}
	if of := contextOf(nil, other); of.Seed == first.Seed {
		t.Error("two objects have the same seed")
	}
	po.UID = "plan-2"
	if next := contextOf(nil, thing); next.Seed == first.Seed {
		t.Error("two plans have the same seed")
	}
	if got, err := w.ScopeOf(po.Status.RequestedBy, "team", nil).EvaluationContext(t.Context(), thing); err != nil || !cmp.Equal(got, lang.EvaluationContext{}, ignoreFunctions) {
		t.Errorf("without a plan: %+v", got)
	}
}
