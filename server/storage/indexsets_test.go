package storage

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage/value"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resourceset"
)

// write stores an object; nil deletes it.
func (x *indexed) write(gr kschema.GroupResource, namespace, name string, obj any) {
	x.t.Helper()
	t, key := x.t, groupPrefix(gr.Group)+gr.Resource+"/"+namespace+"/"+name
	response, err := x.s.client.KV.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	revision := int64(0)
	if len(response.Kvs) > 0 {
		revision = response.Kvs[0].ModRevision
	}
	if obj == nil {
		if revision == 0 {
			return
		}
		if _, err := x.s.client.KV.Txn(t.Context()).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).Then(clientv3.OpDelete(key)).Else(clientv3.OpGet(key)).Commit(); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := json.Marshal(obj)
	if err == nil {
		data, err = x.s.encryption.transformer(gr).TransformToStorage(t.Context(), data, value.DefaultContext(key))
	}
	if err != nil {
		t.Fatal(err)
	}
	put(t, x.s, key, string(data), revision)
}

// set returns a ResourceSet of sim-a, which the caller may change.
func set(namespace, name string, uid types.UID) *v1alpha1.ResourceSet {
	s := &v1alpha1.ResourceSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid, Generation: 1}}
	s.TypeMeta = metav1.TypeMeta{APIVersion: "hykube.io/v1alpha1", Kind: "ResourceSet"}
	s.Spec.Template = v1alpha1.ResourceTemplate{APIVersion: "sim.hykube.io/v1", Kind: "sim-a"}
	return s
}

