// Package controller watches the fixed kinds. It installs Providers and serves their kinds, and checks ProviderConfigs
// with their providers. It makes the plans of Stacks, starts the workflows of Plans, and signals those of
// Notifications. It records the transitions of these objects as Events. Each controller is a queue of names and a
// function that processes one of them. Only ResourceSets polls. The package imports internal packages and the clients
// of the API, and does not know how a plan is made.
package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/server/events"
	"github.com/hykube/hykube/workflows"
)

// pause is the maximum delay before a failed reconciliation is retried. There is no limit to the retries,
// because only a change would trigger another reconciliation.
const pause = time.Minute

// queueKey identifies a unit of work. String is for the log.
type queueKey interface {
	comparable
	fmt.Stringer
}

// queue calls reconcile for keys, with at most one concurrent call per key.
type queue[K queueKey] struct {
	name      string
	work      workqueue.TypedRateLimitingInterface[K]
	reconcile func(context.Context, K) error
	logger    *slog.Logger
}

func newQueue[K queueKey](name string, logger *slog.Logger, reconcile func(context.Context, K) error) *queue[K] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[K](200*time.Millisecond, pause)
	return &queue[K]{
		name: name, reconcile: reconcile, logger: logger,
		work: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[K]{Name: name}),
	}
}

// run processes keys with the given number of workers until ctx ends.
func (q *queue[K]) run(ctx context.Context, workers int) {
	go func() {
		<-ctx.Done()
		q.work.ShutDown()
	}()
	done := make(chan struct{})
	for range workers {
		go func() {
			for q.next(ctx) {
			}
			done <- struct{}{}
		}()
	}
	for range workers {
		<-done
	}
}

func (q *queue[K]) next(ctx context.Context) bool {
	name, stop := q.work.Get()
	if stop {
		return false
	}
	defer q.work.Done(name)
	err := bug.Guard(q.logger, "reconcile "+q.name, func() error { return q.reconcile(ctx, name) })
	if err == nil || ctx.Err() != nil {
		q.work.Forget(name)
		return true
	}
	q.logger.Warn("reconcile "+q.name+"; trying again", "name", name.String(), "error", err)
	q.work.AddRateLimited(name)
	return true
}

// informer watches a kind of hykube.io and adds changed objects to the queue.
func informer(client rest.Interface, resource string, example runtime.Object,
	q *queue[cache.ObjectName]) cache.SharedIndexInformer {
	inf := watch(client, resource, example)
	enqueue := func(obj any) {
		if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
			q.work.Add(name)
		}
	}
	// AddEventHandler fails only on a stopped informer.
	_, _ = inf.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, obj any) { enqueue(obj) }, DeleteFunc: enqueue,
	})
	return inf
}

// watch watches a kind of hykube.io.
func watch(client rest.Interface, resource string, example runtime.Object) cache.SharedIndexInformer {
	lw := cache.NewListWatchFromClient(client, resource, metav1.NamespaceAll, fields.Everything())
	return cache.NewSharedIndexInformer(lw, example, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// follow calls changed for each object of an informer that was created, changed or deleted.
func follow(inf cache.SharedIndexInformer, changed func(metav1.Object)) {
	handle := func(obj any) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if o, err := meta.Accessor(obj); err == nil {
			changed(o)
		}
	}
	// AddEventHandler fails only on a stopped informer.
	_, _ = inf.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: handle,
		UpdateFunc: func(_, obj any) { handle(obj) }, DeleteFunc: handle})
}

// lookup returns an object from an informer's cache; ok is false if it is not there. Callers must not change the
// object.
func lookup[T runtime.Object](inf cache.SharedIndexInformer, name cache.ObjectName) (obj T, ok bool, err error) {
	found, exists, err := inf.GetStore().GetByKey(name.String())
	if err != nil || !exists {
		return obj, false, err
	}
	obj, ok = found.(T)
	if !ok {
		return obj, false, fmt.Errorf("cache holds a %T", found)
	}
	return obj, true, nil
}

// inNamespace returns the objects of a namespace from an informer's cache. Callers must not change them.
func inNamespace[T runtime.Object](cached cache.Indexer, namespace string) []T {
	found, _ := cached.ByIndex(cache.NamespaceIndex, namespace) // fails only without the index, which each informer has
	out := make([]T, 0, len(found))
	for _, obj := range found {
		out = append(out, obj.(T))
	}
	return out
}

