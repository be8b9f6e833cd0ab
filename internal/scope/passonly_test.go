package scope_test

import (
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/internal/lang"

	"github.com/zclconf/go-cty/cty"
)

// A user without the right to a state may pass on its sensitive values, and nothing else.
func TestScopeLetsSecretsBePassedOn(t *testing.T) {
	const lacks = `the user "ann" may not read "main" of test-things.test.hykube.io/state in the namespace "team": ask for the verb "get" on it`
	for reason, test := range map[string]struct {
		expression string
		forbidden  []string
		planned    bool
		refused    string
	}{
		"the right to all":              {expression: "${nonsensitive(test_thing.main.password)}"},
		"the right to this one":         {expression: "${nonsensitive(test_thing.main.password)}", forbidden: []string{"team/test-things/state/"}},
		"passed on without":             {expression: "x-${test_thing.main.password}", forbidden: []string{"team/test-things/state/", "team/test-things/state/main"}},
		"not sensitive":                 {expression: "${upper(test_thing.main.id)}", forbidden: []string{"team/test-things/state/", "team/test-things/state/main"}},
		"shown without":                 {expression: "${nonsensitive(test_thing.main.password)}", forbidden: []string{"team/test-things/state/", "team/test-things/state/main"}, refused: lacks},
		"asked without":                 {expression: "${can(regex(\"^h\", test_thing.main.password))}", forbidden: []string{"team/test-things/state/", "team/test-things/state/main"}, refused: lacks},
		"marked when it was recorded":   {expression: "${nonsensitive(test_thing.main.uses)}", forbidden: []string{"team/test-things/state/", "team/test-things/state/main"}, refused: lacks},
		"planned and not yet recorded":  {expression: "${nonsensitive(test_thing.main.password)}", planned: true, forbidden: []string{"team/test-things/state/", "team/test-things/state/main"}, refused: lacks},
		"another namespace":             {expression: "${nonsensitive(namespace.shared.test_thing.far.password)}", forbidden: []string{"shared/test-things/state/", "shared/test-things/state/far"}, refused: `may not read "far" of test-things.test.hykube.io/state in the namespace "shared"`},
		"a data source":                 {expression: "${nonsensitive(data.test_image.base.token)}", forbidden: []string{"team/data-test-images/state/", "team/data-test-images/state/base"}, refused: `may not read "base" of data-test-images.test.hykube.io/state`},
		"an ephemeral resource":         {expression: "${nonsensitive(ephemeral.test_token.t.value)}", forbidden: []string{"team/ephemeral-test-tokens/state/", "team/ephemeral-test-tokens/state/t"}, refused: `may not read "t" of ephemeral-test-tokens.test.hykube.io/state`},
		"an answer made of a secret":    {expression: "${can(regex(\"^f\", ephemeral.test_token.told.audience))}", forbidden: []string{"team/test-things/state/", "team/test-things/state/main"}, refused: lacks},
		"a Secret, which has one right": {expression: "${nonsensitive(secret.db.password)}", forbidden: []string{"team/secrets/state/", "team/secrets/state/db"}},
	} {
		t.Run(reason, func(t *testing.T) {
			w := activitiestest.NewWorld(t)
			main := w.Put("test-thing/main", nil, nil)
			w.Record(main, `{"id":"i-1","password":"hunter2","uses":"hunter2"}`)
			rec, err := w.Ledger.Instance(t.Context(), main.Ref)
			if err != nil {
				t.Fatal(err)
			}
			rec.Sensitive = []byte(`[[{"attr":"uses"}]]`)
			if err := w.Ledger.Save(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			w.Record(w.Put("shared:test-thing/far", nil, nil), `{"id":"i-2","password":"x","uses":null}`)
			w.Record(w.Put("data-test-image/base", nil, nil), `{"id":"i-3","name":"n","token":"hush"}`)
			w.Put("ephemeral-test-token/t", map[string]any{"audience": "db"}, nil)
			w.Put("ephemeral-test-token/told", map[string]any{"audience": "for-${test_thing.main.password}"}, nil)
			w.Data["secrets/team/db"] = map[string][]byte{"password": []byte("s3cret")}
			for _, key := range test.forbidden {
				w.Forbidden[key] = true
			}
			s := w.NewScope(w.Plan(), "team", func(addr lang.Address) (cty.Value, bool) {
				return cty.ObjectVal(map[string]cty.Value{"password": cty.StringVal("new").Mark(lang.Sensitive)}), test.planned && addr.Name == "main"
			})
			defer func() { _ = s.Close(t.Context()) }()
			v, err := read(t, s, test.expression)
			switch {
			case test.refused == "":
				if _, held := lang.HoldsPassOnly(v); err != nil || held != (len(test.forbidden) > 1 && strings.Contains(test.expression, "test_thing.main.password")) {
					t.Errorf("got %#v, %v", v, err)
				}
			case err == nil || !strings.Contains(err.Error(), test.refused) || strings.Contains(err.Error(), "hunter2"):
				t.Errorf("got %#v, %v; want the refusal %s", v, err, test.refused)
			}
		})
	}
}
