package storage

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/k3s-io/kine/pkg/drivers/generic"
)

// TestAStartFindsTheKeysThatExpire starts a server whose last key expires, after more keys than kine lists at once.
func TestAStartFindsTheKeysThatExpire(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, Config{DataDir: dir})
	put(t, s, "/i/0", "", put(t, s, "/i/0", "", 0))
	closeStore(t, s)
	db, err := sql.Open("sqlite3", filepath.Join(dir, "db", "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	const rows = `WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2500)
		INSERT INTO kine(name, created, deleted, create_revision, prev_revision, lease, value)
		SELECT printf('/i/%04d', n), 1, 0, 0, 0, CASE WHEN n IN (1, 2500) THEN 1 ELSE 0 END, '' FROM numbers`
	if _, err := db.Exec(rows); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	s = openAt(t, Config{DataDir: dir})
	eventually(t, "the keys expire, and the others stay", func() bool {
		_, kvs, err := s.backend.List(t.Context(), "/i/", "/i0", 0, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		return len(kvs) == 1+2500-2 && kvs[0].Key == "/i/0" && kvs[1].Key == "/i/0002" && kvs[len(kvs)-1].Key == "/i/2499"
	})
}

// TestAStartListsKeysInOrder explains the statement with which kine lists all keys after a start. If SQLite first made all
// rows and then sorted them, each page would take as long as all keys.
func TestAStartListsKeysInOrder(t *testing.T) {
	s := openStore(t)
	statement := s.table.write.(*generic.Generic).GetRevisionAfterSQL.Query
	rows, err := s.table.db.Query("EXPLAIN QUERY PLAN "+statement+" LIMIT 1000", "/", "0", 1, false)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	if plan := strings.Join(steps, "\n"); rows.Err() != nil || len(steps) == 0 || strings.Contains(plan, "MATERIALIZE") || strings.Contains(plan, "TEMP B-TREE") {
		t.Errorf("%v, the plan:\n%s", rows.Err(), plan)
	}
}
