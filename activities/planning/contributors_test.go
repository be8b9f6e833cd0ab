package planning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
)

// countedWriters answers Writers from a map, and counts the reads.
type countedWriters struct {
	store.Configs
	known map[store.Written]store.Writers
	reads int
}

func (c *countedWriters) Writers(_ context.Context, of store.Written) (store.Writers, bool, error) {
	c.reads++
	w, ok := c.known[of]
	return w, ok, nil
}

// TestWritersOfInstances attributes each instance of a set to those who wrote the set and the instance's own key. Many
// instances take one read of the set and one of the ConfigMap.
func TestWritersOfInstances(t *testing.T) {
	by := func(name string, wrote ...string) v1alpha1.Contributor {
		return v1alpha1.Contributor{Identity: v1alpha1.Identity{Username: name}, Wrote: wrote}
	}
	hosts := []v1alpha1.Contributor{by("alice"), by("eve", "b", "removed"), by("bob", "list")}
	configs := &countedWriters{known: map[store.Written]store.Writers{
		{Kind: "ResourceSet", Namespace: "prod", Name: "keyed"}: {List: []v1alpha1.Contributor{by("carol", "spec")}, Keys: &v1alpha1.ForEachConfigMap{Name: "hosts"}},
		{Kind: "ResourceSet", Namespace: "prod", Name: "text"}:  {Keys: &v1alpha1.ForEachConfigMap{Name: "hosts", Key: "list"}},
		{Kind: "ConfigMap", Namespace: "prod", Name: "hosts"}:   {List: hosts},
	}}
	w := newWriters(t.Context(), (&scope.Sources{Configs: configs}).ScopeOf(nil, "prod", nil), slog.New(slog.DiscardHandler), "prod")
	instance := func(set, key string) v1alpha1.ObjectReference {
		return v1alpha1.ObjectReference{Namespace: "prod", Name: v1alpha1.InstanceName("web", v1alpha1.InstanceKey{Name: key, Named: true}), Set: set}
	}
	for _, c := range []struct {
		set, key string
		want     []v1alpha1.Contributor
	}{
		{"keyed", "a", []v1alpha1.Contributor{by("alice", "ResourceSet keyed: ConfigMap hosts"), by("carol", "ResourceSet keyed: spec")}},
		{"keyed", "b", []v1alpha1.Contributor{by("carol", "ResourceSet keyed: spec"), by("eve", "ResourceSet keyed: ConfigMap hosts")}},
		{"keyed", "removed", []v1alpha1.Contributor{by("carol", "ResourceSet keyed: spec"), by("eve", "ResourceSet keyed: ConfigMap hosts")}},
		{"text", "b", []v1alpha1.Contributor{by("bob", "ResourceSet text: ConfigMap hosts list")}},
		{"gone", "b", []v1alpha1.Contributor{{More: true, Wrote: []string{"ResourceSet gone: deletion"}}}},
	} {
		if diff := cmp.Diff(c.want, w.ofInstance(instance(c.set, c.key))); diff != "" {
			t.Errorf("writers of the instance %q of the set %q: %s", c.key, c.set, diff)
		}
	}
	for impure, want := range map[bool]string{false: "", true: "alice (ResourceSet keyed: ConfigMap hosts), carol (ResourceSet keyed: spec)"} {
		n := &node{Resource: &resource.Resource{Ref: instance("keyed", "a"), Object: &unstructured.Unstructured{}}, record: &ledger.Instance{}}
		n.record.Attributes, n.Impure = []byte("{}"), impure
		if got := contributor.Text((&survey{writers: w}).contributors(n)); got != want {
			t.Errorf("an applied instance whose values depend on the time: %t: the contributors are %q, want %q", impure, got, want)
		}
	}
	configs.known[store.Written{Kind: "ResourceSet", Namespace: "prod", Name: "taken"}] = store.Writers{List: []v1alpha1.Contributor{by("carol", "imports"), by("dan", "imports", "spec")}}
	for why, tc := range map[string]struct {
		applied, imports bool
		want             string
	}{
		"an instance without infrastructure":          {want: "carol (ResourceSet taken: imports), dan (ResourceSet taken: imports and spec)"},
		"an instance that imports":                    {imports: true, want: "carol (ResourceSet taken: imports), dan (ResourceSet taken: imports and spec)"},
		"an applied instance that would import again": {applied: true, imports: true, want: "carol (ResourceSet taken: imports), dan (ResourceSet taken: imports and spec)"},
		"an applied instance without its import":      {applied: true, want: "dan (ResourceSet taken: spec)"},
	} {
		n := &node{Resource: &resource.Resource{Ref: instance("taken", "a"), Object: &unstructured.Unstructured{}}, record: &ledger.Instance{}}
		if n.Ref.Generation = 2; tc.applied {
			n.record.Attributes = []byte("{}")
		}
		if tc.imports {
			if err := json.Unmarshal([]byte(`{"import": {"id": "net-1"}}`), &n.Lifecycle); err != nil {
				t.Fatal(err)
			}
		}
		if got := contributor.Text((&survey{writers: w}).contributors(n)); got != tc.want {
			t.Errorf("%s: the contributors are %q, want %q", why, got, tc.want)
		}
	}
	configs.known[store.Written{Kind: "Module", Namespace: "prod", Name: "shop"}] = store.Writers{List: []v1alpha1.Contributor{by("dan", "spec")}, Files: "hosts"}
	inModule := v1alpha1.ObjectReference{Namespace: "prod", Set: "shop", Name: `module.shop.module.net["eu"]:a[0]`}
	if got, want := contributor.Text(w.ofInstance(inModule)), "alice (Module shop: ConfigMap hosts), bob (Module shop: ConfigMap hosts: list), dan (Module shop: spec), eve (Module shop: ConfigMap hosts: b and ConfigMap hosts: removed)"; got != want {
		t.Errorf("the writers of a resource of a Module are %q, want %q", got, want)
	}
	reads := configs.reads
	for i := range 1000 {
		if list := w.ofInstance(instance("keyed", fmt.Sprint("key-", i))); !slices.ContainsFunc(list, func(o v1alpha1.Contributor) bool {
			return contributor.SameUser(o.Identity, by("alice").Identity)
		}) {
			t.Fatalf("the writers of a key that nobody wrote again are %v", list)
		}
	}
	if configs.reads != reads {
		t.Errorf("1000 instances of a known set took %d reads", configs.reads-reads)
	}
}

