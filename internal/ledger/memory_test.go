package ledger

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
)

// memory is a KV that follows the interface to the letter; the real one has its own tests.
type memory struct {
	mu      sync.Mutex
	entries map[string]Entry
	clock   int64
	batches int
}

func (m *memory) Get(_ context.Context, key string) ([]byte, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[key]
	if !ok {
		return nil, 0, ErrNotFound
	}
	return e.Value, e.Revision, nil
}

func (m *memory) Put(_ context.Context, key string, value []byte, revision int64) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !(Write{Revision: revision}).Meets(m.entries[key].Revision) {
		return 0, ErrConflict
	}
	m.clock++
	m.entries[key] = Entry{key, value, m.clock}
	return m.clock, nil
}

func (m *memory) Delete(_ context.Context, key string, revision int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.entries[key]; ok && e.Revision != revision {
		return ErrConflict
	}
	delete(m.entries, key)
	return nil
}

func (m *memory) List(_ context.Context, prefix, after string, limit int) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Entry
	for _, key := range slices.Sorted(maps.Keys(m.entries)) {
		if strings.HasPrefix(key, prefix) && key > after && len(out) < limit {
			out = append(out, m.entries[key])
		}
	}
	return out, nil
}

func (m *memory) Batch(ctx context.Context, writes []Write) ([]int64, error) {
	m.mu.Lock()
	for _, w := range writes {
		if !w.Meets(m.entries[w.Key].Revision) {
			m.mu.Unlock()
			return nil, ErrConflict
		}
	}
	m.batches++
	m.mu.Unlock()
	revisions := make([]int64, len(writes))
	for i, w := range writes {
		switch w.Op {
		case OpPut:
			revisions[i], _ = m.Put(ctx, w.Key, w.Value, w.Revision)
		case OpDelete:
			_ = m.Delete(ctx, w.Key, w.Revision)
		}
	}
	return revisions, nil
}

func (m *memory) Persist(ctx context.Context, writes []Write, _ bool) ([]int64, error) {
	return m.Batch(ctx, writes)
}

func (m *memory) DeletePrefix(_ context.Context, prefix string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.entries, func(key string, _ Entry) bool { return strings.HasPrefix(key, prefix) })
	return nil
}

func newLedger() *Ledger { return New(&memory{entries: map[string]Entry{}}) }

func ref(name string) v1alpha1.ObjectReference {
	return v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: "prod", Name: name, UID: types.UID(name), Generation: 1}
}

func (m *memory) HasSpace() error { return nil }

func (m *memory) Since(context.Context, string, int64, int) ([]ChangedEntry, int64, error) {
	return nil, 0, ErrExpired
}
