package storage

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/k3s-io/kine/pkg/server"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/hykube/hykube/tests/harness/database"
)

func TestUnbroken(t *testing.T) {
	for reason, c := range map[string]struct {
		after, proven int64
		revisions     []int64
		want          int
	}{
		"no rows":                              {after: 5, want: 0},
		"rows without a gap":                   {5, 5, []int64{6, 7, 8}, 3},
		"a gap before the first row":           {5, 5, []int64{7, 8}, 0},
		"a gap in between":                     {5, 5, []int64{6, 8, 9}, 1},
		"a gap whose rows do not exist":        {5, 7, []int64{8, 9}, 2},
		"a gap of which one row may exist":     {5, 6, []int64{8, 9}, 0},
		"a proven gap, and one behind it":      {5, 7, []int64{6, 8, 10}, 2},
		"a million rows that do not exist":     {5, 1_000_005, []int64{1_000_006}, 1},
		"a million rows, of which one may be":  {5, 1_000_004, []int64{1_000_006}, 0},
		"a row that the proof began with":      {5, 9, []int64{9}, 1},
		"the proof is older than what is read": {9, 7, []int64{11}, 0},
	} {
		t.Run(reason, func(t *testing.T) {
			var events server.Events
			for _, r := range c.revisions {
				events = append(events, &server.Event{KV: &server.KeyValue{ModRevision: r}})
			}
			if got := unbroken(c.after, c.proven, events); got != c.want {
				t.Errorf("got %d rows, want %d", got, c.want)
			}
		})
	}
}

func TestGapIsProven(t *testing.T) {
	of := func(ids ...string) map[string]string {
		m := map[string]string{}
		for _, id := range ids {
			m[id] = id
		}
		return m
	}
	for reason, c := range map[string]struct {
		seen []map[string]string
		want bool
	}{
		"no transaction runs": {[]map[string]string{of()}, true},
		"one runs":            {[]map[string]string{of("a")}, false},
		"it has ended":        {[]map[string]string{of("a"), of()}, true},
		"it has ended, and a later one has begun":          {[]map[string]string{of("a"), of("b")}, true},
		"one of two has ended":                             {[]map[string]string{of("a", "b"), of("b", "c")}, false},
		"both have ended, one after the other":             {[]map[string]string{of("a", "b"), of("b", "c"), of("c")}, true},
		"a transaction that began later does not matter":   {[]map[string]string{of("a"), of("a", "b"), of("b")}, true},
		"the database shows the same transaction for long": {[]map[string]string{of("a"), of("a"), of("a")}, false},
	} {
		t.Run(reason, func(t *testing.T) {
			var g gap
			var got bool
			for _, running := range c.seen {
				got = g.narrow(running)
			}
			if got != c.want {
				t.Errorf("proven: %t", got)
			}
		})
	}
}

// several is a database with several writers.
type several struct {
	start func(testing.TB) string
	// jump moves the database's next revision up by a number.
	jump func(t *testing.T, db *sql.DB, by int64)
}

var severals = map[string]several{
	"PostgreSQL": {database.PostgreSQL, func(t *testing.T, db *sql.DB, by int64) {
		t.Helper()
		execute(t, db, fmt.Sprintf("SELECT setval('kine_id_seq', (SELECT last_value FROM kine_id_seq) + %d)", by))
	}},
	"MariaDB": {database.MariaDB, func(t *testing.T, db *sql.DB, by int64) {
		t.Helper()
		var last int64
		if err := db.QueryRowContext(t.Context(), "SELECT MAX(id) FROM kine").Scan(&last); err != nil {
			t.Fatal(err)
		}
		execute(t, db, fmt.Sprintf("ALTER TABLE kine AUTO_INCREMENT = %d", last+by))
	}},
}

type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func execute(t *testing.T, db executor, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// onSeverals runs a test with a store on each database with several writers. The store makes no writes of its own.
func onSeverals(t *testing.T, test func(t *testing.T, s *Store, of several)) {
	for name, of := range severals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openAt(t, Config{DataDir: t.TempDir(), Endpoint: of.start(t), CanaryInterval: time.Hour})
			eventually(t, "the canary has made its first write", func() bool {
				s.canary.mu.Lock()
				defer s.canary.mu.Unlock()
				return s.canary.written != 0 && s.canary.seen >= s.canary.written
			})
			test(t, s, of)
		})
	}
}

const gapPrefix = "/gap/"

func insertGap(name string) string {
	return fmt.Sprintf("INSERT INTO kine(name, created, deleted, create_revision, prev_revision, lease, value) VALUES ('%s%s', 1, 0, 0, 0, 0, 'x')", gapPrefix, name)
}

// received returns the names of events until last, which must come in the order of their revisions.
func received(t *testing.T, log clientv3.WatchChan, last string) (names []string) {
	t.Helper()
	for revision := int64(0); !slices.Contains(names, last); {
		r, ok := next(t, log)
		if !ok {
			t.Fatal("the watch ended")
		}
		for _, e := range r.Events {
			if e.Kv.ModRevision <= revision {
				t.Errorf("%s of revision %d after revision %d", e.Kv.Key, e.Kv.ModRevision, revision)
			}
			revision = e.Kv.ModRevision
			names = append(names, string(e.Kv.Key[len(gapPrefix):]))
		}
	}
	return names
}

