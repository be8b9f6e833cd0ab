package storage

import (
	"database/sql"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hykube/hykube/tests/harness/database"
)

// authenticate makes PostgreSQL require a password of the user guest, and none of other users.
func authenticate(t *testing.T, db *sql.DB) {
	t.Helper()
	var file string
	if err := db.QueryRowContext(t.Context(), "SHOW hba_file").Scan(&file); err != nil {
		t.Fatal(err)
	}
	const rules = "VALUES ('host all guest all scram-sha-256'), ('host all all all trust')"
	for _, statement := range []string{
		"CREATE ROLE guest LOGIN PASSWORD 'right'", "CREATE ROLE poor LOGIN",
		fmt.Sprintf("COPY (%s) TO '%s'", rules, file), "SELECT pg_reload_conf()",
	} {
		execute(t, db, statement)
	}
}

// TestConnectSaysWhatTheDatabaseSaid connects in wrong ways.
func TestConnectSaysWhatTheDatabaseSaid(t *testing.T) {
	right := database.PostgreSQL(t)
	address, _, _ := strings.Cut(strings.TrimPrefix(right, "postgres://hykube@"), "/")
	admin, err := openTable("postgres", "hykube@"+address+"/postgres?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.close() })
	authenticate(t, admin.db)
	other := answering(t, "HTTP/1.1 400 Bad Request\r\n\r\n")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	for reason, c := range map[string]struct {
		scheme, rest string
		want         []string
	}{
		"a wrong user":         {"postgres", "nobody:secret@" + address + "/hykube?sslmode=disable", []string{`role "nobody" does not exist`}},
		"a wrong password":     {"postgres", "guest:secret@" + address + "/hykube?sslmode=disable", []string{`password authentication failed for user "guest"`}},
		"no database":          {"postgres", "poor:secret@" + address + "/absent?sslmode=disable", []string{`database "absent" does not exist`, "permission denied to create database"}},
		"no TLS":               {"postgres", "hykube:secret@" + address + "/hykube?sslmode=require", []string{"server refused TLS connection"}},
		"a wrong port":         {"postgres", "hykube:secret@" + closed.Addr().String() + "/hykube", []string{"connection refused"}},
		"another protocol":     {"postgres", "hykube:secret@" + other + "/hykube?sslmode=disable", []string{"no connection to the database: "}},
		"no answer":            {"postgres", "hykube:secret@" + silent.Addr().String() + "/hykube", []string{"the database did not answer"}},
		"a wrong port, MySQL":  {"mysql", "hykube:secret@tcp(" + closed.Addr().String() + ")/hykube", []string{"connection refused"}},
		"PostgreSQL for MySQL": {"mysql", "hykube:secret@tcp(" + address + ")/hykube", []string{"the database did not answer"}},
	} {
		t.Run(reason, func(t *testing.T) {
			table, err := openTable(c.scheme, c.rest)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = table.close() }()
			err = table.connect(t.Context(), 2*time.Second, true)
			if err == nil {
				t.Fatal("connected")
			}
			for _, want := range append(c.want, "check --datastore-endpoint") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q: %v", want, err)
				}
			}
			if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has the password or a second line: %v", err)
			}
		})
	}
}

// answering returns the address of a server that sends a text to each client.
func answering(t *testing.T, text string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, text)
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// TestADatabaseIsCreatedOnlyOnRequest opens a database that does not exist, as after a typo in its name.
func TestADatabaseIsCreatedOnlyOnRequest(t *testing.T) {
	for kind, start := range map[string]func(testing.TB) string{"PostgreSQL": database.PostgreSQL, "MariaDB": database.MariaDB} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg := Config{DataDir: t.TempDir(), Endpoint: renamed(start(t), "a_new_one")}
			_, err := Open(t.Context(), cfg)
			if err == nil || !strings.Contains(err.Error(), "--create-database") || !strings.Contains(err.Error(), "a_new_one") {
				t.Fatalf("without the flag: %v", err)
			}
			cfg.CreateDatabase = true
			closeStore(t, openAt(t, cfg))
			cfg.CreateDatabase = false
			s, err := Open(t.Context(), cfg)
			if err != nil {
				t.Fatalf("the database exists: %v", err)
			}
			if _, err := s.table.db.ExecContext(t.Context(), "CREATE DATABASE another"); err != nil {
				t.Fatal(err)
			}
			closeStore(t, s)
			cfg.Endpoint = renamed(cfg.Endpoint, "another")
			if _, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "the database is empty, and this data directory belongs to one that has objects") {
				t.Errorf("another, empty database: %v", err)
			}
		})
	}
}

// renamed returns an endpoint with another name of the database.
func renamed(endpoint, name string) string {
	i := strings.LastIndex(endpoint, "/")
	_, options, _ := strings.Cut(endpoint[i:], "?")
	return endpoint[:i+1] + name + "?" + options
}

// TestConnectionsAreBounded reads with more callers at once than there may be connections.
func TestConnectionsAreBounded(t *testing.T) {
	const most = LeastMaxConnections
	s := openAt(t, Config{DataDir: t.TempDir(), Endpoint: database.PostgreSQL(t), MaxConnections: most})
	var callers sync.WaitGroup
	for range 4 * most {
		callers.Go(func() {
			for range 20 {
				if _, err := s.client.KV.Get(t.Context(), "/registry/none"); err != nil {
					t.Error(err)
				}
				if _, err := s.KV().List(t.Context(), "", "", 10); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	var open int
	if err := s.table.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()").Scan(&open); err != nil || open > most {
		t.Errorf("%d connections, want at most %d: %v", open, most, err)
	}
}

// TestADamagedFileSaysWhatToDo damages the file of the ledger.
func TestADamagedFileSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	closeStore(t, openAt(t, Config{DataDir: dir}))
	if err := os.WriteFile(filepath.Join(dir, "db", "ledger.db"), []byte(strings.Repeat("damaged ", 2048)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{DataDir: dir}); err == nil || !strings.Contains(err.Error(), "a file is damaged") || !strings.Contains(err.Error(), "backup") {
		t.Errorf("got %v", err)
	}
}
