package storage

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/ledger"
)

// persistent returns an index that restores and saves its snapshot, and the log of it.
func (x *indexed) persistent() (*index.Index, *bytes.Buffer) {
	log := &bytes.Buffer{}
	i := x.newIndex()
	i.Persist(x.s.Snapshots(x.dir, "this program"), slog.New(slog.NewTextHandler(log, nil)))
	return i, log
}

// save saves the snapshot of an index as a server that stops does.
func (x *indexed) save(i *index.Index) {
	x.t.Helper()
	if err := i.Refresh(x.t.Context()); err != nil {
		x.t.Fatal(err)
	}
	stopped, stop := context.WithCancel(x.t.Context())
	stop()
	i.Run(stopped, func() error { return errors.New("the server stops") }, slog.New(slog.DiscardHandler))
}

// restored returns an index from the snapshot after its first refresh. It fails the test unless the snapshot was used.
func (x *indexed) restored() *index.Index {
	x.t.Helper()
	i, log := x.persistent()
	if err := i.Refresh(x.t.Context()); err != nil {
		x.t.Fatal(err)
	}
	if !strings.Contains(log.String(), "restored the index from its snapshot") {
		x.t.Fatalf("the snapshot was not used: %s", log)
	}
	return i
}

// ignored expects an index to ignore the snapshot for a reason, and to be right.
func (x *indexed) ignored(when, reason string) {
	x.t.Helper()
	i, log := x.persistent()
	x.check(i, when)
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "cannot use its snapshot") || !strings.Contains(text, reason) {
		x.t.Errorf("%s: the log is %q, and should have one line with %q", when, text, reason)
	}
}

// exec changes a file of the database without the store.
func (x *indexed) exec(file, statement string) {
	x.t.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(x.dir, "db", file)+"?_busy_timeout=30000")
	if err == nil {
		_, err = db.ExecContext(x.t.Context(), statement)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		x.t.Fatal(err)
	}
}

// TestASnapshotIsTheIndex restores the index of random estates at random times, also after further writes, restarts,
// compactions and new versions of the provider.
func TestASnapshotIsTheIndex(t *testing.T) {
	used := 0
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			x := &indexed{t: t, dir: t.TempDir(), catalog: catalog.New(nil), random: rand.New(rand.NewPCG(seed, 2))}
			putProvider(x.catalog, "name")
			x.open()
			followed, _ := x.persistent()
			for round := range 40 {
				for range x.random.IntN(12) {
					x.step()
				}
				when := fmt.Sprintf("round %d", round)
				switch x.random.IntN(8) {
				case 0, 1:
					when += ", after a snapshot"
					x.save(followed)
					followed = x.restored()
					used++
				case 2, 3, 4:
					when += ", after a crash"
					var log *bytes.Buffer
					followed, log = x.persistent()
					if err := followed.Refresh(t.Context()); err != nil {
						t.Fatal(err)
					}
					if strings.Contains(log.String(), "restored the index") {
						used++
					}
				case 5:
					when += ", after a compaction and a crash"
					if _, err := x.s.table.db.Exec("UPDATE kine SET prev_revision = (SELECT MAX(id) FROM kine) WHERE name = 'compact_rev_key'"); err != nil {
						t.Fatal(err)
					}
					x.compact()
					followed, _ = x.persistent()
				case 6:
					when += ", after a restart with a new version of the provider"
					closeStore(t, x.s)
					x.open()
					putProvider(x.catalog, []string{"name", "other"}[x.random.IntN(2)])
					followed, _ = x.persistent()
				case 7:
					when += ", after a restart without the provider, which comes later"
					x.catalog.Remove("sim")
					followed, _ = x.persistent()
					if err := followed.Refresh(t.Context()); err != nil {
						t.Fatal(err)
					}
					putProvider(x.catalog, "name")
				}
				x.check(followed, when)
			}
		})
	}
	if used < 20 {
		t.Errorf("only %d indexes came from a snapshot", used)
	}
}

