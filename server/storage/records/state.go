package records

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/hykube/hykube/internal/ledger"
)

// state is the only row of the table of the ledger's state.
type state struct {
	// revision is the revision of the last write, at least 1. Every write takes the next one.
	revision int64
	// forgotten is the last revision whose deletion the store may have forgotten.
	forgotten int64
	// identity and complete: see Store.Identity.
	identity string
	complete int
	// epoch is that of the lease; 0 without one.
	epoch int64
}

func scanState(row *sql.Row) (st state, err error) {
	err = row.Scan(&st.revision, &st.forgotten, &st.identity, &st.complete, &st.epoch)
	return st, failed("read the state of", err)
}

func (s *Store) state(ctx context.Context) (state, error) {
	return scanState(s.read.QueryRowContext(ctx, readState))
}

// Identity returns the identity that TakeOver gave to the tables; empty if they are new. complete is true after
// Complete.
func (s *Store) Identity(ctx context.Context) (identity string, complete bool, err error) {
	st, err := s.state(ctx)
	return st.identity, st.complete != 0, err
}

// TakeOver fills the tables with entries, in one transaction, and gives them an identity if they have none. It replaces all earlier
// content. revision is at least the highest revision of the entries. It does nothing after Complete.
func (s *Store) TakeOver(ctx context.Context, identity string, revision int64, entries iter.Seq2[ledger.Entry, error]) error {
	err := s.inTransaction(ctx, func(tx *sql.Tx, st state) error {
		if st.complete != 0 {
			return errUnchanged
		}
		for _, table := range []string{"hykube_ledger", "hykube_ledger_deleted"} {
			if _, err := tx.ExecContext(ctx, "DELETE FROM "+table); err != nil {
				return failed("write", err)
			}
		}
		var page []ledger.Entry
		for e, err := range entries {
			if err != nil {
				return err
			}
			if page = append(page, e); len(page) == rowsAtOnce {
				if err := s.put(ctx, tx, page); err != nil {
					return err
				}
				page = page[:0]
			}
		}
		if err := s.put(ctx, tx, page); err != nil {
			return err
		}
		revision = max(revision, 1)
		if st.identity != "" { // an earlier attempt, or another server that starts, may have noted it
			identity = st.identity
		}
		_, err := tx.ExecContext(ctx, s.dialect.text("UPDATE hykube_ledger_state SET revision = ?, forgotten = ?, identity = ? WHERE id = 1"), revision, revision, identity)
		return failed("write", err)
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// Complete records that the tables hold the ledger from now on.
func (s *Store) Complete(ctx context.Context) error {
	_, err := s.write.ExecContext(ctx, "UPDATE hykube_ledger_state SET complete = 1 WHERE id = 1")
	return failed("write the state of", err)
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
		if err := s.forget(ctx, time.Now().Add(-keepDeletions)); err != nil && ctx.Err() == nil && !errors.Is(err, ErrTakenOver) {
			s.log.Warn("cannot remove old deletions of the ledger", "error", err)
		}
	}
}

// forget removes the deletions before a time, and those that are more than maxDeletions revisions ago.
func (s *Store) forget(ctx context.Context, before time.Time) error {
	err := s.inTransaction(ctx, func(tx *sql.Tx, st state) error {
		var last sql.NullInt64
		err := tx.QueryRowContext(ctx, s.dialect.text("SELECT MAX(revision) FROM hykube_ledger_deleted WHERE at < ? OR revision <= ?"), before.Unix(), st.revision-maxDeletions).Scan(&last)
		if err != nil {
			return fmt.Errorf("read deletions: %w", err)
		}
		if !last.Valid {
			return errUnchanged
		}
		if _, err := tx.ExecContext(ctx, s.dialect.text("DELETE FROM hykube_ledger_deleted WHERE revision <= ?"), last.Int64); err != nil {
			return fmt.Errorf("remove deletions: %w", err)
		}
		_, err = tx.ExecContext(ctx, s.dialect.text("UPDATE hykube_ledger_state SET forgotten = ? WHERE id = 1"), last.Int64)
		return failed("write the state of", err)
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}
