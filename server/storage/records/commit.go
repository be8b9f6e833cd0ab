package records

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/ledger"
)

const (
	// rowsAtOnce is the number of rows of one statement.
	rowsAtOnce = 128
	// commitTimeout is the maximum time of a transaction in a database server.
	commitTimeout = time.Minute
	// After a group of busyRequests, the next one waits for commitDelay a request, at most for maxCommitDelay. More
	// requests then share its fsync. PostgreSQL has such settings, too: commit_siblings and commit_delay. Only a plan
	// whose provider takes batches has so many requests; others would wait longer than they save.
	busyRequests   = 24
	commitDelay    = 200 * time.Microsecond
	maxCommitDelay = 8 * time.Millisecond
)

// errCommit is the error of a transaction that the database may have committed or not.
var errCommit = errors.New("commit")

// ErrClosed is the error of a write after Close.
var ErrClosed = errors.New("the store is closed")

// Batch makes writes in one transaction and returns their revisions. It returns ledger.ErrConflict, and writes nothing,
// if the revision of a key differs. The transaction may include the writes of other callers.
func (s *Store) Batch(ctx context.Context, namespace string, writes []ledger.Write) ([]int64, error) {
	r := &request{ctx: ctx, writes: writes, done: make(chan struct{})}
	if !s.queue.Add(namespace, r) {
		return nil, ErrClosed
	}
	select {
	case <-r.done:
		return r.revisions, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run writes groups of requests until the queue is closed.
func (s *Store) run() {
	defer s.done.Done()
	for {
		group := s.queue.Next()
		if group == nil {
			return
		}
		if waiting := slices.DeleteFunc(group, (*request).ended); len(waiting) > 0 {
			s.commit(waiting)
		}
		if len(group) >= busyRequests {
			time.Sleep(min(time.Duration(len(group))*commitDelay, maxCommitDelay))
		}
	}
}

func (s *Store) commit(group []*request) {
	fair.Commit(group, s.transact, errCommit, (*request).end)
}

// transact writes a group in one transaction and sets the results. It returns an error if nothing was written, or an
// error that wraps errCommit if that is unknown.
func (s *Store) transact(group []*request) error {
	ctx := context.Background()
	if !s.dialect.embedded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, commitTimeout)
		defer cancel()
	}
	err := s.inTransaction(ctx, func(tx *sql.Tx, st state) error {
		c := changeset{revision: st.revision, rows: map[string]change{}}
		if err := s.revisions(ctx, tx, group, c.rows); err != nil {
			return err
		}
		for _, r := range group {
			r.result = c.apply(r.writes)
		}
		if c.revision == st.revision {
			return errUnchanged
		}
		return s.store(ctx, tx, &c)
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// errUnchanged ends a transaction that writes nothing.
var errUnchanged = errors.New("nothing to write")

// inTransaction calls do in a writing transaction, which holds the lock of the tables. It commits if do returns nil.
func (s *Store) inTransaction(ctx context.Context, do func(*sql.Tx, state) error) (err error) {
	tx, err := s.write.BeginTx(ctx, &sql.TxOptions{Isolation: s.dialect.isolation})
	if err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	st, err := scanState(tx.QueryRowContext(ctx, s.dialect.lock))
	if err == nil {
		err = s.mayWrite(ctx, tx, st.epoch)
	}
	if err == nil {
		err = do(tx, st)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if s.committing != nil {
		s.committing()
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("write records: %w: %w", errCommit, err)
	}
	return nil
}

// change is a key that a transaction has read or changed.
type change struct {
	value []byte
	// revision is the key's revision; 0 if it does not exist. In a transaction that deletes the key, tombstone is the
	// revision of the deletion.
	revision, tombstone int64
	changed             bool
}

// changeset collects the changes of a transaction.
type changeset struct {
	revision int64
	rows     map[string]change
}

// apply adds the writes of one request, or none of them if one conflicts. Later requests see the writes.
func (c *changeset) apply(writes []ledger.Write) result {
	for _, w := range writes {
		if !w.Meets(c.rows[w.Key].revision) {
			return result{err: ledger.ErrConflict}
		}
	}
	revisions := make([]int64, len(writes))
	for i, w := range writes {
		switch row := c.rows[w.Key]; {
		case w.Op == ledger.OpPut:
			c.revision++
			revisions[i] = c.revision
			c.rows[w.Key] = change{value: w.Value, revision: c.revision, changed: true}
		case w.Op == ledger.OpDelete && row.revision != 0:
			c.revision++
			c.rows[w.Key] = change{tombstone: c.revision, changed: true}
		}
	}
	return result{revisions: revisions}
}

// revisions reads the revisions of the keys of a group.
func (s *Store) revisions(ctx context.Context, tx querier, group []*request, into map[string]change) error {
	var keys []any
	for _, r := range group {
		for _, w := range r.writes {
			if _, ok := into[w.Key]; !ok {
				into[w.Key] = change{}
				keys = append(keys, []byte(w.Key))
			}
		}
	}
	return inChunks(keys, func(chunk []any) (err error) {
		found, err := tx.QueryContext(ctx,
			s.dialect.text("SELECT name, revision FROM hykube_ledger WHERE name IN ("+repeat("?", len(chunk))+")"),
			chunk...)
		if err != nil {
			return fmt.Errorf("read records: %w", err)
		}
		defer func() { err = errors.Join(err, found.Close()) }()
		for found.Next() {
			var name []byte
			var revision int64
			if err := found.Scan(&name, &revision); err != nil {
				return fmt.Errorf("read records: %w", err)
			}
			into[string(name)] = change{revision: revision}
		}
		return found.Err()
	})
}

// store writes the changes of a transaction.
func (s *Store) store(ctx context.Context, tx querier, c *changeset) error {
	var puts []ledger.Entry
	var deleted, tombstones []any
	at := time.Now().Unix()
	for key, row := range c.rows {
		switch {
		case !row.changed:
		case row.tombstone != 0:
			deleted = append(deleted, []byte(key))
			tombstones = append(tombstones, row.tombstone, []byte(key), at)
		default:
			puts = append(puts, ledger.Entry{Key: key, Value: row.value, Revision: row.revision})
		}
	}
	if err := s.put(ctx, tx, puts); err != nil {
		return err
	}
	if err := s.remove(ctx, tx, deleted, tombstones); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, s.dialect.text("UPDATE hykube_ledger_state SET revision = ? WHERE id = 1"),
		c.revision)
	return failed("write", err)
}

// put writes rows, in the order of their revisions.
func (s *Store) put(ctx context.Context, tx querier, rows []ledger.Entry) error {
	slices.SortFunc(rows, func(a, b ledger.Entry) int { return cmp.Compare(a.Revision, b.Revision) })
	var args []any
	for _, r := range rows {
		args = append(args, []byte(r.Key), notNil(r.Value), r.Revision)
	}
	return inChunks(args, func(chunk []any) error {
		_, err := tx.ExecContext(ctx, s.dialect.text(s.dialect.put+repeat("(?, ?, ?)", len(chunk)/3)+s.dialect.putEnd),
			chunk...)
		return failed("write", err)
	})
}

// remove deletes rows and writes their tombstones.
func (s *Store) remove(ctx context.Context, tx querier, deleted, tombstones []any) error {
	err := inChunks(deleted, func(chunk []any) error {
		_, err := tx.ExecContext(ctx, s.dialect.text("DELETE FROM hykube_ledger WHERE name IN ("+
			repeat("?", len(chunk))+")"), chunk...)
		return failed("write", err)
	})
	if err != nil {
		return err
	}
	return inChunks(tombstones, func(chunk []any) error {
		_, err := tx.ExecContext(ctx, s.dialect.text("INSERT INTO hykube_ledger_deleted (revision, name, at) VALUES "+
			repeat("(?, ?, ?)", len(chunk)/3)), chunk...)
		return failed("write", err)
	})
}

// inChunks calls do with parts of the arguments. The length of all parts but the last is a multiple of three.
func inChunks(args []any, do func([]any) error) error {
	for len(args) > 0 {
		n := min(len(args), 3*rowsAtOnce)
		if err := do(args[:n]); err != nil {
			return err
		}
		args = args[n:]
	}
	return nil
}
