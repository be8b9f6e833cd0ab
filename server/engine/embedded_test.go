package engine

import (
	"database/sql"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-version"
)

func TestErrorOfATakenPort(t *testing.T) {
	dir := t.TempDir()
	main, visibility := databases(dir)
	for _, d := range []database{main, visibility} {
		if err := ensureSchema(t.Context(), d, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range services {
		t.Run(string(name), func(t *testing.T) {
			ports, err := freePorts(len(services))
			if err != nil {
				t.Fatal(err)
			}
			taken, err := net.Listen("tcp4", loopback+":0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = taken.Close() }()
			ports[i] = taken.Addr().(*net.TCPAddr).Port
			if _, err := startOn(ports, main, visibility, &mutualTLS{}, "hykube", slog.New(slog.DiscardHandler)); !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestEnsureSchema(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	fresh := func(t *testing.T) (database, *sql.DB) {
		d, _ := databases(t.TempDir())
		if err := ensureSchema(t.Context(), d, logger); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", d.file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return d, db
	}

	t.Run("a second time changes nothing", func(t *testing.T) {
		d, db := fresh(t)
		before := tables(t, db)
		if err := ensureSchema(t.Context(), d, logger); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(before, tables(t, db)); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("an older file gets the steps that it lacks", func(t *testing.T) {
		d, db := fresh(t)
		want := tables(t, db)
		// Revert the additions of the last two steps.
		exec(t, db, "DROP TABLE current_chasm_executions", "DROP TABLE tasks_v2", "DROP TABLE task_queues_v2",
			"UPDATE schema_version SET curr_version='0.9'")
		if err := ensureSchema(t.Context(), d, logger); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, tables(t, db)); diff != "" {
			t.Error(diff)
		}
		if _, err := os.Stat(d.file); err != nil {
			t.Error(err)
		}
	})

	t.Run("a step that fails leaves the file as it was", func(t *testing.T) {
		d, db := fresh(t)
		exec(t, db, "DROP TABLE tasks_v2", "DROP TABLE task_queues_v2", "UPDATE schema_version SET curr_version='0.9'")
		before := tables(t, db)
		if err := ensureSchema(t.Context(), d, logger); err == nil {
			t.Error("a table that exists was created again")
		}
		if diff := cmp.Diff(before, tables(t, db)); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("a newer file is refused", func(t *testing.T) {
		d, db := fresh(t)
		exec(t, db, "UPDATE schema_version SET curr_version='9.1'")
		if err := ensureSchema(t.Context(), d, logger); err == nil || !strings.Contains(err.Error(), "9.1") {
			t.Errorf("got %v", err)
		}
	})

	t.Run("a file of something else is refused", func(t *testing.T) {
		d, _ := databases(t.TempDir())
		if err := os.WriteFile(d.file, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := ensureSchema(t.Context(), d, logger); err == nil || !strings.Contains(err.Error(), filepath.Base(d.file)) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("a directory with an odd name works", func(t *testing.T) {
		d, _ := databases(filepath.Join(t.TempDir(), "a b?c#d%41"))
		if err := os.MkdirAll(filepath.Dir(d.file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := ensureSchema(t.Context(), d, logger); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(d.file); err != nil {
			t.Error(err)
		}
	})
}

func TestSchemaStepsReachOurVersion(t *testing.T) {
	d, _ := databases("")
	steps, err := schemaSteps(d.schema, version.Must(version.NewVersion("0.1")), version.Must(version.NewVersion(d.version)))
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) < 10 || steps[len(steps)-1].CurrVersion != d.version {
		t.Errorf("got %d steps, the last to %v", len(steps), steps[len(steps)-1].CurrVersion)
	}
}

func TestRememberIdentity(t *testing.T) {
	dir := t.TempDir()
	for i, want := range [][]string{{}, {"a"}, {"a", "b"}} {
		got, err := rememberIdentity(dir, string(rune('a'+i)))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) || strings.Join(got, ",") != strings.Join(want, ",") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func exec(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func tables(t *testing.T, db *sql.DB) (names []string) {
	t.Helper()
	rows, err := db.Query("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}
