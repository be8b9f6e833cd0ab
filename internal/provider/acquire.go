package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/fair"
)

// acquire returns a lease of the process with a key. The process has a slot while it has leases. The slot counts
// against the share of the namespace whose request was granted first.
func (p *Pool) acquire(ctx context.Context, pkg Package, key processKey, namespace string,
	config cty.Value) (*Lease, error) {
	if config != cty.NilVal {
		config, _ = config.UnmarkDeep()
	}
	for {
		proc, slot, err := p.take(pkg, key, namespace, config)
		if err != nil {
			return nil, err
		}
		if err := p.awaitSlot(ctx, proc, slot); err != nil {
			return nil, err
		}
		select {
		case <-proc.ready:
		case <-ctx.Done():
			p.releaseLease(proc)
			return nil, fmt.Errorf("wait for provider %q to start: %w", pkg.Source, context.Cause(ctx))
		}
		if proc.err != nil {
			p.releaseLease(proc)
			return nil, proc.err
		}
		if closed(proc.plugin.Exited()) { // the process's goroutine may not have noticed it yet
			p.mu.Lock()
			p.retire(proc)
			p.release(proc)
			p.mu.Unlock()
			continue
		}
		return &Lease{Server: proc.server, Schema: proc.schema, pool: p, process: proc}, nil
	}
}

// take returns the process for a key and adds a lease. The process may not be started yet. slot is the request for its
// slot; nil if the process has a slot.
func (p *Pool) take(pkg Package, key processKey, namespace string,
	config cty.Value) (proc *process, slot *slotRequest, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, ErrClosed
	}
	proc = p.current[key]
	if proc != nil && (!sameConfig(proc.config, config) || p.reachedMaxCalls(proc)) {
		p.retire(proc) // it ends when its leases are released; the next process starts in parallel
		proc = nil
	}
	if proc == nil {
		proc = &process{pkg: pkg, key: key, config: config, granted: make(chan struct{}), ready: make(chan struct{}),
			retired: make(chan struct{})}
		p.current[key] = proc
	}
	proc.leases++
	proc.idleSince++
	if proc.slot != nil {
		return proc, nil, nil
	}
	slot = &slotRequest{Slot: p.slots.Request(namespace), namespace: namespace, granted: proc.granted}
	if closed(slot.Granted()) {
		p.begin(proc, slot)
		return proc, nil, nil
	}
	return proc, slot, nil
}

// slotRequest is a request of a namespace for the slot of a process. granted is closed when the process has a slot,
// which may be that of another request.
type slotRequest struct {
	*fair.Slot
	namespace string
	granted   <-chan struct{}
}

// awaitSlot waits until a process has a slot. slot may be nil.
func (p *Pool) awaitSlot(ctx context.Context, proc *process, slot *slotRequest) error {
	if slot == nil {
		return nil
	}
	select {
	case <-slot.Granted():
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.closed {
			slot.Release()
			p.release(proc)
			return ErrClosed
		}
		p.begin(proc, slot)
		return nil
	case <-slot.granted:
		slot.Release()
		return nil
	case <-p.starts.Done():
		slot.Release()
		p.releaseLease(proc)
		return ErrClosed
	case <-ctx.Done():
		slot.Release()
		p.releaseLease(proc)
		return fmt.Errorf("wait for a free provider process (of %d, which the namespaces share): %w",
			p.config.MaxProcesses, context.Cause(ctx))
	}
}

// begin gives a process its slot, and starts it unless it runs. It ends an idle process if there are too many.
func (p *Pool) begin(proc *process, slot *slotRequest) {
	if proc.slot != nil {
		slot.Release()
		return
	}
	proc.slot, proc.namespace = slot.Slot, slot.namespace
	close(proc.granted)
	if proc.begun() {
		return
	}
	p.evict()
	p.all[proc] = struct{}{}
	ctx, cancel := context.WithCancel(p.starts)
	proc.stopStart = cancel
	p.running.Go(func() { p.run(ctx, proc) })
}

// evict ends an idle process if the pool is full. It takes the process with the longest idle time among those of the
// namespace that has the most processes.
func (p *Pool) evict() {
	running, byNamespace := 0, map[string]int{}
	for proc := range p.all {
		if !proc.ended() {
			running++
			byNamespace[proc.namespace]++
		}
	}
	if running < p.config.MaxProcesses {
		return
	}
	var oldest *process
	for _, proc := range p.current {
		if !proc.begun() || proc.leases > 0 {
			continue
		}
		n, most := byNamespace[proc.namespace], 0
		if oldest != nil {
			most = byNamespace[oldest.namespace]
		}
		if oldest == nil || n > most || n == most && proc.idle.Before(oldest.idle) {
			oldest = proc
		}
	}
	if oldest != nil {
		p.retire(oldest)
	}
}

// reachedMaxCalls reports whether a process has made its maximum number of calls.
func (p *Pool) reachedMaxCalls(proc *process) bool {
	return proc.isReady() && proc.err == nil && proc.server.Made() >= p.config.MaxCalls
}

func sameConfig(a, b cty.Value) bool {
	if a == cty.NilVal || b == cty.NilVal {
		return a == cty.NilVal && b == cty.NilVal
	}
	return a.RawEquals(b)
}

// retire removes a process from the current ones. It ends with its last lease.
func (p *Pool) retire(proc *process) {
	if p.current[proc.key] == proc {
		delete(p.current, proc.key)
	}
	proc.retiring = true
	if proc.leases == 0 {
		proc.end()
	}
}

func (p *Pool) releaseLease(proc *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release(proc)
}

// release removes a lease. A process without leases frees its slot, and runs on until it is evicted or idle for long.
func (p *Pool) release(proc *process) {
	proc.leases--
	if proc.leases > 0 {
		p.stopUnwanted(proc)
		return
	}
	if proc.slot != nil {
		proc.slot.Release()
		proc.slot, proc.granted = nil, make(chan struct{})
	}
	proc.idle = time.Now()
	proc.idleSince++
	if !proc.begun() || proc.retiring || p.closed || p.reachedMaxCalls(proc) {
		p.retire(proc)
		return
	}
	after, mark := p.config.IdleTimeout, proc.idleSince
	if !proc.key.configured || proc.key.brief || !proc.isReady() {
		after = min(after, briefIdle)
	}
	if proc.timer != nil {
		proc.timer.Stop() // successive calls must not accumulate timers
	}
	proc.timer = time.AfterFunc(after, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if proc.leases == 0 && proc.idleSince == mark {
			p.retire(proc)
		}
	})
}