const (
	// workers is the number of concurrent reconciliations per kind.
	workers = 4
	// namespaceWorkers is the number of namespaces in which plans are superseded and removed concurrently.
	namespaceWorkers = 2
	// installs is the number of concurrent installations. A provider that hangs at its start occupies a worker for a
	// minute.
	installs = 16
)

func uid(ref workflows.Plan) types.UID { return types.UID(ref.UID) }

// Run runs the controllers until ctx ends. Plans, and the worker that work starts, wait until every Provider was
// reconciled once. So a restarted server does not plan without the kinds that it served before.
func Run(ctx context.Context, providers *Providers, configs *Configs, plans *Plans, sets *ResourceSets, stacks *Stacks,
	notifications *Notifications, recorder *events.Recorder, work func() error) error {
	providers.Changed = configs.providerChanged
	providers.start()
	configs.start()
	plans.start()
	sets.follow(plans)
	stacks.start(plans)
	// Resources refer to ProviderConfigs and Secrets, too.
	follow(configs.informer, stacks.changedIn)
	follow(configs.secrets, stacks.changedIn)
	follow(configs.secrets, func(secret metav1.Object) {
		for _, name := range configs.readers(cache.MetaObjectToName(secret)) {
			plans.noteReconfigured(secret.GetNamespace(), name)
		}
	})
	notifications.start(plans, stacks, configs.secrets)
	recordAll(recorder, providers, plans, stacks, notifications)
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	informers := []cache.SharedIndexInformer{providers.informer, configs.informer, configs.secrets, plans.informer,
		stacks.informer, notifications.informer}
	var synced []cache.InformerSynced
	for _, inf := range append(informers, plans.judged.informers...) {
		synced = append(synced, inf.HasSynced)
		wg.Go(func() { inf.RunWithContext(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return errors.New("watch fixed kinds: stopped before the first list arrived")
	}
	wg.Go(func() { providers.queue.run(ctx, installs) })
	wg.Go(func() { configs.queue.run(ctx, workers) })
	providers.awaitKinds(ctx)
	if ctx.Err() == nil {
		if err := work(); err != nil {
			return err
		}
	}
	if err := plans.dropOrphans(ctx); err != nil && ctx.Err() == nil {
		plans.Logger.Warn("find changes of deleted plans; the next start tries again", "error", err)
	}
	if err := stacks.Schedules.DeleteOthers(ctx, stacks.all()); err != nil && ctx.Err() == nil {
		stacks.Logger.Warn("find schedules of deleted stacks; the next start tries again", "error", err)
	}
	if err := stacks.endOrphanRuns(ctx); err != nil && ctx.Err() == nil {
		stacks.Logger.Warn("find workflows of deleted stacks; the next start tries again", "error", err)
	}
	if err := notifications.cancelOrphans(ctx); err != nil && ctx.Err() == nil {
		notifications.Logger.Warn("find workflows of deleted notifications; the next start tries again", "error", err)
	}
	wg.Go(func() { notifications.queue.run(ctx, namespaceWorkers) })
	wg.Go(func() { plans.queue.run(ctx, workers) })
	wg.Go(func() { sets.run(ctx) })
	wg.Go(func() { stacks.queue.run(ctx, namespaceWorkers) })
	wg.Go(func() { plans.namespaces.run(ctx, namespaceWorkers) })
	wg.Go(func() { plans.dropped.run(ctx, 1) })
	wg.Go(func() { plans.receiveWritten(ctx) })
	<-ctx.Done()
	return nil
}

// RunWorker installs the providers of a server, and then calls work, until ctx ends.
func RunWorker(ctx context.Context, providers *Providers, work func() error) error {
	providers.Follows, providers.Changed = true, func(string) {}
	providers.start()
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { providers.informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), providers.informer.HasSynced) {
		return errors.New("watch providers: stopped before the first list arrived")
	}
	wg.Go(func() { providers.queue.run(ctx, installs) })
	providers.awaitKinds(ctx)
	if ctx.Err() == nil {
		if err := work(); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}
