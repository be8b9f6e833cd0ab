package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/k3s-io/kine/pkg/server"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// progressInterval is the time after which an idle watch with progress receives the current revision.
	progressInterval = 30 * time.Second
	// followRetry is the delay before the next attempt to read from a database that did not answer.
	followRetry = time.Second
)

// watches is the clientv3.Watcher of the store. One goroutine follows kine's log for all watches. Each watch has its
// own queue and goroutine.
//
// It replaces clientv3's watcher, kine's server.Watch and the pipe between them, which can deadlock. kine answers a
// cancelled watch while it holds the lock of its stream, and the pipe holds one answer. clientv3 reads no answer while
// it sends the next cancellation.
//
// No part can block the store, and no watch can block another:
//   - kine hands events to follow through channels. Its broadcaster never waits for a full channel but ends that
//     subscription. follow then subscribes again from the last revision that it saw.
//   - follow takes each batch at once: dispatch appends to queues under watches.mu and never waits.
//   - No goroutine sends to a channel, reads the database or writes to the log while it holds watches.mu.
//   - A full queue ends its own watch and closes the channel. The client watches again from the last revision that it
//     saw, or lists again if that revision is compacted. If all queues together hold too much, the watch with the
//     largest queue ends.
//   - A cancelled watch removes itself. No goroutine waits for it.
//
// No event is lost or reordered: dispatch sees every revision once, in order, and holds the lock for a whole batch. A
// watch with a past start reads the events before its registration from the database. dispatch delivers the later ones.
// A progress response has the last revision that dispatch processed, so all events up to it are in the queue before it.
type watches struct {
	backend server.Backend
	log     *slog.Logger
	ctx     context.Context
	stop    context.CancelFunc
	done    sync.WaitGroup

	mu sync.Mutex
	// revision is the last revision that dispatch processed.
	revision int64
	open     map[*watcher]struct{}
	// held is the size of the events in all queues, in bytes. An event in several queues counts once.
	held int
	// closed is true after Close. Watch then fails.
	closed bool

	// reading is a semaphore for watches that read past events.
	reading chan struct{}
}

var _ clientv3.Watcher = (*watches)(nil)

// watcher is one call of Watch.
type watcher struct {
	key, end string
	// start is the first revision to deliver.
	start int64
	// progress is true if the caller requests the current revision while there are no events.
	progress bool
	// cancel ends the watch: its goroutine returns and closes its channel.
	cancel context.CancelFunc
	// wake has a capacity of one. It signals the goroutine that there is something to send.
	wake chan struct{}

	// watches.mu guards the following fields.
	queue []*event
	// bytes is the size of the events in the queue.
	bytes int
	// passed is the revision to send to the caller once the queue is empty; 0 for none.
	passed int64
}

type progressKey struct{}

// withProgress marks the context of a watch that requests progress, because clientv3's own option is not readable
// outside of its package.
func withProgress(ctx context.Context) context.Context {
	return context.WithValue(ctx, progressKey{}, true)
}

// newWatches follows the log from the current revision until Close.
func newWatches(ctx context.Context, backend server.Backend, log *slog.Logger) (*watches, error) {
	revision, err := currentRevision(ctx, backend)
	if err != nil {
		return nil, err
	}
	w := &watches{backend: backend, log: log, revision: revision, open: map[*watcher]struct{}{},
		reading: make(chan struct{}, maxReading)}
	w.ctx, w.stop = context.WithCancel(ctx)
	w.done.Go(func() {
		for w.ctx.Err() == nil {
			err := w.follow()
			if err == nil {
				continue // kine ended the subscription because this goroutine was too slow
			}
			w.log.Warn("the database does not answer, so watches get no events", "error", err)
			select {
			case <-w.ctx.Done():
			case <-time.After(followRetry):
			}
		}
	})
	return w, nil
}

// currentRevision reads the revision from the database. No transaction that still runs has an earlier one.
func currentRevision(ctx context.Context, backend server.Backend) (int64, error) {
	revision, err := backend.CurrentRevision(ctx)
	if err != nil {
		return 0, fmt.Errorf("read current revision: %w", err)
	}
	return revision, nil
}

// Watch implements clientv3.Watcher. The channel closes when the context ends, the caller is too slow, the database
// does not answer, or the store closes. The caller must watch again to continue. If the start is compacted, the
// channel's last response has the Err ErrCompacted.
func (w *watches) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpGet(key, opts...)
	one := &watcher{key: string(op.KeyBytes()), end: string(op.RangeBytes()), start: op.Rev(),
		wake: make(chan struct{}, 1)}
	one.progress, _ = ctx.Value(progressKey{}).(bool)
	ctx, one.cancel = context.WithCancel(ctx)
	out := make(chan clientv3.WatchResponse, 1)

	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		one.cancel()
		close(out)
		return out
	}
	registered := w.revision
	w.open[one] = struct{}{}
	w.done.Go(func() {
		defer close(out)
		defer w.remove(one)
		w.serve(ctx, one, registered, out)
	})
	return out
}

// RequestProgress implements clientv3.Watcher: watches with progress receive the current revision.
func (w *watches) RequestProgress(context.Context) error {
	w.sendProgress()
	return nil
}

// Close implements clientv3.Watcher: it ends all watches.
func (w *watches) Close() error {
	w.stop()
	w.mu.Lock()
	w.closed = true
	for one := range w.open {
		one.cancel()
	}
	w.mu.Unlock()
	w.done.Wait()
	return nil
}

