package storage

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"

	"github.com/k3s-io/kine/pkg/server"
)

// lists is kine's backend with other lists. The time of a page of kine's list grows with the number of keys behind it,
// so a list in pages takes quadratic time. Here, a page takes time linear in its own size.
//
// The revision of a list is that of its content. Clients list, and then watch from the list's revision. Kine reads the
// revision of an empty list, or of one with more pages, after the content. An object that was written in between would
// appear neither in the list nor in the watch.
type lists struct {
	server.Backend
	table lister
	pages *pages
}

// lister reads a table's keys and revisions.
type lister interface {
	// list returns the keys from key up to but without end, at a revision; 0 means the last one. It also returns the
	// last revision, or 0 if there are no keys. Errors are those of server.Backend.
	list(ctx context.Context, key, end string, limit, revision int64,
		keysOnly bool) (at int64, kvs []*server.KeyValue, err error)
	// revisions returns the last revision and the last compacted revision.
	revisions(ctx context.Context) (last, compacted int64, err error)
	// complete waits until no running transaction can add a row up to the last revision, and returns that revision. It
	// returns 0 if this is always so.
	complete(ctx context.Context) (revision int64, err error)
}

func newLists(backend server.Backend, t lister) lists {
	return lists{backend, t, &pages{counts: map[page]int64{}, following: map[page]step{}}}
}

// CurrentRevision implements server.Backend. Kine's returns a cached value, which may lag behind concurrent writes.
func (l lists) CurrentRevision(ctx context.Context) (int64, error) {
	revision, err := l.table.complete(ctx)
	if err == nil && revision == 0 {
		revision, _, err = l.table.revisions(ctx)
	}
	return revision, err
}

// List implements server.Backend. A transaction that commits after the list was read may have a lower revision than the
// list. Then the row would be neither in the list nor in a watch from the list's revision. So on a database with
// several writers, List lists at a revision up to which all rows are known.
func (l lists) List(ctx context.Context, key, end string, limit, revision int64,
	keysOnly bool) (int64, []*server.KeyValue, error) {
	if end == "" {
		return l.Backend.List(ctx, key, end, limit, revision, keysOnly)
	}
	if revision == 0 {
		complete, err := l.table.complete(ctx)
		if err != nil {
			return 0, nil, err
		}
		if complete != 0 {
			_, kvs, err := l.list(ctx, key, end, limit, complete, keysOnly)
			return complete, kvs, err
		}
	}
	return l.list(ctx, key, end, limit, revision, keysOnly)
}

// list returns a range of keys. For an empty range, it reads the revision and then reads the range again.
func (l lists) list(ctx context.Context, key, end string, limit, revision int64,
	keysOnly bool) (int64, []*server.KeyValue, error) {
	at, kvs, err := l.table.list(ctx, key, end, limit, revision, keysOnly)
	if err != nil {
		return 0, nil, err
	}
	if len(kvs) == 0 {
		before, compacted, err := l.table.revisions(ctx)
		switch {
		case err != nil:
			return 0, nil, err
		case revision > before:
			return before, nil, server.ErrFutureRev
		case revision > 0 && revision < compacted:
			return before, nil, server.ErrCompacted
		case revision > 0:
			return before, nil, nil
		}
		if at, kvs, err = l.table.list(ctx, key, end, limit, 0, keysOnly); err != nil || len(kvs) == 0 {
			return before, nil, err
		}
	}
	if known, err := l.Backend.CurrentRevision(ctx); err == nil && at > known {
		// Another server wrote. Reading a key makes kine deliver its writes to the watches at once.
		if _, _, err := l.Get(ctx, server.HealthKey, 0, true); err != nil {
			return 0, nil, err
		}
	}
	if limit > 1 && int64(len(kvs)) == limit { // kine lists one key more than it returns, and then counts
		this := page{key, end, revision}
		if revision == 0 {
			this.revision = at
		}
		l.pages.follow(this, page{kvs[limit-2].Key + "\x00", end, this.revision}, limit-1)
	}
	return at, kvs, nil
}

// Count implements server.Backend. Kine counts the remaining keys of a list at the page's revision, and then uses the
// revision that Count returns as the page's revision.
func (l lists) Count(ctx context.Context, key, end string, revision int64) (int64, int64, error) {
	if revision == 0 {
		return l.Backend.Count(ctx, key, end, 0)
	}
	this := page{key, end, revision}
	count, known := l.pages.count(this)
	if !known {
		var err error
		if _, count, err = l.Backend.Count(ctx, key, end, revision); err != nil {
			return 0, 0, err
		}
	}
	l.pages.counted(this, count)
	return revision, count, nil
}

