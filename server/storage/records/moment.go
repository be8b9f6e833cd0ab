package records

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// The table has at most one row. An older version does not write it, so the row is a lower bound.
const momentTable = "CREATE TABLE IF NOT EXISTS hykube_ledger_moment (id INT PRIMARY KEY, objects BIGINT NOT NULL, noted BIGINT NOT NULL)"

// Moment returns the revision of the objects that NoteMoment noted last, and the time of the note; 0 if there is none.
func (s *Store) Moment(ctx context.Context) (objects int64, at time.Time, err error) {
	if _, err := s.write.ExecContext(ctx, momentTable); err != nil {
		return 0, at, failed("make the table of the moment of", err)
	}
	var noted int64
	err = s.read.QueryRowContext(ctx, "SELECT objects, noted FROM hykube_ledger_moment WHERE id = 1").Scan(&objects, &noted)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, at, nil
	}
	return objects, time.UnixMilli(noted).UTC(), failed("read the moment of", err)
}

// NoteMoment notes a revision that the objects have. It must be on the disk. Moment must have been called before.
func (s *Store) NoteMoment(ctx context.Context, objects int64, at time.Time) error {
	tx, err := s.write.BeginTx(ctx, &sql.TxOptions{Isolation: s.dialect.isolation})
	if err != nil {
		return failed("note the moment of", err)
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM hykube_ledger_moment")
	if err == nil {
		_, err = tx.ExecContext(ctx, s.dialect.text("INSERT INTO hykube_ledger_moment (id, objects, noted) VALUES (1, ?, ?)"), objects, at.UnixMilli())
	}
	if err != nil {
		return failed("note the moment of", errors.Join(err, tx.Rollback()))
	}
	return failed("note the moment of", tx.Commit())
}