// follow dispatches kine's log after the last processed revision, until kine ends the subscription. It returns an error
// if the database does not answer.
func (w *watches) follow() error {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	w.mu.Lock()
	from := w.revision + 1
	w.mu.Unlock()
	log := w.backend.Watch(ctx, "", "", from)
	if log.CompactRevision != 0 {
		return w.skip(ctx)
	}
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	for {
		select {
		case events, ok := <-log.Events:
			if !ok {
				return nil
			}
			w.dispatch(events)
		case <-ticker.C:
			w.sendProgress()
		case err := <-log.Errorc:
			go drain(log.Events)
			return err
		case <-ctx.Done():
			go drain(log.Events)
			return nil
		}
	}
}

// skip ends all watches, because the database compacted events that follow had not read. Clients list again.
func (w *watches) skip(ctx context.Context) error {
	revision, err := currentRevision(ctx, w.backend)
	if err != nil {
		return err
	}
	w.log.Warn("the server ends its watches: the database did not answer, and has compacted events meanwhile",
		"revision", revision)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revision = max(w.revision, revision)
	for one := range w.open {
		one.cancel()
	}
	return nil
}

// dispatch appends events to the queues of the watches for their keys.
func (w *watches) dispatch(events []*server.Event) {
	for _, one := range w.enqueue(events) {
		w.log.Warn("a watch ended: its client was too slow", "key", one.key)
	}
}

// sendProgress sends the current revision to all watches with progress.
func (w *watches) sendProgress() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.open {
		if one.progress {
			one.passed = w.revision
			one.signal()
		}
	}
}

func (one *watcher) signal() {
	select {
	case one.wake <- struct{}{}:
	default:
	}
}

func (w *watches) remove(one *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end(one)
}

// serve sends one watch its events until its context ends.
func (w *watches) serve(ctx context.Context, one *watcher, registered int64, out chan<- clientv3.WatchResponse) {
	sent := int64(0) // the last revision that the caller has received
	send := func(r clientv3.WatchResponse) bool {
		select {
		case out <- r:
			sent = r.Header.Revision
			return true
		case <-ctx.Done():
			return false
		}
	}
	past, err := w.past(ctx, one, registered)
	if err != nil {
		if compacted, ok := errors.AsType[compactedError](err); ok {
			send(clientv3.WatchResponse{Canceled: true, CompactRevision: compacted.revision})
		} else if ctx.Err() == nil {
			w.log.Warn("the server ends a watch: the database did not answer", "key", one.key, "error", err)
		}
		return
	}
	if !w.prepend(one, past) {
		w.log.Warn("the server ends a watch: too many events since its revision, so its client must list again", "key",
			one.key)
		send(clientv3.WatchResponse{Canceled: true, CompactRevision: registered})
		return
	}
	past = nil
	for {
		events, more, passed := w.take(one)
		switch {
		case len(events) > 0 && !send(response(events)):
			return
		case more:
			continue
		case passed > sent && passed >= one.start &&
			!send(clientv3.WatchResponse{Header: etcdserverpb.ResponseHeader{Revision: passed}}):
			return
		}
		select {
		case <-one.wake:
		case <-ctx.Done():
			return
		}
	}
}

// compactedError is the error if events after the start of a watch were compacted.
type compactedError struct{ revision int64 }

func (e compactedError) Error() string {
	return fmt.Sprintf("the log is compacted up to revision %d", e.revision)
}

// past returns the events from the start of a watch up to the revision of its registration; dispatch delivers the later
// ones. It returns a compactedError if some of them were compacted. Kine reads all of them at once, so only few watches
// may read concurrently.
func (w *watches) past(ctx context.Context, one *watcher, registered int64) ([]*event, error) {
	if one.start == 0 || one.start == registered+1 {
		return nil, nil
	}
	if one.start > registered {
		// The start is ahead of dispatch, or the database was restored from an older backup and never had it.
		current, err := currentRevision(ctx, w.backend)
		if err == nil && one.start > current+1 {
			err = compactedError{current}
		}
		return nil, err
	}
	select {
	case w.reading <- struct{}{}:
		defer func() { <-w.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	reading, cancel := context.WithCancel(ctx)
	log := w.backend.Watch(reading, one.key, one.end, one.start)
	// All events up to the registration are read. The end of the subscription closes the channel after them.
	cancel()
	if log.CompactRevision != 0 {
		return nil, compactedError{log.CompactRevision}
	}
	var past []*event
	for {
		select {
		case events, ok := <-log.Events:
			if !ok {
				select {
				case err := <-log.Errorc:
					return nil, err
				default:
					return past, ctx.Err()
				}
			}
			for _, e := range events {
				if e != nil && e.KV.ModRevision >= one.start && e.KV.ModRevision <= registered {
					past = append(past, newEvent(e))
				}
			}
		case err := <-log.Errorc:
			go drain(log.Events)
			return nil, err
		}
	}
}

func drain(events <-chan []*server.Event) {
	for range events {
	}
}

func response(events []*clientv3.Event) clientv3.WatchResponse {
	return clientv3.WatchResponse{
		Header: etcdserverpb.ResponseHeader{Revision: events[len(events)-1].Kv.ModRevision},
		Events: events,
	}
}