// setStep makes a random write that concerns a ResourceSet: of the set, of the ConfigMap with its keys, or of the status or
// the record of an instance.
func (x *indexed) setStep() {
	t := x.t
	namespace := []string{"team", "other"}[x.random.IntN(2)]
	name := fmt.Sprintf("s%d", x.random.IntN(3))
	uid := types.UID(fmt.Sprintf("set-%s-%s-%d", namespace, name, x.random.IntN(2)))
	switch dice := x.random.IntN(10); {
	case dice == 0:
		x.write(resourceSets, namespace, name, nil)
	case dice == 1:
		var keys any
		if x.random.IntN(3) > 0 {
			keys = &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keys"}, Data: map[string]string{fmt.Sprint("k", x.random.IntN(3)): "v", "k0": fmt.Sprint(x.random.IntN(2))}}
		}
		x.write(configMaps, namespace, "keys", keys)
	case dice < 6:
		s := set(namespace, name, uid)
		switch x.random.IntN(3) {
		case 0:
			s.Spec.Count = new(int32(x.random.IntN(4)))
		case 1:
			s.Spec.ForEach = &v1alpha1.JSON{Raw: fmt.Appendf(nil, `{"k0":%d,"k%d":2}`, x.random.IntN(2), 1+x.random.IntN(3))}
		default:
			s.Spec.ForEachFrom = &v1alpha1.ForEachSource{ConfigMap: v1alpha1.ForEachConfigMap{Name: "keys"}}
		}
		s.Spec.Template.Spec = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"name":"${sim_a.n%d.name}"}`, x.random.IntN(4))}
		s.Spec.Template.Metadata.Labels = map[string]string{"l": fmt.Sprint(x.random.IntN(2))}
		if x.random.IntN(4) == 0 {
			s.DeletionTimestamp = new(metav1.Unix(100, 0))
		}
		x.write(resourceSets, namespace, name, s)
	default:
		sample := set(namespace, name, uid)
		sample.Spec.Count = new(int32(4))
		expanded, err := resourceset.New(sample, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		key := expanded.Key(x.random.IntN(4))
		ref := v1alpha1.ObjectReference{
			APIVersion: "sim.hykube.io/v1", Kind: "sim-a", Namespace: namespace, Name: v1alpha1.InstanceName(name, key),
			UID: expanded.UIDOf(key), Generation: expanded.GenerationOf(key), Set: name, SetUID: uid,
		}
		x.instanceStep(ref)
	}
}

// instanceStep writes the status or the record of an instance.
func (x *indexed) instanceStep(ref v1alpha1.ObjectReference) {
	t, l := x.t, ledger.New(x.s.KV())
	var err error
	if x.random.IntN(2) == 0 {
		k := ledger.StatusKey{Namespace: ref.Namespace, Set: ref.SetUID, UID: ref.UID}
		if x.random.IntN(4) == 0 {
			err = l.ForgetStatus(t.Context(), k)
		} else {
			s, readErr := l.Status(t.Context(), k)
			if readErr != nil {
				t.Fatal(readErr)
			}
			s.Value = fmt.Appendf(nil, `{"appliedGeneration":%d,"conditions":[{"type":"Ready","status":"True"}]}`, ref.Generation)
			if x.random.IntN(2) == 0 {
				s.Value = []byte(`{"conditions":[{"type":"Stalled","status":"True"},{"type":"Drifted","status":"True"}]}`)
			}
			err = l.SaveStatus(t.Context(), s)
		}
	} else {
		rec, readErr := l.Instance(t.Context(), ref)
		if readErr != nil {
			t.Fatal(readErr)
		}
		if x.random.IntN(3) == 0 {
			err = l.Forget(t.Context(), rec)
		} else {
			rec.Object, rec.Attributes, rec.Intent = ref, []byte(`{"id":"1"}`), nil
			if x.random.IntN(4) == 0 {
				rec.Attributes, rec.Intent = nil, &ledger.Intent{Action: v1alpha1.ActionCreate}
			}
			err = l.Save(t.Context(), rec)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// newIndexed returns an empty store with the provider "sim".
func newIndexed(t *testing.T) *indexed {
	x := &indexed{t: t, dir: t.TempDir(), catalog: catalog.New(nil), random: rand.New(rand.NewPCG(1, 1))}
	putProvider(x.catalog, "name")
	x.open()
	return x
}

// counted writes a set with a count.
func (x *indexed) counted(namespace, name string, uid types.UID, n int32, template string) {
	s := set(namespace, name, uid)
	s.Spec.Count = &n
	s.Spec.Template.Spec = &runtime.RawExtension{Raw: []byte(template)}
	x.write(resourceSets, namespace, name, s)
}

// TestObjectsOfAProvider counts objects and instances, which all get another version of their provider.
func TestObjectsOfAProvider(t *testing.T) {
	x := newIndexed(t)
	followed := x.newIndex()
	x.counted("team", "web", "6c2ac8e8-bb07-4a5c-9c0c-2f9e7f3f9a10", 3, `{}`)
	x.counted("other", "web", "6c2ac8e8-bb07-4a5c-9c0c-2f9e7f3f9a11", 2, `{}`)
	for provider, want := range map[string]map[string]int{"sim": {"team": 3, "other": 2}, "cloud": {}} {
		got, err := followed.OfProvider(t.Context(), provider)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s (-want +got):\n%s%v", provider, diff, err)
		}
	}
	x.counted("team", "web", "6c2ac8e8-bb07-4a5c-9c0c-2f9e7f3f9a10", 1, `{}`)
	if got, err := followed.OfProvider(t.Context(), "sim"); got["team"] != 1 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// TestInstancesThatLeftStayWhileTheyHaveARecord shrinks a set with records, and removes it. Without the entries, no plan would
// destroy what exists.
func TestInstancesThatLeftStayWhileTheyHaveARecord(t *testing.T) {
	x := newIndexed(t)
	followed, l := x.newIndex(), ledger.New(x.s.KV())
	uid := types.UID("6c2ac8e8-bb07-4a5c-9c0c-2f9e7f3f9a10")
	x.counted("team", "web", uid, 3, `{}`)
	addresses := func() (out []string) {
		v, err := followed.View(t.Context(), "team")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range v.Nodes {
			if n.Object == nil {
				continue
			}
			text := n.Object.Address().String()
			if n.Object.Instance.Leaving && n.Object.Has(index.Deleting) {
				text += " leaves"
			}
			out = append(out, text)
		}
		return out
	}
	want := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, addresses()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	want("a new set", "sim_a.web[0]", "sim_a.web[1]", "sim_a.web[2]")
	v, err := followed.View(t.Context(), "team")
	if err != nil {
		t.Fatal(err)
	}
	ref := func(i int) v1alpha1.ObjectReference {
		slot, ok := v.Slot(lang.Address{Type: "sim_a", Name: fmt.Sprintf("web[%d]", i)})
		if !ok {
			t.Fatalf("web[%d] has no slot", i)
		}
		return v.Nodes[slot].Object.Ref("team")
	}
	record := func(i int, intent bool) *ledger.Instance {
		rec, err := l.Instance(t.Context(), ref(i))
		if err != nil {
			t.Fatal(err)
		}
		if rec.Object = ref(i); intent {
			rec.Intent = &ledger.Intent{Action: v1alpha1.ActionCreate}
		} else {
			rec.Attributes = []byte(`{"id":"x"}`)
		}
		if err := l.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		return rec
	}
	record(0, false)
	record(1, false)
	lost := record(2, true)
	x.counted("team", "web", uid, 1, `{}`)
	want("after it shrank", "sim_a.web[0]", "sim_a.web[1] leaves", "sim_a.web[2] leaves")
	if n, err := followed.Records(t.Context(), "team", uid); n != 3 || err != nil {
		t.Errorf("%d records: %v", n, err)
	}
	if err := l.Forget(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	want("after a record went", "sim_a.web[0]", "sim_a.web[1] leaves")
	x.write(resourceSets, "team", "web", nil)
	want("after the set went", "sim_a.web[0] leaves", "sim_a.web[1] leaves")
	x.check(followed, "after the set went")
	x.counted("team", "web", uid, 2, `{}`)
	want("after it came back", "sim_a.web[0]", "sim_a.web[1]")
	x.check(followed, "in the end")
}

// TestAnAddressOfAnInstanceThatLeft renames a template, and gives the name to another set. A view that did not say so would
// hide the infrastructure of the first set from all plans.
func TestAnAddressOfAnInstanceThatLeft(t *testing.T) {
	x := newIndexed(t)
	followed, l := x.newIndex(), ledger.New(x.s.KV())
	named := func(name string, uid types.UID, template string) {
		s := set("team", name, uid)
		s.Spec.Count, s.Spec.Template.Metadata.Name = new(int32(1)), template
		x.write(resourceSets, "team", name, s)
	}
	ambiguous := func(when string, want bool) *index.View {
		t.Helper()
		v, err := followed.View(t.Context(), "team")
		if err != nil {
			t.Fatal(err)
		}
		if v.Ambiguous() != want {
			t.Errorf("%s: ambiguous %t", when, v.Ambiguous())
		}
		return v
	}
	const first, second = types.UID("6c2ac8e8-bb07-4a5c-9c0c-2f9e7f3f9a10"), types.UID("6c2ac8e8-bb07-4a5c-9c0c-2f9e7f3f9a11")
	named("first", first, "web")
	v := ambiguous("one set", false)
	slot, _ := v.Slot(lang.Address{Type: "sim_a", Name: "web[0]"})
	rec, err := l.Instance(t.Context(), v.Nodes[slot].Object.Ref("team"))
	if err != nil {
		t.Fatal(err)
	}
	rec.Object, rec.Attributes = v.Nodes[slot].Object.Ref("team"), []byte(`{"id":"x"}`)
	if err := l.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	named("first", first, "app")
	v = ambiguous("an instance left", false)
	for name, want := range map[string]string{"web": "first", "app": "", "we": ""} {
		ref := v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-a", Namespace: "team", Name: name}
		if got, err := followed.LeftAt(t.Context(), ref, second); got != want || err != nil {
			t.Errorf("an instance of %s left %q: %v", name, got, err)
		}
		if got, err := followed.LeftAt(t.Context(), ref, first); got != "" || err != nil {
			t.Errorf("the set itself: %q, %v", got, err)
		}
	}
	other := set("team", "second", second)
	other.Spec.Count, other.Spec.Template.Metadata.Name = new(int32(1)), "web"
	expanded, err := resourceset.New(other, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v.OverlaySet(expanded); !v.Ambiguous() {
		t.Error("another set of a speculative plan took the address, and the view is not ambiguous")
	}
	named("second", second, "web")
	ambiguous("another set took the address", true)
	named("second", second, "db")
	ambiguous("the other set has another name", false)
}

// TestReferencesToWholeSets wants a dependant of a whole set to depend on each instance, and one of a single instance on
// that alone.
func TestReferencesToWholeSets(t *testing.T) {
	x := newIndexed(t)
	followed := x.newIndex()
	x.counted("team", "n", "a", 2, `{}`)
	x.counted("team", "all", "b", 1, `{"name":"${join(\"-\", sim_a.n[*].name)}"}`)
	x.counted("team", "pairs", "c", 2, `{"name":"${sim_a.n[count.index].name}"}`)
	v, err := followed.View(t.Context(), "team")
	if err != nil {
		t.Fatal(err)
	}
	v.ExpandReferences()
	got := map[string][]string{}
	for _, n := range v.Nodes {
		if n.Object == nil {
			continue
		}
		for _, d := range n.Object.DependsOn {
			got[n.Object.Address().String()] = append(got[n.Object.Address().String()], v.Nodes[d].Object.Address().String())
		}
	}
	want := map[string][]string{"sim_a.all[0]": {"sim_a.n[0]", "sim_a.n[1]"}, "sim_a.pairs[0]": {"sim_a.n[0]"}, "sim_a.pairs[1]": {"sim_a.n[1]"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dependencies (-want +got):\n%s", diff)
	}
	if s := v.SetOf(lang.Address{Type: "sim_a", Name: "n"}); s == nil || s.Len() != 2 {
		t.Errorf("the set is %v", s)
	}
}

// TestTemplatesAreParsedOnce expands a set with many instances.
func TestTemplatesAreParsedOnce(t *testing.T) {
	x := newIndexed(t)
	x.counted("team", "n", "a", 500, `{"name":"${upper(\"a\")}-${count.index}"}`)
	before := lang.Parsed.Load()
	followed := x.newIndex()
	if _, err := followed.View(t.Context(), "team"); err != nil {
		t.Fatal(err)
	}
	if parsed := lang.Parsed.Load() - before; parsed > 4 {
		t.Errorf("%d templates were parsed", parsed)
	}
	x.counted("team", "n", "a", 510, `{"name":"${upper(\"a\")}-${count.index}"}`)
	if _, err := followed.View(t.Context(), "team"); err != nil {
		t.Fatal(err)
	}
	if parsed := lang.Parsed.Load() - before; parsed > 4 {
		t.Errorf("%d templates were parsed after the set grew", parsed)
	}
}

// TestAStatusOfASetExpandsNothing writes the status and the finalizer of a set, as an apply does often. To expand a large set
// takes seconds, during which no step reads an object.
func TestAStatusOfASetExpandsNothing(t *testing.T) {
	x := newIndexed(t)
	s := set("team", "n", "a")
	s.Spec.Count = new(int32(3))
	followed := x.newIndex()
	write := func(change func()) *index.Object {
		t.Helper()
		change()
		x.write(resourceSets, "team", "n", s)
		v, err := followed.View(t.Context(), "team")
		if err != nil {
			t.Fatal(err)
		}
		slot, ok := v.Slot(lang.Address{Type: "sim_a", Name: "n[1]"})
		if !ok {
			t.Fatal("the instance has no slot")
		}
		return v.Nodes[slot].Object
	}
	first := write(func() {})
	if o := write(func() { s.Status.Instances = 3; s.Finalizers = []string{v1alpha1.FinalizerState} }); o != first {
		t.Error("a status expanded the set")
	}
	if found, ok, err := followed.Find(t.Context(), first.Ref("team")); err != nil || !ok || !found.In.Held {
		t.Errorf("the finalizer is unknown: %v, %v", ok, err)
	}
	if o := write(func() { s.Labels = map[string]string{"a": "b"} }); o == first || o.Labels["a"] != "b" {
		t.Error("a label changed nothing")
	}
	if o := write(func() { s.DeletionTimestamp = new(metav1.Now()) }); !o.Has(index.Deleting) {
		t.Error("the mark for deletion changed nothing")
	}
	x.check(followed, "in the end")
}

// TestFindSeesEarlierWrites has readers of instances beside writers that change the set, and views beside both. Readers share
// refreshes. Each must see the writes before its call, and no view may lack an instance that left.
func TestFindSeesEarlierWrites(t *testing.T) {
	x := newIndexed(t)
	followed, l := x.newIndex(), ledger.New(x.s.KV())
	ref := func(i int) v1alpha1.ObjectReference {
		return v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-a", Namespace: "team", Name: fmt.Sprintf("web[%d]", i)}
	}
	uid := types.UID("6c2ac8e8-bb07-4a5c-9c0c-2f9e7f3f9a10")
	x.counted("team", "web", uid, 2, `{}`)
	for i := range 2 {
		found, ok, err := followed.Find(t.Context(), ref(i))
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		rec, err := l.Instance(t.Context(), found.Ref("team"))
		if err != nil {
			t.Fatal(err)
		}
		rec.Object, rec.Attributes = found.Ref("team"), []byte(`{"id":"x"}`)
		if err := l.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				v, err := followed.View(t.Context(), "team")
				if err != nil {
					t.Error(err)
					return
				}
				if slot, ok := v.Slot(lang.Address{Type: "sim_a", Name: "web[1]"}); !ok || v.Nodes[slot].Object == nil {
					t.Error("a view lacks an instance that has a record")
					return
				}
				if _, ok, err := followed.Find(t.Context(), ref(0)); !ok || err != nil {
					t.Error(ok, err)
					return
				}
			}
		})
	}
	for n := range 60 {
		count := int32(1 + n%2)
		x.counted("team", "web", uid, count, fmt.Sprintf(`{"name":"n%d"}`, n))
		found, ok, err := followed.Find(t.Context(), ref(1))
		if err != nil || !ok || found.Instance.Leaving != (count == 1) {
			t.Errorf("the set has %d instances, and %v, %v, %+v was found", count, ok, err, found.Instance)
			break
		}
		name, _, _ := unstructured.NestedString(found.Unstructured("team").Object, "spec", "name")
		if want := fmt.Sprintf("n%d", n); count == 2 && name != want {
			t.Errorf("the name is %q, want %q", name, want)
			break
		}
	}
	close(stop)
	readers.Wait()
	x.check(followed, "in the end")
}

// TestKnownSetOf asks for the sets of a kind. A set without instances does not count.
func TestKnownSetOf(t *testing.T) {
	x := newIndexed(t)
	followed := x.newIndex()
	x.counted("team", "web", "a", 3, `{}`)
	x.counted("empty", "web", "b", 0, `{}`)
	if err := followed.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[v1alpha1.ObjectReference]bool{
		{APIVersion: "sim.hykube.io/v1", Kind: "sim-a", Namespace: "team"}:   true,
		{APIVersion: "sim.hykube.io/v1", Kind: "sim-a"}:                      true,
		{APIVersion: "sim.hykube.io/v1", Kind: "sim-a", Namespace: "empty"}:  false,
		{APIVersion: "sim.hykube.io/v1", Kind: "sim-a", Namespace: "other"}:  false,
		{APIVersion: "sim.hykube.io/v1", Kind: "sim-b", Namespace: "team"}:   false,
		{APIVersion: "other.hykube.io/v1", Kind: "sim-a", Namespace: "team"}: false,
	} {
		if got := followed.KnownSetOf(ref); got != want {
			t.Errorf("%+v: %t, want %t", ref, got, want)
		}
	}
}

// recordOf records an instance with an ID.
func (x *indexed) recordOf(ref v1alpha1.ObjectReference, id string) {
	x.t.Helper()
	l := ledger.New(x.s.KV())
	rec, err := l.Instance(x.t.Context(), ref)
	if err != nil {
		x.t.Fatal(err)
	}
	rec.Attributes = fmt.Appendf(nil, `{"id":%q}`, id)
	if err := l.Save(x.t.Context(), rec); err != nil {
		x.t.Fatal(err)
	}
}
