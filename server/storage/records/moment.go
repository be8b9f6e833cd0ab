package records

import (
	"context"
	"database/sql"
	"time"
)

// Moment returns the revision of the objects that NoteMoment noted last, and the time of the note; 0 if there is none.
func (s *Store) Moment(ctx context.Context) (objects int64, at time.Time, err error) {
	var noted int64
	err = s.read.QueryRowContext(ctx, "SELECT objects, noted FROM hykube_ledger_state WHERE id = 1").Scan(&objects,
		&noted)
	return objects, time.UnixMilli(noted).UTC(), failed("read the moment of", err)
}

// NoteMoment notes a revision that the objects have. It must be on the disk.
func (s *Store) NoteMoment(ctx context.Context, objects int64, at time.Time) error {
	return s.inTransaction(ctx, func(tx *sql.Tx, _ state) error {
		_, err := tx.ExecContext(ctx, s.dialect.text(
			"UPDATE hykube_ledger_state SET objects = ?, noted = ? WHERE id = 1"), objects, at.UnixMilli())
		return failed("note the moment of", err)
	})
}
