package loopback

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/server/storage"
)

// setFeed implements index.Objects with one ResourceSet.
type setFeed struct {
	set *v1alpha1.ResourceSet
	at  int64
}

func (f *setFeed) change() index.Change {
	f.set.TypeMeta = metav1.TypeMeta{APIVersion: "hykube.io/v1alpha1", Kind: "ResourceSet"}
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(f.set)
	if err != nil {
		panic(err)
	}
	return index.Change{Namespace: f.set.Namespace, Name: f.set.Name, Stored: index.StoredSets, Revision: f.at, Object: &unstructured.Unstructured{Object: obj}}
}

func (f *setFeed) All(context.Context, string) iter.Seq2[index.Change, error] {
	return func(yield func(index.Change, error) bool) { yield(f.change(), nil) }
}

func (f *setFeed) Since(_ context.Context, revision int64, _ int) ([]index.Change, int64, bool, error) {
	switch revision {
	case 0:
		return nil, f.at, false, ledger.ErrExpired
	case f.at:
		return nil, f.at, false, nil
	}
	return []index.Change{f.change()}, f.at, false, nil
}

func (f *setFeed) ConfigMap(context.Context, string, string) (map[string][]byte, int64, error) {
	return nil, 0, nil
}

// objectsOfSet returns the objects of a server with one ResourceSet of two instances.
func objectsOfSet(t *testing.T) (*Objects, *setFeed) {
	t.Helper()
	s, err := storage.Open(t.Context(), storage.Config{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	set := &v1alpha1.ResourceSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "6c2ac8e8-bb07-4a5c-9c0c-2f9e7f3f9a10", Generation: 1}}
	set.Spec.Template = v1alpha1.ResourceTemplate{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Spec: &runtime.RawExtension{Raw: []byte(`{}`)}}
	set.Spec.Count = new(int32(2))
	feed, records := &setFeed{set: set, at: 1}, ledger.New(s.KV())
	o := &Objects{Stored: s.Objects(), Ledger: records, Index: index.New(feed, records, catalog.New(nil))}
	return o, feed
}

// TestNewInstanceStatus asks for the status of an instance that was read before. The write fails if another writer has changed the
// status meanwhile. Without a current instance, the caller must use UpdateStatus.
func TestNewInstanceStatus(t *testing.T) {
	o, feed := objectsOfSet(t)
	set, records := feed.set, o.Ledger
	get := func() *unstructured.Unstructured {
		t.Helper()
		u, err := o.Get(t.Context(), v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: "team", Name: "web[1]"})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	applied := func(*unstructured.Unstructured) map[string]any {
		return map[string]any{"appliedGeneration": int64(1), "observedGeneration": int64(1)}
	}
	save := func(known *unstructured.Unstructured) (called bool, err error) {
		t.Helper()
		next, err := o.NewInstanceStatus(t.Context(), known, applied)
		if err != nil || next == nil {
			return false, err
		}
		return true, records.SaveStatus(t.Context(), ledger.Status{
			StatusKey: ledger.StatusKey{Namespace: next.Namespace, Set: next.Set, UID: next.UID}, Value: next.Value, Revision: next.Revision,
		})
	}
	read, later := get(), get()
	if ok, err := save(read); !ok || err != nil {
		t.Fatalf("the first status: %t, %v", ok, err)
	}
	if got := get().Object["status"].(map[string]any)["appliedGeneration"]; got != int64(1) {
		t.Errorf("it has the applied generation %v", got)
	}
	if _, err := save(later); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("after another writer: %v, want ErrConflict", err)
	}
	if ok, err := save(get()); ok || err != nil {
		t.Errorf("an unchanged status: %t, %v", ok, err)
	}
	served, err := o.Instance(t.Context(), refOf(read))
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := save(served); ok || err != nil {
		t.Errorf("an instance as readers see it: %t, %v", ok, err)
	}
	set.Spec.Template.Spec = &runtime.RawExtension{Raw: []byte(`{"name":"other"}`)}
	feed.at++
	if ok, err := save(later); ok || err != nil {
		t.Errorf("an instance of an older set: %t, %v", ok, err)
	}
	set.Spec.Count = new(int32(1))
	feed.at++
	if ok, err := save(read); ok || err != nil {
		t.Errorf("an instance that the set no longer has: %t, %v", ok, err)
	}
}

// TestAnInstanceIsApplying lists the instances of a set while the create of one runs.
func TestAnInstanceIsApplying(t *testing.T) {
	o, feed := objectsOfSet(t)
	ref := v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: "team", Name: "web[1]"}
	u, err := o.Get(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	ref.UID, ref.Set, ref.SetUID = u.GetUID(), feed.set.Name, feed.set.UID
	if err := o.Ledger.Save(t.Context(), &ledger.Instance{Object: ref, Intent: &ledger.Intent{Plan: "p", Action: v1alpha1.ActionCreate}}); err != nil {
		t.Fatal(err)
	}
	list, err := o.Instances(t.Context(), feed.set, 10, "")
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, item := range list.Items {
		one := &unstructured.Unstructured{}
		if err := one.UnmarshalJSON(item.Raw); err != nil {
			t.Fatal(err)
		}
		reasons = append(reasons, condition.Find(one, v1alpha1.ConditionReady)["reason"].(string))
	}
	if want := []string{v1alpha1.ReasonAwaitingPlan, v1alpha1.ReasonApplying}; !slices.Equal(reasons, want) {
		t.Errorf("the reasons are %q, want %q", reasons, want)
	}
}
