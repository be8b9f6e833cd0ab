package storage

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/server/storage/backup"
	"github.com/hykube/hykube/server/storage/records"
)

// BackupInfo is what the server knows about a backup.
type BackupInfo struct {
	// Version is the version of the server.
	Version string
	// Audit is the last record of the audit log; nil without one.
	Audit *backup.AuditHead
}

// Backup writes a backup of the whole database, as it is at one moment. Writes wait only until the snapshot has begun.
// The values stay encrypted as they are stored, so the backup needs the same root key.
func (s *Store) Backup(ctx context.Context, to io.Writer, info BackupInfo) (err error) {
	s.snapshots.RLock()
	defer s.snapshots.RUnlock()
	snap, err := s.snapshot(ctx)
	if err != nil {
		return fmt.Errorf("take a snapshot of the database: %w", err)
	}
	defer func() { err = errors.Join(err, snap.close()) }()
	w, err := backup.NewWriter(to, info.Version, snap.at)
	if err != nil {
		return err
	}
	var m backup.Manifest
	m.Audit = info.Audit
	if m.Objects.Revision, m.Keyring, err = s.table.copyTo(snap.context(ctx), snap.objects, w.Object); err != nil {
		return fmt.Errorf("read the objects: %w", err)
	}
	if m.Keyring == nil {
		return errNoKeyring
	}
	st, err := s.records.Copy(snap.context(ctx), snap.ledger, func(e ledger.Entry) error {
		return w.Record(backup.Record{Name: []byte(e.Key), Value: e.Value, Revision: e.Revision})
	})
	if err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	m.Ledger.Revision, m.Installation, m.Epoch = st.Revision, st.Identity, st.Epoch
	sign, err := s.encryption.describe(ctx, &m)
	if err != nil {
		return err
	}
	return w.Close(m, sign)
}

// describe sets the keys of a manifest, and returns the function that authenticates it.
func (e *encryption) describe(ctx context.Context, m *backup.Manifest) (sign func([]byte) []byte, err error) {
	ring, err := e.ring.decrypt(ctx, m.Keyring, 0)
	if err != nil {
		return nil, err
	}
	m.DataKey = ring.Keys[0].ID
	m.RootKey.Configuration = e.user != nil
	if m.RootKey.ID, err = e.ring.root.idOf(ctx, m.Keyring); err != nil {
		return nil, err
	}
	return signer(ring.Keys[0])
}

// signer returns a function that authenticates manifests with a data key.
func signer(key dataKey) (func([]byte) []byte, error) {
	own, err := hkdf.Key(sha256.New, key.Secret, nil, "hykube backup manifest", sha256.Size)
	if err != nil {
		return nil, err
	}
	return func(manifest []byte) []byte {
		code := hmac.New(sha256.New, own)
		code.Write(manifest)
		return code.Sum(nil)
	}, nil
}

// snapshot is one moment of the objects and of the ledger. A database server has both in one transaction.
type snapshot struct {
	objects, ledger *sql.Tx
	at              time.Time
	// file is the connection to SQLite's file of the objects; nil for a database server.
	file *sql.DB
}

// context returns the context of reads. A read of SQLite is not cancelled: see sqliteBackend.
func (s *snapshot) context(ctx context.Context) context.Context {
	if s.file != nil {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

func (s *snapshot) close() error {
	var errs []error
	for _, tx := range []*sql.Tx{s.objects, s.ledger} {
		if tx == nil {
			continue
		}
		if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
			errs = append(errs, err)
		}
	}
	if s.file != nil {
		errs = append(errs, s.file.Close())
	}
	return errors.Join(errs...)
}

// snapshot begins a snapshot. On SQLite it holds the writers of both files while it begins a transaction on each.
func (s *Store) snapshot(ctx context.Context) (_ *snapshot, err error) {
	if s.table.write == nil {
		tx, err := s.table.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
		if err != nil {
			return nil, err
		}
		return &snapshot{objects: tx, ledger: tx, at: time.Now()}, nil
	}
	snap := &snapshot{}
	defer func() {
		if err != nil {
			err = errors.Join(err, snap.close())
		}
	}()
	// Kine's connections share a cache, in which a reader would stop the writer.
	if snap.file, err = sql.Open("sqlite3",
		s.table.file+"?_txlock=deferred&_busy_timeout=30000&_query_only=1"); err != nil {
		return nil, err
	}
	if err := snap.file.PingContext(ctx); err != nil { // open the file before the writers wait
		return nil, err
	}
	reading := snap.context(ctx)
	s.table.write.Lock()
	defer s.table.write.Unlock()
	return snap, s.records.Hold(ctx, func() (err error) {
		snap.at = time.Now()
		if snap.objects, err = snap.file.BeginTx(reading, nil); err != nil {
			return err
		}
		if snap.ledger, err = s.records.Begin(reading); err != nil {
			return err
		}
		// A transaction of SQLite sees the moment of its first read.
		for _, tx := range []*sql.Tx{snap.objects, snap.ledger} {
			var tables int
			if err := tx.QueryRowContext(reading, "SELECT COUNT(*) FROM sqlite_schema").Scan(&tables); err != nil {
				return err
			}
		}
		return nil
	})
}

// copyTo calls each with all rows in a transaction, in the order of their revisions. It returns the last revision and
// the keyring.
func (t *table) copyTo(ctx context.Context, tx *sql.Tx,
	each func(backup.Object) error) (last int64, keyring []byte, err error) {
	rows, err := tx.QueryContext(ctx,
		"SELECT id, name, created, deleted, create_revision, prev_revision, lease, value, old_value FROM kine ORDER BY id")
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var o backup.Object
		if err := rows.Scan(&o.ID, &o.Name, &o.Created, &o.Deleted, &o.CreateRevision, &o.PrevRevision, &o.Lease,
			&o.Value, &o.Old); err != nil {
			return 0, nil, err
		}
		if last = o.ID; o.Name == keyringKey && !o.Deleted {
			keyring = o.Value
		}
		if err := each(o); err != nil {
			return 0, nil, err
		}
	}
	return last, keyring, rows.Err()
}

// fill writes rows in a transaction.
func (t *table) fill(ctx context.Context, tx *sql.Tx, page []backup.Object) error {
	if len(page) == 0 {
		return nil
	}
	const row = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
	text, args := "INSERT INTO kine (id, name, created, deleted, create_revision, prev_revision, lease, value, old_value) VALUES ", []any{}
	for i, o := range page {
		if i > 0 {
			text += ", "
		}
		text += row
		args = append(args, o.ID, o.Name, number(o.Created), number(o.Deleted), o.CreateRevision, o.PrevRevision,
			o.Lease, o.Value, o.Old)
	}
	_, err := tx.ExecContext(ctx, t.query(text), args...)
	return err
}

// number returns the number by which kine stores a bool.
func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// stateAt returns the state of the ledger that a restore of a manifest writes. No server had the epoch before:
// takeovers are rarer than seconds.
func stateAt(m *backup.Manifest, now time.Time) records.State {
	return records.State{Revision: m.Ledger.Revision, Identity: m.Installation, Epoch: max(m.Epoch+1, now.Unix())}
}
