package storage

import (
	"github.com/k3s-io/kine/pkg/server"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// maxQueuedEvents and maxQueuedBytes limit the queue of one watch.
	maxQueuedEvents = 10_000
	maxQueuedBytes  = 32 << 20
	// maxHeldBytes limits the events in the queues of all watches, in bytes.
	maxHeldBytes = 128 << 20
	// maxTakenBytes limits the events that a watch takes from its queue at once, in bytes. A single event may be
	// larger.
	maxTakenBytes = 256 << 10
	// maxReading limits the watches that read past events concurrently.
	maxReading = 4
)

// event is one revision of one key. The queues of all watches for the key share it.
type event struct {
	*clientv3.Event
	size int
	// holders is the number of queues that hold the event. watches.mu guards it.
	holders int
}

func newEvent(e *server.Event) *event {
	out := &event{Event: &clientv3.Event{Type: mvccpb.PUT, Kv: toKeyValue(e.KV)}, size: len(e.KV.Key) + len(e.KV.Value)}
	if e.Delete {
		out.Type = mvccpb.DELETE
	}
	if !e.Create && e.PrevKV != nil {
		out.PrevKv = toKeyValue(e.PrevKV)
	}
	if e.PrevKV != nil {
		out.size += len(e.PrevKV.Value)
	}
	return out
}

func toKeyValue(kv *server.KeyValue) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{
		Key: []byte(kv.Key), Value: kv.Value, Version: kv.Version, Lease: kv.Lease,
		CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision,
	}
}

// enqueue appends events to the queues of the watches for their keys. It ends a watch whose queue is full. While all
// queues together hold too much, it ends the watch with the largest queue. It returns the ended watches.
func (w *watches) enqueue(events []*server.Event) (slow []*watcher) {
	shared := make([]*event, len(events))
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.open {
		for i, e := range events {
			if !e.InRange(one.key, one.end) || e.KV.ModRevision < one.start || e.KV.ModRevision <= w.revision {
				continue
			}
			if shared[i] == nil {
				shared[i] = newEvent(e)
			}
			w.hold(one, shared[i])
			one.queue = append(one.queue, shared[i])
		}
		switch {
		case one.full():
			w.end(one)
			slow = append(slow, one)
		case len(one.queue) > 0:
			one.signal()
		}
	}
	for w.held > maxHeldBytes {
		one := w.longest()
		w.end(one)
		slow = append(slow, one)
	}
	for _, e := range events {
		if e != nil {
			w.revision = max(w.revision, e.KV.ModRevision)
		}
	}
	return slow
}

// prepend inserts events at the front of a queue. It returns false, and changes nothing, if the queue would exceed a
// limit.
func (w *watches) prepend(one *watcher, events []*event) bool {
	size := 0
	for _, e := range events {
		size += e.size
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, open := w.open[one]; !open {
		return true // the watch has ended, and its channel closes next
	}
	if len(one.queue)+len(events) > maxQueuedEvents || one.bytes+size > maxQueuedBytes || w.held+size > maxHeldBytes {
		return false
	}
	for _, e := range events {
		w.hold(one, e)
	}
	one.queue = append(events, one.queue...)
	return true
}

// take removes the first events of a queue. If it empties the queue, it also returns the revision up to which there are
// no other events, or 0.
func (w *watches) take(one *watcher) (events []*clientv3.Event, more bool, passed int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for size := 0; len(one.queue) > len(events); {
		e := one.queue[len(events)]
		if size += e.size; size > maxTakenBytes && len(events) > 0 {
			break
		}
		events = append(events, e.Event)
		w.release(one, e)
	}
	clear(one.queue[:len(events)])
	if one.queue = one.queue[len(events):]; len(one.queue) > 0 {
		return events, true, 0
	}
	one.queue = nil
	passed, one.passed = one.passed, 0
	return events, false, passed
}

// end ends a watch. The caller holds watches.mu.
func (w *watches) end(one *watcher) {
	one.cancel()
	delete(w.open, one)
	for _, e := range one.queue {
		w.release(one, e)
	}
	one.queue = nil
}

func (w *watches) hold(one *watcher, e *event) {
	if one.bytes += e.size; e.holders == 0 {
		w.held += e.size
	}
	e.holders++
}

func (w *watches) release(one *watcher, e *event) {
	one.bytes -= e.size
	if e.holders--; e.holders == 0 {
		w.held -= e.size
	}
}

// longest returns the watch whose queue has the most bytes.
func (w *watches) longest() (most *watcher) {
	for one := range w.open {
		if most == nil || one.bytes > most.bytes {
			most = one
		}
	}
	return most
}

func (one *watcher) full() bool {
	return len(one.queue) > maxQueuedEvents || one.bytes > maxQueuedBytes
}
