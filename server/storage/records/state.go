package records

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// FirstRevision is the revision of tables without any write.
const FirstRevision = 1

// state is the only row of the table of the ledger's state.
type state struct {
	// revision is the revision of the last write; FirstRevision before any. Every write takes the next one.
	revision int64
	// forgotten is the last revision whose deletion the store may have forgotten.
	forgotten int64
	// identity: see Store.Identity.
	identity string
	// epoch is that of the lease; 0 without one.
	epoch int64
}

func scanState(row *sql.Row) (st state, err error) {
	err = row.Scan(&st.revision, &st.forgotten, &st.identity, &st.epoch)
	return st, failed("read the state of", err)
}

func (s *Store) state(ctx context.Context) (state, error) {
	return scanState(s.read.QueryRowContext(ctx, readState))
}

// Identity returns the identity of the tables; "" before Identify.
func (s *Store) Identity(ctx context.Context) (string, error) {
	st, err := s.state(ctx)
	return st.identity, err
}

// Identify gives the tables an identity, which no other ones have, unless they have one.
func (s *Store) Identify(ctx context.Context) error {
	err := s.inTransaction(ctx, func(tx *sql.Tx, st state) error {
		if st.identity != "" {
			return errUnchanged
		}
		_, err := tx.ExecContext(ctx, s.dialect.text("UPDATE hykube_ledger_state SET identity = ? WHERE id = 1"),
			rand.Text())
		return failed("write the state of", err)
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// forgetRegularly forgets old deletions until ctx ends.
func (s *Store) forgetRegularly(ctx context.Context) {
	ticker := time.NewTicker(forgetInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if err := s.forget(ctx, time.Now().Add(-keepDeletions)); err != nil && ctx.Err() == nil && !errors.Is(err,
			ErrTakenOver) {
			s.log.Warn("cannot remove old deletions of the ledger", "error", err)
		}
	}
}

// forget removes the deletions before a time, and those that are more than maxDeletions revisions ago.
func (s *Store) forget(ctx context.Context, before time.Time) error {
	err := s.inTransaction(ctx, func(tx *sql.Tx, st state) error {
		var last sql.NullInt64
		err := tx.QueryRowContext(ctx,
			s.dialect.text("SELECT MAX(revision) FROM hykube_ledger_deleted WHERE at < ? OR revision <= ?"),
			before.Unix(), st.revision-maxDeletions).Scan(&last)
		if err != nil {
			return fmt.Errorf("read deletions: %w", err)
		}
		if !last.Valid {
			return errUnchanged
		}
		if _, err := tx.ExecContext(ctx, s.dialect.text("DELETE FROM hykube_ledger_deleted WHERE revision <= ?"),
			last.Int64); err != nil {
			return fmt.Errorf("remove deletions: %w", err)
		}
		_, err = tx.ExecContext(ctx, s.dialect.text("UPDATE hykube_ledger_state SET forgotten = ? WHERE id = 1"),
			last.Int64)
		return failed("write the state of", err)
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}