// TestWritersOfWhatADataSourceReads has a thing that refers to a data source. Whoever writes the ProviderConfig of the data source,
// or a ConfigMap that it reads, contributes to the next change of the thing, until a plan has applied that.
func TestWritersOfWhatADataSourceReads(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Config(nil)
	aux := &v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{Provider: "test"}}
	aux.Name, aux.Namespace = "aux", "team"
	aux.Status.Contributors = []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "eve"}, Wrote: []string{"config"}}}
	w.ProviderConfigs["team/aux"] = aux
	w.Data["configmaps/team/names"] = map[string][]byte{"base": []byte("debian")}
	w.Wrote = map[store.Written]store.Writers{{Kind: "ConfigMap", Namespace: "team", Name: "names"}: {
		List: []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "bob"}}}}}
	w.Put("data-test-image/common", map[string]any{"name": "${configmap.names.base}"}, map[string]any{"providerConfig": "aux"})
	r := applied(w, "a", map[string]any{"uses": "${data.test_image.common.id}"})
	read := func(when string, want []string) *node {
		t.Helper()
		s := allOf(t, plannerOf(w), w.Plan())
		n := s.nodes[s.byAddr[r.Address]]
		if got := contributor.Names(s.contributors(n)); !slices.Equal(got, want) {
			t.Errorf("%s: the contributors are %v, want %v", when, got, want)
		}
		n.record.DependencyVersions = known(s.dependencyVersions(n))
		return n
	}
	apply := func(n *node) {
		t.Helper()
		if err := w.Ledger.Save(t.Context(), n.record); err != nil {
			t.Fatal(err)
		}
	}
	apply(read("eve wrote the configuration, and bob the name", []string{"bob", "eve"}))
	read("a plan has applied it", nil)
	w.Data["configmaps/team/names"]["base"] = []byte("alpine")
	apply(read("bob wrote the name again", []string{"bob"}))
	aux.Spec.Config = &runtime.RawExtension{Raw: []byte(`{"region":"north"}`)}
	read("she wrote it again", []string{"eve"})
}

