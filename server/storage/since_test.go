package storage

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/internal/ledger"
)

// TestSinceWaitsForMissingRevisions adds a row after its successor, as a database with several writers shows them.
func TestSinceWaitsForMissingRevisions(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, Config{DataDir: dir})
	at := put(t, s, "/i/first", "", 0)
	closeStore(t, s)
	db, err := sql.Open("sqlite3", filepath.Join(dir, "db", "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	stopped := &table{db: db, tail: newTail(nil, nil, nil)}
	last, _, err := stopped.revisions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stopped.tail.publish(last, nil)
	write := func(revision int64, name string) {
		t.Helper()
		if _, err := db.Exec("INSERT INTO kine(id, name, created, deleted, create_revision, prev_revision, lease, value) SELECT ?, ?, 1, 0, 0, 0, 0, value FROM kine WHERE id = ?", revision, name, at); err != nil {
			t.Fatal(err)
		}
	}
	write(last+2, "/i/late")
	for range 2 {
		rows, current, err := stopped.since(t.Context(), "/i/", last, 10)
		if err != nil || current != last || len(rows) != 1 || rows[0].revision != last+2 {
			t.Fatalf("with a gap: %+v, continues at %d, want %d; %v", rows, current, last, err)
		}
	}
	write(last+1, "/i/slow")
	rows, current, err := stopped.since(t.Context(), "/i/", last, 10)
	if err != nil || current != last+2 || len(rows) != 2 {
		t.Errorf("without a gap: %+v, continues at %d, want %d; %v", rows, current, last+2, err)
	}
	write(last+9, "/i/behind-a-failed-transaction")
	stopped.tail.publish(last+8, nil)
	if _, current, err := stopped.since(t.Context(), "/i/", last, 10); err != nil || current != last+9 {
		t.Errorf("with a gap that no transaction can fill: continues at %d, want %d; %v", current, last+9, err)
	}
}

func TestSinceKnowsNothingBeforeACompaction(t *testing.T) {
	s := openStore(t)
	at := put(t, s, "/i/a", "", 0)
	if _, err := s.table.db.Exec("UPDATE kine SET prev_revision = ? WHERE name = 'compact_rev_key'", at+1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.table.since(t.Context(), "/i/", at, 10); !errors.Is(err, ledger.ErrExpired) {
		t.Errorf("since a compacted revision: %v", err)
	}
	if _, _, err := s.table.since(t.Context(), "/i/", at+1, 10); err != nil {
		t.Errorf("since the compacted revision: %v", err)
	}
}

func TestObjectsSince(t *testing.T) {
	o := openScanned(t, "sim_bucket/team/a", "sim_bucket/other/a", "data.sim_image/team/b")
	found := map[string]int64{}
	for c, err := range o.All(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		found[fmt.Sprint(c.Provider, " ", c.Stored, " ", c.Namespace, " ", c.Name, " ", c.Object.GetName())] = c.Revision
	}
	want := []string{"sim data.sim_image team b b", "sim sim_bucket other a a", "sim sim_bucket team a a"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(found))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, last, _, err := o.Since(t.Context(), 0, 10)
	if !errors.Is(err, ledger.ErrExpired) {
		t.Fatalf("since nothing: %v", err)
	}
	if last < slices.Max(slices.Collect(maps.Values(found))) {
		t.Errorf("since nothing: continues at %d, before an object that exists", last)
	}
	changes, _, more, err := o.Since(t.Context(), 1, 100)
	if err != nil || more || len(changes) != len(want) {
		t.Errorf("since the beginning: %+v, more %t, %v", changes, more, err)
	}
	for _, c := range changes {
		name := fmt.Sprint(c.Provider, " ", c.Stored, " ", c.Namespace, " ", c.Name, " ", c.Object.GetName())
		if found[name] != c.Revision {
			t.Errorf("%s changed at %d, and its revision is %d", name, c.Revision, found[name])
		}
	}
}
