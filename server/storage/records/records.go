// Package records stores the ledger in tables of its own. It groups the writes of concurrent callers into one
// transaction, so that they share one fsync. It stores the values as it gets them: package storage encrypts them.
package records

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/ledger"
)

const (
	// prefixPage is the number of keys that DeletePrefix deletes in one transaction.
	prefixPage = 500
	// keepDeletions is the time for which the store keeps deletions, and maxDeletions is the maximum number of
	// revisions after which it removes them earlier.
	keepDeletions  = time.Hour
	maxDeletions   = 500_000
	forgetInterval = 5 * time.Minute
)

// Config configures a Store.
type Config struct {
	Dialect Dialect
	// Read and Write are connections to the database. For SQLite, Write has one connection.
	Read, Write *sql.DB
	Logger      *slog.Logger
	// Committing is called before each commit, for tests; nil does nothing.
	Committing func()
}

// Store is the tables of a ledger. It is safe for concurrent use, also by several servers on one database.
type Store struct {
	dialect     Dialect
	read, write *sql.DB
	log         *slog.Logger
	committing  func()
	queue       *fair.Queue[*request]
	stop        context.CancelFunc
	done        sync.WaitGroup
	lease       lease
}

// Open creates the tables if necessary. The caller must call Close before it closes the connections.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	for _, statement := range cfg.Dialect.tables {
		if _, err := cfg.Write.ExecContext(ctx, statement); err != nil {
			return nil, fmt.Errorf("create tables of the ledger: %w", err)
		}
	}
	s := &Store{
		dialect: cfg.Dialect, read: cfg.Read, write: cfg.Write, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
		committing: cfg.Committing, queue: fair.NewQueue[*request](maxGroupWrites, maxGroupBytes),
		lease: lease{process: newProcess(), lost: make(chan struct{})},
	}
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.done.Add(1)
	go s.run()
	s.done.Go(func() { s.forgetRegularly(ctx) })
	return s, nil
}

// Close ends the store after the writes that it has accepted.
func (s *Store) Close() {
	s.stop()
	s.queue.Close()
	s.done.Wait()
	s.endLease()
}

// Get returns the value and revision of a key. It returns ledger.ErrNotFound if the key does not exist.
func (s *Store) Get(ctx context.Context, key string) (value []byte, revision int64, err error) {
	if ctx, err = s.reading(ctx); err != nil {
		return nil, 0, failed("read", err)
	}
	err = s.read.QueryRowContext(ctx, s.dialect.text("SELECT value, revision FROM hykube_ledger WHERE name = ?"),
		[]byte(key)).Scan(&value, &revision)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, 0, ledger.ErrNotFound
	}
	return value, revision, failed("read", err)
}

// reading returns the context of a read, or the error of a context that has ended. The driver of SQLite starts a
// goroutine for each row if a read can be cancelled. That costs more than the row, and a read of one page never takes
// long.
func (s *Store) reading(ctx context.Context) (context.Context, error) {
	if err := ctx.Err(); err != nil || !s.dialect.embedded {
		return ctx, err
	}
	return context.WithoutCancel(ctx), nil
}

// List returns up to limit entries whose keys begin with prefix and sort after the key after, sorted by key.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]ledger.Entry, error) {
	query, args := listQuery(prefix, after)
	return s.entries(ctx, query, append(args, limit)...)
}

// listQuery returns the query of List, and its arguments without the limit. It has one lower bound: with two, SQLite
// seeks the first one and visits all rows between them, so the pages of a list would take quadratic time.
func listQuery(prefix, after string) (query string, args []any) {
	condition, args := inRange(prefix)
	if after >= prefix {
		condition, args[0] = strings.Replace(condition, ">=", ">", 1), []byte(after)
	}
	return "SELECT name, value, revision FROM hykube_ledger WHERE " + condition + " ORDER BY name LIMIT ?", args
}

// Page returns up to limit entries after a revision, in the order of their revisions.
func (s *Store) Page(ctx context.Context, revision int64, limit int) ([]ledger.Entry, error) {
	return s.entries(ctx, "SELECT name, value, revision FROM hykube_ledger WHERE revision > ? ORDER BY revision LIMIT ?", revision, limit)
}

// entries returns the rows of a query for name, value and revision.
func (s *Store) entries(ctx context.Context, query string, args ...any) (out []ledger.Entry, err error) {
	if ctx, err = s.reading(ctx); err != nil {
		return nil, failed("read", err)
	}
	rows, err := s.read.QueryContext(ctx, s.dialect.text(query), args...)
	if err != nil {
		return nil, failed("read", err)
	}
	defer func() { err = failed("read", errors.Join(err, rows.Close())) }()
	for rows.Next() {
		var name []byte
		var e ledger.Entry
		if err := rows.Scan(&name, &e.Value, &e.Revision); err != nil {
			return nil, err
		}
		e.Key = string(name)
		out = append(out, e)
	}
	return out, rows.Err()
}

