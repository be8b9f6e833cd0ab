package planning

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/store"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// uploaded is a document of a speculative plan.
func uploaded(t *testing.T, text string, change func(*ledger.Document)) ledger.Document {
	t.Helper()
	if !json.Valid([]byte(text)) {
		t.Fatalf("no JSON: %s", text)
	}
	d := ledger.Document{Object: json.RawMessage(text)}
	if change != nil {
		change(&d)
	}
	return d
}

func pruned(d *ledger.Document) { d.Pruned = true }

func foreign(d *ledger.Document) { d.Foreign = true }

// view is the world as the maker of a speculative plan of some documents sees it.
func view(w *activitiestest.World, docs ...ledger.Document) *Planner {
	w.T.Helper()
	po := w.Plan()
	po.Spec.Speculative = true
	if err := w.Ledger.SaveDocuments(w.T.Context(), po.UID, 0, docs); err != nil {
		w.T.Fatal(err)
	}
	a, err := plannerOf(w).withOverlay(w.T.Context(), po)
	if err != nil {
		w.T.Fatal(err)
	}
	return a
}

// listed lists the objects that a planner sees in a namespace.
func listed(t *testing.T, w *activitiestest.World, a *Planner, namespace string) []string {
	t.Helper()
	po := w.Plan()
	po.Namespace = namespace
	view, unready, err := a.view(t.Context(), po)
	if err != nil || len(unready) > 0 {
		t.Fatal(err, unready)
	}
	o := newOutline(view, po, a.ProviderConfigs(t.Context(), po), a.Catalog, nil)
	var slots []int
	for i, n := range o.Nodes {
		if n.Object != nil {
			slots = append(slots, i)
		}
	}
	slices.SortFunc(slots, o.before)
	var out []string
	for _, i := range slots {
		u, err := a.Objects.Get(t.Context(), o.Nodes[i].Object.Ref(namespace))
		if err != nil {
			t.Fatal(err)
		}
		text := u.GetNamespace() + "/" + u.GetName()
		if v, found, _ := unstructured.NestedString(u.Object, "spec", "uses"); found {
			text += "=" + v
		}
		if u.GetDeletionTimestamp() != nil {
			text += " deleted"
		}
		out = append(out, text)
	}
	return out
}

func TestOnlySpeculativePlansSeeAnOverlay(t *testing.T) {
	w := activitiestest.NewWorld(t)
	planner := plannerOf(w)
	if a, err := planner.withOverlay(t.Context(), w.Plan()); err != nil || a != planner {
		t.Errorf("another view: %v", err)
	}
}

