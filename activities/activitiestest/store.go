package activitiestest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/store"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FakeObjects implements store.Objects.
type FakeObjects struct{ World *World }

func (o FakeObjects) Key(ref v1alpha1.ObjectReference) string {
	return ref.Namespace + ":" + ref.Kind + "/" + ref.Name
}

func (o FakeObjects) List(_ context.Context, namespace string) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		o.World.Mu.Lock()
		defer o.World.Mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(o.World.Stored)) {
			if obj := o.World.Stored[key]; obj.GetNamespace() == namespace && !yield(obj.DeepCopy(), nil) {
				return
			}
		}
	}
}

func (o FakeObjects) Get(_ context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	o.World.Mu.Lock()
	defer o.World.Mu.Unlock()
	obj := o.World.Stored[o.Key(ref)]
	if obj == nil || ref.UID != "" && obj.GetUID() != ref.UID {
		return nil, store.ErrGone
	}
	return obj.DeepCopy(), nil
}

func (o FakeObjects) Plural(ref v1alpha1.ObjectReference) (string, error) { return ref.Kind + "s", nil }

func (o FakeObjects) UpdateStatus(_ context.Context, ref v1alpha1.ObjectReference, change func(*unstructured.Unstructured) map[string]any) error {
	o.World.Mu.Lock()
	defer o.World.Mu.Unlock()
	obj := o.World.Stored[o.Key(ref)]
	if obj == nil || ref.UID != "" && obj.GetUID() != ref.UID {
		return store.ErrGone
	}
	obj.Object["status"] = change(obj.DeepCopy())
	return nil
}

func (o FakeObjects) Hold(context.Context, *unstructured.Unstructured) error { return nil }

func (o FakeObjects) Release(_ context.Context, ref v1alpha1.ObjectReference) error {
	o.World.Mu.Lock()
	defer o.World.Mu.Unlock()
	o.World.Released = append(o.World.Released, ref.Name)
	return nil
}

// FakeConfigs implements store.Configs.
type FakeConfigs struct{ World *World }

func (c FakeConfigs) Get(_ context.Context, namespace, name string) (*v1alpha1.ProviderConfig, error) {
	return c.World.ProviderConfigs[namespace+"/"+name], nil
}

func (c FakeConfigs) Leaving(_ context.Context, cfg *v1alpha1.ProviderConfig) (string, error) {
	if cfg.DeletionTimestamp != nil {
		return fmt.Sprintf("the ProviderConfig %q", cfg.Name), nil
	}
	return "", nil
}

func (c FakeConfigs) Terminating(context.Context, string) (bool, error) {
	return c.World.Terminating, nil
}

func (c FakeConfigs) Secret(context.Context, string, string, string) ([]byte, error) {
	return nil, errors.New("not asked for in these tests")
}

func (c FakeConfigs) ConfigMap(_ context.Context, namespace, name string) (map[string][]byte, error) {
	return c.World.Data["configmaps/"+namespace+"/"+name], nil
}

func (c FakeConfigs) ConfigMapNames(_ context.Context, namespace string) ([]string, error) {
	var names []string
	for key := range c.World.Data {
		if name, ok := strings.CutPrefix(key, "configmaps/"+namespace+"/"); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

func (c FakeConfigs) SecretData(_ context.Context, namespace, name string) (map[string][]byte, error) {
	return c.World.Data["secrets/"+namespace+"/"+name], nil
}

// FakeAccess implements store.Access: everything is allowed that is not forbidden.
type FakeAccess struct{ World *World }

func (a FakeAccess) MayUse(_ context.Context, _ v1alpha1.Identity, namespace, name string) (bool, error) {
	return !a.World.Forbidden[namespace+"/providerconfigs/"+name], nil
}

func (a FakeAccess) MayRead(_ context.Context, _ v1alpha1.Identity, namespace, _, resource, name string) (bool, error) {
	key := namespace + "/" + resource + "/" + name
	a.World.Asked = append(a.World.Asked, key)
	return !a.World.Forbidden[key], nil
}

// KV is a KV in memory.
type KV struct {
	mu       sync.Mutex
	Entries  map[string]ledger.Entry
	Revision int64
}

func (s *KV) Get(_ context.Context, key string) ([]byte, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.Entries[key]
	if !ok {
		return nil, 0, ledger.ErrNotFound
	}
	return e.Value, e.Revision, nil
}

func (s *KV) Put(_ context.Context, key string, value []byte, revision int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Entries[key].Revision != revision {
		return 0, ledger.ErrConflict
	}
	s.Revision++
	s.Entries[key] = ledger.Entry{Key: key, Value: slices.Clone(value), Revision: s.Revision}
	return s.Revision, nil
}

func (s *KV) Delete(_ context.Context, key string, revision int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.Entries[key]; ok && e.Revision != revision {
		return ledger.ErrConflict
	}
	delete(s.Entries, key)
	return nil
}

func (s *KV) List(_ context.Context, prefix, after string, limit int) ([]ledger.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []ledger.Entry
	for key, e := range s.Entries {
		if strings.HasPrefix(key, prefix) && key > after {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b ledger.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return out[:min(len(out), limit)], nil
}
