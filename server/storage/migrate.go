package storage

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hykube/hykube/server/storage/backup"
)

// migratedKey is the key of kine that says that the installation moves to another database. No server uses a database
// that has it.
const migratedKey = "/hykube.io-migrated"

// migrationFile is the file in the data directory that has the rows while a migration copies them. Their values are
// encrypted.
const migrationFile = "migration.tar"

// migration is the value of migratedKey.
type migration struct {
	// To describes the other database, without its user and password.
	To string    `json:"to"`
	At time.Time `json:"at"`
}

// Migrated is the result of a migration.
type Migrated struct {
	backup.Manifest
	// Before is true if an earlier migration has moved the installation to the same database. The manifest is empty
	// then.
	Before bool
}

// Migrate moves an installation from one database to another, which must be empty. No server may use the first one, and
// none can use it from then on, until CancelMigration. Each row of the second one was compared before its commit. A
// migration that ended early is repeated from its start. Both configurations have the same data directory.
func Migrate(ctx context.Context, from, to Config, version string) (m Migrated, err error) {
	path := filepath.Join(from.DataDir, migrationFile)
	if m.Before, err = begin(ctx, from, to, path, version); err != nil || m.Before {
		return m, err
	}
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	archive := func() (io.ReadCloser, error) { return os.Open(path) }
	checked, err := openArchive(ctx, to, archive)
	if err != nil {
		return m, err
	}
	r := newComparedRestore(checked, archive, to.DataDir)
	r.move = true
	m.Manifest = checked.Manifest
	return m, r.into(ctx, to)
}

// begin notes the migration in the old database, and writes a backup of it. before is true if the new one has the
// installation already. The old database is closed then: the note of the data directory is the new one's.
func begin(ctx context.Context, from, to Config, path, version string) (before bool, err error) {
	s, err := openMigrated(ctx, from)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if s.Copied() {
		return false, errors.New("the files of the database are a copy: start the server on them, which says how to make them the installation")
	}
	begun, err := s.begunMigration(ctx, to)
	if err != nil {
		return false, err
	}
	installed, err := s.isIn(ctx, to)
	switch {
	case err != nil:
		return false, fmt.Errorf("look at %s: %w", place(to), err)
	case installed && !begun:
		return false, fmt.Errorf("%s has this installation, and this command has not moved it there: name an empty database", place(to))
	case installed:
		return true, nil
	}
	if err := s.noteMigration(ctx, to); err != nil {
		return false, err
	}
	return false, s.backupTo(ctx, path, version)
}

