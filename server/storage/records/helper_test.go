package records

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/mattn/go-sqlite3" // the driver of SQLite

	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/tests/harness/database"
)

const sqliteOptions = "?_journal_mode=WAL&_synchronous=FULL&_busy_timeout=30000&_txlock=immediate"

// opener opens another Store on the same tables.
type opener func(t *testing.T, change ...func(*Config)) *Store

func inSQLite(dir string) opener {
	return func(t *testing.T, change ...func(*Config)) *Store {
		t.Helper()
		cfg, err := sqliteIn(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = errors.Join(cfg.Write.Close(), cfg.Read.Close()) })
		return openWith(t, cfg, change)
	}
}

func sqliteIn(dir string) (cfg Config, err error) {
	cfg.Dialect = SQLite
	for _, db := range []**sql.DB{&cfg.Read, &cfg.Write} {
		if *db, err = sql.Open("sqlite3", filepath.Join(dir, "ledger.db")+sqliteOptions); err != nil {
			return cfg, err
		}
	}
	cfg.Write.SetMaxOpenConns(1)
	return cfg, nil
}

func openWith(t *testing.T, cfg Config, change []func(*Config)) *Store {
	t.Helper()
	for _, f := range change {
		f(&cfg)
	}
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func inPostgreSQL(t *testing.T) opener {
	t.Helper()
	config, err := pgx.ParseConfig(database.PostgreSQL(t))
	if err != nil {
		t.Fatal(err)
	}
	config.Database = "postgres"
	db := stdlib.OpenDB(*config)
	t.Cleanup(func() { _ = db.Close() })
	return func(t *testing.T, change ...func(*Config)) *Store {
		t.Helper()
		return openWith(t, Config{Dialect: PostgreSQL, Read: db, Write: db}, change)
	}
}

func inMariaDB(t *testing.T) opener {
	t.Helper()
	_, dsn, _ := strings.Cut(database.MariaDB(t), "://")
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.DBName = "mysql"
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return func(t *testing.T, change ...func(*Config)) *Store {
		t.Helper()
		return openWith(t, Config{Dialect: MySQL, Read: db, Write: db}, change)
	}
}

// onEach runs a test on each kind of database, with empty tables.
func onEach(t *testing.T, test func(*testing.T, opener)) {
	t.Run("SQLite", func(t *testing.T) { test(t, inSQLite(t.TempDir())) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, inPostgreSQL(t)) })
}

func put(t *testing.T, s *Store, key, value string, revision int64) int64 {
	t.Helper()
	out, err := s.Batch(t.Context(), "", []ledger.Write{{Key: key, Value: []byte(value), Revision: revision}})
	if err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
	return out[0]
}

func remove(t *testing.T, s *Store, key string, revision int64) {
	t.Helper()
	if _, err := s.Batch(t.Context(), "", []ledger.Write{{Op: ledger.OpDelete, Key: key, Revision: revision}}); err != nil {
		t.Fatalf("delete %s: %v", key, err)
	}
}

// content returns all entries as "key=value".
func content(t *testing.T, s *Store) (out []string) {
	t.Helper()
	entries, err := s.List(t.Context(), "", "", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Key+"="+string(e.Value))
	}
	return out
}

// changes returns what Since returns, as "+key=value" or "-key".
func changes(t *testing.T, s *Store, prefix string, revision int64, limit int) (out []string, last, current int64) {
	t.Helper()
	changed, current, err := s.Since(t.Context(), prefix, revision, limit)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changed {
		if c.Revision <= last {
			t.Errorf("revision %d after %d", c.Revision, last)
		}
		if last = c.Revision; c.Deleted {
			out = append(out, "-"+c.Key)
		} else {
			out = append(out, "+"+c.Key+"="+string(c.Value))
		}
	}
	return out, last, current
}