// The objects of the files come at the position of the recorded ones, or after these. Objects that left the files are
// removed or marked.
func TestOverlayOfObjects(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Put("test-thing/kept", map[string]any{"uses": "recorded"}, nil)
	w.Put("test-thing/changed", map[string]any{"uses": "recorded"}, nil)
	w.Put("test-thing/left", nil, nil)
	w.Put("test-thing/never", nil, nil)
	a := view(w,
		uploaded(t, `{"apiVersion":"test.hykube.io/v1","kind":"test-thing","metadata":{"name":"new","namespace":"team","uid":"u-new"},"spec":{"uses":"file"}}`, nil),
		uploaded(t, `{"apiVersion":"test.hykube.io/v1","kind":"test-thing","metadata":{"name":"changed","namespace":"team","uid":"test-thing/changed"},"spec":{"uses":"file"}}`, nil),
		uploaded(t, `{"apiVersion":"test.hykube.io/v1","kind":"test-thing","metadata":{"name":"far","namespace":"other"},"spec":{"uses":"file"}}`, nil),
		uploaded(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"team"}}`, nil),
		uploaded(t, `{"apiVersion":"test.hykube.io/v1","kind":"test-thing","metadata":{"name":"left","namespace":"team","finalizers":["hykube.io/state"]},"spec":{}}`, pruned),
		uploaded(t, `{"apiVersion":"test.hykube.io/v1","kind":"test-thing","metadata":{"name":"never","namespace":"team"},"spec":{}}`, pruned),
	)
	if d := cmp.Diff([]string{"team/changed=file", "team/kept=recorded", "team/left deleted", "team/new=file"}, listed(t, w, a, "team")); d != "" {
		t.Errorf("objects (-want +got):\n%s", d)
	}
	if got := listed(t, w, a, "other"); !slices.Equal(got, []string{"other/far=file"}) {
		t.Errorf("objects of another namespace: %v", got)
	}
	ref := func(name, uid string) v1alpha1.ObjectReference {
		r := v1alpha1.ObjectReference{APIVersion: "test.hykube.io/v1", Kind: "test-thing", Namespace: "team", Name: name}
		if uid != "" {
			r.UID = w.Stored["team:test-thing/"+uid].GetUID()
		}
		return r
	}
	for _, tc := range []struct {
		reason string
		ref    v1alpha1.ObjectReference
		gone   bool
	}{
		{"a recorded one", ref("kept", "kept"), false},
		{"one of the files", ref("new", ""), false},
		{"one of both", ref("changed", "changed"), false},
		{"another one of the name", ref("changed", "kept"), true},
		{"what is marked", ref("left", ""), false},
		{"what is gone", ref("never", ""), true},
		{"what was never there", ref("nosuch", ""), true},
	} {
		u, err := a.Objects.Get(t.Context(), tc.ref)
		if gone := errors.Is(err, store.ErrGone); gone != tc.gone || !gone && (err != nil || u.GetName() != tc.ref.Name) {
			t.Errorf("%s: %v, %v", tc.reason, u, err)
		}
	}

	already := view(w, uploaded(t, `{"apiVersion":"test.hykube.io/v1","kind":"test-thing","metadata":{"name":"left","namespace":"team","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{}}`, pruned))
	for name, got := range map[string]bool{"left": !a.leftFiles(ref("left", "")), "of the files": a.leftFiles(ref("new", "")), "marked before": already.leftFiles(ref("left", "")),
		"no files": plannerOf(w).leftFiles(ref("left", ""))} {
		if got {
			t.Errorf("%s: whether it left the files is wrong", name)
		}
	}

	// A change of a returned object changes neither the document nor the store.
	u, _ := a.Objects.Get(t.Context(), ref("new", ""))
	u.Object["spec"] = nil
	if again, _ := a.Objects.Get(t.Context(), ref("new", "")); again.Object["spec"] == nil {
		t.Error("an answer is the document itself")
	}
	_, added := a.Objects.AddFinalizer(t.Context(), u)
	err := errors.Join(added,
		a.Objects.UpdateStatus(t.Context(), ref("kept", ""), nil, func(*unstructured.Unstructured) map[string]any { return map[string]any{"x": "y"} }),
		a.Objects.RemoveFinalizer(t.Context(), ref("kept", "")))
	if err != nil || w.Stored["team:test-thing/kept"].Object["status"] != nil {
		t.Errorf("written: %v, %v", w.Stored["team:test-thing/kept"].Object["status"], err)
	}
}

func TestOverlayOfSecretsAndConfigMaps(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Data["secrets/team/recorded"] = map[string][]byte{"k": []byte("recorded")}
	w.Data["secrets/team/left"] = map[string][]byte{"k": []byte("recorded")}
	w.Data["configmaps/team/recorded"] = map[string][]byte{"k": []byte("recorded")}
	w.Data["configmaps/team/changed"] = map[string][]byte{"k": []byte("recorded")}
	a := view(w,
		uploaded(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"new","namespace":"team"},"data":{"k":"ZmlsZQ=="}}`, nil),
		uploaded(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"empty","namespace":"team"}}`, nil),
		uploaded(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"left","namespace":"team"},"data":{"k":"ZmlsZQ=="}}`, pruned),
		uploaded(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"changed","namespace":"team"},"data":{"k":"file"},"binaryData":{"b":"AAE="}}`, nil),
	)
	text := func(data map[string][]byte, err error) string {
		if data == nil || err != nil {
			return "none"
		}
		return string(data["k"]) + string(data["b"])
	}
	for name, want := range map[string]string{"recorded": "recorded", "new": "file", "empty": "", "left": "none", "nosuch": "none"} {
		if got := text(a.Configs.SecretData(t.Context(), "team", name)); got != want {
			t.Errorf("Secret %s: %q, not %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"recorded": "recorded", "changed": "file\x00\x01", "nosuch": "none"} {
		if got := text(a.Configs.ConfigMap(t.Context(), "team", name)); got != want {
			t.Errorf("ConfigMap %s: %q, not %q", name, got, want)
		}
	}
	if v, err := a.Configs.Secret(t.Context(), "team", "new", "k"); string(v) != "file" || err != nil {
		t.Errorf("one key: %q, %v", v, err)
	}
	for name, want := range map[string]string{"left": `there is no Secret "left"`, "empty": `has no key "k"`} {
		if _, err := a.Configs.Secret(t.Context(), "team", name, "k"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a key of %s: %v", name, err)
		}
	}
	names, err := a.Configs.ConfigMapNames(t.Context(), "team")
	if d := cmp.Diff([]string{"changed", "recorded"}, names); d != "" || err != nil {
		t.Errorf("names (-want +got):\n%s%v", d, err)
	}
}

// The provider must not receive values that the plan's creator has no right to record.
func TestOverlayOfProviderConfigs(t *testing.T) {
	const config = `{"apiVersion":"hykube.io/v1alpha1","kind":"ProviderConfig","metadata":{"name":"default","namespace":"team"},"spec":{"provider":"test","secretRefs":[{"name":"s","key":"k"}],"config":{"address":"${configmap.c.k}"}}}`
	secret := uploaded(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"team"}}`, nil)
	configMap := uploaded(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"team"}}`, nil)
	for _, tc := range []struct {
		reason string
		docs   []ledger.Document
		want   string // the error; "" for none
	}{
		{"all of it may be recorded", []ledger.Document{uploaded(t, config, nil), secret, configMap}, ""},
		{"a Secret may not", []ledger.Document{uploaded(t, config, nil), {Object: secret.Object, Foreign: true}, configMap}, `the Secret "s"`},
		{"a ConfigMap may not", []ledger.Document{uploaded(t, config, nil), secret, {Object: configMap.Object, Foreign: true}}, "configmap.c"},
		{"a resource may not, and the configuration refers to one", []ledger.Document{
			uploaded(t, strings.Replace(config, "configmap.c.k", "test_thing.a.id", 1), nil),
			uploaded(t, `{"apiVersion":"test.hykube.io/v1","kind":"test-thing","metadata":{"name":"b","namespace":"team"}}`, foreign)}, "resources such as test_thing.a"},
	} {
		w := activitiestest.NewWorld(t)
		cfg, err := view(w, tc.docs...).Configs.Get(t.Context(), "team", "default")
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) || err == nil && cfg.Spec.Provider != "test" {
			t.Errorf("%s: %v, %v", tc.reason, cfg, err)
		}
	}
	w := activitiestest.NewWorld(t)
	w.Config(nil)
	if cfg, err := view(w, uploaded(t, config, pruned)).Configs.Get(t.Context(), "team", "default"); cfg != nil || err != nil {
		t.Errorf("one that left the files: %v, %v", cfg, err)
	}
	w = activitiestest.NewWorld(t)
	w.Config(nil)
	if cfg, err := view(w).Configs.Get(t.Context(), "team", "default"); cfg == nil || err != nil {
		t.Errorf("a recorded one: %v, %v", cfg, err)
	}
}
