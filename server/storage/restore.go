package storage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/server/storage/backup"
	"github.com/hykube/hykube/server/storage/records"
)

const (
	// restoringFile exists in the directory of SQLite's files while a restore fills them.
	restoringFile = "restoring"
	// fillRows and fillBytes limit the rows of one statement of a restore. A single row may exceed the latter.
	fillRows  = 100
	fillBytes = 1 << 20
	// revisionGap is the number of revisions that a restored database leaves out. A client that has seen a revision
	// after the backup then reads everything again, in place of a watch from a revision that would mean something else.
	revisionGap = 1_000_000
	// compactKey is the key by which kine notes the revision up to which it has removed old rows.
	compactKey = "compact_rev_key"
)

var errNotEmpty = errors.New("it is not empty; a restore needs an empty database")

// Archive opens a backup for one read from its beginning.
type Archive func() (io.ReadCloser, error)

// Restore fills an empty database with a backup. It changes nothing if the backup is damaged or newer, if the root key
// is another one, or if the database is not empty. The restored database is frozen.
func Restore(ctx context.Context, cfg Config, archive Archive) (*backup.Manifest, error) {
	from, err := openArchive(ctx, cfg, archive)
	if err != nil {
		return nil, err
	}
	r := &restore{checked: from, archive: archive, at: time.Now(), dataDir: cfg.DataDir}
	return &from.Manifest, r.into(ctx, cfg)
}

// openArchive reads a whole backup and checks it with the root key of cfg.
func openArchive(ctx context.Context, cfg Config, archive Archive) (*backup.Checked, error) {
	from, err := read(archive, backup.Check)
	if err != nil {
		return nil, err
	}
	e, err := newEncryption(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := e.checkNeeds(from.RootKey); err != nil {
		return nil, err
	}
	ring, err := e.ring.decrypt(ctx, from.Keyring, 0)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(ring.Keys, func(k dataKey) bool { return k.ID == from.DataKey })
	if i < 0 {
		return nil, fmt.Errorf("%w: its keyring does not have the data key %q", backup.ErrDamaged, from.DataKey)
	}
	sign, err := signer(ring.Keys[i])
	if err != nil {
		return nil, err
	}
	return from, from.Authentic(sign)
}

// checkNeeds returns an error if the keys that a backup needs are not there.
func (e *encryption) checkNeeds(needs backup.RootKey) error {
	if needs.Configuration && e.user == nil {
		return errors.New("the backup needs the file of --encryption-provider-config that its server had: give it with that flag")
	}
	if needs.ID == "" {
		return nil
	}
	keys, err := e.ring.root.keys()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the backup needs the root key %s: %w", needs.ID, err)
	}
	var have []string
	for _, key := range keys {
		have = append(have, rootKeyID(key))
	}
	if slices.Contains(have, needs.ID) {
		return nil
	}
	found := "there is none"
	if len(have) > 0 {
		found = "there is " + strings.Join(have, ", ")
	}
	return fmt.Errorf("the backup needs the root key %s, and %s: put its file at %q, or name it with --encryption-key-file", needs.ID, found, e.ring.root.own)
}

func read[T any](archive Archive, do func(io.Reader) (T, error)) (out T, err error) {
	r, err := archive()
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return do(r)
}

// restore writes a checked backup into a database.
type restore struct {
	checked *backup.Checked
	archive Archive
	at      time.Time
	dataDir string
	// objects and ledger are the digests of the rows that were written. They are nil if nothing compares them.
	objects, ledger hash.Hash
	// move is true if the database takes the place of the one of the backup: it is not frozen, and revisions go on.
	move bool
}

// newComparedRestore returns a restore whose rows compare can compare.
func newComparedRestore(checked *backup.Checked, archive Archive, dataDir string) *restore {
	return &restore{checked: checked, archive: archive, at: time.Now(), dataDir: dataDir, objects: sha256.New(),
		ledger: sha256.New()}
}

// into opens the database of cfg, fills it, and closes it.
func (r *restore) into(ctx context.Context, cfg Config) (err error) {
	if err := checkInstallation(r.dataDir, r.checked.Installation); err != nil {
		return err
	}
	if cfg.Endpoint == "" {
		finish, err := prepareFiles(cfg.DataDir)
		if err != nil {
			return err
		}
		if err := r.fillDatabase(ctx, cfg); err != nil {
			return err
		}
		return finish()
	}
	return r.fillDatabase(ctx, cfg)
}

// checkInstallation returns an error if a data directory belongs to another installation.
func checkInstallation(dir, installation string) error {
	m := &moments{dir: dir}
	if err := m.read(); err != nil {
		return err
	}
	if m.known.Identity != "" && m.known.Identity != installation {
		return fmt.Errorf("the data directory %q belongs to another installation; choose an empty one with --data-dir",
			dir)
	}
	return nil
}

// forgetDatabase removes what a data directory knows about the database that the restore replaces.
func forgetDatabase(dir string) error {
	return errors.Join(ignoreMissing(os.Remove((&moments{dir: dir}).path())),
		os.RemoveAll(filepath.Join(dir, snapshotDir)))
}

