package records

import (
	"context"
	"database/sql"
	"errors"

	"github.com/hykube/hykube/internal/ledger"
)

// Shared reports whether other processes may use the database.
func (s *Store) Shared() bool { return !s.dialect.embedded }

// Share implements ledger.Processes.
func (s *Store) Share(ctx context.Context, limit string, total int64, own ledger.Share) (ledger.Share, error) {
	if s.dialect.embedded {
		return ledger.Alone().Share(ctx, limit, total, own)
	}
	err := s.inTransaction(ctx, func(tx *sql.Tx, _ state) error {
		parts, err := s.parts(ctx, tx, limit)
		if err != nil {
			return err
		}
		var part ledger.Part
		part, own = ledger.Part{Process: s.lease.process, Want: own.Want, Held: own.Held}.Grow(total, parts)
		return s.writePart(ctx, tx, limit, part)
	})
	return own, err
}

// parts reads the parts of a limit. It removes those of processes that have ended.
func (s *Store) parts(ctx context.Context, tx *sql.Tx, limit string) (out []ledger.Part, err error) {
	if _, err := tx.ExecContext(ctx,
		"DELETE FROM hykube_share WHERE process NOT IN (SELECT process FROM hykube_process)"); err != nil {
		return nil, failed("remove shares of", err)
	}
	rows, err := tx.QueryContext(ctx,
		s.dialect.text("SELECT process, want, held, turn FROM hykube_share WHERE name = ?"), limit)
	if err != nil {
		return nil, failed("read the shares of", err)
	}
	defer func() { err = failed("read the shares of", errors.Join(err, rows.Close())) }()
	for rows.Next() {
		var p ledger.Part
		if err := rows.Scan(&p.Process, &p.Want, &p.Held, &p.Turn); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, rows.Err()
}

// writePart replaces the row of a part. A process that needs and holds nothing has no row.
func (s *Store) writePart(ctx context.Context, tx *sql.Tx, limit string, p ledger.Part) error {
	_, err := tx.ExecContext(ctx, s.dialect.text("DELETE FROM hykube_share WHERE name = ? AND process = ?"), limit,
		p.Process)
	if err == nil && (p.Want > 0 || p.Held > 0) {
		insert := s.dialect.text("INSERT INTO hykube_share (name, process, want, held, turn) VALUES (?, ?, ?, ?, ?)")
		_, err = tx.ExecContext(ctx, insert, limit, p.Process, p.Want, p.Held, p.Turn)
	}
	return failed("write a share of", err)
}
