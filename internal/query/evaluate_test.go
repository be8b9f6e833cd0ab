package query

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
)

// An evaluation reads what is recorded, with the rights of its author.
func TestEvaluate(t *testing.T) {
	for reason, test := range map[string]struct {
		expression string
		forbidden  []string
		value      string
		typ        string
		problem    string
	}{
		"a value":                  {expression: "test_thing.main.id", value: `"i-1"`, typ: "string"},
		"with ${ and }":            {expression: "${upper(test_thing.main.id)}", value: `"I-1"`, typ: "string"},
		"the own namespace, named": {expression: "namespace.team.test_thing.main.id", value: `"i-1"`, typ: "string"},
		"another namespace":        {expression: "namespace.shared.test_thing.far.id", value: `"i-2"`, typ: "string"},
		"a data source":            {expression: "data.test_image.base.id", value: "(known after apply)", typ: "string"},
		"what is not applied yet":  {expression: "test_thing.new.id", value: "(known after apply)", typ: "string"},
		"a function of a provider": {expression: "provider::test::upper(test_thing.main.id)", value: `"I-1"`, typ: "string"},
		"a secret attribute":       {expression: "test_thing.main.password", value: "(sensitive value)"},
		"all of an object":         {expression: "test_thing.main", value: "{\n  \"id\" = \"i-1\"\n  \"password\" = (sensitive value)\n  \"uses\" = tostring(null)\n}"},
		"nonsensitive() with the right to read the state":    {expression: "nonsensitive(test_thing.main.password)", value: `"hunter2"`, typ: "string"},
		"nonsensitive() without the right to read the state": {expression: "nonsensitive(test_thing.main.password)", forbidden: []string{"team/test-things/state/main"}, value: "(sensitive value)"},
		"an oracle without that right":                       {expression: "can(regex(\"^h\", test_thing.main.password))", forbidden: []string{"team/test-things/state/main"}, value: "(known after apply)", typ: "bool"},
		"a ConfigMap":                                        {expression: "configmap.app.region", value: `"eu"`, typ: "string"},
		"a Secret":                                           {expression: "secret.db.password", value: "(sensitive value)"},
		"nonsensitive() of a Secret":                         {expression: "nonsensitive(secret.db.password)", value: `"s3cret"`, typ: "string"},
		"an object that may not be read":                     {expression: "test_thing.main.id", forbidden: []string{"team/test-things/main"}, problem: `column 1: Reference without the right to read: The user "ann" may not read "main" of test-things.test.hykube.io in the namespace "team": ask for the verb "get" on it.`},
		"no word of whether it exists":                       {expression: "1 + test_thing.gone.id", forbidden: []string{"team/test-things/gone"}, problem: `column 5: Reference without the right to read: The user "ann" may not read "gone" of`},
		"a Secret that may not be read":                      {expression: "nonsensitive(secret.db.password)", forbidden: []string{"team/secrets/db"}, problem: `column 14: Reference without the right to read: The user "ann" may not read "db" of secrets`},
		"a ConfigMap that may not be read":                   {expression: "configmap.app.region", forbidden: []string{"team/configmaps/app"}, problem: `may not read "app" of configmaps`},
		"an ephemeral resource":                              {expression: "ephemeral.test_token.t.value", problem: "column 1: Ephemeral values are not recorded: The value of an ephemeral resource is never recorded"},
		"a name that is almost right":                        {expression: "test_thing.mian.id", problem: `column 1: Reference to a missing resource: There is no test-thing named "mian" in this namespace. Did you mean test_thing.main?`},
		"no names for who may not see them":                  {expression: "test_thing.mian.id", forbidden: []string{"team/test-things/"}, problem: `There is no test-thing named "mian" in this namespace. Create it`},
		"a ConfigMap that is almost right":                   {expression: "configmap.ap.region", problem: `column 1: Reference to a missing resource: There is no ConfigMap "ap" in the namespace "team"; did you mean configmap.app?`},
		"a type that is almost right":                        {expression: "test_thng.main.id", problem: `There is no resource type "test_thng". Did you mean "test_thing"?`},
		"an attribute that is almost right":                  {expression: "test_thing.main.pasword", problem: `Did you mean "password"?`},
		"a key that is not there":                            {expression: "configmap.app.reg", problem: "column 14: "},
		"an error with a secret in it":                       {expression: "tonumber(secret.db.password)", problem: "column 10: "},
		"a syntax error":                                     {expression: "1 +", problem: "column 4: Missing expression"},
		"too many references":                                {expression: "[" + many(201) + "]", problem: "Too many references: The expression refers to 201 objects, and the limit is 200."},
		"a value that is too large":                          {expression: `[for a in range(1000) : join("", [for b in range(100) : "0123456789-"])]`, problem: "Value too large"},
	} {
		t.Run(reason, func(t *testing.T) {
			w := activitiestest.NewWorld(t)
			w.Record(w.Put("test-thing/main", nil, nil), `{"id":"i-1","password":"hunter2","uses":null}`)
			w.Record(w.Put("shared:test-thing/far", nil, nil), `{"id":"i-2","password":"x","uses":null}`)
			w.Put("test-thing/new", nil, nil)
			w.Put("data-test-image/base", nil, nil)
			w.Data["configmaps/team/app"] = map[string][]byte{"region": []byte("eu")}
			w.Data["secrets/team/db"] = map[string][]byte{"password": []byte("s3cret")}
			for _, key := range test.forbidden {
				w.Forbidden[key] = true
			}
			e := &v1alpha1.Evaluation{Spec: v1alpha1.EvaluationSpec{Expression: test.expression}}
			e.Namespace = "team"
			if err := (&Queries{w.Sources}).Evaluate(t.Context(), ann(), e); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, d := range e.Status.Diagnostics {
				got += d.Attribute + ": " + d.Summary + ": " + d.Detail + "\n"
			}
			if (test.problem == "") != (got == "") || !strings.Contains(got, test.problem) || strings.Contains(got, "s3cret") {
				t.Errorf("got the problem %q, want %q", got, test.problem)
			}
			if e.Status.Value != test.value || e.Status.Type != test.typ {
				t.Errorf("got %s of %q, want %s of %q", e.Status.Value, e.Status.Type, test.value, test.typ)
			}
			if masked := strings.Contains(test.value, "(sensitive value)"); masked != e.Status.Sensitive {
				t.Errorf("sensitive: %t", e.Status.Sensitive)
			}
		})
	}
}

func many(n int) string {
	refs := make([]string, n)
	for i := range refs {
		refs[i] = "test_thing." + strings.Repeat("a", i+1) + ".id"
	}
	return strings.Join(refs, ", ")
}