// Since implements ledger.KV.
func (s *Store) Since(ctx context.Context, prefix string, revision int64,
	limit int) (changed []ledger.ChangedEntry, current int64, err error) {
	// The state is read first. A later write may hide a row, and a later call then returns that write.
	st, err := s.state(ctx)
	if err != nil {
		return nil, 0, err
	}
	if revision == 0 {
		return nil, st.revision, ledger.ErrExpired
	}
	condition, args := inRange(prefix)
	args = append([]any{revision, st.revision}, append(args, limit)...)
	where := " WHERE revision > ? AND revision <= ? AND " + condition + " ORDER BY revision LIMIT ?"
	live, err := s.entries(ctx, "SELECT name, value, revision FROM hykube_ledger"+s.dialect.byRevision+where, args...)
	if err != nil {
		return nil, 0, err
	}
	deleted, err := s.entries(ctx, "SELECT name, NULL, revision FROM hykube_ledger_deleted"+where, args...)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range live {
		changed = append(changed, ledger.ChangedEntry{Entry: e})
	}
	for _, e := range deleted {
		changed = append(changed, ledger.ChangedEntry{Entry: e, Deleted: true})
	}
	slices.SortFunc(changed, func(a, b ledger.ChangedEntry) int { return cmp.Compare(a.Revision, b.Revision) })
	// This is read last, because deletions may be forgotten meanwhile.
	now, err := s.state(ctx)
	if err != nil {
		return nil, 0, err
	}
	if revision < now.forgotten {
		return nil, now.revision, ledger.ErrExpired
	}
	if len(changed) < limit {
		return changed, st.revision, nil
	}
	return changed[:limit], changed[limit-1].Revision, nil
}

// DeletePrefix deletes all keys that begin with prefix, in transactions of a namespace that delete a page each.
func (s *Store) DeletePrefix(ctx context.Context, namespace, prefix string) error {
	condition, args := inRange(prefix)
	for {
		page, err := s.entries(ctx, "SELECT name, NULL, revision FROM hykube_ledger WHERE "+condition+
			" ORDER BY name LIMIT ?", append(args, prefixPage)...)
		if err != nil || len(page) == 0 {
			return err
		}
		deletes := make([]ledger.Write, len(page))
		for i, e := range page {
			deletes[i] = ledger.Write{Op: ledger.OpDelete, Key: e.Key, Revision: e.Revision}
		}
		// Another writer may have changed a key since it was listed: then list again.
		if _, err := s.Batch(ctx, namespace, deletes); err != nil && !errors.Is(err, ledger.ErrConflict) {
			return err
		}
	}
}

// Replace replaces values of rows whose revision is unchanged, and keeps the revisions. It is for another encryption of
// the same content.
func (s *Store) Replace(ctx context.Context, rows []ledger.Entry) error {
	return s.inTransaction(ctx, func(tx *sql.Tx, _ state) error {
		if s.dialect.embedded {
			// SQLite leaves old values in the file otherwise.
			if _, err := tx.ExecContext(ctx, "PRAGMA secure_delete = 1"); err != nil {
				return failed("write", err)
			}
		}
		for _, r := range rows {
			_, err := tx.ExecContext(ctx, s.dialect.text(
				"UPDATE hykube_ledger SET value = ? WHERE revision = ? AND name = ?"), notNil(r.Value), r.Revision,
				[]byte(r.Key))
			if err != nil {
				return failed("write", err)
			}
		}
		return nil
	})
}

// EmptyLog removes old values from SQLite's write-ahead log.
func (s *Store) EmptyLog(ctx context.Context) error {
	if !s.dialect.embedded {
		return nil
	}
	if _, err := s.write.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return fmt.Errorf("empty the write-ahead log of the ledger: %w", err)
	}
	return nil
}

// Revision returns the revision of the last write.
func (s *Store) Revision(ctx context.Context) (int64, error) {
	st, err := s.state(ctx)
	return st.revision, err
}

// Size returns the bytes of the tables.
func (s *Store) Size(ctx context.Context) (n int64, err error) {
	err = s.read.QueryRowContext(ctx, s.dialect.size).Scan(&n)
	return n, failed("read the size of", err)
}

func failed(verb string, err error) error {
	if err != nil {
		return fmt.Errorf("%s records: %w", verb, err)
	}
	return nil
}

// notNil returns an empty value instead of nil, which databases store as NULL.
func notNil(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}
