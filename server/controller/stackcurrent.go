package controller

import (
	"context"
	"time"

	"k8s.io/client-go/tools/cache"
)

// This file lets a read of Stacks wait until their statuses show all earlier changes.

// update is a change in the namespace of a stack that the status of the stack may not show yet.
type update struct {
	// begun is true if a reconcile has begun after the change.
	begun bool
	// done is closed when that reconcile has ended.
	done chan struct{}
}

// currentLimit is the maximum time for which a read of Stacks waits.
const currentLimit = 5 * time.Second

// noteUpdate notes a change in the namespace of a stack.
func (c *Stacks) noteUpdate(name cache.ObjectName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u := c.updates[name]; u == nil || u.begun {
		c.updates[name] = &update{done: make(chan struct{})}
	}
}

// beginUpdate notes that a reconcile of a stack begins. The caller calls end when the reconcile has ended.
func (c *Stacks) beginUpdate(name cache.ObjectName) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.updates[name]
	if u == nil {
		return func() {}
	}
	u.begun = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		close(u.done)
		if c.updates[name] == u {
			delete(c.updates, name)
		}
	}
}

// Current waits until the statuses of the stacks of a namespace show all changes that NamespaceChanged was called for.
// An empty namespace means all. Current waits for five seconds at most, or until ctx ends.
func (c *Stacks) Current(ctx context.Context, namespace string) {
	ctx, cancel := context.WithTimeout(ctx, currentLimit)
	defer cancel()
	var pending []*update
	c.mu.Lock()
	for name, u := range c.updates {
		if namespace == "" || name.Namespace == namespace {
			pending = append(pending, u)
			c.queue.work.Add(name) // without the pause of NamespaceChanged
		}
	}
	c.mu.Unlock()
	for _, u := range pending {
		select {
		case <-u.done:
		case <-ctx.Done():
			return
		}
	}
}