// CancelMigration lets servers use a database again that a migration has begun to move. to is the other database, which
// must not have the installation.
func CancelMigration(ctx context.Context, from, to Config) (err error) {
	s, err := openMigrated(ctx, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if begun, err := s.begunMigration(ctx, to); err != nil || !begun {
		return cmp.Or(err, errors.New("no migration of this database has begun"))
	}
	installed, err := s.isIn(ctx, to)
	if err != nil {
		return fmt.Errorf("look at %s: %w", place(to), err)
	}
	if installed {
		return fmt.Errorf("the migration has ended, and %s has the installation: start the server with it", place(to))
	}
	_, revision, err := s.migration(ctx)
	if err != nil {
		return err
	}
	_, _, ok, err := s.backend.Delete(ctx, migratedKey, revision)
	if err == nil && !ok {
		err = errChangedMeanwhile
	}
	return err
}

// isIn reports whether another database has the installation of this one. If it has any other row, the error is
// errNotEmpty.
func (s *Store) isIn(ctx context.Context, other Config) (_ bool, err error) {
	if dir := filepath.Join(other.DataDir, "db"); other.Endpoint == "" {
		if found, err := os.ReadDir(dir); err != nil || len(found) == 0 || checkRestored(dir) != nil {
			return false, ignoreMissing(err)
		}
	}
	own, err := s.Identity(ctx)
	if err != nil {
		return false, err
	}
	o, err := openUnfilled(ctx, other)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	has, err := o.hasRows(ctx, o.table.db)
	if err != nil || !has {
		return false, err
	}
	if identity, err := o.Identity(ctx); err != nil || identity == own {
		return err == nil, err
	}
	return false, errNotEmpty
}

// openMigrated opens the database of a migration, which no other process may use.
func openMigrated(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Endpoint == "" {
		if _, err := os.Stat(filepath.Join(cfg.DataDir, "db", "state.db")); err != nil {
			return nil, fmt.Errorf("the data directory has no database: %w; name that of the server with --data-dir, or its --datastore-endpoint", err)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cfg.migrating = true
	cfg.Waiting = func(reason string) {
		cancel(fmt.Errorf("%s: stop it, with its standbys, and try again after 15 seconds", reason))
	}
	cfg.Server.Version += " (migrates)" // no worker joins it
	s, err := Open(ctx, cfg)
	if err == nil {
		err = s.withoutWorkers(ctx)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return s, err
}

// withoutWorkers returns an error, and closes the store, if workers use the database.
func (s *Store) withoutWorkers(ctx context.Context) error {
	others, err := s.records.Others(ctx)
	if err == nil && len(others) > 0 {
		err = fmt.Errorf("the worker %s uses the database: stop all workers, and try again after 15 seconds", others[0])
	}
	if err != nil {
		err = errors.Join(err, s.Close())
	}
	return err
}

// errChangedMeanwhile is the error of a write that lost to another one.
var errChangedMeanwhile = errors.New("another process changed the database; try again")

// begunMigration reports whether a migration to another database has begun. One to a third database is an error.
func (s *Store) begunMigration(ctx context.Context, to Config) (bool, error) {
	begun, revision, err := s.migration(ctx)
	if err == nil && revision != 0 && begun.To != place(to) {
		err = fmt.Errorf("a migration to %s has begun: repeat it, or cancel it with hykube migrate --cancel", begun.To)
	}
	return revision != 0, err
}

// noteMigration notes where the installation moves, before the other database has any row.
func (s *Store) noteMigration(ctx context.Context, to Config) error {
	_, revision, err := s.migration(ctx)
	if err != nil {
		return err
	}
	data, err := json.Marshal(migration{place(to), time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	_, ok, err := putAt(ctx, s.client.KV, migratedKey, data, revision)
	if err == nil && !ok {
		err = errChangedMeanwhile
	}
	return err
}

// migration returns the note of a migration and its revision, which is 0 without one.
func (s *Store) migration(ctx context.Context) (m migration, revision int64, err error) {
	data, revision, err := s.table.get(ctx, migratedKey)
	if err != nil || revision == 0 {
		return m, 0, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, 0, fmt.Errorf("read the note of the migration: %w", err)
	}
	return m, revision, nil
}

// backupTo writes a backup to a file of this user.
func (s *Store) backupTo(ctx context.Context, path, version string) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return s.Backup(ctx, f, BackupInfo{Version: version})
}

// checkMigrated reports whether a migration of the database has begun, which is an error for a server.
func (s *Store) checkMigrated(ctx context.Context, cfg Config) (bool, error) {
	m, revision, err := s.migration(ctx)
	if err == nil && revision != 0 && !cfg.migrating {
		err = fmt.Errorf("hykube migrate has moved the installation to %s (%s): start the server with that database. "+
			"If the migration did not end, repeat it, or go back with hykube migrate --cancel", m.To,
			m.At.Format(time.RFC3339))
	}
	return revision != 0, err
}

// place names the database of a configuration, without its user and password.
func place(cfg Config) string {
	scheme, rest, ok := strings.Cut(cfg.Endpoint, "://")
	if !ok {
		return describe(cfg)
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	rest, _, _ = strings.Cut(rest, "?")
	return fmt.Sprintf("%q", scheme+"://"+rest)
}
