package storage

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// canaryKey is the key that the canary writes. The API and the ledger do not use this prefix.
	canaryKey = "/hykube.io-canary"
	// canaryInterval is the time between two writes, and the maximum delay until the watch delivers one.
	canaryInterval = 10 * time.Second
)

// canary checks that watches deliver events: it writes a key at an interval and watches the key like any other client
// of the store.
type canary struct {
	client   *clientv3.Client
	interval time.Duration
	stop     context.CancelFunc
	done     sync.WaitGroup

	mu sync.Mutex
	// written is the revision of the key's last write.
	written int64
	// seen is the last revision that the watch delivered.
	seen int64
	// since is the time of the first write that is not delivered yet. It has no meaning while seen equals written.
	since time.Time
}

// newCanary starts a canary, which runs until close. An interval of 0 means canaryInterval.
func newCanary(ctx context.Context, client *clientv3.Client, interval time.Duration) *canary {
	if interval == 0 {
		interval = canaryInterval
	}
	c := &canary{client: client, interval: interval}
	ctx, c.stop = context.WithCancel(ctx)
	delivered := client.Watch(ctx, canaryKey) // open the watch before the first write
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

// follow records the revisions that the watch delivers. When a watch ends, it starts another one.
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

// write writes the key. It ignores errors, because Store.Ready checks the database itself.
func (c *canary) write(ctx context.Context) {
	c.mu.Lock()
	last := c.written
	c.mu.Unlock()
	written, ok, err := putAt(ctx, c.client, canaryKey, time.Now().UTC().AppendFormat(nil, time.RFC3339Nano), last)
	if err != nil {
		return
	}
	if !ok {
		c.resume(ctx)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen >= c.written {
		c.since = time.Now()
	}
	c.written = written
}

// resume reads the revision that this server wrote before its restart.
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

// healthy returns an error if a write was not delivered within the interval.
func (c *canary) healthy(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if late := now.Sub(c.since); c.seen < c.written && late > c.interval {
		return fmt.Errorf("watches have stopped: a write of %s ago has not been delivered; restart the server, and report this with its log", late.Round(time.Second))
	}
	return nil
}