// ignoreMissing returns nil for the error of a file that does not exist.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// prepareFiles makes the directory of SQLite's files. What a restore that did not end has left is removed. finish makes
// the files durable, and lets servers use them.
func prepareFiles(dataDir string) (finish func() error, err error) {
	dir := filepath.Join(dataDir, "db")
	mark := filepath.Join(dir, restoringFile)
	switch _, err := os.Stat(mark); {
	case err == nil:
		if err := removeFiles(dir, mark); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	found, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(found) > 0 {
		return nil, fmt.Errorf("the directory %q has a database already; choose an empty --data-dir, or move that directory away", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return nil, err
	}
	return func() error { return errors.Join(syncDir(dir), os.Remove(mark), syncDir(dir)) }, syncDir(dir)
}

// removeFiles removes all files of a directory but one.
func removeFiles(dir, but string) error {
	found, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range found {
		if path := filepath.Join(dir, f.Name()); path != but {
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(append(errs, os.Remove(but))...)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// checkRestored returns an error if a restore of SQLite's files has not ended.
func checkRestored(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, restoringFile)); err == nil {
		return errors.New("a restore has not ended: run hykube restore again, which begins from the start")
	}
	return nil
}

// fillDatabase fills the tables. A database server has them in one transaction, so it has all or nothing.
func (r *restore) fillDatabase(ctx context.Context, cfg Config) (err error) {
	s, err := openUnfilled(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := r.fill(ctx, s); err != nil {
		return fmt.Errorf("restore into the %s: %w", describe(cfg), err)
	}
	return nil
}

// openUnfilled opens the tables of a database for a restore, without its watches and its lease.
func openUnfilled(ctx context.Context, cfg Config) (_ *Store, err error) {
	opened, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Store{stop: stop, drained: new(sync.WaitGroup), restoring: true}
	defer func() {
		if err != nil {
			err = errors.Join(cfg.failed(err), s.Close())
		}
	}()
	if _, err := s.openBackend(opened, cfg); err != nil {
		return nil, err
	}
	s.records, s.closeRecords, err = openRecords(opened, cfg, s.table)
	return s, err
}

func (r *restore) fill(ctx context.Context, s *Store) (err error) {
	objects, err := s.table.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = rolledBack(err, objects) }()
	inLedger := objects
	if s.table.write != nil {
		if inLedger, err = s.records.BeginWrite(ctx); err != nil {
			return err
		}
		defer func() { err = rolledBack(err, inLedger) }()
	}
	if err := checkEmpty(ctx, s, objects); err != nil {
		return err
	}
	if err := forgetDatabase(r.dataDir); err != nil {
		return err
	}
	if err := r.rows(ctx, s, objects, inLedger); err != nil {
		return err
	}
	last := r.checked.Objects.Revision
	if r.move {
		err = r.compare(ctx, s, objects, inLedger)
	} else {
		last, err = r.note(ctx, s.table, objects)
	}
	if err != nil {
		return err
	}
	if err := s.records.FillState(ctx, inLedger, stateAt(&r.checked.Manifest, r.at), last); err != nil {
		return err
	}
	if err := objects.Commit(); err != nil || inLedger == objects {
		return err
	}
	return inLedger.Commit()
}

// rolledBack ends a transaction that an error has ended early.
func rolledBack(err error, tx *sql.Tx) error {
	if failed := tx.Rollback(); !errors.Is(failed, sql.ErrTxDone) {
		return errors.Join(err, failed)
	}
	return err
}

// checkEmpty returns an error if the database has rows. A database server locks the tables for that.
func checkEmpty(ctx context.Context, s *Store, tx *sql.Tx) error {
	if s.table.numbered {
		if _, err := tx.ExecContext(ctx, "LOCK TABLE kine, hykube_ledger_state IN EXCLUSIVE MODE"); err != nil {
			return err
		}
	}
	has, err := s.hasRows(ctx, tx)
	if err == nil && has {
		err = errNotEmpty
	}
	return err
}

// hasRows reports whether the database has a row. from reads kine's table.
func (s *Store) hasRows(ctx context.Context, from interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}) (bool, error) {
	var rows int64
	err := from.QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT id FROM kine LIMIT 1) AS first").Scan(&rows)
	if err != nil || rows > 0 {
		return rows > 0, err
	}
	revision, err := s.records.Revision(ctx)
	return revision > records.FirstRevision, err
}

// rows writes the rows of the backup in pages.
func (r *restore) rows(ctx context.Context, s *Store, objects, inLedger *sql.Tx) error {
	one := filler[backup.Object]{size: func(o backup.Object) int { return len(o.Value) + len(o.Old) },
		write: func(page []backup.Object) error {
			return s.table.fill(ctx, objects, page)
		}}
	other := filler[ledger.Entry]{size: func(e ledger.Entry) int { return len(e.Value) },
		write: func(page []ledger.Entry) error {
			return s.records.Fill(ctx, inLedger, page)
		}}
	_, err := read(r.archive, func(from io.Reader) (struct{}, error) {
		return struct{}{}, r.checked.Rows(from, func(o backup.Object) error {
			if r.move && o.Name == migratedKey { // the note of the old database
				o.Created, o.Deleted = false, true
			}
			if r.objects != nil {
				sumObject(r.objects, o)
			}
			return one.add(o)
		}, func(record backup.Record) error {
			if r.ledger != nil {
				sumRecord(r.ledger, record)
			}
			return other.add(ledger.Entry{Key: string(record.Name), Value: record.Value, Revision: record.Revision})
		})
	})
	if err == nil {
		err = one.flush()
	}
	if err == nil {
		err = other.flush()
	}
	return err
}

// filler collects rows for one statement.
type filler[T any] struct {
	size  func(T) int
	write func([]T) error
	page  []T
	bytes int
}

func (f *filler[T]) add(row T) error {
	f.page = append(f.page, row)
	if f.bytes += f.size(row); len(f.page) < fillRows && f.bytes < fillBytes {
		return nil
	}
	return f.flush()
}

func (f *filler[T]) flush() error {
	err := f.write(f.page)
	f.page, f.bytes = f.page[:0], 0
	return err
}

// note adds the note of the restore, which freezes the database, and marks the revisions before it as compacted. It
// returns the revision of the note.
func (r *restore) note(ctx context.Context, t *table, tx *sql.Tx) (int64, error) {
	last := r.checked.Objects.Revision + revisionGap
	data, err := json.Marshal(Restored{Backup: r.checked.Time, At: r.at.UTC().Truncate(time.Second)})
	if err != nil {
		return 0, err
	}
	var before sql.NullInt64 // of a database that was restored before
	if err := tx.QueryRowContext(ctx, t.query("SELECT MAX(id) FROM kine WHERE name = ?"),
		frozenKey).Scan(&before); err != nil {
		return 0, err
	}
	row := backup.Object{ID: last, Name: frozenKey, Created: !before.Valid, CreateRevision: before.Int64,
		PrevRevision: before.Int64, Value: data}
	if err := t.fill(ctx, tx, []backup.Object{row}); err != nil {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, t.query("UPDATE kine SET prev_revision = ? WHERE name = ?"), last-1, compactKey)
	return last, err
}

// Verify restores a backup into a database in an empty directory, and compares its rows with those of the backup. cfg
// has the root key. Then it opens the database as a server does, which decrypts a row of each resource.
func Verify(ctx context.Context, cfg Config, dir string, archive Archive) (_ *backup.Manifest, err error) {
	from, err := openArchive(ctx, cfg, archive)
	if err != nil {
		return nil, err
	}
	r := newComparedRestore(from, archive, dir)
	if own := filepath.Join(cfg.DataDir, ownKeyFile); cfg.KeyFile == "" {
		if _, err := os.Stat(own); err == nil {
			cfg.KeyFile = own
		}
	}
	cfg.DataDir, cfg.Endpoint = dir, ""
	if err := r.into(ctx, cfg); err != nil {
		return nil, err
	}
	s, err := Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	snap, err := s.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, snap.close()) }()
	return &from.Manifest, r.compare(ctx, s, snap.objects, snap.ledger)
}

