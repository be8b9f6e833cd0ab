package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/server/storage"
)

var _ ledger.KV = (*storage.KV)(nil)

func open(t *testing.T, dir string) *storage.Store {
	t.Helper()
	store, err := storage.Open(t.Context(), storage.Config{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func TestKV(t *testing.T) {
	ctx := t.Context()
	kv := open(t, t.TempDir()).KV()
	if _, _, err := kv.Get(ctx, "a"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("get of nothing: %v", err)
	}
	first, err := kv.Put(ctx, "a", []byte("one"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(ctx, "a", []byte("two"), 0); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("create of what exists: %v", err)
	}
	second, err := kv.Put(ctx, "a", []byte("two"), first)
	if err != nil || second <= first {
		t.Fatalf("update: revision %d after %d, %v", second, first, err)
	}
	if _, err := kv.Put(ctx, "a", []byte("three"), first); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("update of an old revision: %v", err)
	}
	if _, err := kv.Put(ctx, "b", []byte("x"), 12345); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("update of nothing: %v", err)
	}
	value, revision, err := kv.Get(ctx, "a")
	if err != nil || string(value) != "two" || revision != second {
		t.Errorf("get: %q at %d, %v; want two at %d", value, revision, err, second)
	}
	if err := kv.Delete(ctx, "a", first); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("delete of an old revision: %v", err)
	}
	if err := kv.Delete(ctx, "a", second); err != nil {
		t.Errorf("delete: %v", err)
	}
	if err := kv.Delete(ctx, "a", second); err != nil {
		t.Errorf("delete of what is gone: %v", err)
	}
	if _, err := kv.Put(ctx, "a", []byte("again"), 0); err != nil {
		t.Errorf("create after delete: %v", err)
	}
}

func TestKVListsInPages(t *testing.T) {
	ctx := t.Context()
	kv := open(t, t.TempDir()).KV()
	for i := range 25 {
		if _, err := kv.Put(ctx, fmt.Sprintf("p/%02d", i), []byte{byte(i)}, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []string{"o/1", "p0", "q/1"} {
		if _, err := kv.Put(ctx, other, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	after := ""
	for {
		entries, err := kv.List(ctx, "p/", after, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 0 {
			break
		}
		for _, e := range entries {
			got = append(got, e.Key)
			if want := byte(len(got) - 1); !bytes.Equal(e.Value, []byte{want}) || e.Revision == 0 {
				t.Errorf("entry %+v, want value %d", e, want)
			}
		}
		after = got[len(got)-1]
	}
	if len(got) != 25 || got[0] != "p/00" || got[24] != "p/24" {
		t.Errorf("listed %q", got)
	}
}

// TestKVHasOneWinner lets many write one key at once.
func TestKVHasOneWinner(t *testing.T) {
	kv := open(t, t.TempDir()).KV()
	revision, err := kv.Put(t.Context(), "k", []byte("start"), 0)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 16 {
		wg.Go(func() {
			switch _, err := kv.Put(t.Context(), "k", []byte{byte(i)}, revision); {
			case err == nil:
				mu.Lock()
				won++
				mu.Unlock()
			case !errors.Is(err, ledger.ErrConflict):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d writers won, want 1", won)
	}
}

func TestWhatIsStoredIsEncryptedAndStays(t *testing.T) {
	dir := t.TempDir()
	store := open(t, dir)
	if _, err := store.KV().Put(t.Context(), "k", []byte("hunter2-in-a-state"), 0); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "db", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("database files: %v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || bytes.Contains(data, []byte("hunter2")) {
			t.Errorf("%s is readable: %v", file, err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "encryption.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v, %v", info, err)
	}
	if value, _, err := open(t, dir).KV().Get(t.Context(), "k"); err != nil || string(value) != "hunter2-in-a-state" {
		t.Errorf("after reopening: %q, %v", value, err)
	}
}

func TestUsersOwnEncryptionKeepsOldDataReadable(t *testing.T) {
	dir := t.TempDir()
	store := open(t, dir)
	if _, err := store.KV().Put(t.Context(), "old", []byte("by the server's key"), 0); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "encryption.yaml")
	text := `{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": [{"resources": ["records.ledger.hykube.io"],
		"providers": [{"secretbox": {"keys": [{"name": "mine", "secret": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}]}}]}]}`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	mine, err := storage.Open(t.Context(), storage.Config{DataDir: dir, EncryptionConfig: config})
	if err != nil {
		t.Fatal(err)
	}
	kv := mine.KV()
	if value, _, err := kv.Get(t.Context(), "old"); err != nil || string(value) != "by the server's key" {
		t.Errorf("old record: %q, %v", value, err)
	}
	if _, err := kv.Put(t.Context(), "new", []byte("by my key"), 0); err != nil {
		t.Fatal(err)
	}
	if err := mine.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := storage.Open(t.Context(), storage.Config{DataDir: dir}); err == nil || !strings.Contains(err.Error(), "--encryption-provider-config") {
		t.Errorf("a server without the user's key starts: %v", err)
	}
}

// BenchmarkKV writes the intent and the outcome of resources from 16 writers, 2 KB each.
func BenchmarkKV(b *testing.B) {
	store, err := storage.Open(b.Context(), storage.Config{DataDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	kv, value := store.KV(), bytes.Repeat([]byte("x"), 2048)
	var n atomic.Int64
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			key := fmt.Sprintf("instances/bench/%08d", n.Add(1))
			revision, err := kv.Put(b.Context(), key, value[:400], 0)
			if err == nil {
				_, err = kv.Put(b.Context(), key, value, revision)
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
}
