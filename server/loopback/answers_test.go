package loopback

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/query"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/storage"
)

var network = kinds.Kind{
	Provider: "sim", Mode: v1alpha1.ModeManaged, Type: "sim_network",
	GVK: kschema.GroupVersionKind{Group: "sim.hykube.io", Version: "v1", Kind: "sim-network"},
	GVR: kschema.GroupVersionResource{Group: "sim.hykube.io", Version: "v1", Resource: "sim-networks"},
}

func newAnswers(t *testing.T) *Answers {
	t.Helper()
	store, err := storage.Open(t.Context(), storage.Config{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close storage: %v", err)
		}
	})
	return &Answers{Ledger: ledger.New(store.KV()), Stored: store.Objects()}
}

func newObject(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetNamespace("team")
	u.SetName(name)
	u.SetUID(types.UID("uid-" + name))
	return u
}

// record writes the record of an object's infrastructure.
func record(t *testing.T, a *Answers, name string, fill func(*ledger.Instance)) {
	t.Helper()
	rec, err := a.record(t.Context(), newObject(name), network)
	if err != nil {
		t.Fatal(err)
	}
	rec.Type, rec.Provider = "sim_network", "sim"
	fill(rec)
	if err := a.Ledger.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
}

func TestTaint(t *testing.T) {
	a := newAnswers(t)
	living := func(rec *ledger.Instance) { rec.Attributes = json.RawMessage(`{"id":"1"}`) }
	record(t, a, "fine", living)
	record(t, a, "tainted", func(rec *ledger.Instance) { living(rec); rec.Tainted = true })
	record(t, a, "busy", func(rec *ledger.Instance) { living(rec); rec.Intent = &ledger.Intent{Action: v1alpha1.ActionUpdate} })
	record(t, a, "gone", func(*ledger.Instance) {})
	for _, test := range []struct {
		reason, name string
		taint, want  bool
		refused      func(error) bool
	}{
		{"taint", "fine", true, true, nil},
		{"again", "fine", true, true, nil},
		{"untaint", "fine", false, false, nil},
		{"untaint a resource that a failed create left", "tainted", false, false, nil},
		{"a change is under way", "busy", true, false, apierrors.IsConflict},
		{"destroyed", "gone", true, false, apierrors.IsNotFound},
		{"never created", "new", true, false, apierrors.IsNotFound},
		{"untaint a resource that was never created", "new", false, false, apierrors.IsNotFound},
	} {
		_, err := a.Taint(t.Context(), newObject(test.name), network, test.taint)
		if (test.refused != nil) != (err != nil) || err != nil && !test.refused(err) {
			t.Errorf("%s: %v", test.reason, err)
		}
		if rec, err := a.record(t.Context(), newObject(test.name), network); err != nil || rec.Tainted != test.want {
			t.Errorf("%s: tainted %t, want %t (%v)", test.reason, rec.Tainted, test.want, err)
		}
	}
}

// After an untaint, the status is that of an applied object, unless the record has another reason.
func TestUntaintOfWhatWasApplied(t *testing.T) {
	a := newAnswers(t)
	for name, test := range map[string]struct {
		fill  func(*ledger.Instance)
		taint bool
		want  bool
	}{
		"applied":        {func(*ledger.Instance) {}, false, true},
		"tainted":        {func(*ledger.Instance) {}, true, false},
		"edited":         {func(rec *ledger.Instance) { rec.Object.Generation = 3 }, false, false},
		"made-in-part":   {func(rec *ledger.Instance) { rec.Object.Generation = 0 }, false, false},
		"with-something": {func(rec *ledger.Instance) { rec.Deposed = []ledger.Deposed{{Key: "0a1b2c3d"}} }, false, false},
	} {
		record(t, a, name, func(rec *ledger.Instance) {
			rec.Attributes, rec.Tainted, rec.Object.Generation = json.RawMessage(`{"id":"1"}`), true, 4
			test.fill(rec)
		})
		obj := newObject(name)
		obj.SetGeneration(4)
		if got, err := a.Taint(t.Context(), obj, network, test.taint); err != nil || got != test.want {
			t.Errorf("%s: as applied %t, want %t (%v)", name, got, test.want, err)
		}
	}
}

