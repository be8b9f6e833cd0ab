package activitiestest

import (
	"context"
	"iter"
	"maps"
	"reflect"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/ledger"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Feed implements index.Objects. It notices changes of World.Stored when it is read.
type Feed struct {
	World *World
	at    int64
	// seen holds the last change of each object.
	seen map[string]index.Change
}

// observe requires World.Mu.
func (f *Feed) observe() {
	if f.seen == nil {
		f.seen, f.at = map[string]index.Change{}, 1
	}
	for _, key := range slices.Sorted(maps.Keys(f.World.Stored)) {
		obj := f.World.Stored[key]
		if known := f.seen[key].Object; known != nil && reflect.DeepEqual(known.Object, obj.Object) {
			continue
		}
		f.at++
		c := index.Change{Namespace: obj.GetNamespace(), Name: obj.GetName(), Revision: f.at, Object: obj.DeepCopy()}
		c.Provider, _ = v1alpha1.ProviderOfGroup(obj.GroupVersionKind().Group)
		mode, terraformType := v1alpha1.ParseKind(obj.GetKind())
		if c.Stored = terraformType; mode != v1alpha1.ModeManaged {
			c.Stored = string(mode) + "." + terraformType
		}
		f.seen[key] = c
	}
	for key, c := range f.seen {
		if f.World.Stored[key] == nil && c.Object != nil {
			f.at++
			c.Revision, c.Object = f.at, nil
			f.seen[key] = c
		}
	}
}

// revision returns the revision of a stored object. It requires World.Mu.
func (f *Feed) revision(obj *unstructured.Unstructured) int64 {
	if f == nil {
		return 0
	}
	key := FakeObjects{f.World}.Key(v1alpha1.ObjectReference{Namespace: obj.GetNamespace(), Kind: obj.GetKind(),
		Name: obj.GetName()})
	if known := f.seen[key]; known.Object != nil && reflect.DeepEqual(known.Object.Object, obj.Object) {
		return known.Revision // without a look at all objects
	}
	f.observe()
	return f.seen[key].Revision
}

// All implements index.Objects.
func (f *Feed) All(_ context.Context, provider string) iter.Seq2[index.Change, error] {
	return func(yield func(index.Change, error) bool) {
		for _, c := range f.changes(0) {
			if c.Object != nil && (provider == "" || c.Provider == provider) && !yield(c, nil) {
				return
			}
		}
	}
}

// Since implements index.Objects.
func (f *Feed) Since(_ context.Context, revision int64, _ int) ([]index.Change, int64, bool, error) {
	changes := f.changes(revision)
	if revision == 0 {
		return nil, f.at, false, ledger.ErrExpired
	}
	return changes, f.at, false, nil
}

func (f *Feed) changes(after int64) []index.Change {
	f.World.Mu.Lock()
	defer f.World.Mu.Unlock()
	f.observe()
	var out []index.Change
	for _, c := range f.seen {
		if c.Revision > after {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b index.Change) int { return int(a.Revision - b.Revision) })
	return out
}

// ConfigMap implements index.Objects. The fake has no ResourceSets, so the index does not call it.
func (f *Feed) ConfigMap(context.Context, string, string) (map[string][]byte, int64, error) {
	return nil, 0, nil
}