// TestWritersOfValuesOfAnotherNamespace has a thing that refers to another namespace. Whoever caused the present value over there
// contributes to the next change of the thing, until a plan has applied the value. A new thing takes the value as it was when the
// thing was made.
func TestWritersOfValuesOfAnotherNamespace(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Config(nil)
	net := w.Put("prod:test-thing/net", map[string]any{}, nil)
	made := time.Now().Truncate(time.Second)
	w.Record(net, `{"id":"net-0"}`)
	cause := func(name, id string, at time.Time) {
		t.Helper()
		rec := w.Instance(net)
		rec.Attributes, rec.Causes = []byte(`{"id":"`+id+`"}`), []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: name}, At: metav1.NewMicroTime(at)}}
		if err := w.Ledger.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	spec := map[string]any{"uses": "${namespace.prod.test_thing.net.id}"}
	r := applied(w, "a", spec)
	w.Put("test-thing/new", spec, nil)
	w.Stored["team:test-thing/new"].SetCreationTimestamp(metav1.NewTime(made))
	newThing := lang.Address{Type: "test_thing", Name: "new"}
	read := func(when string, addr lang.Address, want []string) *node {
		t.Helper()
		s := allOf(t, plannerOf(w), w.Plan())
		n := s.nodes[s.byAddr[addr]]
		if got := contributor.Names(s.contributors(n)); !slices.Equal(got, want) {
			t.Errorf("%s: the contributors are %v, want %v", when, got, want)
		}
		n.record.DependencyVersions = known(s.dependencyVersions(n))
		return n
	}
	read("nobody knows who caused the value", r.Address, []string{"others"})
	cause("eve", "net-1", made.Add(-time.Minute))
	caused := read("eve caused the value", r.Address, []string{"eve"})
	if got, want := contributor.Text(plannedContributors(t, w, r.Address)), "eve (namespace.prod.test_thing.net: id)"; got != want {
		t.Errorf("the contributors are %s, want %s", got, want)
	}
	read("eve caused it before the new thing", newThing, nil)
	if err := w.Ledger.Save(t.Context(), caused.record); err != nil {
		t.Fatal(err)
	}
	read("a plan has applied it", r.Address, nil)
	cause("bob", "net-2", made.Add(time.Minute))
	read("bob caused another one", r.Address, []string{"bob"})
	read("bob caused it after the new thing", newThing, []string{"bob"})
}

// TestWritersOfValuesThatAnEarlierPlanChanged has a thing that refers to another one of its namespace. Who caused the present value in
// an earlier plan contributes, until a plan has applied the value to the thing.
func TestWritersOfValuesThatAnEarlierPlanChanged(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Config(nil)
	net := applied(w, "net", map[string]any{})
	r := applied(w, "a", map[string]any{"uses": "${test_thing.net.id}"})
	read := func(when string, want []string) {
		t.Helper()
		s := allOf(t, plannerOf(w), w.Plan())
		n := s.nodes[s.byAddr[r.Address]]
		if got := contributor.Names(s.contributors(n)); !slices.Equal(got, want) {
			t.Errorf("%s: the contributors are %v, want %v", when, got, want)
		}
		n.record.DependencyVersions = known(s.dependencyVersions(n))
		if err := w.Ledger.Save(t.Context(), n.record); err != nil {
			t.Fatal(err)
		}
	}
	read("nobody knows who caused the value", nil)
	rec := w.Instance(net)
	rec.Plan, rec.Attributes = "plan-0", []byte(`{"id":"net-1"}`)
	rec.Causes = []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "eve"}, At: metav1.NowMicro()}}
	if err := w.Ledger.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	read("eve caused another value", []string{"eve"})
	read("a plan has applied it", nil)
}

