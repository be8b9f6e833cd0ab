package storage

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"testing"
	"time"
)

func openStore(t *testing.T) *Store {
	t.Helper()
	return openAt(t, Config{DataDir: t.TempDir()})
}

// openQuiet returns a store that makes no writes of its own.
func openQuiet(t *testing.T) *Store {
	t.Helper()
	s := openAt(t, Config{DataDir: t.TempDir(), CanaryInterval: time.Hour})
	eventually(t, "the canary has made its first write, and makes no other", func() bool {
		s.canary.mu.Lock()
		defer s.canary.mu.Unlock()
		return s.canary.written != 0
	})
	return s
}

func openAt(t *testing.T, cfg Config) *Store {
	t.Helper()
	cfg.CreateDatabase = cfg.CreateDatabase || cfg.Endpoint != ""
	cfg.RotationSettle = cmp.Or(cfg.RotationSettle, settled)
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func closeStore(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// put writes a key of the given revision, 0 for a new key, and returns its new revision.
func put(t testing.TB, s *Store, key, value string, revision int64) int64 {
	t.Helper()
	written, ok, err := putAt(t.Context(), s.client.KV, key, []byte(value), revision)
	if err != nil || !ok {
		t.Fatalf("put %s at %d: %v", key, revision, err)
	}
	return written
}

// eventually polls until holds returns true.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

func record(i int) (key string, data []byte) {
	return fmt.Sprintf("r/%04d", i), fmt.Appendf(nil, "content of record %04d", i)
}

func fill(t *testing.T, s *Store, n int) {
	t.Helper()
	for i := range n {
		key, data := record(i)
		if _, err := s.KV().Put(t.Context(), key, data, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// checkRecords expects every record to be readable.
func checkRecords(t *testing.T, s *Store, n int) {
	t.Helper()
	for i := range n {
		key, want := record(i)
		if data, _, err := s.KV().Get(t.Context(), key); err != nil || !bytes.Equal(data, want) {
			t.Fatalf("record %q: %q, %v", key, data, err)
		}
	}
}

func writeKey(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
