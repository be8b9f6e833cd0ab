package ledger

import (
	"context"
	"errors"
)

// KV is the ordered key-value store that the ledger is written in. Values are encrypted by whoever implements it.
type KV interface {
	// Get reads a key. It returns ErrNotFound when there is none.
	Get(ctx context.Context, key string) (value []byte, revision int64, err error)
	// Put writes a key if its revision is still the given one, 0 meaning that the key must not exist, and returns
	// the new revision. It returns ErrConflict when somebody else was first.
	Put(ctx context.Context, key string, value []byte, revision int64) (int64, error)
	// Delete removes a key if its revision is still the given one. It returns ErrConflict when it is not,
	// and nil when there is no such key.
	Delete(ctx context.Context, key string, revision int64) error
	// List reads up to limit entries whose keys begin with prefix and sort after the key after, in the order of keys.
	List(ctx context.Context, prefix, after string, limit int) ([]Entry, error)
}

// Entry is one key of a KV.
type Entry struct {
	Key      string
	Value    []byte
	Revision int64
}

var (
	// ErrNotFound says that there is no such record.
	ErrNotFound = errors.New("not found")
	// ErrConflict says that a record was written by somebody else since it was read.
	ErrConflict = errors.New("another writer changed it meanwhile")
)