// TestWritersOfTheKeysOfASet has a thing that refers to a whole set, which takes its keys from a ConfigMap. Who added or removed a key
// contributes, until a plan has applied the thing with the keys as they are.
func TestWritersOfTheKeysOfASet(t *testing.T) {
	obj := &v1alpha1.ResourceSet{Spec: v1alpha1.ResourceSetSpec{
		ForEachFrom: &v1alpha1.ForEachSource{ConfigMap: v1alpha1.ForEachConfigMap{Name: "hosts"}},
		Template:    v1alpha1.ResourceTemplate{APIVersion: "test.hykube.io/v1", Kind: "test-thing"},
	}}
	obj.Namespace, obj.Name = "team", "web"
	set, err := resourceset.New(obj, 1, map[string][]byte{"a": nil, "b": nil})
	if err != nil {
		t.Fatal(err)
	}
	made := time.Now()
	wrote := func(name string, at time.Time, keys ...string) v1alpha1.Contributor {
		return v1alpha1.Contributor{Identity: v1alpha1.Identity{Username: name}, At: metav1.NewMicroTime(at), Wrote: keys}
	}
	configs := &countedWriters{known: map[store.Written]store.Writers{
		{Kind: "ResourceSet", Namespace: "team", Name: "web"}: {Keys: &v1alpha1.ForEachConfigMap{Name: "hosts"}},
		{Kind: "ConfigMap", Namespace: "team", Name: "hosts"}: {List: []v1alpha1.Contributor{
			wrote("ann", made.Add(-time.Hour)), wrote("bob", made.Add(time.Hour), "b"), wrote("eve", made.Add(time.Hour), "gone")}},
	}}
	w := activitiestest.NewWorld(t)
	w.Put("test-thing/other", nil, nil)
	s := allOf(t, plannerOf(w), w.Plan())
	s.OverlaySet(set)
	s.writers = newWriters(t.Context(), (&scope.Sources{Configs: configs}).ScopeOf(nil, "team", nil), slog.New(slog.DiscardHandler), "team")
	for when, c := range map[string]struct {
		applied []string // nil without infrastructure
		want    []string
	}{
		"applied with these keys": {[]string{`test_thing.web["a"]`, `test_thing.web["b"]`}, nil},
		"a key was added":         {[]string{`test_thing.web["a"]`}, []string{"bob"}},
		"a key was removed":       {[]string{`test_thing.web["a"]`, `test_thing.web["b"]`, `test_thing.web["gone"]`}, []string{"eve"}},
		"a new thing":             {nil, []string{"bob"}},
	} {
		n := &node{Resource: &resource.Resource{Object: &unstructured.Unstructured{Object: map[string]any{}}}, record: &ledger.Instance{}}
		n.Object.SetCreationTimestamp(metav1.NewTime(made))
		n.References = []lang.Reference{{Address: set.Address()}}
		n.DependsOn = []lang.Address{set.Address()}
		if c.applied != nil {
			n.record.Attributes, n.record.DependencyVersions = []byte("{}"), map[string]string{}
		}
		for _, name := range c.applied {
			n.record.DependencyVersions[name] = "v1"
		}
		s.expandSets(n)
		if got := contributor.Names(contributor.Merge(s.keyWriters(n, s.appliedVersions(n))...)); !slices.Equal(got, c.want) {
			t.Errorf("%s: the contributors are %v, want %v", when, got, c.want)
		}
	}
}

// TestWritersBehindAnEphemeralResourceOfAnotherNamespace has a ProviderConfig that takes an argument from an ephemeral resource of
// another namespace. Who wrote the ProviderConfig of that resource, or a ConfigMap that it reads, contributes.
func TestWritersBehindAnEphemeralResourceOfAnotherNamespace(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Config(nil)
	w.ProviderConfigs["team/default"].Spec.Config = &runtime.RawExtension{Raw: []byte(`{"region":"${namespace.prod.ephemeral.test_token.ep.value}"}`)}
	theirs := &v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{Provider: "test"}}
	theirs.Name, theirs.Namespace = "default", "prod"
	theirs.Status.Contributors = []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "eve"}, Wrote: []string{"config"}}}
	w.ProviderConfigs["prod/default"] = theirs
	w.Data["configmaps/prod/names"] = map[string][]byte{"base": []byte("debian")}
	w.Wrote = map[store.Written]store.Writers{{Kind: "ConfigMap", Namespace: "prod", Name: "names"}: {
		List: []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "bob"}}}}}
	w.Put("prod:ephemeral-test-token/ep", map[string]any{"audience": "${configmap.names.base}"}, nil)
	r := applied(w, "a", map[string]any{})
	if got, want := contributor.Names(plannedContributors(t, w, r.Address)), []string{"bob", "eve"}; !slices.Equal(got, want) {
		t.Errorf("the contributors are %v, want %v", got, want)
	}
}

