package storage

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// canaryKey is written to see whether watches deliver. It is outside of what the API and the ledger use.
	canaryKey = "/hykube.io-canary"
	// canaryInterval is how often it is written, and how long a watch may take to see it.
	canaryInterval = 10 * time.Second
)

// canary proves that watches deliver: it writes a key at an interval and watches it as every other client of the store does.
type canary struct {
	client   *clientv3.Client
	interval time.Duration
	stop     context.CancelFunc
	done     sync.WaitGroup

	mu sync.Mutex
	// written is the last revision of the key.
	written int64
	// seen is the last revision that the watch delivered.
	seen int64
	// since is when the first write that was not delivered yet was made; it means nothing while seen is not behind written.
	since time.Time
}

// newCanary starts a canary that runs until close.
func newCanary(ctx context.Context, client *clientv3.Client, interval time.Duration) *canary {
	if interval == 0 {
		interval = canaryInterval
	}
	c := &canary{client: client, interval: interval}
	ctx, c.stop = context.WithCancel(ctx)
	delivered := client.Watch(ctx, canaryKey) // it is open before the first write
	c.done.Go(func() { c.follow(ctx, delivered) })
	c.done.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for ctx.Err() == nil {
			c.write(ctx)
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	})
	return c
}

func (c *canary) close() {
	c.stop()
	c.done.Wait()
}

// follow notes which revisions arrive, and watches again when a watch ends.
func (c *canary) follow(ctx context.Context, delivered clientv3.WatchChan) {
	for {
		for response := range delivered {
			for _, e := range response.Events {
				c.note(e.Kv.ModRevision)
			}
		}
		select {
		case <-time.After(c.interval / 4):
		case <-ctx.Done():
			return
		}
		delivered = c.client.Watch(ctx, canaryKey)
	}
}

func (c *canary) note(revision int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = max(c.seen, revision)
}

// write writes the key. A database that refuses it says nothing about watches: the check of readiness asks it.
func (c *canary) write(ctx context.Context) {
	c.mu.Lock()
	last := c.written
	c.mu.Unlock()
	txn := c.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(canaryKey), "=", last)).
		Then(clientv3.OpPut(canaryKey, time.Now().UTC().Format(time.RFC3339Nano)))
	if last != 0 {
		txn = txn.Else(clientv3.OpGet(canaryKey))
	}
	response, err := txn.Commit()
	if err != nil {
		return
	}
	if !response.Succeeded {
		c.resume(ctx)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen >= c.written {
		c.since = time.Now()
	}
	c.written = response.Header.Revision
}

// resume continues from the revision that this server wrote before it was restarted.
func (c *canary) resume(ctx context.Context) {
	current, err := c.client.Get(ctx, canaryKey)
	if err != nil || len(current.Kvs) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written = current.Kvs[0].ModRevision
	c.seen = c.written
}

// healthy returns an error when the last write has not arrived within the interval.
func (c *canary) healthy(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if late := now.Sub(c.since); c.seen < c.written && late > c.interval {
		return fmt.Errorf("watches have stopped: a write of %s ago has not been delivered; restart the server, and report this with its log", late.Round(time.Second))
	}
	return nil
}
