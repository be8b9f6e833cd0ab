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
	// deleted holds the revisions of deleted keys. Since knows no changes before expired.
	deleted map[string]int64
	expired int64
	// Reads is the number of entries that were read, plus Lists, the number of lists.
	Reads, Lists int
	// Batches is the number of transactions, Writes that of the keys that they wrote, and Bytes the length of the
	// values.
	Batches, Writes, Bytes int
	// Full is the error of HasSpace.
	Full error
}

// New returns a KV without entries.
func New() *KV {
	return &KV{Entries: map[string]ledger.Entry{}, Revision: 1, deleted: map[string]int64{}}
}

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

func (s *KV) Put(ctx context.Context, key string, value []byte, revision int64) (int64, error) {
	revisions, err := s.Batch(ctx, []ledger.Write{{Key: key, Value: value, Revision: revision}})
	if err != nil {
		return 0, err
	}
	return revisions[0], nil
}

func (s *KV) Delete(ctx context.Context, key string, revision int64) error {
	_, err := s.Batch(ctx, []ledger.Write{{Op: ledger.OpDelete, Key: key, Revision: revision}})
	return err
}

func (s *KV) Batch(_ context.Context, writes []ledger.Write) ([]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range writes {
		if !w.Meets(s.Entries[w.Key].Revision) {
			return nil, ledger.ErrConflict
		}
	}
	s.Batches++
	revisions := make([]int64, len(writes))
	for i, w := range writes {
		switch w.Op {
		case ledger.OpPut:
			s.Revision++
			s.Writes, s.Bytes, revisions[i] = s.Writes+1, s.Bytes+len(w.Value), s.Revision
			s.Entries[w.Key] = ledger.Entry{Key: w.Key, Value: slices.Clone(w.Value), Revision: s.Revision}
		case ledger.OpDelete:
			s.remove(w.Key)
		}
	}
	return revisions, nil
}

// Persist implements ledger.KV. This store never fails.
func (s *KV) Persist(ctx context.Context, writes []ledger.Write, _ bool) ([]int64, error) {
	return s.Batch(ctx, writes)
}

func (s *KV) DeletePrefix(_ context.Context, prefix string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.Entries {
		if strings.HasPrefix(key, prefix) {
			s.remove(key)
		}
	}
	return nil
}

func (s *KV) remove(key string) {
	if _, ok := s.Entries[key]; ok {
		s.Revision++
		s.deleted[key] = s.Revision
	}
	delete(s.Entries, key)
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
	out = out[:min(len(out), limit)]
	s.Lists++
	s.Reads += 1 + len(out)
	return out, nil
}

// Compact makes Since forget all changes up to now.
func (s *KV) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired = s.Revision
	clear(s.deleted)
}

func (s *KV) Since(_ context.Context, prefix string, revision int64, limit int) ([]ledger.ChangedEntry, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision == 0 || revision < s.expired {
		return nil, s.Revision, ledger.ErrExpired
	}
	var out []ledger.ChangedEntry
	for key, e := range s.Entries {
		if strings.HasPrefix(key, prefix) && e.Revision > revision {
			out = append(out, ledger.ChangedEntry{Entry: e})
		}
	}
	for key, at := range s.deleted {
		if _, exists := s.Entries[key]; !exists && strings.HasPrefix(key, prefix) && at > revision {
			out = append(out, ledger.ChangedEntry{Entry: ledger.Entry{Key: key, Revision: at}, Deleted: true})
		}
	}
	slices.SortFunc(out, func(a, b ledger.ChangedEntry) int { return cmp.Compare(a.Revision, b.Revision) })
	s.Reads += 1 + len(out)
	if len(out) > limit {
		out = out[:limit]
		return out, out[limit-1].Revision, nil
	}
	return out, s.Revision, nil
}

func (s *KV) HasSpace() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Full
}
