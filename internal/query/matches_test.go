package query

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/scope"

	"github.com/google/go-cmp/cmp"
)

// TestQueryMatchesObjects finds the objects that a resource may belong to, by the values of their specs. The argument
// "uses" of the fake resource ID is "${of ID}".
func TestQueryMatchesObjects(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Provider.Things = []string{"0", "1", "far", "owned", "hidden", "whole"}
	w.Data["secrets/team/db"] = map[string][]byte{"id": []byte("whole")}
	w.Record(w.Put("test-thing/main", nil, nil), `{"id":"main","password":"whole","uses":"far"}`)
	w.Put("test-thing/new", nil, nil)
	owner := w.Put("test-thing/owner", nil, nil)
	rec := &ledger.Instance{Object: owner.Ref, Provider: "test", State: ledger.State{Type: "test_thing", Attributes: []byte(`{"id":"owned"}`), Identity: []byte(`{"id":"owned"}`)}}
	if err := w.Ledger.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	hidden := w.Put("private:test-thing/hidden", nil, nil)
	w.Record(hidden, `{"id":"hidden"}`)
	w.Forbidden["private/test-things/hidden"] = true
	w.Forbidden["team/test-things/state/main"] = true
	w.Forbidden["team/configmaps/keys"] = true
	of := func(expression string) map[string]any { return map[string]any{"uses": "$${of ${" + expression + "}}"} }
	specs := map[string]map[string]any{
		"web[0]": {"uses": "$${of ${count.index}}", "password": "another secret"}, "web[1]": of("count.index"), "web[2]": of("count.index"),
		"keyed[\"0\"]": of("each.key"), "refers": of("test_thing.main.uses"), "taken": of(`"owned"`), "hidden": of(`"hidden"`), "other": {"uses": "other"},
		"unapplied": of("test_thing.new.id"), "gone": of("test_thing.gone.id"), "secret": of("secret.db.id"), "empty": nil,
		"guessing": of("nonsensitive(test_thing.main.password)"), "opening": of("ephemeral.test_token.t.value"),
	}
	names := []string{"web[0]", "web[1]", "web[2]", "keyed[\"0\"]", "refers", "taken", "hidden", "other", "unapplied", "gone", "secret", "empty", "guessing", "opening"}
	for _, name := range names {
		w.Put("test-thing/"+name, specs[name], nil)
		instance := map[string]any{"set": "web", "setUID": "s"}
		switch {
		case strings.HasPrefix(name, "keyed"):
			instance["source"] = "keys"
			fallthrough
		case v1alpha1.IsInstanceName(name):
			w.Stored["team:test-thing/"+name].Object[v1alpha1.FieldInstance] = instance
		}
	}
	q := newQuery(v1alpha1.QuerySpec{Type: "test_thing", Objects: names})
	if err := (&Queries{w.Sources}).Query(t.Context(), ann(), q); err != nil {
		t.Fatal(err)
	}
	matches := map[string][]string{}
	for _, r := range q.Status.Results {
		matches[r.DisplayName] = r.Matches
		if r.Manifest != nil || r.Attributes == nil {
			t.Errorf("%s: manifest %s, attributes %v", r.DisplayName, r.Manifest, r.Attributes)
		}
	}
	want := map[string][]string{"Thing 0": {"web[0]"}, "Thing 1": {"web[1]"}, "Thing far": {"refers"}, "Thing owned": nil, "Thing hidden": nil, "Thing whole": nil}
	if diff := cmp.Diff(want, matches); diff != "" {
		t.Errorf("matches (-want +got):\n%s", diff)
	}
	var warned []string
	for _, d := range q.Status.Diagnostics {
		warned = append(warned, d.Address)
		if d.Severity != v1alpha1.SeverityWarning || strings.Contains(fmt.Sprint(d), "whole") {
			t.Errorf("diagnostic %+v", d)
		}
	}
	if diff := cmp.Diff([]string{
		`test_thing.keyed["0"]`, "test_thing.unapplied", "test_thing.gone", "test_thing.secret", "test_thing.empty", "test_thing.guessing", "test_thing.opening",
	}, warned); diff != "" {
		t.Errorf("not compared (-want +got):\n%s", diff)
	}
	for _, call := range w.Provider.RecordedCalls() {
		if strings.HasPrefix(call, "open ") {
			t.Errorf("the query opened an ephemeral resource: %s", call)
		}
	}
}

// TestQueryRefusesObjects refuses objects that do not exist, and those that the user may not read.
func TestQueryRefusesObjects(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Put("test-thing/hidden", nil, nil)
	w.Forbidden["team/test-things/hidden"] = true
	ask := func(names ...string) error {
		return (&Queries{w.Sources}).Query(t.Context(), ann(), newQuery(v1alpha1.QuerySpec{Type: "test_thing", Objects: names}))
	}
	if err := ask("hidden"); !scope.IsForbidden(err) {
		t.Errorf("an object that may not be read: %v", err)
	}
	if qe, ok := errors.AsType[*QueryError](ask("nothing")); !ok || qe.Field != "spec.objects[0]" {
		t.Errorf("an object that does not exist: %v", qe)
	}
	if qe, ok := errors.AsType[*QueryError](ask(make([]string, maxObjects+1)...)); !ok || qe.Field != "spec.objects" {
		t.Errorf("too many objects: %v", qe)
	}
}
