package ledger

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Document is an object in a speculative plan.
type Document struct {
	// Object is the object as JSON.
	Object json.RawMessage `json:"object"`
	// Pruned is true for an object that the plan treats as deleted.
	Pruned bool `json:"pruned,omitempty"`
	// Foreign is true for a change that the plan's creator has no right to record.
	Foreign bool `json:"foreign,omitempty"`
}

func documentPrefix(plan types.UID) string { return "documents/" + string(plan) + "/" }

// SaveDocuments writes a chunk of the documents of a speculative plan. It replaces an existing chunk of that number.
func (l *Ledger) SaveDocuments(ctx context.Context, plan types.UID, chunk int32, docs []Document) error {
	value, err := json.Marshal(docs)
	if err != nil {
		return fmt.Errorf("encode documents of plan: %w", err)
	}
	// A client retries if it lost the response.
	if err := l.replace(ctx, fmt.Sprintf("%s%08d", documentPrefix(plan), chunk), value); err != nil {
		return fmt.Errorf("save documents of plan: %w", err)
	}
	return nil
}

// replace writes a key that an earlier attempt may have written.
func (l *Ledger) replace(ctx context.Context, key string, value []byte) error {
	_, err := l.kv.Put(ctx, key, value, 0)
	if errors.Is(err, ErrConflict) {
		if _, stored, gerr := l.kv.Get(ctx, key); gerr == nil {
			_, err = l.kv.Put(ctx, key, value, stored)
		}
	}
	return err
}

// Documents returns the documents of a speculative plan in upload order.
func (l *Ledger) Documents(ctx context.Context, plan types.UID) iter.Seq2[*Document, error] {
	return func(yield func(*Document, error) bool) {
		for e, err := range l.scan(ctx, documentPrefix(plan), "") {
			var docs []Document
			if err == nil {
				err = unmarshal(e.Value, &docs)
			}
			if err != nil {
				yield(nil, fmt.Errorf("read documents of plan: %w", err))
				return
			}
			for i := range docs {
				if !yield(&docs[i], nil) {
					return
				}
			}
		}
	}
}

// DropDocuments deletes the documents of a speculative plan.
func (l *Ledger) DropDocuments(ctx context.Context, plan types.UID) error {
	if err := l.kv.DeletePrefix(ctx, documentPrefix(plan)); err != nil {
		return fmt.Errorf("remove documents of plan: %w", err)
	}
	return nil
}

// contentsKey is the storage key of the HMAC key for the contents of plans.
const contentsKey = "keys/contents"

// ContentsKey returns the key that hashes the contents of plans. The first call generates it. It never leaves the
// server.
func (l *Ledger) ContentsKey(ctx context.Context) ([]byte, error) {
	for {
		key, _, err := l.kv.Get(ctx, contentsKey)
		if err == nil {
			return key, nil
		}
		if !errors.Is(err, ErrNotFound) {
			return nil, fmt.Errorf("read key of contents: %w", err)
		}
		key = make([]byte, 32)
		_, _ = rand.Read(key) // rand.Read never fails
		if _, err = l.kv.Put(ctx, contentsKey, key, 0); err != nil && !errors.Is(err, ErrConflict) {
			return nil, fmt.Errorf("save key of contents: %w", err)
		}
	}
}

// Speculative returns a ledger for a speculative plan: it writes the plan's own changes and documents, and drops every
// other write.
func (l *Ledger) Speculative(plan types.UID) *Ledger {
	return &Ledger{Limit: l.Limit,
		kv: speculativeKV{l.kv, []string{planPrefix(plan), progressPrefix(plan), briefPrefix(plan), answersPrefix(plan),
			documentPrefix(plan), contentsKey}}}
}

// speculativeKV drops the writes of keys that have none of the writable prefixes.
type speculativeKV struct {
	KV
	writable []string
}

func (s speculativeKV) mayWrite(key string) bool {
	return slices.ContainsFunc(s.writable, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

func (s speculativeKV) Put(ctx context.Context, key string, value []byte, revision int64) (int64, error) {
	if !s.mayWrite(key) {
		return revision, nil
	}
	return s.KV.Put(ctx, key, value, revision)
}

// Batch drops the writes of other keys, and keeps their revisions.
func (s speculativeKV) Batch(ctx context.Context, writes []Write) ([]int64, error) {
	revisions := make([]int64, len(writes))
	var mine []Write
	var at []int
	for i, w := range writes {
		if w.Op == OpCheck || s.mayWrite(w.Key) {
			mine, at = append(mine, w), append(at, i)
		} else {
			revisions[i] = w.Revision
		}
	}
	written, err := s.KV.Batch(ctx, mine)
	for i := range written {
		revisions[at[i]] = written[i]
	}
	return revisions, err
}

func (s speculativeKV) Persist(ctx context.Context, writes []Write, _ bool) ([]int64, error) {
	return s.Batch(ctx, writes)
}

func (s speculativeKV) DeletePrefix(ctx context.Context, prefix string) error {
	if !s.mayWrite(prefix) {
		return nil
	}
	return s.KV.DeletePrefix(ctx, prefix)
}

func (s speculativeKV) Delete(ctx context.Context, key string, revision int64) error {
	if !s.mayWrite(key) {
		return nil
	}
	return s.KV.Delete(ctx, key, revision)
}
