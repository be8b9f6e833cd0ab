package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/k3s-io/kine/pkg/server"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// busy is a backend and its table, in which another client writes a key once, after the content of a list was read and before its revision
// or count is read.
type busy struct {
	server.Backend
	lister
	write func()
}

func (b busy) list(ctx context.Context, key, end string, limit, revision int64, keysOnly bool) (int64, []*server.KeyValue, error) {
	at, kvs, err := b.lister.list(ctx, key, end, limit, revision, keysOnly)
	if len(kvs) == 0 {
		b.write()
	}
	return at, kvs, err
}

func (b busy) Count(ctx context.Context, key, end string, revision int64) (int64, int64, error) {
	b.write()
	return b.Backend.Count(ctx, key, end, revision)
}

// TestListsHideNoWrite lists while another client writes, and watches from the revision of the list on. The key must be in one of the two.
func TestListsHideNoWrite(t *testing.T) {
	const prefix, between, last = "/registry/hidden/", "/registry/hidden/a", "/registry/hidden/z"
	for name, there := range map[string]int{"an empty list": 0, "a page of a longer list": 3} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			for i := range there {
				put(t, s, fmt.Sprintf("%sb%d", prefix, i), "there", 0)
			}
			write := sync.OnceFunc(func() { put(t, s, between, "written", 0) })
			another := busy{s.watches.backend.(lists).Backend, s.table, write}
			client := newClient(t.Context(), newLists(another, another), s.watches)
			list, err := client.KV.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithLimit(2))
			if err != nil {
				t.Fatal(err)
			}
			var seen []string
			for _, kv := range list.Kvs {
				seen = append(seen, string(kv.Key))
			}
			put(t, s, last, "last", 0)
			log := client.Watch(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithRev(list.Header.Revision+1))
			for !slices.Contains(seen, last) {
				r, ok := next(t, log)
				if !ok {
					t.Fatal("the watch ended")
				}
				for _, e := range r.Events {
					seen = append(seen, string(e.Kv.Key))
				}
			}
			if !slices.Contains(seen, between) {
				t.Errorf("%s is neither in the list nor in the watch from revision %d on: %v", between, list.Header.Revision, seen)
			}
		})
	}
}

// TestListsArePagedInLinearTime reads the database's plan for a page, because a time would be a matter of the machine.
func TestListsArePagedInLinearTime(t *testing.T) {
	s := openStore(t)
	for _, revision := range []int64{0, 7} {
		arguments := []any{"/registry/", "/registry0"}
		if revision != 0 {
			arguments = append(arguments, revision)
		}
		rows, err := s.table.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+listQuery(500, revision, false), arguments...)
		if err != nil {
			t.Fatal(err)
		}
		var steps []string
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			steps = append(steps, detail)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
		plan := strings.Join(steps, "\n")
		for _, want := range []string{"SEARCH k USING INDEX kine_name", "(name>? AND name<?)", "SEARCH x USING COVERING INDEX kine_name"} {
			if !strings.Contains(plan, want) {
				t.Errorf("revision %d: the plan lacks %q:\n%s", revision, want, plan)
			}
		}
		if strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "SCAN k") {
			t.Errorf("revision %d: the database reads the keys behind the page, too:\n%s", revision, plan)
		}
	}
}

// counting is a backend that notes how many lists it counted.
type counting struct {
	server.Backend
	counts *int
}

func (c counting) Count(ctx context.Context, key, end string, revision int64) (int64, int64, error) {
	*c.counts++
	return c.Backend.Count(ctx, key, end, revision)
}

// TestListsSayWhatRemains lists in pages, with updated and deleted keys between the others, at the first page's revision.
func TestListsSayWhatRemains(t *testing.T) {
	const prefix = "/registry/paged/"
	s := openStore(t)
	var want []string
	for i := range 50 {
		key := fmt.Sprintf("%s%03d", prefix, i)
		revision := put(t, s, key, "first", 0)
		switch i % 5 {
		case 1:
			put(t, s, key, "second", revision)
		case 2:
			if _, err := s.client.KV.Txn(t.Context()).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).Then(clientv3.OpDelete(key)).Else(clientv3.OpGet(key)).Commit(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want = append(want, key)
	}
	counts := 0
	client := newClient(t.Context(), newLists(counting{s.watches.backend.(lists).Backend, &counts}, s.table), s.watches)
	for _, limit := range []int{1, 3, 7, 39, 40, 100} {
		counts = 0
		var got []string
		var revision int64
		for from := prefix; ; {
			list, err := client.KV.Get(t.Context(), from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)), clientv3.WithLimit(int64(limit)), clientv3.WithRev(revision))
			if err != nil {
				t.Fatal(err)
			}
			if revision == 0 {
				revision = list.Header.Revision
				put(t, s, fmt.Sprintf("%snew-%d", prefix, limit), "later", 0)
			}
			if list.More && list.Header.Revision != revision {
				t.Errorf("limit %d: a page of revision %d in a list of revision %d", limit, list.Header.Revision, revision)
			}
			if list.More && int(list.Count) != len(want)-len(got) {
				t.Errorf("limit %d: %d keys remain after %d, want %d", limit, list.Count, len(got), len(want)-len(got))
			}
			for _, kv := range list.Kvs {
				got = append(got, string(kv.Key))
				if i, _ := strconv.Atoi(strings.TrimPrefix(string(kv.Key), prefix)); i%5 == 1 && (string(kv.Value) != "second" || kv.CreateRevision >= kv.ModRevision) {
					t.Errorf("limit %d: %s is %q, created at %d, written at %d", limit, kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision)
				}
			}
			if !list.More {
				break
			}
			from = string(list.Kvs[len(list.Kvs)-1].Key) + "\x00"
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: got %v", limit, got)
		}
		if counts > 1 {
			t.Errorf("limit %d: %d pages were counted", limit, counts)
		}
		want = append(want, fmt.Sprintf("%snew-%d", prefix, limit))
		slices.Sort(want)
	}
}
