package controller

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/workflows"
)

const (
	// workers bounds how many objects of one kind are looked at at once.
	workers = 4
	// namespaceWorkers bounds in how many namespaces plans are superseded and removed at once.
	namespaceWorkers = 2
	// installs bounds how many providers are installed at once: one that hangs at its start holds a worker for a minute.
	installs = 16
)

func uid(ref workflows.Plan) types.UID { return types.UID(ref.UID) }

// Run watches and acts until ctx ends. Plans, and the worker that work starts, wait until every Provider was looked at once, so that a
// server that starts again does not plan without the kinds that it had.
func Run(ctx context.Context, providers *Providers, configs *Configs, plans *Plans, work func() error) error {
	providers.Changed = configs.providerChanged
	providers.start()
	configs.start()
	plans.start()
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, inf := range []cache.SharedIndexInformer{providers.informer, configs.informer, configs.secrets, plans.informer} {
		wg.Go(func() { inf.RunWithContext(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), providers.informer.HasSynced, configs.informer.HasSynced, configs.secrets.HasSynced, plans.informer.HasSynced) {
		return errors.New("watch fixed kinds: stopped before the first list arrived")
	}
	wg.Go(func() { providers.queue.run(ctx, installs) })
	wg.Go(func() { configs.queue.run(ctx, workers) })
	providers.settled(ctx)
	if ctx.Err() == nil {
		if err := work(); err != nil {
			return err
		}
	}
	if err := plans.dropOrphans(ctx); err != nil && ctx.Err() == nil {
		plans.Logger.Warn("look for changes of plans that were deleted; the next start looks again", "error", err)
	}
	wg.Go(func() { plans.queue.run(ctx, workers) })
	wg.Go(func() { plans.namespaces.run(ctx, namespaceWorkers) })
	wg.Go(func() { plans.dropped.run(ctx, 1) })
	<-ctx.Done()
	return nil
}
