package storage

import (
	"context"
	"fmt"
	"testing"

	"github.com/k3s-io/kine/pkg/server"
)

// queues returns watches of as many prefixes, whose goroutines take nothing.
func queues(count int) (*watches, []*watcher) {
	w := &watches{open: map[*watcher]struct{}{}}
	var all []*watcher
	for i := range count {
		one := &watcher{key: prefixOf(i), end: prefixOf(i) + "~", wake: make(chan struct{}, 1)}
		_, one.cancel = context.WithCancel(context.Background())
		w.open[one] = struct{}{}
		all = append(all, one)
	}
	return w, all
}

func writes(prefix, count, size int, from int64) []*server.Event {
	value := make([]byte, size)
	var out []*server.Event
	for i := range count {
		out = append(out, &server.Event{Create: true, KV: &server.KeyValue{Key: fmt.Sprintf("%s%d", prefixOf(prefix), i), Value: value, ModRevision: from + int64(i)}})
	}
	return out
}

// TestQueuesAreBoundedTogether fills queues that are each below their limit. The longest must end when all together
// exceed theirs.
func TestQueuesAreBoundedTogether(t *testing.T) {
	const mib = 1 << 20
	count := maxHeldBytes/maxQueuedBytes + 3
	w, all := queues(count)
	each := maxHeldBytes/mib/count + 2
	revision := int64(1)
	for i := range all {
		n := each - 1
		if i == 1 {
			n = each + 1 // the longest
		}
		slow := w.enqueue(writes(i, n, mib, revision))
		revision += int64(n)
		if last := i == count-1; last && (len(slow) != 1 || slow[0] != all[1]) || !last && len(slow) > 0 {
			t.Fatalf("queue %d ended %d watches", i, len(slow))
		}
	}
	if w.held > maxHeldBytes {
		t.Errorf("the queues hold %d bytes, more than %d", w.held, maxHeldBytes)
	}
	if w.prepend(all[0], []*event{{size: maxHeldBytes}}) {
		t.Error("a queue took more than all may hold")
	}
	for _, one := range all {
		w.remove(one)
	}
	if w.held != 0 {
		t.Errorf("queues that are gone hold %d bytes", w.held)
	}
}

// TestQueuesShareEvents has two watches of one prefix. Their events must count once until both have received them.
func TestQueuesShareEvents(t *testing.T) {
	w, all := queues(1)
	other := &watcher{key: all[0].key, end: all[0].end, wake: make(chan struct{}, 1), cancel: func() {}}
	w.open[other] = struct{}{}
	const count, size = 20, maxTakenBytes / 4
	if slow := w.enqueue(writes(0, count, size, 1)); len(slow) > 0 {
		t.Fatalf("%d watches ended", len(slow))
	}
	held := w.held
	if held < count*size || held > count*(size+100) {
		t.Errorf("%d events of %d bytes count as %d bytes", count, size, held)
	}
	all[0].passed = count
	var last int64
	for more := true; more; {
		events, rest, passed := w.take(all[0])
		more = rest
		if len(events) == 0 || len(events)*size > maxTakenBytes || more != (passed == 0) {
			t.Fatalf("took %d events, passed %d", len(events), passed)
		}
		for _, e := range events {
			if e.Kv.ModRevision != last+1 {
				t.Errorf("took revision %d after %d", e.Kv.ModRevision, last)
			}
			last = e.Kv.ModRevision
		}
	}
	if last != count || all[0].bytes != 0 {
		t.Errorf("took %d of %d events, and %d bytes are left", last, count, all[0].bytes)
	}
	if w.held != held {
		t.Errorf("the queues hold %d bytes while one watch has taken nothing, want %d", w.held, held)
	}
	if w.remove(other); w.held != 0 {
		t.Errorf("the queues hold %d bytes after the last watch has left", w.held)
	}
}
