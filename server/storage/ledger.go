package storage

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"

	"github.com/hykube/hykube/server/storage/records"
)

// openLedger opens the tables of the ledger, takes the lease of the database, and checks that its stores belong
// together.
func (s *Store) openLedger(ctx context.Context, cfg Config) (err error) {
	if s.records, s.closeRecords, err = openRecords(ctx, cfg, s.table); err != nil {
		return err
	}
	if err := s.lead(ctx, cfg); err != nil {
		return err
	}
	migrated, err := s.checkMigrated(ctx, cfg)
	if err != nil {
		return err
	}
	if s.moments, err = newMoments(cfg, s.table, s.records); err != nil {
		return err
	}
	if err := s.moments.checkEmpty(ctx, cfg); err != nil {
		return err
	}
	if migrated || cfg.Worker { // the data directory is the other database's, or the server compares the stores
		return nil
	}
	if err := s.moments.check(ctx, cfg); err != nil {
		return err
	}
	return s.records.Identify(ctx)
}

// openRecords opens the tables of the ledger: in a file of its own beside kine's SQLite file, or in kine's database.
func openRecords(ctx context.Context, cfg Config, t *table) (*records.Store, func() error, error) {
	own := records.Config{Logger: cfg.Logger, Read: t.db, Write: t.db}
	closed := func() error { return nil }
	switch {
	case cfg.Endpoint == "":
		var err error
		if own, err = openLedgerFile(filepath.Join(cfg.DataDir, "db", "ledger.db")); err != nil {
			return nil, nil, err
		}
		own.Logger = cfg.Logger
		closed = func() error { return errors.Join(own.Read.Close(), own.Write.Close()) }
	case t.numbered:
		own.Dialect = records.PostgreSQL
	default:
		own.Dialect = records.MySQL
	}
	s, err := records.Open(ctx, own)
	if err != nil {
		return nil, nil, errors.Join(err, closed())
	}
	return s, closed, nil
}

// openLedgerFile opens the ledger's SQLite file. With FULL, a transaction is on the disk when it ends. With NORMAL, a
// power loss could take an intent and its outcome together, and the next plan would create the resource again.
func openLedgerFile(path string) (c records.Config, err error) {
	c.Dialect = records.SQLite
	path += "?_journal_mode=WAL&_synchronous=FULL&_busy_timeout=30000&_stmt_cache_size=20"
	if c.Read, err = sql.Open("sqlite3", path+"&_txlock=deferred"); err != nil {
		return c, err
	}
	if c.Write, err = sql.Open("sqlite3", path+"&_txlock=immediate"); err != nil {
		return c, errors.Join(err, c.Read.Close())
	}
	c.Write.SetMaxOpenConns(1)
	c.Read.SetMaxIdleConns(8)
	return c, nil
}