func TestStateShowsWhatIsLeftBehind(t *testing.T) {
	a := newAnswers(t)
	record(t, a, "left", func(rec *ledger.Instance) {
		rec.Deposed = []ledger.Deposed{{Key: "0a1b2c3d", State: ledger.State{Type: "sim_network", Attributes: json.RawMessage(`{"id":"old"}`)}}}
	})
	record(t, a, "gone", func(*ledger.Instance) {})
	raw, err := a.State(t.Context(), newObject("left"), network)
	if err != nil {
		t.Fatal(err)
	}
	var state struct {
		Type, Mode, Provider string
		Attributes           map[string]any
		Deposed              []struct {
			Key        string
			Attributes map[string]any
		}
	}
	if err := json.Unmarshal(raw, &state); err != nil {
		t.Fatal(err)
	}
	if state.Mode != "managed" || state.Provider != "sim" || state.Attributes != nil || len(state.Deposed) != 1 || state.Deposed[0].Key != "0a1b2c3d" || state.Deposed[0].Attributes["id"] != "old" {
		t.Errorf("state: %s", raw)
	}
	if raw, err := a.State(t.Context(), newObject("gone"), network); raw != nil || err != nil {
		t.Errorf("of nothing: %s %v", raw, err)
	}
}

// A managed resource keeps its Namespace and its ProviderConfig; a data source does not.
func TestInUse(t *testing.T) {
	attributes := json.RawMessage(`{"id":"1"}`)
	for reason, test := range map[string]struct {
		fill func(*ledger.Instance)
		want int
	}{
		"nothing":            {func(*ledger.Instance) {}, 0},
		"a resource":         {func(rec *ledger.Instance) { rec.Attributes, rec.ProviderConfig = attributes, "eu" }, 1},
		"of another config":  {func(rec *ledger.Instance) { rec.Attributes, rec.ProviderConfig = attributes, "us" }, 0},
		"a create under way": {func(rec *ledger.Instance) { rec.Intent, rec.ProviderConfig = &ledger.Intent{}, "eu" }, 1},
		"one that was left": {func(rec *ledger.Instance) {
			rec.Deposed = []ledger.Deposed{{State: ledger.State{ProviderConfig: "eu"}}}
		}, 1},
		"left, of another": {func(rec *ledger.Instance) {
			rec.Deposed = []ledger.Deposed{{State: ledger.State{ProviderConfig: "us"}}}
		}, 0},
		"a data source, read": {func(rec *ledger.Instance) {
			rec.Mode, rec.Attributes, rec.ProviderConfig = v1alpha1.ModeData, attributes, "eu"
		}, 0},
	} {
		a := newAnswers(t)
		record(t, a, "main", test.fill)
		n, example, err := a.InUse(t.Context(), &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "eu"}})
		if err != nil || n != test.want || (n > 0) != strings.Contains(example, "sim-network/main") {
			t.Errorf("%s: %d %q %v, want %d", reason, n, example, err, test.want)
		}
	}
}

// storedObjects are stored objects by resource, namespace and name.
type storedObjects map[string]map[string]any

func (s storedObjects) Shared(_ context.Context, gr kschema.GroupResource, namespace, name string) (*storage.SharedObject, error) {
	obj, ok := s[gr.String()+"/"+namespace+"/"+name]
	if !ok {
		return nil, nil
	}
	return &storage.SharedObject{Object: &unstructured.Unstructured{Object: obj}}, nil
}

func TestStoredProviderConfig(t *testing.T) {
	c := &Configs{Stored: storedObjects{"providerconfigs.hykube.io/team/eu": {
		"metadata": map[string]any{"name": "eu", "namespace": "team", "resourceVersion": "7"},
		"spec":     map[string]any{"provider": "sim", "limits": map[string]any{"concurrency": int64(2)}, "config": map[string]any{"region": "eu"}},
	}}}
	cfg, err := c.Get(t.Context(), "team", "eu")
	if err != nil || cfg.ResourceVersion != "7" || cfg.Spec.Provider != "sim" || cfg.Spec.Limits.Concurrency != 2 || string(cfg.Spec.Config.Raw) != `{"region":"eu"}` {
		t.Errorf("%+v, %v", cfg, err)
	}
	if cfg, err := c.Get(t.Context(), "team", "us"); cfg != nil || err != nil {
		t.Errorf("of an absent name: %+v, %v", cfg, err)
	}
}