// TestASnapshotOfManyBlocks has entries that are larger than a block, also as the last one.
func TestASnapshotOfManyBlocks(t *testing.T) {
	x := newIndexed(t)
	for _, namespace := range []string{"team", "other"} {
		for i := range 3 {
			x.counted(namespace, fmt.Sprint("n", i), types.UID(fmt.Sprint(namespace, i)), 2, fmt.Sprintf(`{"name":%q}`, strings.Repeat("a", 400_000)))
		}
	}
	i, _ := x.persistent()
	x.save(i)
	x.check(x.restored(), "after the restart")
}

// TestExpiredRecordsOfARestoredIndex forgets the deletions of records and statuses after the snapshot, so that the restored index
// must read all of them again.
func TestExpiredRecordsOfARestoredIndex(t *testing.T) {
	x := newIndexed(t)
	x.counted("team", "web", "6c2ac8e8-bb07-4a5c-9c0c-2f9e7f3f9a10", 2, `{}`)
	first, _ := x.persistent()
	found, ok, err := first.Find(t.Context(), v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-a", Namespace: "team", Name: "web[1]"})
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	l, key := ledger.New(x.s.KV()), ledger.StatusKey{Namespace: "team", Set: found.Instance.SetUID, UID: found.UID}
	rec, err := l.Instance(t.Context(), found.Ref("team"))
	if err == nil {
		rec.Object, rec.Attributes = found.Ref("team"), []byte(`{"id":"1"}`)
		err = errors.Join(l.Save(t.Context(), rec), l.SaveStatus(t.Context(), ledger.Status{StatusKey: key, Value: []byte(`{"conditions":[{"type":"Stalled","status":"True"}]}`)}))
	}
	if err != nil {
		t.Fatal(err)
	}
	x.save(first)
	if err := errors.Join(l.Forget(t.Context(), rec), l.ForgetStatus(t.Context(), key)); err != nil {
		t.Fatal(err)
	}
	closeStore(t, x.s)
	x.exec("ledger.db", "UPDATE hykube_ledger_state SET forgotten = revision")
	x.exec("ledger.db", "DELETE FROM hykube_ledger_deleted")
	x.open()
	x.check(x.restored(), "after the deletions expired")
}

// TestASnapshotThatDoesNotFit damages a snapshot, and replaces the database and the program. Each index must say why it
// does not use the snapshot.
func TestASnapshotThatDoesNotFit(t *testing.T) {
	newSaved := func(t *testing.T) *indexed {
		x := newIndexed(t)
		for range 100 {
			x.step()
		}
		for n := range int32(4) { // the start decrypts the first object of each kind, so no case may damage that
			x.counted("team", "zone", "zone", n, `{}`)
		}
		first, _ := x.persistent()
		x.save(first)
		return x
	}
	file := func(t *testing.T, x *indexed, pattern string) string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(x.dir, "index", pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("the files %q: %v", found, err)
		}
		return found[0]
	}
	edit := func(pattern string, change func([]byte) []byte) func(*testing.T, *indexed) {
		return func(t *testing.T, x *indexed) {
			data, err := os.ReadFile(file(t, x, pattern))
			if err == nil {
				err = os.WriteFile(file(t, x, pattern), change(data), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	flip := func(data []byte) []byte { data[len(data)/2] ^= 1; return data }
	cut := func(data []byte) []byte { return data[:len(data)-1] }
	tests := map[string]struct {
		change func(*testing.T, *indexed)
		reason string
	}{
		"missing":           {func(t *testing.T, x *indexed) { remove(t, file(t, x, "manifest")) }, "there is no snapshot"},
		"without blocks":    {func(t *testing.T, x *indexed) { remove(t, file(t, x, "*.blocks")) }, "no such file"},
		"cut manifest":      {edit("manifest", cut), "damaged"},
		"damaged manifest":  {edit("manifest", flip), "damaged"},
		"empty manifest":    {edit("manifest", func([]byte) []byte { return nil }), "another version"},
		"other form":        {edit("manifest", func(data []byte) []byte { return bytes.Replace(data, []byte("index 1"), []byte("index 2"), 1) }), "another version"},
		"cut blocks":        {edit("*.blocks", cut), "unexpected EOF"},
		"empty blocks":      {edit("*.blocks", func([]byte) []byte { return nil }), "EOF"},
		"damaged blocks":    {edit("*.blocks", flip), "damaged"},
		"too large a block": {edit("*.blocks", func([]byte) []byte { return []byte{255, 255, 255, 255} }), "damaged"},
		"another database": {func(t *testing.T, x *indexed) {
			closeStore(t, x.s)
			remove(t, filepath.Join(x.dir, "db", "state.db"))
			remove(t, filepath.Join(x.dir, "db", "ledger.db"))
			x.open()
		}, "a key that this database does not have"},
		"an older backup": {func(t *testing.T, x *indexed) {
			closeStore(t, x.s)
			x.exec("state.db", "DELETE FROM kine WHERE id > (SELECT MAX(id) - 20 FROM kine)")
			x.open()
		}, "restored or replaced"},
		"a backup with other writes since": {func(t *testing.T, x *indexed) {
			closeStore(t, x.s)
			x.exec("state.db", "DELETE FROM kine WHERE id > (SELECT MAX(id) - 20 FROM kine)")
			x.open()
			for range 200 {
				x.step()
			}
		}, "restored or replaced"},
		"another history with the same last row": {func(t *testing.T, x *indexed) {
			closeStore(t, x.s)
			x.exec("state.db", "UPDATE kine SET value = CAST('other' AS BLOB) WHERE id = (SELECT MAX(id) - 2 FROM kine)")
			x.open()
		}, "restored or replaced"},
		"an older ledger": {func(t *testing.T, x *indexed) {
			closeStore(t, x.s)
			x.exec("ledger.db", "DELETE FROM hykube_ledger WHERE revision > (SELECT revision - 3 FROM hykube_ledger_state)")
			x.exec("ledger.db", "UPDATE hykube_ledger_state SET revision = revision - 3")
			x.open()
		}, "before the snapshot's"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			x := newSaved(t)
			x.restored()
			test.change(t, x)
			x.ignored(name, test.reason)
			if left, _ := filepath.Glob(filepath.Join(x.dir, "index", "*")); len(left) > 0 {
				t.Errorf("the next start finds %v", left)
			}
		})
	}
	t.Run("another program", func(t *testing.T) {
		x := newSaved(t)
		if _, _, err := x.s.Snapshots(x.dir, "another program").Load(t.Context(), 3); err == nil || !strings.Contains(err.Error(), "another version") {
			t.Errorf("error %v", err)
		}
	})
}

// TestASnapshotOfADroppedKey rotates the key of the database. The next snapshot must use the new key, and one of the dropped
// key is useless.
func TestASnapshotOfADroppedKey(t *testing.T) {
	x := newIndexed(t)
	for range 50 {
		x.step()
	}
	first, _ := x.persistent()
	x.save(first)
	if err := x.s.RotateKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	saved := x.s.Snapshots(x.dir, "this program")
	// The rotation may already have encrypted the rows again that identify the database.
	if _, _, err := saved.Load(t.Context(), 3); err != nil && !strings.Contains(err.Error(), "the encryption key was rotated") {
		t.Fatal(err)
	}
	if !saved.Outdated(t.Context()) {
		t.Error("a snapshot of the old key does not count as outdated")
	}
	eventually(t, "the old key is dropped", func() bool {
		status, err := x.s.KeyStatus(t.Context())
		return err == nil && !status.Rotating
	})
	x.ignored("after the rotation", "a key that this database does not have")
	second, _ := x.persistent()
	x.save(second)
	x.check(x.restored(), "after a snapshot with the new key")
}

// TestACrashDuringASnapshot ends writes of snapshots at each block, and at the manifest. The earlier snapshot must stay
// usable. The next snapshot must remove the files of the interrupted one.
func TestACrashDuringASnapshot(t *testing.T) {
	x := newIndexed(t)
	for range 100 {
		x.step()
	}
	first, _ := x.persistent()
	x.save(first)
	for range 50 {
		x.step()
	}
	crash := errors.New("crash")
	saved := x.s.Snapshots(x.dir, "this program")
	var at index.Position
	for n := range 3 {
		var blocks iter.Seq2[[]byte, error] = func(yield func([]byte, error) bool) {
			for range n {
				if !yield([]byte("a block"), nil) {
					return
				}
			}
			yield(nil, crash)
		}
		last, err := x.s.table.last(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at = index.Position{Objects: last, Records: 1, Statuses: 1}
		if err := saved.Save(t.Context(), 1, at, blocks); !errors.Is(err, crash) {
			t.Errorf("error %v", err)
		}
		x.check(x.restored(), fmt.Sprint("after a crash at block ", n))
	}
	left := filepath.Join(x.dir, "index", "left.blocks")
	writeKey(t, left, "what a killed server left", 0o600)
	x.check(x.restored(), "after a kill")
	second := x.restored()
	x.step()
	x.save(second)
	entries, err := os.ReadDir(filepath.Join(x.dir, "index"))
	if err != nil || len(entries) != 2 {
		t.Errorf("the directory has %v: %v", entries, err)
	}
	x.check(x.restored(), "in the end")
}

// TestTheFilesOfASnapshotAreEncrypted looks for names of objects in the files.
func TestTheFilesOfASnapshotAreEncrypted(t *testing.T) {
	x := newIndexed(t)
	x.counted("team", "name-to-search-for", "a", 3, `{"name":"value-to-search-for"}`)
	i, _ := x.persistent()
	x.save(i)
	files, err := filepath.Glob(filepath.Join(x.dir, "index", "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("the files %q: %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		info, statErr := os.Stat(file)
		if err != nil || statErr != nil || bytes.Contains(data, []byte("to-search-for")) || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v, or it is not encrypted: %v", file, info.Mode(), err)
		}
	}
}

// TestMovingASnapshot changes only the position, as an idle server does.
func TestMovingASnapshot(t *testing.T) {
	x := newIndexed(t)
	for range 50 {
		x.step()
	}
	i, _ := x.persistent()
	x.save(i)
	saved := x.s.Snapshots(x.dir, "this program")
	old, _, err := saved.Load(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	put(t, x.s, "/other", "a write that concerns no entry", 0)
	last, err := x.s.table.last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	next := old
	next.Objects = last
	if err := saved.Move(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if at, _, err := x.s.Snapshots(x.dir, "this program").Load(t.Context(), 3); err != nil || at != next {
		t.Errorf("the position is %v: %v", at, err)
	}
	x.check(x.restored(), "after the move")
	next.Objects += 1000
	if err := saved.Move(t.Context(), next); err == nil {
		t.Error("the snapshot moved to a revision that the database does not have")
	}
}

// TestRebuild removes records behind the back of the index, as if it had a fault.
func TestRebuild(t *testing.T) {
	x := newIndexed(t)
	x.counted("team", "web", "6c2ac8e8-bb07-4a5c-9c0c-2f9e7f3f9a10", 3, `{"name":"a"}`)
	i, _ := x.persistent()
	x.save(i)
	rebuilt, err := i.Rebuild(t.Context())
	if err != nil || rebuilt.Objects == 0 || rebuilt.Different != 0 || len(rebuilt.Skipped) != 0 {
		t.Errorf("the result is %+v: %v", rebuilt, err)
	}
	x.ignored("after a rebuild", "there is no snapshot")
	l := ledger.New(x.s.KV())
	view, err := i.View(t.Context(), "team")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range view.Nodes {
		if n.Object == nil {
			continue
		}
		rec, err := l.Instance(t.Context(), n.Object.Ref("team"))
		if err != nil {
			t.Fatal(err)
		}
		rec.Object, rec.Attributes = n.Object.Ref("team"), []byte(`{"id":"x"}`)
		if err := l.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.exec("ledger.db", "DELETE FROM hykube_ledger WHERE name LIKE 'instances/team/%'")
	rebuilt, err = i.Rebuild(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"namespace team: sim_a.web[0]", "namespace team: sim_a.web[1]", "namespace team: sim_a.web[2]",
		"namespace team: the number of records of the ResourceSet 6c2ac8e8-bb07-4a5c-9c0c-2f9e7f3f9a10",
	}
	if diff := cmp.Diff(want, rebuilt.Differences); diff != "" || rebuilt.Different != len(want) {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	x.check(i, "after the rebuild")
	if rebuilt.Finished.Before(rebuilt.Started) || time.Since(rebuilt.Finished) > time.Hour {
		t.Errorf("the rebuild took from %s to %s", rebuilt.Started, rebuilt.Finished)
	}
}