// TestWatchesPassAGapThatNothingFills moves the sequence, as a restore or a crash of the database does.
func TestWatchesPassAGapThatNothingFills(t *testing.T) {
	onSeverals(t, func(t *testing.T, s *Store, of several) {
		log := s.client.Watch(t.Context(), gapPrefix, clientv3.WithPrefix())
		before := put(t, s, gapPrefix+"before", "x", 0)
		of.jump(t, s.table.db, 1_000_000)
		began := time.Now()
		after := put(t, s, gapPrefix+"after", "x", 0)
		if after < before+1_000_000 {
			t.Fatalf("revision %d follows %d", after, before)
		}
		if got := received(t, log, "after"); !slices.Equal(got, []string{"before", "after"}) {
			t.Error(got)
		}
		t.Logf("the watch was %s late behind a gap of a million", time.Since(began))
		var rows int64
		if err := s.table.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM kine").Scan(&rows); err != nil || rows > 100 {
			t.Errorf("the table has %d rows, %v", rows, err)
		}
	})
}

// held waits until the watches wait for a transaction.
func held(t *testing.T, s *Store) {
	t.Helper()
	eventually(t, "the watches wait for the transaction", func() bool { return len(s.table.tail.currentGap().open) > 0 })
}

// TestWatchesWaitForASlowTransaction holds a revision in a transaction, while later revisions commit.
func TestWatchesWaitForASlowTransaction(t *testing.T) {
	for reason, c := range map[string]struct {
		end  func(t *testing.T, tx *sql.Tx)
		want []string
	}{
		"that commits": {func(t *testing.T, tx *sql.Tx) {
			t.Helper()
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}, []string{"slow", "fast", "last"}},
		"that fails": {func(t *testing.T, tx *sql.Tx) {
			t.Helper()
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}, []string{"fast", "last"}},
	} {
		t.Run(reason, func(t *testing.T) {
			onSeverals(t, func(t *testing.T, s *Store, of several) {
				log := s.client.Watch(t.Context(), gapPrefix, clientv3.WithPrefix())
				tx, err := s.table.db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				of.jump(t, s.table.db, 1_000)
				execute(t, tx, insertGap("slow"))
				fast := put(t, s, gapPrefix+"fast", "x", 0)
				held(t, s)
				if at := s.table.tail.at(); at >= fast {
					t.Errorf("the watches passed revision %d while an earlier one was open", at)
				}
				c.end(t, tx)
				put(t, s, gapPrefix+"last", "x", 0)
				if diff := cmp.Diff(c.want, received(t, log, "last")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestListsAndWatchesShareNoGap lists while a transaction holds an earlier revision, and watches from the list on. The
// row must be in one of the two.
func TestListsAndWatchesShareNoGap(t *testing.T) {
	onSeverals(t, func(t *testing.T, s *Store, _ several) {
		tx, err := s.table.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		execute(t, tx, insertGap("slow"))
		put(t, s, gapPrefix+"fast", "x", 0)
		listed := make(chan *clientv3.GetResponse, 1)
		go func() {
			list, err := s.client.KV.Get(t.Context(), gapPrefix, clientv3.WithPrefix())
			if err != nil {
				t.Error(err)
			}
			listed <- list
		}()
		held(t, s)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		list := <-listed
		if list == nil {
			return
		}
		log := s.client.Watch(t.Context(), gapPrefix, clientv3.WithPrefix(), clientv3.WithRev(list.Header.Revision+1))
		put(t, s, gapPrefix+"last", "x", 0)
		var got []string
		for _, kv := range list.Kvs {
			got = append(got, string(kv.Key[len(gapPrefix):]))
		}
		got = append(got, received(t, log, "last")...)
		if diff := cmp.Diff([]string{"fast", "slow", "last"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestANumberWithoutARowHoldsTheWatches takes a number from the sequence long before the row is written. PostgreSQL
// gives such a transaction no ID, so no snapshot shows it.
func TestANumberWithoutARowHoldsTheWatches(t *testing.T) {
	s := openAt(t, Config{DataDir: t.TempDir(), Endpoint: database.PostgreSQL(t), CanaryInterval: time.Hour})
	log := s.client.Watch(t.Context(), gapPrefix, clientv3.WithPrefix())
	tx, err := s.table.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var number int64
	if err := tx.QueryRowContext(t.Context(), "SELECT nextval('kine_id_seq')").Scan(&number); err != nil {
		t.Fatal(err)
	}
	put(t, s, gapPrefix+"fast", "x", 0)
	held(t, s)
	execute(t, tx, fmt.Sprintf("INSERT INTO kine(id, name, created, deleted, create_revision, prev_revision, lease, value) VALUES (%d, '%sslow', 1, 0, 0, 0, 0, 'x')", number, gapPrefix))
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := received(t, log, "fast"); !slices.Equal(got, []string{"slow", "fast"}) {
		t.Error(got)
	}
}

// TestManyWritersLoseNoEvent writes from several connections, with transactions that fail, and watches.
func TestManyWritersLoseNoEvent(t *testing.T) {
	onSeverals(t, func(t *testing.T, s *Store, _ several) {
		log := s.client.Watch(t.Context(), gapPrefix, clientv3.WithPrefix())
		const writers, each = 6, 60
		done := make(chan error, writers)
		for w := range writers {
			go func() {
				for i := range each {
					tx, err := s.table.db.BeginTx(t.Context(), nil)
					if err == nil {
						_, err = tx.ExecContext(t.Context(), insertGap(fmt.Sprintf("%d-%03d", w, i)))
					}
					if err == nil && i%3 == 0 {
						err = tx.Rollback()
					} else if err == nil {
						err = tx.Commit()
					}
					if err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range writers {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		put(t, s, gapPrefix+"last", "x", 0)
		if got := received(t, log, "last"); len(got) != writers*each*2/3+1 {
			t.Errorf("%d events, want %d", len(got), writers*each*2/3+1)
		}
	})
}