func TestConfigData(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team", Name: name} }
	c := &Configs{
		Core: fake.NewClientset(
			&corev1.Secret{ObjectMeta: meta("db"), Data: map[string][]byte{"password": []byte("p")}},
			&corev1.Secret{ObjectMeta: meta("empty")},
		),
		Stored: storedObjects{"configmaps/team/app": {"data": map[string]any{"region": "eu"}, "binaryData": map[string]any{"blob": "/w=="}}},
	}
	type data = map[string][]byte
	for reason, test := range map[string]struct {
		read func() (data, error)
		want data
	}{
		"ConfigMap, binary keys too": {func() (data, error) { return c.ConfigMap(t.Context(), "team", "app") }, data{"region": []byte("eu"), "blob": {0xff}}},
		"no ConfigMap":               {func() (data, error) { return c.ConfigMap(t.Context(), "other", "app") }, nil},
		"Secret":                     {func() (data, error) { return c.SecretData(t.Context(), "team", "db") }, data{"password": []byte("p")}},
		"empty Secret":               {func() (data, error) { return c.SecretData(t.Context(), "team", "empty") }, data{}},
		"no Secret":                  {func() (data, error) { return c.SecretData(t.Context(), "team", "nosuch") }, nil},
	} {
		got, err := test.read()
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil || (got == nil) != (test.want == nil) {
			t.Errorf("%s: %v (-want +got):\n%s", reason, err, diff)
		}
	}
}

// A plan asks about an object under the name that RBAC knows, also where the usual plural is the kind of another.
func TestPlural(t *testing.T) {
	store, err := storage.Open(t.Context(), storage.Config{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	served, err := kinds.New(kinds.Config{RESTOptions: store.RESTOptions(nil, false)})
	if err != nil {
		t.Fatal(err)
	}
	of := &schema.Schema{Block: &schema.Block{}}
	if err := served.Set(kinds.Provider{Name: "sim", Schema: &schema.Provider{
		Resources:   map[string]*schema.Schema{"sim_network": of},
		DataSources: map[string]*schema.Schema{"sim_image": of, "sim_images": of},
	}}); err != nil {
		t.Fatal(err)
	}
	objects := &Objects{Kinds: served}
	for kind, want := range map[string]string{"sim-network": "sim-networks", "data-sim-image": "data-sim-image", "data-sim-images": "data-sim-images", "sim-foo": ""} {
		if got, err := objects.Plural(v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: kind}); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q %v, want %q", kind, got, err, want)
		}
	}
}

func TestQueryErrors(t *testing.T) {
	for reason, test := range map[string]struct {
		err  error
		want func(error) bool
	}{
		"the query is wrong": {&query.QueryError{Field: "spec.type", Detail: "no"}, apierrors.IsInvalid},
		"not allowed":        {&scope.ForbiddenError{}, apierrors.IsForbidden},
		"anything else":      {errors.New("down"), func(err error) bool { return err != nil && err.Error() == "down" }},
	} {
		err := Query(func(context.Context, v1alpha1.Identity, *v1alpha1.Query) error { return test.err })(t.Context(), v1alpha1.Identity{}, &v1alpha1.Query{})
		if !test.want(err) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestContinueTokensOfClients lists the changes of a plan with tokens that no page has.
func TestContinueTokensOfClients(t *testing.T) {
	for _, token := range []string{"x", "-1", "4294967296"} {
		if _, err := (&Answers{}).Changes(t.Context(), &v1alpha1.Plan{}, 10, token); !apierrors.IsBadRequest(err) {
			t.Errorf("%q: %v", token, err)
		}
	}
}
