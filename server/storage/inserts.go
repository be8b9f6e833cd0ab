package storage

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k3s-io/kine/pkg/drivers/generic"
	"github.com/k3s-io/kine/pkg/metrics"
	"github.com/k3s-io/kine/pkg/query"
	"github.com/k3s-io/kine/pkg/server"

	"github.com/hykube/hykube/internal/fair"
)

const (
	// maxGroupInserts and maxGroupBytes limit the rows of one transaction. A single row may exceed the latter.
	maxGroupInserts = 256
	maxGroupBytes   = 4 << 20
)

// errClosed is the error of a write after Close.
var errClosed = errors.New("the database is closed")

// errUncertain is the error of a transaction that the database may have committed or not.
var errUncertain = errors.New("commit")

// inserts is kine's dialect for SQLite, whose concurrent inserts share a transaction. Each insert keeps kine's rules:
// its revision is the next one, and it conflicts with any other write of its key since the revision that it replaces. A
// conflict fails only its own insert.
type inserts struct {
	*generic.Generic
	queue *fair.Queue[*insert]
}

// insert is a row that waits for its transaction.
type insert struct {
	key            string
	create, delete bool
	// createRevision and replaces are the revisions of the key's create and of its last write, which the row replaces.
	createRevision, replaces, lease int64
	value                           []byte
	// taken is true once the writer has taken the insert, or its caller has given up.
	taken atomic.Bool
	// done is closed when revision and err are set.
	done     chan struct{}
	revision int64
	err      error
}

// Size implements fair.Queued.
func (i *insert) Size() (writes, bytes int) { return 1, len(i.value) }

// take returns false if it was called before.
func (i *insert) take() bool { return i.taken.CompareAndSwap(false, true) }

// end sets the error of the insert's transaction and wakes its caller.
func (i *insert) end(err error) {
	if err != nil {
		i.err = err
	}
	close(i.done)
}

// newInserts starts the writer, which ends with ctx.
func newInserts(ctx context.Context, wg *sync.WaitGroup, dialect *generic.Generic) *inserts {
	d := &inserts{dialect, fair.NewQueue[*insert](maxGroupInserts, maxGroupBytes)}
	context.AfterFunc(ctx, d.queue.Close)
	wg.Go(d.run)
	return d
}

// Insert implements server.Dialect. It returns server.ErrKeyExists if the key exists and create is true, or if there is
// another write of the key since previousRevision.
//
//nolint:revive // kine's signature
func (d *inserts) Insert(ctx context.Context, key string, create, delete bool, createRevision, previousRevision,
	lease int64, value []byte) (int64, error) {
	i := &insert{key: key, create: create, delete: delete, createRevision: createRevision, replaces: previousRevision,
		lease: lease, value: value, done: make(chan struct{})}
	if !d.queue.Add(namespaceOf(ctx), i) {
		return 0, errClosed
	}
	select {
	case <-i.done:
	case <-ctx.Done():
		if i.take() {
			return 0, context.Cause(ctx)
		}
		<-i.done // the caller must know what happened
	}
	return i.revision, i.err
}

// run writes groups of inserts until the queue is closed.
func (d *inserts) run() {
	for {
		group := d.queue.Next()
		if group == nil {
			return
		}
		group = slices.DeleteFunc(group, func(i *insert) bool { return !i.take() })
		if len(group) > 0 {
			d.commit(group)
		}
	}
}

func (d *inserts) commit(group []*insert) {
	fair.Commit(group, d.transact, errUncertain, (*insert).end)
}

// transact writes a group in one transaction. It returns an error if nothing was written, or an error that wraps
// errUncertain if that is unknown.
func (d *inserts) transact(group []*insert) (err error) {
	began := time.Now()
	defer func() { metrics.ObserveSQL(began, d.ErrCode(err), 0, insertsSQLite.Fill(nil)) }()
	d.Lock()
	defer d.Unlock()
	ctx := context.Background() // SQLite needs no timeout; see sqliteBackend for cancellation
	if len(group) == 1 {
		return d.write(ctx, d.DB, group[0])
	}
	tx, err := d.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, i := range group {
		// SQLite may have rolled back after another error than a conflict. The next statement would then be one of its
		// own.
		if err := d.write(ctx, tx, i); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%w: %w", errUncertain, err)
	}
	return nil
}

// execer executes a statement, in a transaction or as one.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// write writes a row and sets the result of its insert. It returns an error if the database refuses the row for another
// reason than a conflict.
func (d *inserts) write(ctx context.Context, db execer, i *insert) error {
	var done sql.Result
	var err error
	switch {
	case i.create:
		done, err = db.ExecContext(ctx, createSQLite, i.key, i.key, i.lease, i.value)
	case i.delete:
		done, err = db.ExecContext(ctx, d.InsertLastInsertIDSQL.Query, i.key, 0, 1, i.createRevision, i.replaces,
			i.lease, i.value, i.replaces)
	default:
		done, err = db.ExecContext(ctx, updateSQLite, i.lease, i.value, i.replaces, i.key)
	}
	if i.err = d.TranslateErr(err); i.err != nil {
		return conflictOr(i.err)
	}
	if rows, err := done.RowsAffected(); err != nil || rows == 0 {
		i.err = cmp.Or(err, server.ErrKeyExists)
		return conflictOr(i.err)
	}
	i.revision, i.err = done.LastInsertId()
	return i.err
}

// conflictOr returns nil for a conflict, and any other error as it is.
func conflictOr(err error) error {
	if errors.Is(err, server.ErrKeyExists) {
		return nil
	}
	return err
}

// insertsSQLite is the name of the inserts in kine's metrics.
var insertsSQLite = query.New("", "?", false, "Insert")

const (
	// createSQLite inserts no row if the key exists. A key that was deleted continues from the revision of its
	// deletion.
	createSQLite = `WITH last AS (SELECT MAX(id) AS id FROM kine WHERE name = ?)
		INSERT INTO kine(name, created, deleted, create_revision, prev_revision, lease, value)
		SELECT ?, 1, 0, 0, COALESCE(last.id, 0), ?, ? FROM last LEFT JOIN kine ON kine.id = last.id
		WHERE COALESCE(kine.deleted, 1) = 1`
	// updateSQLite inserts no row if the key has no such revision, or was deleted with it. If the key has a later one,
	// the row violates the table's constraint: only one row replaces a revision.
	updateSQLite = `INSERT INTO kine(name, created, deleted, create_revision, prev_revision, lease, value, old_value)
		SELECT name, 0, 0, CASE WHEN created THEN id ELSE create_revision END, id, ?, ?, value
		FROM kine WHERE id = ? AND name = ? AND deleted = 0`
)
