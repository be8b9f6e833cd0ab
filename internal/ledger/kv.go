package ledger

import (
	"context"
	"errors"
)

// KV is the ordered key-value store of the ledger. Implementations encrypt the values.
type KV interface {
	// Get returns the value and revision of a key. It returns ErrNotFound if the key does not exist.
	Get(ctx context.Context, key string) (value []byte, revision int64, err error)
	// Put writes a key if its revision is still the given one, and returns the new revision. Revision 0 means that the
	// key must not exist. Put returns ErrConflict if the revision differs.
	Put(ctx context.Context, key string, value []byte, revision int64) (int64, error)
	// Delete deletes a key if its revision is still the given one, and returns ErrConflict if it differs. It returns
	// nil if the key does not exist.
	Delete(ctx context.Context, key string, revision int64) error
	// List returns up to limit entries whose keys begin with prefix and sort after the key after, sorted by key.
	List(ctx context.Context, prefix, after string, limit int) ([]Entry, error)
}

// Entry is one key of a KV.
type Entry struct {
	Key      string
	Value    []byte
	Revision int64
}

var (
	// ErrNotFound is the error if a record does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict is the error if another writer changed a record since it was read.
	ErrConflict = errors.New("another writer changed it meanwhile")
)
