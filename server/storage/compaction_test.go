package storage

import (
	"database/sql"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestACompactionVisitsOnlyLaterRows adds a deletion below the last compaction, where no compaction leaves one. If the next
// compaction removed it, it would visit all rows of the database, at each time.
func TestACompactionVisitsOnlyLaterRows(t *testing.T) {
	s := openAt(t, Config{DataDir: t.TempDir(), Compaction: Compaction{Interval: 20 * time.Millisecond, Retain: 1}})
	stored := func(revision int64) (n int) {
		t.Helper()
		if err := s.table.db.QueryRow("SELECT COUNT(*) FROM kine WHERE id = ?", revision).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	at, gone := put(t, s, "/i/changed", "", 0), put(t, s, "/i/gone", "", 0)
	// compact changes an object until the database removes the revision before that.
	compact := func() (removed int64) {
		t.Helper()
		removed = at
		eventually(t, "the database removes a replaced row", func() bool {
			at = put(t, s, "/i/changed", strconv.FormatInt(at, 10), at)
			return stored(removed) == 0
		})
		return removed
	}
	deletion, _, deleted, err := s.backend.Delete(t.Context(), "/i/gone", gone)
	if err != nil || !deleted {
		t.Fatalf("delete: %t, %v", deleted, err)
	}
	free := compact()
	if stored(gone) != 0 || stored(deletion) != 0 {
		t.Error("the database keeps an object that was deleted, or its deletion")
	}
	if stored(at) != 1 {
		t.Error("the database does not have the object's last row")
	}

	s.table.write.Lock()
	_, err = s.table.db.Exec("INSERT INTO kine(id, name, created, deleted, create_revision, prev_revision, lease) VALUES (?, '/i/left', 0, 1, ?, 0, 0)", free, free)
	s.table.write.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	compact()
	if stored(free) != 1 {
		t.Error("a compaction visits the rows before the last one")
	}
}

// TestACompactionTakesAnInterval compacts the revisions of many writes, which were made at once.
func TestACompactionTakesAnInterval(t *testing.T) {
	const interval, steps = 500 * time.Millisecond, 4
	dir := t.TempDir()
	closeStore(t, openAt(t, Config{DataDir: dir}))
	db, err := sql.Open("sqlite3", filepath.Join(dir, "db", "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	const rows = `WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
		INSERT INTO kine(name, created, deleted, create_revision, prev_revision, lease) SELECT printf('/i/%04d', n), 1, 0, 0, 0, 0 FROM numbers`
	if _, err := db.Exec(rows, steps*compactionStep); err != nil {
		t.Fatal(err)
	}
	openAt(t, Config{DataDir: dir, Compaction: Compaction{Interval: interval, Retain: 1}})
	compacted := func() (revision int64) {
		t.Helper()
		if err := db.QueryRow("SELECT MAX(prev_revision) FROM kine WHERE name = 'compact_rev_key'").Scan(&revision); err != nil {
			t.Fatal(err)
		}
		return revision
	}
	eventually(t, "the compaction begins", func() bool { return compacted() >= compactionStep })
	began := time.Now()
	eventually(t, "the compaction ends", func() bool { return compacted() >= steps*compactionStep })
	if took := time.Since(began); took < interval/2 {
		t.Errorf("the compaction took %s of an interval of %s", took, interval)
	}
}
