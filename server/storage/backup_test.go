package storage

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/hykube/hykube/server/storage/backup"
	"github.com/hykube/hykube/server/storage/records"
	"github.com/hykube/hykube/tests/harness/database"
)

// The configurations of an empty database of each kind.
func inSQLite(t *testing.T) Config { return Config{DataDir: t.TempDir()} }

func inPostgreSQL(t *testing.T) Config { return onServer(t, database.PostgreSQL(t)) }

func inMariaDB(t *testing.T) Config { return onServer(t, database.MariaDB(t)) }

func onServer(t *testing.T, endpoint string) Config {
	return Config{DataDir: t.TempDir(), Endpoint: endpoint, CreateDatabase: true, Server: records.Server{Owner: t.Name()}}
}

// backupOf returns a backup of a store.
func backupOf(t *testing.T, s *Store) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := s.Backup(t.Context(), &out, BackupInfo{Version: "v1"}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func archiveOf(data []byte) Archive {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
}

// giveKey copies the root key of one data directory to another.
func giveKey(t *testing.T, from, to string) {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(from, ownKeyFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(to, ownKeyFile), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// populate writes objects, some of them twice and one deleted, and records.
func populate(t *testing.T, s *Store) {
	t.Helper()
	for i := range 60 {
		key := fmt.Sprintf("/registry/core/configmaps/default/c%d", i)
		sealed, err := s.encryption.transformer(ledgerResource).TransformToStorage(t.Context(), []byte(key), value.DefaultContext(key))
		if err != nil {
			t.Fatal(err)
		}
		at := put(t, s, key, string(sealed), 0)
		if i%5 == 0 {
			put(t, s, key, string(sealed)+"", at)
		}
	}
	if _, _, _, err := s.backend.Delete(t.Context(), "/registry/core/configmaps/default/c7", 0); err != nil {
		t.Fatal(err)
	}
	fill(t, s, 120)
}

// TestBackupMovesBetweenDatabases restores a backup of each kind of database into another kind.
func TestBackupMovesBetweenDatabases(t *testing.T) {
	for name, c := range map[string]struct{ source, target func(*testing.T) Config }{
		"SQLite to PostgreSQL":  {inSQLite, inPostgreSQL},
		"PostgreSQL to MariaDB": {inPostgreSQL, inMariaDB},
		"MariaDB to SQLite":     {inMariaDB, inSQLite},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := c.source(t)
			s := openAt(t, cfg)
			populate(t, s)
			identity, err := s.Identity(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			last, err := s.table.last(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			data := backupOf(t, s)
			closeStore(t, s)
			into := c.target(t)
			giveKey(t, cfg.DataDir, into.DataDir)
			m, err := Restore(t.Context(), into, archiveOf(data))
			if err != nil {
				t.Fatal(err)
			}
			if m.Installation != identity || m.Objects.Rows < 72 || m.Ledger.Rows != 120 || m.Objects.Revision < last {
				t.Errorf("the manifest is %+v", m)
			}
			checkRestoredStore(t, into, identity, last)
			if _, err := Restore(t.Context(), into, archiveOf(data)); err == nil || !strings.Contains(err.Error(), "empty") {
				t.Errorf("a second restore says %v", err)
			}
		})
	}
}

// checkRestoredStore opens a restored database, reads all, writes, and opens it again.
func checkRestoredStore(t *testing.T, cfg Config, identity string, last int64) {
	t.Helper()
	r := openAt(t, cfg)
	if !r.Restored().Frozen("") {
		t.Error("the restored database is not frozen")
	}
	checkRecords(t, r, 120)
	if again, err := r.Identity(t.Context()); err != nil || again != identity {
		t.Errorf("the identity is %q, %v, and was %q", again, err, identity)
	}
	listed, err := r.client.KV.Get(t.Context(), "/registry/core/", clientv3.WithPrefix(), clientv3.WithLimit(1000))
	if err != nil || len(listed.Kvs) != 59 {
		t.Fatalf("%d objects, %v", len(listed.Kvs), err)
	}
	for _, kv := range listed.Kvs {
		clear, _, err := r.encryption.transformer(ledgerResource).TransformFromStorage(t.Context(), kv.Value, value.DefaultContext(string(kv.Key)))
		if err != nil || string(clear) != string(kv.Key) || kv.ModRevision > last {
			t.Fatalf("%s at %d: %q, %v", kv.Key, kv.ModRevision, clear, err)
		}
	}
	// A client that has seen revisions after the backup must list again.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	switch answer, ok := <-r.client.Watch(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithRev(last+500)); {
	case ctx.Err() != nil:
		t.Error("a watch from a later revision waits")
	case ok && answer.CompactRevision == 0:
		t.Errorf("a watch from a later revision gets %+v", answer)
	}
	if at := put(t, r, "/registry/core/configmaps/default/new", "x", 0); at <= last+revisionGap {
		t.Errorf("a write got the revision %d after %d", at, last)
	}
	if err := r.Thaw(t.Context(), []string{"a"}, nil); err != nil {
		t.Fatal(err)
	}
	closeStore(t, r)
	r = openAt(t, cfg)
	if r.Restored().Frozen("a") || !r.Restored().Frozen("b") {
		t.Errorf("after the thaw of a and a restart: %+v", r.Restored())
	}
	if err := r.Thaw(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	if r.Restored().Frozen("b") {
		t.Errorf("after the thaw of all: %+v", r.Restored())
	}
	checkRecords(t, r, 120)
}

// TestBackupIsOneMoment takes backups while writers put the same number into an object and then into a record. In each backup, the
// record is the object or the one before.
func TestBackupIsOneMoment(t *testing.T) {
	for kind, source := range map[string]func(*testing.T) Config{"SQLite": inSQLite, "PostgreSQL": inPostgreSQL} {
		t.Run(kind, func(t *testing.T) {
			cfg := source(t)
			s := openAt(t, cfg)
			ctx, stop := context.WithCancel(t.Context())
			var done sync.WaitGroup
			written := make(chan struct{}, 1000)
			for w := range 4 {
				done.Go(func() {
					var object, record int64
					for n := 1; ctx.Err() == nil; n++ {
						text := fmt.Sprintf("%06d", n)
						at, ok, err := putAt(t.Context(), s.client.KV, fmt.Sprintf("/count/%d", w), []byte(text), object)
						if err != nil || !ok {
							t.Errorf("put: %v", err)
							return
						}
						object = at
						if record, err = s.KV().Put(t.Context(), fmt.Sprintf("count/%d", w), []byte(text), record); err != nil {
							t.Error(err)
							return
						}
						select {
						case written <- struct{}{}:
						default:
						}
					}
				})
			}
			defer done.Wait()
			defer stop()
			for range 40 {
				<-written
			}
			for range 10 {
				checkOneMoment(t, s, backupOf(t, s))
				<-written
			}
		})
	}
}

func checkOneMoment(t *testing.T, s *Store, data []byte) {
	t.Helper()
	from, err := backup.Check(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	objects, inLedger := map[string]string{}, map[string]string{}
	err = from.Rows(bytes.NewReader(data), func(o backup.Object) error {
		if name, ok := strings.CutPrefix(o.Name, "/count/"); ok {
			objects[name] = string(o.Value)
		}
		return nil
	}, func(r backup.Record) error {
		if name, ok := strings.CutPrefix(string(r.Name), "count/"); ok {
			clear, err := s.KV().decrypt(t.Context(), string(r.Name), r.Value)
			inLedger[name] = string(clear)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range objects {
		var n int
		if _, err := fmt.Sscan(strings.TrimLeft(text, "0"), &n); err != nil {
			t.Fatal(err)
		}
		if before := fmt.Sprintf("%06d", n-1); inLedger[name] != text && inLedger[name] != before && n > 1 {
			t.Errorf("object %s has %s, and its record %s", name, text, inLedger[name])
		}
	}
}

// TestRestoreRefuses restores what is no whole backup of this version, or with other keys. Nothing changes.
func TestRestoreRefuses(t *testing.T) {
	cfg := Config{DataDir: t.TempDir()}
	s := openAt(t, cfg)
	populate(t, s)
	data := backupOf(t, s)
	for reason, c := range map[string]struct {
		archive []byte
		damaged bool
		want    string
	}{
		"truncated in a part":            {data[:len(data)/2], true, "before its manifest"},
		"truncated before the code":      {data[:bytes.LastIndex(data, []byte("manifest.hmac"))], true, "before its manifest"},
		"empty":                          {nil, false, "no backup of hykube"},
		"something else":                 {bytes.Repeat([]byte("text"), 1000), false, "no backup of hykube"},
		"a changed byte of a row":        {altered(data, "c13", "c14"), true, "not the one of the manifest"},
		"without a part":                 {rewritten(t, data, func(name string, b []byte) []byte { return unless(name == "ledger/000001.cbor", b) }), true, "parts, and the manifest names"},
		"a manifest without a part":      {rewritten(t, data, withoutLedger), true, "was not written with the keys of the installation"},
		"a newer format":                 {rewritten(t, data, newer), false, "use that version"},
		"a code of another installation": {rewritten(t, data, otherCode), true, "was not written with the keys of the installation"},
	} {
		t.Run(reason, func(t *testing.T) {
			into := Config{DataDir: t.TempDir()}
			giveKey(t, cfg.DataDir, into.DataDir)
			_, err := Restore(t.Context(), into, archiveOf(c.archive))
			if err == nil || errors.Is(err, backup.ErrDamaged) != c.damaged || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the restore says %v", err)
			}
			if left, err := os.ReadDir(into.DataDir); err != nil || len(left) != 1 {
				t.Errorf("the directory has %v, %v", left, err)
			}
		})
	}
	other := openStore(t)
	for reason, keyOf := range map[string]string{"the key of another installation": other.disk.dir, "no key": ""} {
		into := Config{DataDir: t.TempDir()}
		if keyOf != "" {
			giveKey(t, keyOf, into.DataDir)
		}
		if _, err := Restore(t.Context(), into, archiveOf(data)); err == nil || !strings.Contains(err.Error(), "the backup needs the root key ") {
			t.Errorf("with %s, the restore says %v", reason, err)
		}
		if _, err := os.Stat(filepath.Join(into.DataDir, "db")); err == nil {
			t.Errorf("with %s, the restore made a database", reason)
		}
	}
}

// TestRestoreIntoADatabaseWithRows restores over the database of the backup itself, which is not empty.
func TestRestoreIntoADatabaseWithRows(t *testing.T) {
	for kind, target := range map[string]func(*testing.T) Config{"SQLite": inSQLite, "PostgreSQL": inPostgreSQL} {
		t.Run(kind, func(t *testing.T) {
			cfg := target(t)
			s := openAt(t, cfg)
			populate(t, s)
			data := backupOf(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			before := filesOf(t, cfg.DataDir)
			if _, err := Restore(t.Context(), cfg, archiveOf(data)); err == nil || !strings.Contains(err.Error(), "empty") {
				t.Errorf("the restore says %v", err)
			}
			if after := filesOf(t, cfg.DataDir); !slices.Equal(before, after) {
				t.Errorf("the directory has %v, and had %v", after, before)
			}
		})
	}
}

// filesOf returns the paths of all files below a directory.
func filesOf(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	return paths
}

func altered(data []byte, from, to string) []byte {
	return bytes.Replace(bytes.Clone(data), []byte(from), []byte(to), 1)
}

func unless(drop bool, b []byte) []byte {
	if drop {
		return nil
	}
	return b
}

func withoutLedger(name string, b []byte) []byte {
	if name != "manifest.json" {
		return unless(strings.HasPrefix(name, "ledger/"), b)
	}
	var m backup.Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil
	}
	for i, p := range m.Parts {
		if strings.HasPrefix(p.Name, "ledger/") {
			m.Parts = m.Parts[:i]
			break
		}
	}
	b, _ = json.Marshal(m)
	return b
}

func newer(name string, b []byte) []byte {
	if name == "hykube-backup.json" {
		return []byte(`{"format":2,"version":"v99"}`)
	}
	return b
}

func otherCode(name string, b []byte) []byte {
	if name == "manifest.hmac" {
		return []byte("AAAA")
	}
	return b
}

// rewritten returns an archive with changed entries. It leaves out those without content.
func rewritten(t *testing.T, data []byte, change func(string, []byte) []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	to := tar.NewWriter(&out)
	for from := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		var b []byte
		if err == nil {
			b, err = io.ReadAll(from)
		}
		if b = change(h.Name, b); err == nil && b != nil {
			h.Size = int64(len(b))
			if err = to.WriteHeader(h); err == nil {
				_, err = to.Write(b)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestHalfARestore ends restores in the middle. A server does not start with what is left, and a new restore replaces it.
func TestHalfARestore(t *testing.T) {
	cfg := Config{DataDir: t.TempDir()}
	s := openAt(t, cfg)
	populate(t, s)
	data := backupOf(t, s)
	for kind, target := range map[string]func(*testing.T) Config{"SQLite": inSQLite, "PostgreSQL": inPostgreSQL} {
		t.Run(kind, func(t *testing.T) {
			into := target(t)
			giveKey(t, cfg.DataDir, into.DataDir)
			opened := 0
			_, err := Restore(t.Context(), into, func() (io.ReadCloser, error) {
				if opened++; opened == 1 {
					return archiveOf(data)()
				}
				return io.NopCloser(io.MultiReader(bytes.NewReader(data[:len(data)*3/4]), failing{})), nil
			})
			if !errors.Is(err, errFailing) {
				t.Fatalf("the restore says %v", err)
			}
			if into.Endpoint == "" {
				if _, err := Open(t.Context(), into); err == nil || !strings.Contains(err.Error(), "a restore has not ended") {
					t.Errorf("the start says %v", err)
				}
			}
			if _, err := Restore(t.Context(), into, archiveOf(data)); err != nil {
				t.Fatal(err)
			}
			checkRecords(t, openAt(t, into), 120)
		})
	}
}

var errFailing = errors.New("the disk is away")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errFailing }

// TestVerifyComparesRows verifies a backup, and one whose rows the throw-away database changes.
func TestVerifyComparesRows(t *testing.T) {
	cfg := Config{DataDir: t.TempDir()}
	s := openAt(t, cfg)
	if err := s.Thaw(t.Context(), nil, nil); !errors.Is(err, ErrNotFrozen) {
		t.Errorf("a thaw of a database that was not restored says %v", err)
	}
	populate(t, s)
	data := backupOf(t, s)
	m, err := Verify(t.Context(), cfg, t.TempDir(), archiveOf(data))
	if err != nil || m.Ledger.Rows != 120 {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, err := Verify(t.Context(), cfg, t.TempDir(), archiveOf(data[:len(data)-4096])); !errors.Is(err, backup.ErrDamaged) {
		t.Errorf("a truncated one: %v", err)
	}
}
