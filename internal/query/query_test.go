package query

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/scope"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/runtime"
)

func newQuery(spec v1alpha1.QuerySpec) *v1alpha1.Query {
	q := &v1alpha1.Query{Spec: spec}
	q.Namespace = "team"
	return q
}

func jsonOf(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

func ann() v1alpha1.Identity { return v1alpha1.Identity{Username: "ann"} }

func TestQueryLists(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Provider.Things = []string{"a", "b", "c"}
	own := func(name, identity string) {
		r := w.Put(name, nil, nil)
		rec := &ledger.Instance{Object: r.Ref, Provider: "test", State: ledger.State{Type: "test_thing", Attributes: []byte(`{"id":"x"}`), Identity: []byte(identity)}}
		if err := w.Ledger.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	own("test-thing/mine", `{ "id": "a" }`)
	own("shared:test-thing/theirs", `{"id":"b"}`)
	own("private:test-thing/hidden", `{"id":"c"}`)
	w.Forbidden["private/test-things/hidden"] = true
	q := newQuery(v1alpha1.QuerySpec{Type: "test_thing", Config: jsonOf(`{"prefix":"net"}`)})
	if err := (&Queries{w.Sources}).Query(t.Context(), ann(), q); err != nil {
		t.Fatal(err)
	}
	hidden := q.Status.Results[2].Diagnostics
	if len(hidden) != 1 || hidden[0].Summary != "Resource is managed already" || strings.Contains(hidden[0].Detail, "hidden") {
		t.Errorf("said of an object that may not be read: %+v", hidden)
	}
	q.Status.Results[2].Diagnostics = nil
	want := v1alpha1.QueryStatus{Results: []v1alpha1.QueryResult{
		{DisplayName: "Thing a", Identity: jsonOf(`{"id":"a"}`), ManagedBy: "test_thing.mine"},
		{DisplayName: "Thing b", Identity: jsonOf(`{"id":"b"}`), ManagedBy: "namespace.shared.test_thing.theirs"},
		{DisplayName: "Thing c", Identity: jsonOf(`{"id":"c"}`)},
	}}
	if diff := cmp.Diff(want, q.Status); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"list net"}, w.Provider.RecordedCalls()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestQueryStopsAtItsLimit(t *testing.T) {
	for limit, truncated := range map[int64]bool{2: true, 3: false, 0: false} {
		w := activitiestest.NewWorld(t)
		w.Provider.Things = []string{"a", "b", "c"}
		q := newQuery(v1alpha1.QuerySpec{Type: "test_thing", Limit: limit})
		if err := (&Queries{w.Sources}).Query(t.Context(), ann(), q); err != nil {
			t.Fatal(err)
		}
		want := 3
		if truncated {
			want = int(limit)
		}
		if len(q.Status.Results) != want || q.Status.Truncated != truncated {
			t.Errorf("limit %d: %d results, truncated %t", limit, len(q.Status.Results), q.Status.Truncated)
		}
	}
}

func TestQueryMakesManifests(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Config(nil)
	w.Provider.Things = []string{"a", "a!", "${b}"}
	w.Put("test-thing/thing-a", nil, nil)
	q := newQuery(v1alpha1.QuerySpec{Type: "test_thing", Manifests: true, ProviderConfig: "default"})
	if err := (&Queries{w.Sources}).Query(t.Context(), ann(), q); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range q.Status.Results {
		if r.Manifest == nil {
			t.Fatalf("no manifest: %+v", r)
		}
		var m struct {
			Metadata struct{ Name string }
		}
		if err := json.Unmarshal(r.Manifest.Raw, &m); err != nil {
			t.Fatal(err)
		}
		names = append(names, m.Metadata.Name)
		if strings.Contains(string(r.Manifest.Raw)+string(r.Attributes.Raw), "secret-of") {
			t.Errorf("a secret is shown: %s %s", r.Manifest.Raw, r.Attributes.Raw)
		}
		if len(r.Diagnostics) != 1 || r.Diagnostics[0].Attribute != "spec.password" {
			t.Errorf("said of the secret: %+v", r.Diagnostics)
		}
	}
	if diff := cmp.Diff([]string{"thing-a-2", "thing-a-3", "thing-b"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	var got map[string]any
	if err := json.Unmarshal(q.Status.Results[2].Manifest.Raw, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "test.hykube.io/v1", "kind": "test-thing", "metadata": map[string]any{"name": "thing-b", "namespace": "team"},
		"spec":      map[string]any{"uses": "$${of $${b}}"},
		"lifecycle": map[string]any{"providerConfig": "default", "import": map[string]any{"identity": map[string]any{"id": "$${b}"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
}

func TestQueryReadsWhatTheListLeavesOut(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Provider.Things = []string{"whole", "a"}
	w.Provider.Fails["import a"] = activitiestest.Refusal("busy")
	q := newQuery(v1alpha1.QuerySpec{Type: "test_thing", Manifests: true})
	if err := (&Queries{w.Sources}).Query(t.Context(), ann(), q); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"list ", "import a"}, w.Provider.RecordedCalls()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if len(q.Status.Results) != 2 || q.Status.Results[0].Manifest == nil {
		t.Fatalf("got %+v", q.Status)
	}
	if r := q.Status.Results[1]; r.Manifest != nil || !diag.HasErrors(r.Diagnostics) || r.Diagnostics[0].Summary != "busy" {
		t.Errorf("of what cannot be read: %+v", r)
	}
}

func TestQueryLooksForOne(t *testing.T) {
	for name, tc := range map[string]struct {
		by      v1alpha1.PlanImport
		want    v1alpha1.QueryResult
		imports map[string]any
		failed  string
	}{
		"by ID": {
			by:      v1alpha1.PlanImport{ID: "a"},
			want:    v1alpha1.QueryResult{DisplayName: "a", ID: "a", Identity: jsonOf(`{"id":"a"}`), ManagedBy: "test_thing.mine"},
			imports: map[string]any{"id": "a"},
		},
		"by identity": {
			by:      v1alpha1.PlanImport{Identity: jsonOf(`{"id":"b"}`)},
			want:    v1alpha1.QueryResult{DisplayName: "b", Identity: jsonOf(`{"id":"b"}`)},
			imports: map[string]any{"identity": map[string]any{"id": "b"}},
		},
		"that is not there": {by: v1alpha1.PlanImport{ID: "none"}, failed: "no such thing"},
	} {
		t.Run(name, func(t *testing.T) {
			w := activitiestest.NewWorld(t)
			w.Record(w.Put("test-thing/mine", nil, nil), `{"id":"a"}`)
			w.Provider.Fails["import none"] = activitiestest.Refusal("no such thing")
			q := newQuery(v1alpha1.QuerySpec{Type: "test-thing", Import: &tc.by, Manifests: true})
			if err := (&Queries{w.Sources}).Query(t.Context(), ann(), q); err != nil {
				t.Fatal(err)
			}
			if tc.failed != "" {
				if !diag.HasErrors(q.Status.Diagnostics) || q.Status.Diagnostics[0].Summary != tc.failed || len(q.Status.Results) != 0 {
					t.Errorf("got %+v, want %q", q.Status, tc.failed)
				}
				return
			}
			if len(q.Status.Results) != 1 {
				t.Fatalf("got %+v", q.Status)
			}
			r := q.Status.Results[0]
			var m struct {
				Lifecycle struct{ Import map[string]any }
			}
			if err := json.Unmarshal(r.Manifest.Raw, &m); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.imports, m.Lifecycle.Import); diff != "" {
				t.Errorf("import (-want +got):\n%s", diff)
			}
			r.Manifest, r.Attributes, r.Diagnostics = nil, nil, nil
			if diff := cmp.Diff(tc.want, r); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestQueryRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		spec  v1alpha1.QuerySpec
		field string
	}{
		"a type that there is not":              {v1alpha1.QuerySpec{Type: "test_what"}, "spec.type"},
		"a type of two providers":               {v1alpha1.QuerySpec{Type: "test_thing", Provider: ""}, "spec.provider"},
		"a provider that there is not":          {v1alpha1.QuerySpec{Type: "test_thing", Provider: "what"}, "spec.provider"},
		"a type that cannot be listed":          {v1alpha1.QuerySpec{Type: "test_thing", Provider: "other"}, "spec.type"},
		"a limit beyond the largest":            {v1alpha1.QuerySpec{Type: "test_thing", Provider: "test", Limit: 10_001}, "spec.limit"},
		"an import by nothing":                  {v1alpha1.QuerySpec{Type: "test_thing", Provider: "test", Import: &v1alpha1.PlanImport{}}, "spec.import"},
		"an identity of a type without one":     {v1alpha1.QuerySpec{Type: "test_thing", Provider: "other", Import: &v1alpha1.PlanImport{Identity: jsonOf(`{"id":"a"}`)}}, "spec.import.identity"},
		"an identity that is none":              {v1alpha1.QuerySpec{Type: "test_thing", Provider: "test", Import: &v1alpha1.PlanImport{Identity: jsonOf(`{"what":"a"}`)}}, "spec.import.identity"},
		"a ProviderConfig that there is not":    {v1alpha1.QuerySpec{Type: "test_thing", Provider: "test", ProviderConfig: "what"}, "spec.providerConfig"},
		"a ProviderConfig of another provider":  {v1alpha1.QuerySpec{Type: "test_thing", Provider: "other", ProviderConfig: "default", Import: &v1alpha1.PlanImport{ID: "a"}}, "spec.providerConfig"},
		"an argument that there is not":         {v1alpha1.QuerySpec{Type: "test_thing", Provider: "test", Config: jsonOf(`{"what":1}`)}, "spec.config"},
		"an argument that refers to a resource": {v1alpha1.QuerySpec{Type: "test_thing", Provider: "test", Config: jsonOf(`{"prefix":"${test_thing.a.id}"}`)}, "spec.config"},
	} {
		w := activitiestest.NewWorld(t)
		w.Config(nil)
		other := activitiestest.Schema()
		other.ListResources, other.Identities = nil, nil
		w.Catalog.Put(catalog.Entry{Name: "other", Schema: other})
		err := (&Queries{w.Sources}).Query(t.Context(), ann(), newQuery(tc.spec))
		if qe, ok := errors.AsType[*QueryError](err); !ok || qe.Field != tc.field {
			t.Errorf("%s: got %v, want a *QueryError about %s", name, err, tc.field)
		}
	}
	w := activitiestest.NewWorld(t)
	w.Config(nil)
	w.Forbidden["team/providerconfigs/default"] = true
	err := (&Queries{w.Sources}).Query(t.Context(), ann(), newQuery(v1alpha1.QuerySpec{Type: "test_thing"}))
	if _, ok := errors.AsType[*scope.ForbiddenError](err); !ok {
		t.Errorf("got %v, want a *ForbiddenError", err)
	}
}

func TestLabel(t *testing.T) {
	for text, want := range map[string]string{
		"Web Server (EU)": "web-server-eu", "--a--": "a", "Ä": "", "": "",
		strings.Repeat("x", 70): strings.Repeat("x", 63), "a/b:c": "a-b-c",
	} {
		if got := label(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestIDs checks the IDs by which objects are compared. Providers have IDs that are strings, and IDs that are numbers.
func TestIDs(t *testing.T) {
	for attributes, want := range map[string]string{
		`{"id":"net-1"}`: "net-1", `{"id":12345678901234567890}`: "12345678901234567890", `{"id":null}`: "", `{"id":["a"]}`: "", `{}`: "", ``: "",
	} {
		if got := (&ledger.State{Attributes: []byte(attributes)}).ID(); got != want {
			t.Errorf("%s has the ID %q, want %q", attributes, got, want)
		}
	}
	for _, id := range []cty.Value{cty.StringVal("42"), cty.NumberIntVal(42)} {
		if got := idOf(cty.ObjectVal(map[string]cty.Value{"id": id})); got != "42" {
			t.Errorf("%#v has the ID %q", id, got)
		}
	}
}
