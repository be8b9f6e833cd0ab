package query

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/store"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The outputs of a stack have what is recorded, with the rights of its author.
func TestOutputs(t *testing.T) {
	for reason, test := range map[string]struct {
		outputs   map[string]string
		forbidden []string
		want      []Output
		problem   string
	}{
		"a template":                        {outputs: map[string]string{"url": "https://${test_thing.main.id}"}, want: []Output{{Name: "url", JSON: `"https://i-1"`, Text: "https://i-1"}}},
		"a constant":                        {outputs: map[string]string{"a": "1"}, want: []Output{{Name: "a", JSON: `"1"`, Text: "1"}}},
		"a list, and another":               {outputs: map[string]string{"b": "${[1, true]}", "a": "x"}, want: []Output{{Name: "a", JSON: `"x"`, Text: "x"}, {Name: "b", JSON: "[1,true]", Text: "[1,true]"}}},
		"a secret":                          {outputs: map[string]string{"p": "${test_thing.main.password}"}, want: []Output{{Name: "p", JSON: `"hunter2"`, Text: "hunter2", Sensitive: true}}},
		"a secret, marked":                  {outputs: map[string]string{"p": "${sensitive(test_thing.main.id)}"}, want: []Output{{Name: "p", JSON: `"i-1"`, Text: "i-1", Sensitive: true}}},
		"a secret, not to be read":          {outputs: map[string]string{"p": "${test_thing.main.password}"}, forbidden: []string{"team/test-things/state/main"}, problem: `the output "p" has no value: it refers to`},
		"a revealed secret, not to be read": {outputs: map[string]string{"p": "${nonsensitive(test_thing.main.password)}"}, forbidden: []string{"team/test-things/state/main"}, problem: `has no value`},
		"an object, not to be read":         {outputs: map[string]string{"p": "${test_thing.main.id}"}, forbidden: []string{"team/test-things/main"}, problem: `The user "ann" may not read "main" of test-things`},
		"a Secret, not to be read":          {outputs: map[string]string{"p": "${secret.db.password}"}, forbidden: []string{"team/secrets/db"}, problem: `may not read "db" of secrets`},
		"what is not applied":               {outputs: map[string]string{"p": "${test_thing.new.id}"}, problem: "not recorded yet"},
		"what does not exist":               {outputs: map[string]string{"p": "${test_thing.mian.id}"}, problem: "Did you mean test_thing.main?"},
		"too much":                          {outputs: map[string]string{"p": `${join("", [for a in range(1000) : join("", [for b in range(10) : "0123456789"])])}`}, problem: "the limit is 65536"},
	} {
		t.Run(reason, func(t *testing.T) {
			w := activitiestest.NewWorld(t)
			w.Record(w.Put("test-thing/main", nil, nil), `{"id":"i-1","password":"hunter2","uses":null}`)
			w.Put("test-thing/new", nil, nil)
			w.Data["secrets/team/db"] = map[string][]byte{"password": []byte("s3cret")}
			for _, key := range test.forbidden {
				w.Forbidden[key] = true
			}
			got, err := (&Queries{w.Sources}).Outputs(t.Context(), ann(), "team", test.outputs)
			failed, is := errors.AsType[*OutputError](err)
			if test.problem == "" && err != nil || test.problem != "" && (!is || !strings.Contains(failed.Problem, test.problem) || strings.Contains(failed.Problem, "hunter2")) {
				t.Errorf("got %v, want %q", err, test.problem)
			}
			if d := cmp.Diff(test.want, got, cmpopts.IgnoreFields(Output{}, "Writers")); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestOutputsHaveTheWritersOfWhatTheyRead expects for each output those who wrote the keys that it reads, or caused the values.
func TestOutputsHaveTheWritersOfWhatTheyRead(t *testing.T) {
	by := func(name string, wrote ...string) v1alpha1.Contributor {
		return v1alpha1.Contributor{Identity: v1alpha1.Identity{Username: name}, Wrote: wrote}
	}
	w := activitiestest.NewWorld(t)
	main := w.Put("test-thing/main", nil, nil)
	w.Record(main, `{"id":"i-1","password":null,"uses":"x"}`)
	rec := w.Instance(main)
	rec.Writers = []v1alpha1.Contributor{by("alice"), by("eve", "uses")}
	if err := w.Ledger.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	w.Record(w.Put("test-thing/old", nil, nil), `{"id":"i-2","password":null,"uses":"x"}`)
	w.Data["configmaps/team/c"] = map[string][]byte{"mine": []byte("1"), "yours": []byte("2")}
	w.Wrote = map[store.Written]store.Writers{{Kind: "ConfigMap", Namespace: "team", Name: "c"}: {List: []v1alpha1.Contributor{by("carol"), by("bob", "yours")}}}
	got, err := (&Queries{w.Sources}).Outputs(t.Context(), ann(), "team", map[string]string{
		"constant": "1", "id": "${test_thing.main.id}", "uses": "${namespace.team.test_thing.main.uses}", "mine": "${configmap.c.mine}",
		"both": "${configmap.c.yours}-${test_thing.main.uses}", "all": "${jsonencode(configmap.c)}", "unknown": "${test_thing.old.id}",
	})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{}
	for _, o := range got {
		names[o.Name] = slices.Sorted(slices.Values(contributor.Names(o.Writers)))
	}
	want := map[string][]string{"constant": nil, "id": {"alice"}, "uses": {"eve"}, "mine": {"carol"}, "both": {"bob", "eve"}, "all": {"bob", "carol"}, "unknown": {"others"}}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// TestAnOutputOfASecretIsSensitive has expressions that lose the mark of a sensitive value.
func TestAnOutputOfASecretIsSensitive(t *testing.T) {
	for text, want := range map[string]bool{
		"${configmap.c[secret.s.key]}": true, `${can(regex("^h", secret.s.pw))}`: true, "${nonsensitive(secret.s.pw)}": false, "${configmap.c.key}": false, "nonsensitive(${secret.s.pw})": true, "${nonsensitive(configmap.c.key)}${secret.s.pw}": true,
	} {
		if got := refersToSecret(text, "team"); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
}

// TestOutputsNeedTheRightsToAllOrigins has a resource to which a plan gave the secret of another namespace. The author of the
// stack may read the state of that resource, and needs the right to the source of the secret, too.
func TestOutputsNeedTheRightsToAllOrigins(t *testing.T) {
	for _, test := range []struct{ forbidden, problem string }{
		{"", ""},
		{"prod/test-things/state/safe", `comes from namespace.prod.test_thing.safe, and the user "ann"`},
		{"prod/secrets/key", `comes from namespace.prod.secret.key.token, and the user "ann"`},
	} {
		w := activitiestest.NewWorld(t)
		r := w.Put("test-thing/main", nil, nil)
		w.Record(r, `{"id":"i-1","password":null,"uses":"hunter2"}`)
		rec := w.Instance(r)
		rec.Sensitive = []byte(`[[{"attr":"uses"},{"origins":[{"address":{"Namespace":"prod","Type":"test_thing","Name":"safe"}},` +
			`{"address":{"Namespace":"prod","Type":"secret","Name":"key"},"key":"token"}]}]]`)
		if err := w.Ledger.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		w.Forbidden[test.forbidden] = true
		got, err := (&Queries{w.Sources}).Outputs(t.Context(), ann(), "team", map[string]string{"p": "a-${test_thing.main.uses}"})
		failed, is := errors.AsType[*OutputError](err)
		switch {
		case test.problem == "" && (err != nil || len(got) != 1 || got[0].Text != "a-hunter2" || !got[0].Sensitive):
			t.Errorf("got %v, %v", got, err)
		case test.problem != "" && (!is || !strings.Contains(failed.Problem, test.problem) || strings.Contains(failed.Problem, "hunter2")):
			t.Errorf("%s: got %v, %v", test.forbidden, got, err)
		}
	}
}

// shop finds one Module.
type shop struct{ of *resourceset.Module }

func (shop) Set(context.Context, v1alpha1.ObjectReference) (*resourceset.Set, error) { return nil, nil }

func (m shop) Module(context.Context, string, string) (*resourceset.Module, error) {
	return m.of, nil
}

// TestStateOutputs evaluates outputs as a Terraform state has them: with types, and with the secrets that the user may read.
func TestStateOutputs(t *testing.T) {
	const files = `
variable "id" {}
variable "secret" {}
variable "password" {}
resource "test_thing" "new" {}
output "absent" { value = null }
output "id" { value = var.id }
output "list" { value = tolist([var.id]) }
output "new" { value = test_thing.new.id }
output "password" {
  value     = { of = var.password }
  sensitive = true
}
output "secret" {
  value     = var.secret
  sensitive = true
}`
	text := func(s string) v1alpha1.JSON { return v1alpha1.JSON{Raw: []byte(s)} }
	id := v1alpha1.StateOutput{Name: "id", Value: text(`"i-1"`), Type: text(`"string"`)}
	list := v1alpha1.StateOutput{Name: "list", Value: text(`["i-1"]`), Type: text(`["list","string"]`)}
	password := v1alpha1.StateOutput{Name: "password", Value: text(`{"of":"hunter2"}`), Type: text(`["object",{"of":"string"}]`), Sensitive: true}
	secret := v1alpha1.StateOutput{Name: "secret", Value: text(`"s3cret"`), Type: text(`"string"`), Sensitive: true}
	const unrecorded = "output.new: it refers to a value that is not recorded yet"
	for reason, test := range map[string]struct {
		forbidden string
		want      []v1alpha1.StateOutput
		problems  []string
	}{
		"all rights": {"", []v1alpha1.StateOutput{id, list, password, secret}, []string{unrecorded}},
		"no right to the secrets of a resource": {"team/test-things/state/main", []v1alpha1.StateOutput{id, list, secret},
			[]string{unrecorded, `output.password: it comes from namespace.team.test_thing.main, and the user "ann" has no right to`}},
		"no right to a Secret": {"team/secrets/db", []v1alpha1.StateOutput{id, list, password}, []string{unrecorded, `output.secret: `}},
	} {
		t.Run(reason, func(t *testing.T) {
			w := activitiestest.NewWorld(t)
			w.Record(w.Put("test-thing/main", nil, nil), `{"id":"i-1","password":"hunter2","uses":null}`)
			w.Data["secrets/team/db"] = map[string][]byte{"password": []byte("s3cret")}
			w.Forbidden[test.forbidden] = true
			obj := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", UID: "shop"}}
			obj.Spec.Source.ConfigMap = "shop-tf"
			obj.Spec.Inputs = map[string]v1alpha1.JSON{
				"id": text(`"${test_thing.main.id}"`), "password": text(`"${test_thing.main.password}"`), "secret": text(`"${secret.db.password}"`),
			}
			m, err := resourceset.NewModule(obj, 1, map[string][]byte{"main.tf": []byte(files)}, resourceset.Environment{
				Provider: func(v1alpha1.Mode, string, string) (string, error) { return "test", nil },
			}, nil)
			if err != nil || m.Problem != "" {
				t.Fatal(err, m.Problem)
			}
			w.Sources.Sets = shop{m}
			got, problems, err := (&Queries{w.Sources}).StateOutputs(t.Context(), ann(), m)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Error(d)
			}
			if len(problems) != len(test.problems) {
				t.Fatalf("problems %+v, want %q", problems, test.problems)
			}
			for i, p := range problems {
				if line := p.Address + ": " + p.Problem; !strings.HasPrefix(line, test.problems[i]) || strings.Contains(line, "hunter2") {
					t.Errorf("problem %q, want %q", line, test.problems[i])
				}
			}
		})
	}
}