// plannedContributors returns the contributors of the change of an address.
func plannedContributors(t *testing.T, w *activitiestest.World, addr lang.Address) []v1alpha1.Contributor {
	t.Helper()
	s := allOf(t, plannerOf(w), w.Plan())
	return s.contributors(s.nodes[s.byAddr[addr]])
}

// gone answers Writers as for objects that do not exist.
type gone struct{ store.Configs }

func (gone) Writers(context.Context, store.Written) (store.Writers, bool, error) {
	return store.Writers{}, false, nil
}

// TestWritersOfWhatIsGone has a ProviderConfig and an expression that go on without a ConfigMap that was deleted. Nobody knows who did
// that, so the writers are unknown.
func TestWritersOfWhatIsGone(t *testing.T) {
	w := newWriters(t.Context(), (&scope.Sources{Configs: gone{}}).ScopeOf(nil, "team", nil), slog.New(slog.DiscardHandler), "team")
	refs := []lang.Reference{{Address: lang.Address{Type: lang.TypeConfigMap, Name: "hosts"}, Attribute: "a"}, {Address: lang.Address{Type: lang.TypeSecret, Name: "s"}, Attribute: "a"}}
	lists := append(w.ofReferences(refs), w.ofConfig(&v1alpha1.ProviderConfig{}, refs)...)
	lists = append(lists, w.ofConfig(&v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{SecretRefs: []v1alpha1.SecretArgument{{Name: "s", Key: "a"}}}}, nil)...)
	unknown := 0
	for _, list := range lists {
		if len(list) == 1 && list[0].More {
			unknown++
		}
	}
	if unknown != 5 {
		t.Errorf("of 5 references to what is gone, %d have unknown writers: %v", unknown, lists)
	}
}

