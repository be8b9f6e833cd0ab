package storage

import (
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
