package storage

import (
	"context"
	"fmt"
	"io"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// networks is the key of what the tests keep.
const networks = "/sim.hykube.io/sim-networks/default/"

func openUncached(t *testing.T, s *Store) *uncached {
	t.Helper()
	opts, err := s.RESTOptions(nil, false).GetRESTOptions(schema.GroupResource{Group: "sim.hykube.io", Resource: "sim-networks"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	newObject := func() runtime.Object { return &unstructured.Unstructured{Object: map[string]any{}} }
	newList := func() runtime.Object { return &unstructured.UnstructuredList{} }
	store, destroy, err := opts.Decorator(opts.StorageConfig, opts.ResourcePrefix, nil, newObject, newList, attributes, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(destroy)
	return store.(observed).Interface.(*uncached)
}

func attributes(o runtime.Object) (labels.Set, fields.Set, error) {
	accessor, err := meta.Accessor(o)
	if err != nil {
		return nil, nil, err
	}
	return accessor.GetLabels(), fields.Set{"metadata.name": accessor.GetName()}, nil
}

func selecting(t *testing.T, label, field string) storage.SelectionPredicate {
	t.Helper()
	l, err := labels.Parse(label)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fields.ParseSelector(field)
	if err != nil {
		t.Fatal(err)
	}
	return storage.SelectionPredicate{Label: l, Field: f, GetAttrs: attributes}
}

func createObject(t *testing.T, u *uncached, name, value string) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sim.hykube.io/v1", "kind": "sim-network", "metadata": map[string]any{"name": name}, "spec": map[string]any{"value": value},
	}}
	if err := u.Create(t.Context(), networks+name, o, &unstructured.Unstructured{}, 0); err != nil {
		t.Fatal(err)
	}
}

func labelObject(t *testing.T, u *uncached, name, value string) {
	t.Helper()
	update := storage.SimpleUpdate(func(o runtime.Object) (runtime.Object, error) {
		o.(*unstructured.Unstructured).SetLabels(map[string]string{"team": value})
		return o, nil
	})
	if err := u.GuaranteedUpdate(t.Context(), networks+name, &unstructured.Unstructured{}, false, nil, update, nil); err != nil {
		t.Fatal(err)
	}
}

func deleteObject(t *testing.T, u *uncached, name string) {
	t.Helper()
	if err := u.Delete(t.Context(), networks+name, &unstructured.Unstructured{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestWatchesOfUncachedStoreAreThoseOfEtcd3 opens the same watch on both stores, and expects the same events.
func TestWatchesOfUncachedStoreAreThoseOfEtcd3(t *testing.T) {
	u := openUncached(t, openStore(t))
	createObject(t, u, "before-1", "x")
	createObject(t, u, "before-2", "x")
	labelObject(t, u, "before-2", "red")
	current, err := u.GetCurrentResourceVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now, future := fmt.Sprint(current), fmt.Sprint(current+1000)
	bookmarks := selecting(t, "", "")
	bookmarks.AllowWatchBookmarks = true
	tests := map[string]struct {
		opts storage.ListOptions
		key  string
		// initial is the number of events before anything changes.
		initial int
		// refused says that there is no watch.
		refused bool
	}{
		"the objects that there are, and what follows": {opts: storage.ListOptions{Recursive: true, Predicate: selecting(t, "", "")}, initial: 2},
		"what follows a version":                       {opts: storage.ListOptions{Recursive: true, ResourceVersion: now, Predicate: selecting(t, "", "")}},
		"what follows an old version":                  {opts: storage.ListOptions{Recursive: true, ResourceVersion: fmt.Sprint(current - 1), Predicate: selecting(t, "", "")}},
		"what follows now":                             {opts: storage.ListOptions{Recursive: true, SendInitialEvents: new(false), Predicate: selecting(t, "", "")}},
		"a list that ends with a bookmark":             {opts: storage.ListOptions{Recursive: true, SendInitialEvents: new(true), Predicate: bookmarks}, initial: 3},
		"a list from a version":                        {opts: storage.ListOptions{Recursive: true, SendInitialEvents: new(true), ResourceVersion: now, Predicate: bookmarks}, initial: 3},
		"a list from a version that is to come":        {opts: storage.ListOptions{Recursive: true, SendInitialEvents: new(true), ResourceVersion: future, Predicate: bookmarks}, refused: true},
		"a version that is to come":                    {opts: storage.ListOptions{Recursive: true, ResourceVersion: future, Predicate: selecting(t, "", "")}},
		"labels that objects get and lose":             {opts: storage.ListOptions{Recursive: true, Predicate: selecting(t, "team=red", "")}, initial: 1},
		"one object of all":                            {opts: storage.ListOptions{Recursive: true, ResourceVersion: now, Predicate: selecting(t, "", "metadata.name=one")}},
		"one object by its key":                        {key: networks + "one", opts: storage.ListOptions{ResourceVersion: now, Predicate: selecting(t, "", "")}},
	}
	type pair struct{ ours, theirs watch.Interface }
	open, seen := map[string]pair{}, map[watch.Interface][]string{}
	for name, tt := range tests {
		key := tt.key
		if key == "" {
			key = networks
		}
		ours, err := u.Watch(t.Context(), key, tt.opts)
		theirs, otherErr := u.Interface.Watch(t.Context(), key, tt.opts)
		if err != nil || otherErr != nil {
			// etcd3 refuses with an event.
			refused := storage.IsTooLargeResourceVersion(err) && otherErr == nil && storage.IsTooLargeResourceVersion(apierrors.FromObject((<-theirs.ResultChan()).Object))
			if refused != tt.refused {
				t.Errorf("%s: %v, etcd3 says %v", name, err, otherErr)
			}
			continue
		}
		t.Cleanup(ours.Stop)
		t.Cleanup(theirs.Stop)
		open[name] = pair{ours, theirs}
		for _, w := range []watch.Interface{ours, theirs} {
			for range tt.initial {
				seen[w] = append(seen[w], nextEvent(t, name, w))
			}
		}
	}
	createObject(t, u, "one", "x")
	labelObject(t, u, "one", "red")
	labelObject(t, u, "one", "blue")
	labelObject(t, u, "before-2", "blue")
	deleteObject(t, u, "before-1")
	deleteObject(t, u, "one")
	createObject(t, u, "one", "last")
	labelObject(t, u, "one", "red") // all see this one
	for name, both := range open {
		theirs := append(seen[both.theirs], untilLast(t, name, both.theirs)...)
		ours := append(seen[both.ours], untilLast(t, name, both.ours)...)
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Errorf("%s: etcd3 -, ours +\n%s", name, diff)
		}
	}
}

// untilLast reads a watch until the last object is red, or the watch ends.
func untilLast(t *testing.T, name string, w watch.Interface) (seen []string) {
	t.Helper()
	for {
		e := nextEvent(t, name, w)
		seen = append(seen, e)
		if strings.Contains(e, "last") && strings.Contains(e, "red") || strings.HasPrefix(e, string(watch.Error)) || e == "closed" {
			return seen
		}
	}
}

// nextEvent reads one event, and says its type and its object.
func nextEvent(t *testing.T, name string, w watch.Interface) string {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			return "closed"
		}
		object := e.Object
		if shared, ok := object.(runtime.CacheableObject); ok {
			object = shared.GetObject()
		}
		if status, ok := object.(*metav1.Status); ok {
			return fmt.Sprintf("%s %s", e.Type, status.Reason)
		}
		return fmt.Sprintf("%s %v", e.Type, object.(*unstructured.Unstructured).Object)
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: nothing came within 10 s", name)
	}
	return ""
}

// TestAWatchOfChangesIsRegisteredAtOnce opens watches of future changes. Each has its queue when Watch returns: a later start would read
// changes of the meantime from the database, with a copy of them for each watch.
func TestAWatchOfChangesIsRegisteredAtOnce(t *testing.T) {
	s := openStore(t)
	u := openUncached(t, s)
	registered := func() int {
		s.watches.mu.Lock()
		defer s.watches.mu.Unlock()
		n := 0
		for one := range s.watches.open {
			if strings.HasSuffix(one.key, networks) {
				n++
			}
		}
		return n
	}
	for i := range 100 {
		w, err := u.Watch(t.Context(), networks, storage.ListOptions{Recursive: true, SendInitialEvents: new(false), Predicate: selecting(t, "", "")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		if n := registered(); n != i+1 {
			t.Fatalf("%d of %d watches are registered", n, i+1)
		}
	}
}

// TestUnreadWatchesHoldNoCopies opens watches without a reader. A copy of every event for each of them would take 200
// MiB. The limit is half of that, because the heap also changes by what earlier tests have left.
func TestUnreadWatchesHoldNoCopies(t *testing.T) {
	u := openUncached(t, openStore(t))
	const watches, objects, limit = 200, 60, 100 << 20
	value := strings.Repeat("x", 20_000)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var open []watch.Interface
	for range watches {
		w, err := u.Watch(ctx, networks, storage.ListOptions{Recursive: true, SendInitialEvents: new(false), Predicate: selecting(t, "", "")})
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, w)
	}
	before := heap()
	for i := range objects {
		createObject(t, u, fmt.Sprintf("o-%02d", i), value)
	}
	seen := make(chan int)
	go func() {
		n := 0
		for range open[0].ResultChan() {
			if n++; n == objects {
				break
			}
		}
		seen <- n
	}()
	select {
	case n := <-seen:
		if n != objects {
			t.Errorf("the watch that is read saw %d of %d objects", n, objects)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the watch that is read has not seen everything within 20 s")
	}
	eventually(t, fmt.Sprintf("%d watches hold less than %d MiB", watches, limit>>20), func() bool { return heap() <= before+limit })
	if n := known(u); n > objects {
		t.Errorf("%d objects are decoded, and there are %d", n, objects)
	}
	stop()
	open = nil
	eventually(t, "no object is decoded after all watches have ended", func() bool {
		goruntime.GC()
		return known(u) == 0
	})
}

// TestObjectsAreDecodedAndEncodedOnce asks for one object as two watches do, and for another.
func TestObjectsAreDecodedAndEncodedOnce(t *testing.T) {
	shared, decoded, encoded := newSharedObjects(), 0, 0
	get := func(revision int64) *sharedObject {
		one, err := shared.get(objectKey{revision: revision}, func() (runtime.Object, error) {
			decoded++
			return &unstructured.Unstructured{Object: map[string]any{"revision": revision}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return one
	}
	encode := func(o runtime.Object, w io.Writer) error {
		encoded++
		_, err := fmt.Fprint(w, o.(*unstructured.Unstructured).Object)
		return err
	}
	first, again, other := get(1), get(1), get(2)
	if first != again || first == other || decoded != 2 {
		t.Errorf("two objects were decoded %d times", decoded)
	}
	for _, one := range []*sharedObject{first, again} {
		for _, id := range []runtime.Identifier{"json", "table"} {
			var out strings.Builder
			if err := one.CacheEncode(id, encode, &out); err != nil || out.String() != "map[revision:1]" {
				t.Errorf("encoded as %q, %v", out.String(), err)
			}
		}
	}
	if encoded != 2 {
		t.Errorf("an object was encoded %d times in two forms", encoded)
	}
}

func known(u *uncached) int {
	u.objects.mu.Lock()
	defer u.objects.mu.Unlock()
	return len(u.objects.known)
}

// heap returns the bytes that are in use.
func heap() uint64 {
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}
