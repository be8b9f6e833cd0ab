package storage

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hykube/hykube/internal/ledger"
)

// refusing makes the ledger's database refuse all new rows. accept ends that, together with other statements.
func refusing(t *testing.T, dir string) (accept func(also ...func(*sql.Tx) error)) {
	t.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(dir, "db", "ledger.db")+"?_busy_timeout=30000&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec("CREATE TRIGGER refuse BEFORE INSERT ON hykube_ledger BEGIN SELECT RAISE(ABORT, 'the disk fell out'); END"); err != nil {
		t.Fatal(err)
	}
	return func(also ...func(*sql.Tx) error) {
		t.Helper()
		tx, err := db.Begin()
		if err == nil {
			_, err = tx.Exec("DROP TRIGGER refuse")
		}
		for _, f := range also {
			err = errors.Join(err, f(tx))
		}
		if err = errors.Join(err, tx.Commit()); err != nil {
			t.Fatal(err)
		}
	}
}

// spooledFiles returns the paths of the files in the spool.
func spooledFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, spoolDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

type persisted struct {
	revisions []int64
	err       error
}

// persist writes a key by Persist in the background, and waits until the write is in the spool.
func persist(t *testing.T, s *Store, dir string) <-chan persisted {
	t.Helper()
	done := make(chan persisted, 1)
	go func() {
		revisions, err := s.KV().Persist(context.Background(), []ledger.Write{{Key: "answer", Value: []byte("net-17")}}, true)
		done <- persisted{revisions, err}
	}()
	eventually(t, "the answer is in the spool", func() bool { return len(spooledFiles(t, dir)) == 1 })
	return done
}

// checkAnswer checks that the ledger has the answer, once, and that the spool is empty.
func checkAnswer(t *testing.T, s *Store, dir string, revision int64) {
	t.Helper()
	value, now, err := s.KV().Get(t.Context(), "answer")
	if err != nil || string(value) != "net-17" || revision != 0 && now != revision {
		t.Errorf("the ledger has %q at %d, %v; want net-17 at %d", value, now, err, revision)
	}
	if files := spooledFiles(t, dir); len(files) > 0 {
		t.Errorf("the spool has %v", files)
	}
}

func TestPersistTriesAgain(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, Config{DataDir: dir})
	accept := refusing(t, dir)
	done := persist(t, s, dir)
	accept()
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	checkAnswer(t, s, dir, got.revisions[0])
}

// TestPersistKnowsItsCommit has a transaction that was committed although its answer was lost.
func TestPersistKnowsItsCommit(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, Config{DataDir: dir})
	accept := refusing(t, dir)
	done := persist(t, s, dir)
	data, err := os.ReadFile(spooledFiles(t, dir)[0])
	var sealed []ledger.Write
	if err = errors.Join(err, json.Unmarshal(data, &sealed)); err != nil {
		t.Fatal(err)
	}
	var revision int64
	accept(func(tx *sql.Tx) error {
		err := tx.QueryRow("UPDATE hykube_ledger_state SET revision = revision + 1 RETURNING revision").Scan(&revision)
		_, failed := tx.Exec("INSERT INTO hykube_ledger (name, value, revision) VALUES (?, ?, ?)", []byte("answer"), sealed[0].Value, revision)
		return errors.Join(err, failed)
	})
	got := <-done
	if got.err != nil || got.revisions[0] != revision {
		t.Errorf("revisions %v, %v; want %d", got.revisions, got.err, revision)
	}
	checkAnswer(t, s, dir, revision)
}

func TestTheNextStartPersistsTheSpool(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, Config{DataDir: dir})
	accept := refusing(t, dir)
	done := persist(t, s, dir)
	closeStore(t, s)
	if got := <-done; got.err == nil {
		t.Error("a closed store takes the answer")
	}
	accept()
	checkAnswer(t, openAt(t, Config{DataDir: dir}), dir, 0)
}

// TestTheSpoolOverwritesNothing has another record of the same object, which was written after the server had stopped.
func TestTheSpoolOverwritesNothing(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, Config{DataDir: dir})
	accept := refusing(t, dir)
	done := persist(t, s, dir)
	closeStore(t, s)
	<-done
	accept()
	spool := spooledFiles(t, dir)[0]
	aside := filepath.Join(t.TempDir(), "aside")
	if err := os.Rename(spool, aside); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, Config{DataDir: dir})
	if _, err := s.KV().Put(t.Context(), "answer", []byte("resolved"), 0); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	if err := os.Rename(aside, spool); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, Config{DataDir: dir})
	if value, _, err := s.KV().Get(t.Context(), "answer"); err != nil || string(value) != "resolved" {
		t.Errorf("the ledger has %q, %v", value, err)
	}
	if files := spooledFiles(t, dir); len(files) != 1 || files[0] != spool+".refused" {
		t.Errorf("the spool has %v; want the refused answer", files)
	}
}