// TestAnInstanceTakesWhatAnotherOneWasAppliedWith adds an instance to a set that refers to a value of eve's and to a key of bob's,
// both later than the set. They count until a plan has applied both to another instance of the set, perhaps one that was destroyed since.
func TestAnInstanceTakesWhatAnotherOneWasAppliedWith(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Config(nil)
	obj := &v1alpha1.ResourceSet{Spec: v1alpha1.ResourceSetSpec{Count: new(int32(3)), Template: v1alpha1.ResourceTemplate{APIVersion: "test.hykube.io/v1", Kind: "test-thing",
		Spec: &runtime.RawExtension{Raw: []byte(`{"uses": "${test_thing.net.id}-${configmap.names.base}"}`)}}}}
	obj.Namespace, obj.Name, obj.UID, obj.CreationTimestamp = "team", "web", "web-uid", metav1.NewTime(time.Now().Add(-time.Hour))
	set, err := resourceset.New(obj, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Data["configmaps/team/names"] = map[string][]byte{"base": []byte("debian")}
	w.Wrote = map[store.Written]store.Writers{{Kind: "ResourceSet", Namespace: "team", Name: "web"}: {},
		{Kind: "ConfigMap", Namespace: "team", Name: "names"}: {List: []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "bob"}}}}}
	net := applied(w, "net", map[string]any{})
	cause := func(plan types.UID, id string) {
		t.Helper()
		rec := w.Instance(net)
		rec.Plan, rec.Attributes = plan, []byte(`{"id":"`+id+`"}`)
		rec.Causes = []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "eve"}, At: metav1.NowMicro()}}
		if err := w.Ledger.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	read := func(when string, want ...string) map[string]string {
		t.Helper()
		po := w.Plan()
		s := allOf(t, plannerOf(w), po)
		s.OverlaySet(set)
		r, err := resource.Of(set.Object(set.Key(2)), w.Catalog)
		if err != nil {
			t.Fatal(err)
		}
		n := nodeOf(po, r, nil)
		if err := n.configure(s.configs); err != nil {
			t.Fatal(err)
		}
		s.turnToAll(append(s.nodes, n))
		if got := contributor.Names(s.contributors(n)); !slices.Equal(got, want) {
			t.Errorf("%s: the contributors are %v, want %v", when, got, want)
		}
		return known(s.dependencyVersions(n))
	}
	cause("plan-0", "net-1")
	versions := read("no other instance exists", "bob", "eve")
	r, err := resource.Of(set.Object(set.Key(1)), w.Catalog)
	if err != nil {
		t.Fatal(err)
	}
	w.Record(r, `{"id":"web-1"}`)
	apply := func(change func(*ledger.Instance)) {
		t.Helper()
		rec := w.Instance(r)
		rec.Object.Generation, rec.Contributors, rec.DependencyVersions = r.Ref.Generation, nil, versions
		change(rec)
		if err := w.Ledger.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	apply(func(rec *ledger.Instance) {
		rec.Contributors = []v1alpha1.Contributor{{Identity: v1alpha1.Identity{Username: "eve"}, Wrote: []string{"x"}}}
	})
	read("another instance needed no change", "bob", "eve")
	apply(func(rec *ledger.Instance) { rec.Object.Generation = 0 })
	read("a plan recorded drift of another instance, or failed", "bob", "eve")
	apply(func(*ledger.Instance) {})
	read("a plan applied another instance")
	cause("plan-1", "net-2")
	read("eve caused another value", "eve")
	w.Data["configmaps/team/names"]["base"] = []byte("alpine")
	versions = read("bob wrote another one, too", "bob", "eve")
	destroy := func(change func(*ledger.Instance)) {
		t.Helper()
		apply(change)
		rec := w.Instance(r)
		if err := errors.Join(w.Ledger.KeepApplied(t.Context(), rec), w.Ledger.Forget(t.Context(), rec)); err != nil {
			t.Fatal(err)
		}
	}
	destroy(func(rec *ledger.Instance) { rec.Object.Generation = 0 })
	read("the instance was destroyed, and no plan had applied both", "bob", "eve")
	destroy(func(*ledger.Instance) {})
	read("a plan destroyed the instance that it had applied")
	cause("plan-2", "net-3")
	read("eve caused another value after that", "eve")
	if err := w.Ledger.ForgetStatuses(t.Context(), "team", "web-uid"); err != nil {
		t.Fatal(err)
	}
	read("the set was removed", "bob", "eve")
}

// TestABlockTakesNothingOfAnotherBlock has two sets with one UID, as the blocks of a Module. A plan has destroyed an applied instance of one.
func TestABlockTakesNothingOfAnotherBlock(t *testing.T) {
	w := activitiestest.NewWorld(t)
	setOf := func(name string) (*resourceset.Set, v1alpha1.ObjectReference) {
		obj := &v1alpha1.ResourceSet{Spec: v1alpha1.ResourceSetSpec{Count: new(int32(1)), Template: v1alpha1.ResourceTemplate{APIVersion: "test.hykube.io/v1", Kind: "test-thing"}}}
		obj.Namespace, obj.Name, obj.UID, obj.Spec.Template.Metadata.Name = "team", "shop", "shop-uid", name
		set, err := resourceset.New(obj, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := resource.Of(set.Object(set.Key(0)), w.Catalog)
		if err != nil {
			t.Fatal(err)
		}
		return set, r.Ref
	}
	one, ref := setOf("one")
	other, otherRef := setOf("other")
	versions := map[string]string{"x": "1"}
	if err := w.Ledger.KeepApplied(t.Context(), &ledger.Instance{Object: ref, DependencyVersions: versions}); err != nil {
		t.Fatal(err)
	}
	writers := newWriters(t.Context(), w.NewScope(w.Plan(), "team", nil), slog.New(slog.DiscardHandler), "team")
	if got := writers.appliedSibling(one, ref); !maps.Equal(got, versions) {
		t.Errorf("the block was applied with %v, want %v", got, versions)
	}
	if got := writers.appliedSibling(other, otherRef); got != nil {
		t.Errorf("the other block was applied with %v", got)
	}
}
