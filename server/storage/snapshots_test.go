package storage

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/k3s-io/kine/pkg/server"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// busy is a backend in which another client writes a key once, when kine has read the content of a list, and not yet its revision.
type busy struct {
	server.Backend
	write func()
}

func (b busy) List(ctx context.Context, key, end string, limit, revision int64, keysOnly bool) (int64, []*server.KeyValue, error) {
	at, kvs, err := b.Backend.List(ctx, key, end, limit, revision, keysOnly)
	if len(kvs) > 0 || err != nil {
		return at, kvs, err
	}
	b.write()
	at, err = currentRevision(ctx, b.Backend)
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
			client := newClient(t.Context(), snapshots{busy{s.watches.backend.(snapshots).Backend, write}}, s.watches)
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