// compare compares the rows of a database with those that the restore has written.
func (r *restore) compare(ctx context.Context, s *Store, inObjects, inRecords *sql.Tx) error {
	objects, inLedger := sha256.New(), sha256.New()
	_, _, err := s.table.copyTo(ctx, inObjects, func(o backup.Object) error {
		if o.ID <= r.checked.Objects.Revision {
			sumObject(objects, o)
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = s.records.Copy(ctx, inRecords, func(e ledger.Entry) error {
		if e.Revision <= r.checked.Ledger.Revision {
			sumRecord(inLedger, backup.Record{Name: []byte(e.Key), Value: e.Value, Revision: e.Revision})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !bytes.Equal(objects.Sum(nil), r.objects.Sum(nil)) || !bytes.Equal(inLedger.Sum(nil), r.ledger.Sum(nil)) {
		return errors.New("the restored rows are not those of the backup; report this with the version of the server that wrote the backup")
	}
	return nil
}

// sumObject adds a row to a digest. The note of kine's compaction is no content: a restore changes it.
func sumObject(to hash.Hash, o backup.Object) {
	if o.Name != compactKey {
		fmt.Fprintf(to, "%d %q %t %t %d %d %d %d %d\n", o.ID, o.Name, o.Created, o.Deleted, o.CreateRevision,
			o.PrevRevision, o.Lease, len(o.Value), len(o.Old))
		to.Write(o.Value)
		to.Write(o.Old)
	}
}

func sumRecord(to hash.Hash, r backup.Record) {
	fmt.Fprintf(to, "%d %q %d\n", r.Revision, r.Name, len(r.Value))
	to.Write(r.Value)
}
