// Package ledgertest implements an in-memory ledger.KV for tests.
package ledgertest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/hykube/hykube/internal/ledger"
)

// KV is a ledger.KV in memory.
type KV struct {
	mu sync.Mutex
	// Entries holds the stored entries by key. Revision is the revision of the last write.
	Entries  map[string]ledger.Entry
	Revision int64
	// Reads is the number of entries that were read, plus the number of lists.
	Reads int
}

// New returns a KV without entries.
func New() *KV { return &KV{Entries: map[string]ledger.Entry{}} }

// Get implements ledger.KV.
func (s *KV) Get(_ context.Context, key string) ([]byte, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Reads++
	e, ok := s.Entries[key]
	if !ok {
		return nil, 0, ledger.ErrNotFound
	}
	return e.Value, e.Revision, nil
}

// Put implements ledger.KV.
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

// Delete implements ledger.KV.
func (s *KV) Delete(_ context.Context, key string, revision int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.Entries[key]; ok && e.Revision != revision {
		return ledger.ErrConflict
	}
	delete(s.Entries, key)
	return nil
}

// List implements ledger.KV.
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
	out = out[:min(len(out), limit)]
	s.Reads += 1 + len(out)
	return out, nil
}
