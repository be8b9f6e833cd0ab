package storage

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/k3s-io/kine/pkg/server"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
)

// uncached is the store of a resource without a watch cache: etcd3's store with other watches. etcd3's watches decode
// every event for every watch, and buffer up to 100 decoded events for a client that does not read. The watches of
// uncached share decoded objects and buffer one.
type uncached struct {
	storage.Interface
	client         *clientv3.Client
	backend        server.Backend
	decode         func(ctx context.Context, key string, data []byte, revision int64) (runtime.Object, error)
	versioner      storage.Versioner
	newFunc        func() runtime.Object
	resourcePrefix string
	objects        *sharedObjects
}

// Watch implements storage.Interface like etcd3's store. Without a resource version it begins with the existing
// objects. It sends bookmarks to clients that allow them.
func (u *uncached) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	key, err := storage.PrepareKey(u.resourcePrefix, key, opts.Recursive)
	if err != nil {
		return nil, err
	}
	return u.watch(ctx, &objectWatch{store: u, key: objectPrefix + key, recursive: opts.Recursive}, opts)
}

// watch starts a watch.
func (u *uncached) watch(ctx context.Context, w *objectWatch, opts storage.ListOptions) (watch.Interface, error) {
	from, err := u.versioner.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	asked := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	initial := asked || opts.SendInitialEvents == nil && from == 0
	if from == 0 && !initial || from > 0 && initial {
		current, err := currentRevision(ctx, u.backend)
		if err != nil {
			return nil, err
		}
		if from > uint64(current) {
			return nil, storage.NewTooLargeResourceVersionError(from, uint64(current), 1)
		}
		from = uint64(current)
	}
	w.predicate, w.events = opts.Predicate, make(chan watch.Event)
	w.endOfInitial = asked && opts.Predicate.AllowWatchBookmarks
	if opts.ProgressNotify || opts.Predicate.AllowWatchBookmarks {
		ctx = withProgress(ctx)
	}
	w.ctx, w.stop = context.WithCancel(ctx)
	var changes clientv3.WatchChan
	if !initial { // changes while the goroutine starts must reach the watch without a read of the database
		changes = w.changes(int64(from))
	}
	go w.run(int64(from), changes)
	utilflowcontrol.WatchInitialized(ctx)
	return w, nil
}

// object returns the object of a key at a revision, or its previous value.
func (u *uncached) object(ctx context.Context, key, data []byte, revision int64, previous bool) (*sharedObject, error) {
	return u.objects.get(objectKey{u, revision, previous}, func() (runtime.Object, error) {
		// All watches of the object depend on the decoding, so the end of one watch must not cancel it.
		return u.decode(context.WithoutCancel(ctx), string(key), data, revision)
	})
}

// decoder returns a function that decodes the objects of one resource.
func decoder(codec runtime.Codec, transformer value.Transformer, versioner storage.Versioner) func(ctx context.Context,
	key string, data []byte, revision int64) (runtime.Object, error) {
	return func(ctx context.Context, key string, data []byte, revision int64) (runtime.Object, error) {
		clear, _, err := transformer.TransformFromStorage(ctx, data, value.DefaultContext(key))
		if err != nil {
			return nil, fmt.Errorf("decrypt object %q: %w", key, err)
		}
		object, err := runtime.Decode(codec, clear)
		if err == nil {
			err = versioner.UpdateObject(object, uint64(revision))
		}
		if err != nil {
			return nil, fmt.Errorf("decode object %q: %w", key, err)
		}
		return object, nil
	}
}

// objectWatch is one watch of an uncached store.
type objectWatch struct {
	store     *uncached
	key       string
	recursive bool
	predicate storage.SelectionPredicate
	// includes reports whether the watch includes a key; nil includes all. initial reads the existing objects; nil
	// reads those below key.
	includes func(key string) (bool, error)
	initial  func(revision *int64) iter.Seq2[*server.KeyValue, error]
	// endOfInitial is true if the client requests a bookmark after the initial objects.
	endOfInitial bool
	ctx          context.Context
	stop         context.CancelFunc
	// events is unbuffered. Events for a slow client wait in the queue of the store's watch, which is bounded.
	events chan watch.Event
}

func (w *objectWatch) ResultChan() <-chan watch.Event { return w.events }

func (w *objectWatch) Stop() { w.stop() }

// run sends events until the watch ends. Without changes, it begins with the existing objects.
func (w *objectWatch) run(from int64, changes clientv3.WatchChan) {
	defer close(w.events)
	defer w.stop()
	err := w.follow(from, changes)
	if err == nil || w.ctx.Err() != nil {
		return
	}
	if errors.Is(err, rpctypes.ErrCompacted) {
		err = apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.")
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		status = apierrors.NewInternalError(err)
	}
	_ = w.send(watch.Error, &status.ErrStatus)
}

