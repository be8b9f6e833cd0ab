package storage

import (
	"context"

	"github.com/k3s-io/kine/pkg/server"
)

// snapshots is kine's backend, but the revision of a list is that of its content. Clients list, and then watch from the
// list's revision. Kine reads the revision of an empty list, or of one with more pages, after the content. An object
// that was written in between would appear neither in the list nor in the watch.
type snapshots struct{ server.Backend }

// List implements server.Backend. For an empty list, it reads the revision and then reads the list again.
func (s snapshots) List(ctx context.Context, key, end string, limit, revision int64, keysOnly bool) (int64, []*server.KeyValue, error) {
	at, kvs, err := s.Backend.List(ctx, key, end, limit, revision, keysOnly)
	if err != nil || len(kvs) > 0 || revision != 0 {
		return at, kvs, err
	}
	before, err := currentRevision(ctx, s.Backend)
	if err != nil {
		return 0, nil, err
	}
	at, kvs, err = s.Backend.List(ctx, key, end, limit, revision, keysOnly)
	if len(kvs) == 0 {
		at = before
	}
	return at, kvs, err
}

// Count implements server.Backend. Kine counts the remaining keys at the page's revision, and then uses the revision
// that Count returns as the page's revision.
func (s snapshots) Count(ctx context.Context, key, end string, revision int64) (int64, int64, error) {
	at, count, err := s.Backend.Count(ctx, key, end, revision)
	if revision != 0 {
		at = revision
	}
	return at, count, err
}
