package storage

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestMigrate moves an installation from each kind of database into another kind. Clients go on at the new database, and no server uses
// the old one.
func TestMigrate(t *testing.T) {
	for name, c := range map[string]struct{ source, target func(*testing.T) Config }{
		"SQLite to PostgreSQL":  {inSQLite, inPostgreSQL},
		"PostgreSQL to MariaDB": {inPostgreSQL, inMariaDB},
		"MariaDB to SQLite":     {inMariaDB, inSQLite},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := c.source(t), c.target(t)
			to.DataDir = from.DataDir
			s := openAt(t, from)
			populate(t, s)
			identity, err := s.Identity(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			last, err := s.table.last(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			closeStore(t, s)
			m, err := Migrate(t.Context(), from, to, "v1")
			if err != nil || m.Before || m.Installation != identity || m.Ledger.Rows != 120 || m.Objects.Revision < last {
				t.Fatalf("%+v, %v", m, err)
			}
			if _, err := Open(t.Context(), from); err == nil || !strings.Contains(err.Error(), "has moved the installation to") {
				t.Errorf("a server with the old database says %v", err)
			}
			if again, err := Migrate(t.Context(), from, to, "v1"); err != nil || !again.Before {
				t.Errorf("a second migration says %+v, %v", again, err)
			}
			if err := CancelMigration(t.Context(), from, to); err == nil || !strings.Contains(err.Error(), "has the installation") {
				t.Errorf("the cancellation after the end says %v", err)
			}
			checkMigrated(t, to, identity, last)
			if left, err := os.Stat(filepath.Join(from.DataDir, migrationFile)); err == nil {
				t.Errorf("%s is left", left.Name())
			}
		})
	}
}

// checkMigrated opens a database after a migration, reads all, and writes. A watch from a revision of the old database goes on.
func checkMigrated(t *testing.T, cfg Config, identity string, last int64) {
	t.Helper()
	r := openAt(t, cfg)
	if r.Restored() != nil {
		t.Error("the database is frozen")
	}
	checkRecords(t, r, 120)
	if again, err := r.Identity(t.Context()); err != nil || again != identity {
		t.Errorf("the identity is %q, %v, and was %q", again, err, identity)
	}
	listed, err := r.client.KV.Get(t.Context(), "/registry/core/", clientv3.WithPrefix(), clientv3.WithLimit(1000))
	if err != nil || len(listed.Kvs) != 59 {
		t.Fatalf("%d objects, %v", len(listed.Kvs), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	events := r.client.Watch(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithRev(last+1))
	at := put(t, r, "/registry/core/configmaps/default/new", "x", 0)
	if answer, ok := <-events; !ok || answer.CompactRevision != 0 || len(answer.Events) != 1 || answer.Events[0].Kv.ModRevision != at {
		t.Errorf("the watch got %+v after the write of revision %d", answer, at)
	}
}

// TestMigrationThatDoesNotEnd stops migrations before their end. No server uses either database, and the migration can be repeated or
// cancelled, but not with a third database.
func TestMigrationThatDoesNotEnd(t *testing.T) {
	from, to := inSQLite(t), inPostgreSQL(t)
	to.DataDir = from.DataDir
	s := openAt(t, from)
	populate(t, s)
	closeStore(t, s)
	if err := CancelMigration(t.Context(), from, to); err == nil || !strings.Contains(err.Error(), "no migration") {
		t.Errorf("a cancellation without a migration says %v", err)
	}
	if before, err := begin(t.Context(), from, to, filepath.Join(from.DataDir, migrationFile), "v1"); err != nil || before {
		t.Fatal(before, err)
	}
	if _, err := Open(t.Context(), from); err == nil || !strings.Contains(err.Error(), "If the migration did not end") {
		t.Errorf("a server with the old database says %v", err)
	}
	third := inPostgreSQL(t)
	third.DataDir = from.DataDir
	if _, err := Migrate(t.Context(), from, third, "v1"); err == nil || !strings.Contains(err.Error(), "has begun") {
		t.Errorf("a migration to a third database says %v", err)
	}
	if err := CancelMigration(t.Context(), from, third); err == nil || !strings.Contains(err.Error(), "has begun") {
		t.Errorf("a cancellation with a third database says %v", err)
	}
	if err := CancelMigration(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, from)
	checkRecords(t, s, 120)
	closeStore(t, s)
	if _, err := Migrate(t.Context(), from, to, "v1"); err != nil {
		t.Errorf("a migration after a cancelled one: %v", err)
	}
}

// TestMigrateRefuses moves into databases that are not empty, and from one that a server uses. Nothing changes.
func TestMigrateRefuses(t *testing.T) {
	from := inPostgreSQL(t)
	s := openAt(t, from)
	populate(t, s)
	to := inSQLite(t)
	other := from
	other.Server.Owner = "hykube migrate"
	other.DataDir = to.DataDir
	giveKey(t, from.DataDir, other.DataDir)
	if _, err := Migrate(t.Context(), other, to, "v1"); err == nil || !strings.Contains(err.Error(), "uses the database: stop it") {
		t.Errorf("the migration of a database that a server uses says %v", err)
	}
	closeStore(t, s)
	if _, err := Migrate(t.Context(), from, from, "v1"); err == nil || !strings.Contains(err.Error(), "has this installation") {
		t.Errorf("the migration to the same database says %v", err)
	}
	filled := inPostgreSQL(t)
	closeStore(t, openAt(t, filled))
	filled.DataDir = from.DataDir
	if _, err := Migrate(t.Context(), from, filled, "v1"); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("the migration into a database with rows says %v", err)
	}
	if _, err := Migrate(t.Context(), inSQLite(t), inPostgreSQL(t), "v1"); err == nil || !strings.Contains(err.Error(), "has no database") {
		t.Errorf("the migration of nothing says %v", err)
	}
	checkRecords(t, openAt(t, from), 120)
}
