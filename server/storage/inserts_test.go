package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/k3s-io/kine/pkg/server"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// expectation is an insert of a test, and its result: the number of revisions after the first one, or an error.
type expectation struct {
	insert
	want    int64
	wantErr error
}

// commitGroup commits the inserts of steps in one transaction. replaces of an insert counts from the returned revision.
func commitGroup(t *testing.T, d *inserts, steps []expectation) (first int64) {
	t.Helper()
	first, err := d.CurrentRevision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	group := make([]*insert, len(steps))
	for i := range steps {
		group[i] = &steps[i].insert
		group[i].done = make(chan struct{})
		if !group[i].create {
			group[i].replaces += first
		}
	}
	d.commit(group)
	for i := range steps {
		s := &steps[i]
		<-s.done
		if want := s.want + first; s.wantErr == nil && (s.err != nil || s.revision != want) || !errors.Is(s.err, s.wantErr) {
			t.Errorf("insert %d of %s: revision %d, error %v; want revision %d, error %v", i, s.key, s.revision, s.err, want, s.wantErr)
		}
	}
	return first
}

// TestAGroupKeepsKinesRules has inserts of one key in one transaction.
func TestAGroupKeepsKinesRules(t *testing.T) {
	s := openQuiet(t)
	d := s.backend.(pausing).Backend.(lists).Backend.(*sqliteBackend).inserts
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	watch := s.client.Watch(ctx, "/a", clientv3.WithPrefix(), clientv3.WithPrevKV())
	value := func(i int) []byte { return fmt.Appendf(nil, "value %d", i) }
	first := commitGroup(t, d, []expectation{
		{insert: insert{key: "/a", create: true, value: value(1)}, want: 1},
		{insert: insert{key: "/a", create: true, value: value(9)}, wantErr: server.ErrKeyExists},
		{insert: insert{key: "/a", replaces: 1, value: value(2)}, want: 2},
		{insert: insert{key: "/a", replaces: 1, value: value(9)}, wantErr: server.ErrKeyExists},
		{insert: insert{key: "/ab", create: true, value: value(3)}, want: 3},
		{insert: insert{key: "/ab", replaces: 2, value: value(9)}, wantErr: server.ErrKeyExists},
		{insert: insert{key: "/none", replaces: 9, value: value(9)}, wantErr: server.ErrKeyExists},
		{insert: insert{key: "/a", delete: true, replaces: 2}, want: 4},
		{insert: insert{key: "/a", delete: true, replaces: 2}, wantErr: server.ErrKeyExists},
		{insert: insert{key: "/a", replaces: 4, value: value(9)}, wantErr: server.ErrKeyExists},
		{insert: insert{key: "/a", create: true, value: value(5)}, want: 5},
		{insert: insert{key: "/a", replaces: 5, value: value(6)}, want: 6},
	})
	commitGroup(t, d, []expectation{{insert: insert{key: "/a", replaces: 0, value: value(7)}, want: 1}})
	var got []string
	for len(got) < 7 {
		r, ok := <-watch
		if !ok || r.Err() != nil {
			t.Fatalf("the watch ended after %v: %v", got, r.Err())
		}
		for _, e := range r.Events {
			old := ""
			if e.PrevKv != nil {
				old = " replaces " + string(e.PrevKv.Value)
			}
			got = append(got, fmt.Sprintf("%s %s=%s at %d, created at %d%s", e.Type, e.Kv.Key, e.Kv.Value, e.Kv.ModRevision-first, e.Kv.CreateRevision-first, old))
		}
	}
	want := []string{
		"PUT /a=value 1 at 1, created at 1",
		"PUT /a=value 2 at 2, created at 1 replaces value 1",
		"PUT /ab=value 3 at 3, created at 3",
		"DELETE /a= at 4, created at 0 replaces value 2",
		"PUT /a=value 5 at 5, created at 5",
		"PUT /a=value 6 at 6, created at 5 replaces value 5",
		"PUT /a=value 7 at 7, created at 5 replaces value 6",
	}
	for i := range got { // kine does not keep the create's revision of a deleted key
		if strings.HasPrefix(got[i], "DELETE") {
			got[i] = strings.Replace(got[i], fmt.Sprintf("created at %d", -first), "created at 0", 1)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestABadInsertFailsAlone has a group with a row that the database refuses.
func TestABadInsertFailsAlone(t *testing.T) {
	s := openQuiet(t)
	d := s.backend.(pausing).Backend.(lists).Backend.(*sqliteBackend).inserts
	if _, err := d.DB.ExecContext(t.Context(), "CREATE TRIGGER refuse BEFORE INSERT ON kine WHEN NEW.name = '/bad' BEGIN SELECT RAISE(ROLLBACK, 'refused'); END"); err != nil {
		t.Fatal(err)
	}
	group := make([]*insert, 4)
	for i, key := range []string{"/a", "/b", "/bad", "/c"} {
		group[i] = &insert{key: key, create: true, done: make(chan struct{})}
	}
	d.commit(group)
	for _, i := range group {
		<-i.done
		if bad := i.key == "/bad"; bad != (i.err != nil) {
			t.Errorf("insert of %s: %v", i.key, i.err)
		}
		_, revision, err := s.table.get(t.Context(), i.key)
		if err != nil || revision != i.revision {
			t.Errorf("%s has revision %d, want %d: %v", i.key, revision, i.revision, err)
		}
	}
}

// TestACancelledInsertIsNotWritten cancels callers whose inserts wait behind another one. A caller that gives up leaves no row.
func TestACancelledInsertIsNotWritten(t *testing.T) {
	s := openQuiet(t)
	backend := s.backend.(pausing).Backend.(lists).Backend.(*sqliteBackend)
	ctx, cancel := context.WithCancel(t.Context())
	create := func(ctx context.Context, key string, results chan<- error) {
		_, err := backend.Create(ctx, key, []byte("x"), 0)
		results <- err
	}
	busy, waiting := make(chan error, 1), make(chan error, 10)
	func() {
		s.table.write.Lock()
		defer s.table.write.Unlock()
		go create(t.Context(), "/cancelled/busy", busy)
		eventually(t, "the writer has the first row", func() bool {
			s.latest.mu.Lock()
			defer s.latest.mu.Unlock()
			return len(s.latest.writing) == 1 && backend.inserts.queue.Len() == 0
		})
		for i := range cap(waiting) {
			go create(ctx, fmt.Sprintf("/cancelled/%d", i), waiting)
		}
		eventually(t, "the other inserts wait", func() bool { return backend.inserts.queue.Len() == cap(waiting) })
		cancel()
		for range cap(waiting) {
			if err := <-waiting; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	}()
	if err := <-busy; err != nil {
		t.Error(err)
	}
	put(t, s, "/cancelled/last", "x", 0) // behind the cancelled ones in the queue
	_, kvs, err := s.backend.List(t.Context(), "/cancelled/", "/cancelled0", 0, 0, true)
	if err != nil || len(kvs) != 2 {
		t.Errorf("%d keys exist, want the one that the writer had and the last one: %v", len(kvs), err)
	}
}

// TestOneOfTwoDeletes deletes a key twice at once. The second one finds no key.
func TestOneOfTwoDeletes(t *testing.T) {
	s := openQuiet(t)
	backend := s.backend.(pausing).Backend.(lists).Backend.(*sqliteBackend)
	at := put(t, s, "/a", "x", 0)
	type result struct {
		current *server.KeyValue
		deleted bool
		err     error
	}
	for i, revision := range []int64{at, 0} {
		results := make(chan result, 2)
		func() {
			s.table.write.Lock()
			defer s.table.write.Unlock()
			go backend.Create(t.Context(), fmt.Sprintf("/busy/%d", i), nil, 0) //nolint:errcheck // it keeps the writer busy
			eventually(t, "the writer has another row", func() bool {
				s.latest.mu.Lock()
				defer s.latest.mu.Unlock()
				return len(s.latest.writing) == 1 && backend.inserts.queue.Len() == 0
			})
			for range cap(results) {
				go func() {
					_, current, deleted, err := backend.Delete(t.Context(), "/a", revision)
					results <- result{current, deleted, err}
				}()
			}
			eventually(t, "both deletes wait", func() bool { return backend.inserts.queue.Len() == 2 })
		}()
		deleted := 0
		for range cap(results) {
			r := <-results
			switch {
			case r.err != nil:
				t.Error(r.err)
			case r.deleted:
				deleted++
			case r.current != nil:
				t.Errorf("the second delete finds %+v", r.current)
			}
		}
		if deleted != 1 {
			t.Errorf("%d of two deletes were successful", deleted)
		}
		put(t, s, "/a", "y", 0)
	}
}

// TestARefusedDeleteFails has a database that refuses writes. A delete must not look like a conflict, because its caller would try
// again at once.
func TestARefusedDeleteFails(t *testing.T) {
	s := openQuiet(t)
	backend := s.backend.(pausing).Backend.(lists).Backend.(*sqliteBackend)
	at := put(t, s, "/a", "x", 0)
	if _, err := s.table.db.ExecContext(t.Context(), "CREATE TRIGGER refuse BEFORE INSERT ON kine BEGIN SELECT RAISE(ABORT, 'refused'); END"); err != nil {
		t.Fatal(err)
	}
	if _, _, deleted, err := backend.Delete(t.Context(), "/a", at); err == nil || deleted {
		t.Errorf("deleted %t, error %v; want the error of the database", deleted, err)
	}
}
