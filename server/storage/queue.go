package storage

import (
	"github.com/k3s-io/kine/pkg/server"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// maxQueuedEvents and maxQueuedBytes bound the events that wait for one watch.
	maxQueuedEvents = 10_000
	maxQueuedBytes  = 32 << 20
	// maxHeldBytes bounds the events that wait for all watches.
	maxHeldBytes = 128 << 20
	// maxTakenBytes bounds what a watch takes out of its queue at once; one event may be larger.
	maxTakenBytes = 256 << 10
	// maxReading bounds the watches that read the past at once.
	maxReading = 4
)

// event is one revision of one key. The queues of all watches that want it share it.
type event struct {
	*clientv3.Event
	size int
	// holders is the number of queues that hold the event. It is guarded by watches.mu.
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

// enqueue appends events to the queues of the watches that want them. It returns the watches that it ended: those whose queues are
// full, and the longest while all of them hold too much.
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
			one.poke()
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

// prepend puts events in front of a queue. It returns false, and changes nothing, when that would be too much.
func (w *watches) prepend(one *watcher, events []*event) bool {
	size := 0
	for _, e := range events {
		size += e.size
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, open := w.open[one]; !open {
		return true // its channel is closed next
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

// take removes the first events of a queue. When it leaves none behind, it also returns the revision up to which the caller should
// know that there are no other events.
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

// end ends a watch. Its caller holds watches.mu.
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

// longest returns the watch whose queue holds the most bytes.
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
