package ledger

import (
	"context"
	"errors"
)

// KV is the ordered key-value store of the ledger. Implementations encrypt the values. A write that returned without an
// error is on the disk: a crash or a power loss does not take it back.
type KV interface {
	// Get returns the value and revision of a key. It returns ErrNotFound if the key does not exist.
	Get(ctx context.Context, key string) (value []byte, revision int64, err error)
	// Put writes a key if its revision is still the given one, and returns the new revision. Revision 0 means that the
	// key must not exist. Put returns ErrConflict if the revision differs.
	Put(ctx context.Context, key string, value []byte, revision int64) (int64, error)
	// Delete deletes a key if its revision is still the given one, and returns ErrConflict if it differs. It returns
	// nil if the key does not exist.
	Delete(ctx context.Context, key string, revision int64) error
	// Batch makes all writes in one transaction and returns the revision of each. It returns ErrConflict, and writes
	// nothing, if the revision of any key differs.
	Batch(ctx context.Context, writes []Write) ([]int64, error)
	// Persist makes all writes as Batch does. After a failure of the store it tries again, until the store makes or
	// refuses them, or is closed. A transaction whose answer was lost is made once. If the store does not answer soon
	// and spool is true, the writes are kept outside of it meanwhile, and the next start of the server makes them.
	Persist(ctx context.Context, writes []Write, spool bool) ([]int64, error)
	// DeletePrefix deletes all keys that begin with prefix, at any revision. After an error, some of them may remain.
	DeletePrefix(ctx context.Context, prefix string) error
	// List returns up to limit entries whose keys begin with prefix and sort after the key after, sorted by key.
	List(ctx context.Context, prefix, after string, limit int) ([]Entry, error)
	// Since returns up to limit keys that begin with prefix and were written or deleted after a revision, ascending by
	// revision. Of several writes of a key it returns the last one. The next call passes the returned revision. There
	// are no more changes if the result has less than limit entries.
	//
	// If the store no longer knows all deletions, Since returns ErrExpired and the current revision. The caller then
	// lists all keys, and continues from that revision. For revision 0, Since always returns ErrExpired.
	Since(ctx context.Context, prefix string, revision int64, limit int) ([]ChangedEntry, int64, error)
	// HasSpace returns an error if the store's disk is nearly full, so that a later Put could fail.
	HasSpace() error
}

// Entry is one key of a KV.
type Entry struct {
	Key      string
	Value    []byte
	Revision int64
}

// ChangedEntry is a key that was written, or deleted.
type ChangedEntry struct {
	Entry
	// Deleted is true if the key was deleted. Value is then nil, and Revision is that of the deletion.
	Deleted bool
}

// Write is one write of a batch.
type Write struct {
	Op    Op
	Key   string
	Value []byte
	// Revision is the revision that the key must have. 0 means that it must not exist, and AnyRevision that it does not
	// matter.
	Revision int64
}

// AnyRevision is the revision of a write that overwrites each other one.
const AnyRevision = -1

// Meets reports whether the write may be made of a key at a revision; 0 if the key does not exist.
func (w Write) Meets(revision int64) bool {
	return w.Revision == revision || w.Revision == AnyRevision || w.Op == OpDelete && revision == 0
}

// Op is the kind of a Write.
type Op int

const (
	// OpPut is a Put.
	OpPut Op = iota
	// OpDelete is a Delete. Its revision in the result is 0.
	OpDelete
	// OpCheck writes nothing. The batch fails if the key's revision differs.
	OpCheck
)

var (
	// ErrNotFound is the error if a record does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExpired is the error if the store no longer knows all changes since a revision.
	ErrExpired = errors.New("the store no longer knows the changes since that revision")
	// ErrConflict is the error if another writer changed a record since it was read.
	ErrConflict = errors.New("another writer changed it meanwhile")
)