// page identifies the rest of a list at a revision, from the key start on.
type page struct {
	start, end string
	revision   int64
}

// step leads to the next page, which begins distance keys later.
type step struct {
	next     page
	distance int64
}

// maxPages is the maximum number of lists in progress whose counts pages keeps.
const maxPages = 1000

// pages knows how many keys remain of the lists in progress, so that only the first page of each counts them.
type pages struct {
	mu        sync.Mutex
	counts    map[page]int64
	following map[page]step
}

// follow notes which page follows another.
func (p *pages) follow(this, next page, distance int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.following) >= maxPages {
		clear(p.following)
	}
	p.following[this] = step{next, distance}
}

func (p *pages) count(this page) (count int64, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	count, known = p.counts[this]
	return count, known
}

// counted notes the number of keys from a page on, and with it that of the page that follows.
func (p *pages) counted(this page, count int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.following[this]
	if !ok {
		return
	}
	if len(p.counts) >= maxPages {
		clear(p.counts)
	}
	delete(p.counts, this)
	delete(p.following, this)
	p.counts[s.next] = count - s.distance
}

// current selects, at the beginning of each row, the last revision and the last compacted one.
const current = "SELECT (SELECT MAX(id) FROM kine), (SELECT MAX(prev_revision) FROM kine WHERE name = 'compact_rev_key')"

// revisions implements lister.
func (t *table) revisions(ctx context.Context) (last, compacted int64, err error) {
	if ctx, err = t.reading(ctx); err != nil {
		return 0, 0, err
	}
	var found [2]sql.NullInt64
	if err := t.db.QueryRowContext(ctx, current).Scan(&found[0], &found[1]); err != nil {
		return 0, 0, fmt.Errorf("read database: %w", err)
	}
	return found[0].Int64, found[1].Int64, nil
}

// listQuery returns the query of a page. It walks the index of names and IDs, and selects the last row of each name.
func listQuery(limit, revision int64, keysOnly bool) string {
	value, until := "k.value", ""
	if keysOnly {
		value = "NULL"
	}
	if revision != 0 {
		until = " AND x.id <= ?"
	}
	text := current + ", k.id, k.name, k.created, k.create_revision, k.lease, " + value +
		" FROM kine AS k WHERE k.name >= ? AND k.name < ? AND k.deleted = 0 AND k.id = (SELECT MAX(x.id) FROM kine AS x WHERE x.name = k.name" + until + ") ORDER BY k.name"
	if limit > 0 {
		text += fmt.Sprintf(" LIMIT %d", limit)
	}
	return text
}

// list implements lister.
func (t *table) list(ctx context.Context, key, end string, limit, revision int64,
	keysOnly bool) (at int64, kvs []*server.KeyValue, err error) {
	if start, ok := strings.CutSuffix(key, "\x00"); ok && t.write == nil {
		key = start + afterName // PostgreSQL and MySQL cannot compare with a null byte
	}
	arguments := []any{key, end}
	if revision != 0 {
		arguments = append(arguments, revision)
	}
	if limit > 0 && limit <= maxUncancellable {
		if ctx, err = t.reading(ctx); err != nil {
			return 0, nil, err
		}
	}
	rows, err := t.db.QueryContext(ctx, t.query(listQuery(limit, revision, keysOnly)), arguments...)
	if err != nil {
		return 0, nil, fmt.Errorf("read database: %w", err)
	}
	defer func() {
		// Do not join the errors: etcd's client looks for ErrCompacted itself.
		if closed := rows.Close(); err == nil {
			err = closed
		}
	}()
	var last, compacted sql.NullInt64
	for rows.Next() {
		var created bool
		kv := &server.KeyValue{}
		if err := rows.Scan(&last, &compacted, &kv.ModRevision, &kv.Key, &created, &kv.CreateRevision, &kv.Lease,
			&kv.Value); err != nil {
			return 0, nil, fmt.Errorf("read database: %w", err)
		}
		if created {
			kv.CreateRevision = kv.ModRevision
		}
		kvs = append(kvs, kv)
	}
	if err := rows.Err(); err != nil {
		return 0, nil, fmt.Errorf("read database: %w", err)
	}
	switch {
	case len(kvs) > 0 && revision > last.Int64:
		return 0, nil, server.ErrFutureRev
	case len(kvs) > 0 && revision != 0 && revision < compacted.Int64:
		return 0, nil, server.ErrCompacted
	}
	return last.Int64, kvs, nil
}
