package storage

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/hykube/hykube/tests/harness/database"
)

// olderLedger makes the database of an older version, which kept the ledger in kine: n records, each of which was
// changed, and one that was deleted.
func olderLedger(t *testing.T, cfg Config, n int) {
	t.Helper()
	s := openAt(t, cfg)
	transformer := s.encryption.transformer(ledgerResource)
	for i := range n {
		key, data := record(i)
		sealed, err := transformer.TransformToStorage(t.Context(), data, value.DefaultContext(ledgerPrefix+key))
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, ledgerPrefix+key, string(sealed), put(t, s, ledgerPrefix+key, "an older value", 0))
	}
	const gone = ledgerPrefix + "r/deleted"
	at := clientv3.Compare(clientv3.ModRevision(gone), "=", put(t, s, gone, "deleted", 0))
	if _, err := s.client.KV.Txn(t.Context()).If(at).Then(clientv3.OpDelete(gone)).Else(clientv3.OpGet(gone)).Commit(); err != nil {
		t.Fatal(err)
	}
	if cfg.Endpoint == "" {
		withoutLedger(t, s, cfg.DataDir)
		return
	}
	for _, statement := range []string{"DROP TABLE hykube_ledger, hykube_ledger_deleted, hykube_ledger_state", "DELETE FROM kine WHERE name = '" + takenKey + "'"} {
		if _, err := s.table.db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	closeStore(t, s)
	remove(t, filepath.Join(cfg.DataDir, momentFile))
}

// checkTaken expects the records in their own tables, and none in kine.
func checkTaken(t *testing.T, s *Store, n int) {
	t.Helper()
	checkRecords(t, s, n)
	if entries, err := s.KV().List(t.Context(), "", "", n+10); err != nil || len(entries) != n {
		t.Errorf("the ledger has %d records, want %d: %v", len(entries), n, err)
	}
	eventually(t, "the old rows are removed", func() bool {
		var rows int
		err := s.table.db.QueryRowContext(t.Context(), s.table.query("SELECT COUNT(*) FROM kine WHERE name > ? AND name < ?"), takenKey, ledgerPrefix+"~").Scan(&rows)
		if err != nil {
			t.Fatal(err)
		}
		return rows == 0
	})
}

func TestTheLedgerOfAnOlderVersionIsTakenOver(t *testing.T) {
	for name, endpoint := range map[string]func(testing.TB) string{"SQLite": func(testing.TB) string { return "" }, "PostgreSQL": database.PostgreSQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{DataDir: t.TempDir(), Endpoint: endpoint(t), CanaryInterval: settled}
			const n = 30
			olderLedger(t, cfg, n)
			s := openAt(t, cfg)
			checkTaken(t, s, n)
			key, data := record(0)
			_, revision, err := s.KV().Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			last, err := s.KV().Put(t.Context(), key, data, revision)
			if err != nil || last <= revision {
				t.Fatalf("revision %d after %d: %v", last, revision, err)
			}
			old := s.encryption.ring.loaded.Load().Keys[0]
			if err := s.RotateKeys(t.Context()); err != nil {
				t.Fatal(err)
			}
			finishRotation(t, s)
			if found := rowsWith(t, s, old.prefix()); found != 0 {
				t.Errorf("%d rows have the old key after a rotation", found)
			}
			closeStore(t, s)
			s = openAt(t, cfg)
			checkTaken(t, s, n)
			if _, now, err := s.KV().Get(t.Context(), key); err != nil || now != last {
				t.Errorf("another start changed the revision from %d to %d: %v", last, now, err)
			}
			// An older version checks the first record, and does not start.
			taken, _, err := s.table.get(t.Context(), takenKey)
			if err != nil {
				t.Fatal(err)
			}
			if name, err := s.table.next(t.Context(), ledgerPrefix, ledgerPrefix); name != takenKey || err != nil {
				t.Errorf("the first record of an older version is %q, %v", name, err)
			}
			if _, _, err := s.encryption.transformer(ledgerResource).TransformFromStorage(t.Context(), taken, value.DefaultContext(takenKey)); err == nil || !strings.Contains(err.Error(), "a newer version of hykube") {
				t.Errorf("an older version starts: %v", err)
			}
		})
	}
}

// takeOverUntil opens a database and kills this process at the step.
func takeOverUntil(dir, step string) {
	cfg := Config{DataDir: dir, CanaryInterval: settled, takeoverStep: func(at string) {
		if at == step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}}
	if _, err := Open(context.Background(), cfg); err != nil {
		panic(err)
	}
	select {}
}

func TestAKilledTakeoverLosesNothing(t *testing.T) {
	for _, step := range []string{stepCopied, stepTaken, stepComplete, stepRemoved} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			cfg := Config{DataDir: t.TempDir(), CanaryInterval: settled}
			const n = 20
			olderLedger(t, cfg, n)
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "HYKUBE_TEST_TAKEOVER="+cfg.DataDir, "HYKUBE_TEST_STEP="+step)
			out, err := cmd.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the process ended with %v:\n%s", err, out)
			}
			checkTaken(t, openAt(t, cfg), n)
		})
	}
}

// TestObjectsAndLedgerBelongTogether restores one of the two files alone.
func TestObjectsAndLedgerBelongTogether(t *testing.T) {
	for reason, test := range map[string]struct{ file, want string }{
		"the ledger is gone":             {"ledger.db", "the ledger is missing or belongs to other objects"},
		"the objects are gone":           {"state.db", "the ledger is newer than the objects"},
		"the ledger is another server's": {"ledger.db", "the ledger is missing or belongs to other objects"},
		"the objects are another's":      {"state.db", "the ledger is missing or belongs to other objects"},
	} {
		t.Run(reason, func(t *testing.T) {
			dir, other := t.TempDir(), t.TempDir()
			for _, d := range []string{dir, other} {
				s := openAt(t, Config{DataDir: d})
				fill(t, s, 1)
				closeStore(t, s)
			}
			db, kept := filepath.Join(dir, "db"), filepath.Join(t.TempDir(), "kept")
			rename(t, db, kept)
			if err := os.CopyFS(db, os.DirFS(kept)); err != nil {
				t.Fatal(err)
			}
			for _, suffix := range []string{"", "-wal", "-shm"} {
				_ = os.Remove(filepath.Join(db, test.file+suffix))
				if strings.Contains(reason, "another") {
					_ = os.Rename(filepath.Join(other, "db", test.file+suffix), filepath.Join(db, test.file+suffix))
				}
			}
			if s, err := Open(t.Context(), Config{DataDir: dir}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, %v, want %q", s, err, test.want)
			}
			if err := os.RemoveAll(db); err != nil {
				t.Fatal(err)
			}
			rename(t, kept, db)
			checkRecords(t, openAt(t, Config{DataDir: dir}), 1)
		})
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// TestTheLedgerIsOnTheDisk checks the setting that no test of a running process can see: it matters after a power loss.
func TestTheLedgerIsOnTheDisk(t *testing.T) {
	c, err := openLedgerFile(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(c.Read.Close(), c.Write.Close()) }()
	const full = 2
	var synchronous int
	if err := c.Write.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&synchronous); err != nil || synchronous != full {
		t.Errorf("synchronous is %d, want %d (FULL): %v", synchronous, full, err)
	}
}
