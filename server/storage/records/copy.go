package records

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/hykube/hykube/internal/ledger"
)

// State is the state of the tables that a copy of them needs.
type State struct {
	// Revision is the revision of the last write.
	Revision int64
	// Identity: see Store.Identity.
	Identity string
	// Epoch is that of the lease; 0 without one.
	Epoch int64
}

// Hold calls do while nothing writes to the tables of SQLite, which has one connection for writes.
func (s *Store) Hold(ctx context.Context, do func() error) error {
	writer, err := s.write.Conn(ctx)
	if err != nil {
		return failed("wait for the writer of", err)
	}
	return errors.Join(do(), writer.Close())
}

// Begin begins a transaction that only reads, on a snapshot of the tables. The first read of the transaction takes the
// snapshot.
func (s *Store) Begin(ctx context.Context) (*sql.Tx, error) {
	tx, err := s.read.BeginTx(ctx, nil)
	return tx, failed("read", err)
}

// BeginWrite begins a transaction that writes.
func (s *Store) BeginWrite(ctx context.Context) (*sql.Tx, error) {
	tx, err := s.write.BeginTx(ctx, nil)
	return tx, failed("write", err)
}

// Copy calls each with all rows in a transaction, in the order of their revisions, and returns the state.
func (s *Store) Copy(ctx context.Context, tx *sql.Tx, each func(ledger.Entry) error) (_ State, err error) {
	st, err := scanState(tx.QueryRowContext(ctx, readState))
	if err != nil {
		return State{}, err
	}
	rows, err := tx.QueryContext(ctx, "SELECT name, value, revision FROM hykube_ledger"+s.dialect.byRevision+
		" ORDER BY revision")
	if err != nil {
		return State{}, failed("read", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name []byte
		var e ledger.Entry
		if err := rows.Scan(&name, &e.Value, &e.Revision); err != nil {
			return State{}, failed("read", err)
		}
		e.Key = string(name)
		if err := each(e); err != nil {
			return State{}, err
		}
	}
	return State{st.revision, st.identity, st.epoch}, failed("read", rows.Err())
}

// Fill writes rows into empty tables, in a transaction. The caller passes all rows, in the order of their revisions, in
// pages.
func (s *Store) Fill(ctx context.Context, tx *sql.Tx, page []ledger.Entry) error {
	return s.put(ctx, tx, page)
}

// FillState writes the state of tables that Fill has filled. The deletions before it are forgotten. objects is the
// revision of the objects that belong to it. With a database server, the lease has the epoch, too: a server that had it
// before loses it, and so does each worker.
func (s *Store) FillState(ctx context.Context, tx *sql.Tx, st State, objects int64) error {
	if s.dialect.embedded {
		st.Epoch = 0
	}
	_, err := tx.ExecContext(ctx, s.dialect.text(
		"UPDATE hykube_ledger_state SET revision = ?, forgotten = ?, identity = ?, epoch = ?, objects = ? WHERE id = 1"),
		st.Revision, st.Revision, st.Identity, st.Epoch, objects)
	if err == nil && !s.dialect.embedded {
		_, err = tx.ExecContext(ctx, s.dialect.text("UPDATE hykube_server SET epoch = ?, expires = 0 WHERE id = 1"),
			st.Epoch)
	}
	if err == nil && !s.dialect.embedded {
		_, err = tx.ExecContext(ctx, "DELETE FROM hykube_process")
	}
	if err != nil {
		return fmt.Errorf("write the state of records: %w", err)
	}
	return nil
}
