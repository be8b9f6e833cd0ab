package records

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "github.com/mattn/go-sqlite3" // the driver of SQLite

	"github.com/hykube/hykube/internal/ledger"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("HYKUBE_TEST_WRITE"); dir != "" {
		writeUntilKilled(dir)
	}
	os.Exit(m.Run())
}

func TestBatch(t *testing.T) {
	onEach(t, func(t *testing.T, open opener) {
		s := open(t)
		one, two := put(t, s, "a", "1", 0), put(t, s, "b", "2", 0)
		if two <= one {
			t.Errorf("revision %d after %d", two, one)
		}
		type writes = []ledger.Write
		for reason, test := range map[string]writes{
			"a key that exists":          {{Key: "c"}, {Key: "a", Value: []byte("x")}},
			"an old revision":            {{Key: "c"}, {Key: "a", Value: []byte("x"), Revision: two}},
			"a key that does not exist":  {{Key: "c"}, {Key: "d", Value: []byte("x"), Revision: one}},
			"a delete of an older one":   {{Key: "c"}, {Op: ledger.OpDelete, Key: "a", Revision: two}},
			"a delete of a new key":      {{Key: "c"}, {Op: ledger.OpDelete, Key: "a"}},
			"a check of an old revision": {{Key: "c"}, {Op: ledger.OpCheck, Key: "a", Revision: two}},
			"a check of a new key":       {{Key: "c"}, {Op: ledger.OpCheck, Key: "a"}},
		} {
			if _, err := s.Batch(t.Context(), "", test); !errors.Is(err, ledger.ErrConflict) {
				t.Errorf("%s: %v, want a conflict", reason, err)
			}
		}
		if diff := cmp.Diff([]string{"a=1", "b=2"}, content(t, s)); diff != "" {
			t.Errorf("a batch with a conflict was written (-want +got):\n%s", diff)
		}
		revisions, err := s.Batch(t.Context(), "", writes{
			{Key: "a", Value: []byte("3"), Revision: one}, {Op: ledger.OpDelete, Key: "b", Revision: two}, {Key: "c", Value: nil},
			{Op: ledger.OpDelete, Key: "never"}, {Op: ledger.OpDelete, Key: "gone", Revision: one}, {Op: ledger.OpCheck, Key: "none"},
		})
		if err != nil || revisions[0] <= two || revisions[2] <= revisions[0] || revisions[1] != 0 {
			t.Errorf("revisions %v, %v", revisions, err)
		}
		if diff := cmp.Diff([]string{"a=3", "c="}, content(t, s)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if again := put(t, s, "b", "4", 0); again <= revisions[2] {
			t.Errorf("a key that was deleted has the revision %d again", again)
		}
	})
}

func TestListAndDeletePrefix(t *testing.T) {
	onEach(t, func(t *testing.T, open opener) {
		s := open(t)
		const n = prefixPage + 20
		var writes []ledger.Write
		for i := range n {
			writes = append(writes, ledger.Write{Key: fmt.Sprintf("p/%04d", i), Value: []byte{byte(i)}})
		}
		for _, key := range []string{"o", "p", "p0", "q", "p/\xff", "\xff"} {
			writes = append(writes, ledger.Write{Key: key})
		}
		if _, err := s.Batch(t.Context(), "", writes); err != nil {
			t.Fatal(err)
		}
		var got []string
		for after := ""; ; {
			page, err := s.List(t.Context(), "p/", after, 100)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, e := range page {
				after, got = e.Key, append(got, e.Key)
			}
		}
		if len(got) != n+1 || got[0] != "p/0000" || !slices.IsSorted(got) {
			t.Errorf("listed %d keys, from %q", len(got), got[0])
		}
		if err := s.DeletePrefix(t.Context(), "", "p/"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"o=", "p=", "p0=", "q=", "\xff="}, content(t, s)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		changed, _, err := s.Since(t.Context(), "p/", 1, 10_000)
		if err != nil || len(changed) != n+1 || !changed[0].Deleted {
			t.Errorf("%d deletions are known, %v", len(changed), err)
		}
	})
}

func TestSince(t *testing.T) {
	onEach(t, func(t *testing.T, open opener) {
		s := open(t)
		one := put(t, s, "i/a", "1", 0)
		two := put(t, s, "i/b", "2", 0)
		put(t, s, "j/x", "3", 0)
		remove(t, s, "i/a", one)
		put(t, s, "i/b", "4", two)
		again := put(t, s, "i/c", "5", 0)
		remove(t, s, "i/c", again)
		put(t, s, "i/c", "6", 0)
		got, _, current := changes(t, s, "i/", one, 100)
		if diff := cmp.Diff([]string{"-i/a", "+i/b=4", "-i/c", "+i/c=6"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if revision, err := s.Revision(t.Context()); err != nil || current != revision {
			t.Errorf("the current revision is %d, want %d: %v", current, revision, err)
		}
		if _, now, err := s.Since(t.Context(), "i/", 0, 100); !errors.Is(err, ledger.ErrExpired) || now != current {
			t.Errorf("since nothing: %d, %v", now, err)
		}
		page, _, next := changes(t, s, "i/", one, 2)
		rest, _, _ := changes(t, s, "i/", next, 2)
		if diff := cmp.Diff(got, slices.Concat(page, rest)); diff != "" {
			t.Errorf("in pages (-want +got):\n%s", diff)
		}
		if got, _, _ := changes(t, s, "i/", current, 100); len(got) != 0 {
			t.Errorf("after the current revision: %v", got)
		}
		if err := s.forget(t.Context(), time.Now().Add(-time.Minute)); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := changes(t, s, "i/", one, 100); len(got) != 4 {
			t.Errorf("new deletions were forgotten: %v", got)
		}
		if err := s.forget(t.Context(), time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, now, err := s.Since(t.Context(), "i/", again, 100); !errors.Is(err, ledger.ErrExpired) || now != current {
			t.Errorf("since a forgotten revision: %d, %v", now, err)
		}
		put(t, s, "i/d", "7", 0)
		if got, _, _ := changes(t, s, "i/", current, 100); !slices.Equal(got, []string{"+i/d=7"}) {
			t.Errorf("after the current revision: %v", got)
		}
	})
}

// TestATailSeesEveryWrite reads with Since while several servers write, and compares the copy with the store.
func TestATailSeesEveryWrite(t *testing.T) {
	onEach(t, func(t *testing.T, open opener) {
		s := open(t)
		var writers sync.WaitGroup
		for i := range 2 {
			server := open(t)
			for j := range 4 {
				writers.Go(func() { churn(t, server, fmt.Sprintf("k/%d-%d", i, j)) })
			}
		}
		ended := make(chan struct{})
		go func() { writers.Wait(); close(ended) }()
		got := map[string]string{}
		for at, last := int64(1), false; ; {
			select {
			case <-ended:
				last = true
			default:
			}
			changed, current, err := s.Since(t.Context(), "k/", at, 7)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range changed {
				if c.Deleted {
					delete(got, c.Key)
				} else {
					got[c.Key] = string(c.Value)
				}
			}
			if at = current; last && len(changed) < 7 {
				break
			}
		}
		want := map[string]string{}
		for _, e := range content(t, s) {
			key, value, _ := strings.Cut(e, "=")
			want[key] = value
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the copy differs (-store +copy):\n%s", diff)
		}
	})
}

// churn creates, changes and deletes a key, and leaves it half of the time.
func churn(t *testing.T, s *Store, key string) {
	revision := int64(0)
	for i := range 41 {
		w := ledger.Write{Key: key, Value: []byte(strconv.Itoa(i)), Revision: revision}
		if i%3 == 2 {
			w.Op = ledger.OpDelete
		}
		out, err := s.Batch(t.Context(), key, []ledger.Write{w})
		if err != nil {
			t.Error(err)
			return
		}
		revision = out[0]
	}
}

// TestConcurrentWritersShareACommit has 64 writers while a commit is slow, as it is on a disk.
func TestConcurrentWritersShareACommit(t *testing.T) {
	var groups atomic.Int32
	s := inSQLite(t.TempDir())(t, func(c *Config) {
		c.Committing = func() {
			groups.Add(1)
			time.Sleep(5 * time.Millisecond) // what an fsync takes on a disk
		}
	})
	const writers, each = 64, 10
	conflict := put(t, s, "shared", "", 0)
	groups.Store(0)
	var conflicts atomic.Int32
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			revision := int64(0)
			for j := range each {
				out, err := s.Batch(t.Context(), strconv.Itoa(i%5), []ledger.Write{{Key: fmt.Sprintf("k/%d", i), Value: []byte{byte(j)}, Revision: revision}})
				if err != nil {
					t.Error(err)
					return
				}
				revision = out[0]
			}
			// One writer wins. The conflicts of the others fail no other write.
			_, err := s.Batch(t.Context(), "", []ledger.Write{{Key: "shared", Value: []byte{byte(i)}, Revision: conflict}})
			if errors.Is(err, ledger.ErrConflict) {
				conflicts.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := conflicts.Load(); got != writers-1 {
		t.Errorf("%d conflicts, want %d", got, writers-1)
	}
	// Each writer waits for its own commit, so there are at least as many groups as writes of one writer.
	if got := groups.Load(); got < each || got > 4*each {
		t.Errorf("%d writes of %d writers took %d commits", writers*each, writers, got)
	}
	t.Logf("%d writes took %d commits", writers*(each+1), groups.Load())
}

// TestABadRequestFailsAlone has a group with a write that the database refuses.
func TestABadRequestFailsAlone(t *testing.T) {
	s := inSQLite(t.TempDir())(t)
	if _, err := s.write.ExecContext(t.Context(), "CREATE TRIGGER refuse BEFORE INSERT ON hykube_ledger WHEN NEW.name = CAST('bad' AS BLOB) BEGIN SELECT RAISE(ABORT, 'refused'); END"); err != nil {
		t.Fatal(err)
	}
	group := make([]*request, 3)
	for i, key := range []string{"a", "bad", "b"} {
		group[i] = &request{ctx: t.Context(), writes: []ledger.Write{{Key: key}}, done: make(chan struct{})}
	}
	s.commit(group)
	for i, wrong := range []bool{false, true, false} {
		<-group[i].done
		if err := group[i].err; err != nil != wrong {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if diff := cmp.Diff([]string{"a=", "b="}, content(t, s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// writeUntilKilled writes keys and prints each one after the store has acknowledged it.
func writeUntilKilled(dir string) {
	cfg, err := sqliteIn(dir)
	if err != nil {
		panic(err)
	}
	s, err := Open(context.Background(), cfg)
	if err != nil {
		panic(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := 0; ; j++ {
				key := fmt.Sprintf("%d/%06d", i, j)
				if _, err := s.Batch(context.Background(), "", []ledger.Write{{Key: key}, {Key: key + "/second"}}); err != nil {
					panic(err)
				}
				if _, err := fmt.Println(key); err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestAKilledProcessLosesNoAcknowledgedWrite kills a process while it writes.
func TestAKilledProcessLosesNoAcknowledgedWrite(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		work := filepath.Join(dir, strconv.Itoa(round))
		if err := os.Mkdir(work, 0o700); err != nil {
			t.Fatal(err)
		}
		out := new(acknowledged)
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "HYKUBE_TEST_WRITE="+work)
		cmd.Stdout, cmd.Stderr = out, os.Stderr
		out.enough = func() { _ = cmd.Process.Signal(syscall.SIGKILL) }
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("the process ended with %v", err)
		}
		stored := map[string]bool{}
		for _, e := range content(t, inSQLite(work)(t)) {
			stored[strings.TrimSuffix(e, "=")] = true
		}
		lines := strings.Split(out.text.String(), "\n")
		for _, key := range lines[:len(lines)-1] {
			if !stored[key] {
				t.Errorf("the acknowledged key %s is lost", key)
			}
		}
		for key := range maps.Keys(stored) {
			if !strings.HasSuffix(key, "/second") && !stored[key+"/second"] {
				t.Errorf("half of the batch of %s is stored", key)
			}
		}
	}
}

// acknowledged collects the output of a process, until it is enough.
type acknowledged struct {
	text   bytes.Buffer
	enough func()
}

func (a *acknowledged) Write(p []byte) (int, error) {
	if a.text.Len() > 4000 {
		a.enough()
	}
	return a.text.Write(p)
}

func TestTablesKeepTheirIdentity(t *testing.T) {
	onEach(t, func(t *testing.T, open opener) {
		s := open(t)
		if identity, err := s.Identity(t.Context()); identity != "" || err != nil {
			t.Errorf("new tables have the identity %q, %v", identity, err)
		}
		var first string
		for range 2 {
			if err := s.Identify(t.Context()); err != nil {
				t.Fatal(err)
			}
			identity, err := s.Identity(t.Context())
			if identity == "" || err != nil || first != "" && identity != first {
				t.Errorf("the identity is %q after %q, %v", identity, first, err)
			}
			first = identity
		}
		if revision := put(t, s, "new", "", 0); revision != FirstRevision+1 {
			t.Errorf("the first write has revision %d", revision)
		}
	})
}

// TestReplaceKeepsWhatChangedMeanwhile replaces a row that another writer has changed.
func TestReplaceKeepsWhatChangedMeanwhile(t *testing.T) {
	onEach(t, func(t *testing.T, open opener) {
		s := open(t)
		for _, key := range []string{"a", "b", "c"} {
			put(t, s, key, "old", 0)
		}
		page, err := s.Page(t.Context(), 0, 10)
		if err != nil || len(page) != 3 {
			t.Fatal(page, err)
		}
		put(t, s, "b", "new", page[1].Revision)
		remove(t, s, "c", page[2].Revision)
		for i := range page {
			page[i].Value = []byte("sealed")
		}
		if err := s.Replace(t.Context(), page); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a=sealed", "b=new"}, content(t, s)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if _, revision, err := s.Get(t.Context(), "a"); err != nil || revision != page[0].Revision {
			t.Errorf("the revision changed to %d: %v", revision, err)
		}
	})
}

// TestAPageBeginsAtItsFirstRow reads the program that SQLite makes of a list. It must seek the first row of the page.
func TestAPageBeginsAtItsFirstRow(t *testing.T) {
	s := inSQLite(t.TempDir())(t)
	for _, key := range []string{"p/1", "p/2", "p/3", "q/1"} {
		put(t, s, key, "", 0)
	}
	for after, want := range map[string]string{"": "SeekGE", "o": "SeekGE", "p/": "SeekGT", "p/1": "SeekGT"} {
		query, args := listQuery("p/", after)
		program, err := s.read.QueryContext(t.Context(), "EXPLAIN "+query, append(args, 1)...)
		if err != nil {
			t.Fatal(err)
		}
		var seeks []string
		for program.Next() {
			var address, p1, p2, p3, p5 int
			var opcode string
			var p4, comment sql.NullString
			if err := program.Scan(&address, &opcode, &p1, &p2, &p3, &p4, &p5, &comment); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(opcode, "Seek") {
				seeks = append(seeks, opcode)
			}
		}
		if err := errors.Join(program.Err(), program.Close()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(seeks, []string{want}) || len(args) != 2 {
			t.Errorf("a page after %q seeks %v with %d bounds, want %s with one lower and one upper bound", after, seeks, len(args), want)
		}
	}
}

// TestACancelledBatchIsNotWritten has a caller that gave up before its turn.
func TestACancelledBatchIsNotWritten(t *testing.T) {
	s := inSQLite(t.TempDir())(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Batch(gone, "", []ledger.Write{{Key: "gone"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Batch(t.Context(), "", []ledger.Write{{Key: "here"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"here="}, content(t, s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