// follow sends events until the client stops or the store ends its watch. Neither is an error.
func (w *objectWatch) follow(from int64, changes clientv3.WatchChan) (err error) {
	if changes == nil {
		if from, err = w.list(); err != nil {
			return err
		}
	}
	if w.endOfInitial {
		if err := w.bookmark(from, true); err != nil {
			return err
		}
	}
	if changes == nil {
		changes = w.changes(from)
	}
	for r := range changes {
		if err := r.Err(); err != nil {
			return err
		}
		if r.IsProgressNotify() {
			if err := w.bookmark(r.Header.Revision, false); err != nil {
				return err
			}
		}
		for i, e := range r.Events {
			r.Events[i] = nil // a slow client may take the other events much later
			if err := w.pass(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// changes returns the changes after a revision.
func (w *objectWatch) changes(from int64) clientv3.WatchChan {
	opts := []clientv3.OpOption{clientv3.WithRev(from + 1), clientv3.WithPrevKV()}
	if w.recursive {
		opts = append(opts, clientv3.WithPrefix())
	}
	return w.store.client.Watch(w.ctx, w.key, opts...)
}

// list sends the existing objects and returns their revision.
func (w *objectWatch) list() (revision int64, err error) {
	if w.initial != nil {
		for kv, err := range w.initial(&revision) {
			if err == nil {
				err = w.passExisting(&mvccpb.KeyValue{Key: []byte(kv.Key), Value: kv.Value,
					ModRevision: kv.ModRevision})
			}
			if err != nil {
				return 0, err
			}
		}
		return revision, nil
	}
	opts := []clientv3.OpOption{}
	if w.recursive {
		opts = append(opts, clientv3.WithLimit(scanPage), clientv3.WithRange(clientv3.GetPrefixRangeEnd(w.key)))
	}
	for from := w.key; ; {
		page, err := w.store.client.Get(w.ctx, from, opts...)
		if err != nil {
			return 0, err
		}
		if revision == 0 {
			revision = page.Header.Revision
			opts = append(opts, clientv3.WithRev(revision))
		}
		for i, kv := range page.Kvs {
			from = string(kv.Key) + "\x00"
			page.Kvs[i] = nil // a slow client may take the other objects much later
			if err := w.passExisting(kv); err != nil {
				return 0, err
			}
		}
		if !page.More || len(page.Kvs) == 0 {
			return revision, nil
		}
	}
}

// passExisting sends an existing object like a new one.
func (w *objectWatch) passExisting(kv *mvccpb.KeyValue) error {
	return w.pass(&clientv3.Event{Type: mvccpb.PUT, Kv: &mvccpb.KeyValue{
		Key: kv.Key, Value: kv.Value, CreateRevision: kv.ModRevision, ModRevision: kv.ModRevision,
	}})
}

// pass sends an event if the client's selector matches the object or its previous value.
func (w *objectWatch) pass(e *clientv3.Event) error {
	if w.includes != nil {
		if ok, err := w.includes(string(e.Kv.Key)); !ok || err != nil {
			return err
		}
	}
	deleted, all := e.Type == clientv3.EventTypeDelete, w.predicate.Empty()
	var now, before *sharedObject
	var err error
	if !deleted {
		if now, err = w.store.object(w.ctx, e.Kv.Key, e.Kv.Value, e.Kv.ModRevision, false); err != nil {
			return err
		}
	}
	if deleted || !e.IsCreate() && !all {
		if e.PrevKv == nil {
			return fmt.Errorf("the event of %q at revision %d lacks the previous value", e.Kv.Key, e.Kv.ModRevision)
		}
		if before, err = w.store.object(w.ctx, e.Kv.Key, e.PrevKv.Value, e.Kv.ModRevision, true); err != nil {
			return err
		}
	}
	selected, was := w.selects(now), w.selects(before)
	switch {
	case selected && (was || all && !e.IsCreate()):
		return w.send(watch.Modified, now)
	case selected:
		return w.send(watch.Added, now)
	case was:
		return w.send(watch.Deleted, before)
	}
	return nil
}

func (w *objectWatch) selects(o *sharedObject) bool {
	if o == nil {
		return false
	}
	if w.predicate.Empty() {
		return true
	}
	matches, err := w.predicate.Matches(o.object)
	return err == nil && matches
}

// bookmark sends a bookmark: the client has received all events up to the revision.
func (w *objectWatch) bookmark(revision int64, initial bool) error {
	object := w.store.newFunc()
	if err := w.store.versioner.UpdateObject(object, uint64(revision)); err != nil {
		return fmt.Errorf("make bookmark: %w", err)
	}
	if initial {
		if err := storage.AnnotateInitialEventsEndBookmark(object); err != nil {
			return fmt.Errorf("make bookmark: %w", err)
		}
	}
	return w.send(watch.Bookmark, object)
}

func (w *objectWatch) send(t watch.EventType, object runtime.Object) error {
	select {
	case w.events <- watch.Event{Type: t, Object: object}:
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}
