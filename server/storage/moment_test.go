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
)

// copyDir copies a data directory: the names, modes and contents stay, and the files are new.
func copyDir(t *testing.T, from string) (to string) {
	t.Helper()
	to = t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", from+"/.", to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return to
}

// TestStoresOfDifferentMomentsAreRefused restores files from before 20 records.
func TestStoresOfDifferentMomentsAreRefused(t *testing.T) {
	for reason, test := range map[string]struct {
		files []string
		want  string
	}{
		"an older ledger":   {[]string{"ledger.db"}, "the store of the ledger is older than the objects, by at least 20 writes"},
		"older objects":     {[]string{"state.db"}, "the store of the objects is older than the ledger, by at least"},
		"an older database": {[]string{"state.db", "ledger.db"}, "the store of the ledger is older than the data directory, by at least 20 writes"},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			cfg := Config{DataDir: t.TempDir(), CanaryInterval: settled}
			closeStore(t, openAt(t, cfg))
			older := copyDir(t, cfg.DataDir)
			s := openAt(t, cfg)
			fill(t, s, 20)
			closeStore(t, s)
			cfg.DataDir = copyDir(t, cfg.DataDir)
			for _, file := range test.files {
				for _, suffix := range []string{"", "-wal", "-shm"} { // kine leaves its log
					_ = os.Remove(filepath.Join(cfg.DataDir, "db", file+suffix))
					_ = os.Rename(filepath.Join(older, "db", file+suffix), filepath.Join(cfg.DataDir, "db", file+suffix))
				}
			}
			for range 2 { // a refused start leaves the next one refused
				_, err := Open(t.Context(), cfg)
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "--accept-restored") {
					t.Fatalf("got %v, want %q", err, test.want)
				}
			}
			accepted := cfg
			accepted.AcceptRestored = true
			closeStore(t, openAt(t, accepted))
			closeStore(t, openAt(t, cfg))
		})
	}
}

// TestACopyIsNoted starts on a copy of a directory. It stays a copy until the administrator accepts it.
func TestACopyIsNoted(t *testing.T) {
	cfg := Config{DataDir: t.TempDir(), CanaryInterval: settled}
	for range 2 {
		s := openAt(t, cfg)
		if s.Copied() {
			t.Fatal("the original is a copy")
		}
		closeStore(t, s)
	}
	moved := filepath.Join(t.TempDir(), "moved") // the files stay the same, as on a volume that another machine mounts
	rename(t, cfg.DataDir, moved)
	cfg.DataDir = moved
	s := openAt(t, cfg)
	if s.Copied() {
		t.Error("a directory with another path is a copy")
	}
	closeStore(t, s)
	cfg.DataDir = copyDir(t, moved)
	for range 2 {
		s := openAt(t, cfg)
		if !s.Copied() {
			t.Error("the copy is not noted")
		}
		closeStore(t, s)
	}
	accepted := cfg
	accepted.AcceptRestored = true
	s = openAt(t, accepted)
	if s.Copied() {
		t.Error("the copy was accepted")
	}
	closeStore(t, s)
	s = openAt(t, cfg)
	if s.Copied() {
		t.Error("the copy was accepted before")
	}
	closeStore(t, s)
	remove(t, filepath.Join(cfg.DataDir, momentFile))
	cfg.DataDir = copyDir(t, cfg.DataDir)
	if s := openAt(t, cfg); s.Copied() {
		t.Error("a directory without a note is a copy")
	}
}

func TestSameFile(t *testing.T) {
	for reason, test := range map[string]struct {
		a, b fileID
		want bool
	}{
		"equal":                                     {fileID{"1.5", 7}, fileID{"1.5", 7}, true},
		"a copy with the inode of the original":     {fileID{"1.5", 7}, fileID{"2.5", 7}, false},
		"inodes that differ after another mount":    {fileID{"1.5", 7}, fileID{"1.5", 8}, true},
		"a file system without times of birth":      {fileID{"", 7}, fileID{"", 7}, true},
		"a copy there":                              {fileID{"", 7}, fileID{"", 8}, false},
		"a kernel that reads times of birth by now": {fileID{"", 7}, fileID{"1.5", 7}, true},
	} {
		if got := test.a.same(test.b); got != test.want {
			t.Errorf("%s: %v", reason, got)
		}
	}
}

// TestAKilledServerStarts ends a process without a last note, in the middle of its writes.
func TestAKilledServerStarts(t *testing.T) {
	cfg := Config{DataDir: t.TempDir(), CanaryInterval: settled}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "HYKUBE_TEST_MOMENT="+cfg.DataDir)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process ended with %v:\n%s", err, out)
	}
	s := openAt(t, cfg)
	if s.Copied() {
		t.Error("a killed server left a copy")
	}
	checkRecords(t, s, 20)
}

// writeUntilKilled opens a database, makes notes between writes, and kills this process.
func writeUntilKilled(dir string) {
	ctx := context.Background()
	s, err := Open(ctx, Config{DataDir: dir, CanaryInterval: settled})
	if err != nil {
		panic(err)
	}
	for i := range 20 {
		key, data := record(i)
		if _, err := s.KV().Put(ctx, key, data, 0); err != nil {
			panic(err)
		}
		if _, err := s.moments.note(ctx); err != nil {
			panic(err)
		}
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
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
