package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/server/registry"
)

// namespaces is the resource of namespaces.
const namespaces = "namespaces"

const (
	// settlePause bounds how often deletions are checked while things change, and joins changes that come together.
	settlePause = 200 * time.Millisecond
	// settleRetry is when a look that failed is repeated.
	settleRetry = 5 * time.Second
)

// deletions follows the objects that are being deleted and stay because something needs them: namespaces, Providers, ProviderConfigs,
// Secrets and ConfigMaps. It looks at them whenever something changed, and does nothing while nothing is being deleted.
type deletions struct {
	log  *slog.Logger
	held map[string]*registry.Held
	kick chan struct{}
	// any is true while pending is not empty.
	any atomic.Bool

	// phase is held for reading while an object of a deleted namespace is marked, and for writing when the namespace is closed or its
	// deletion is taken back.
	phase sync.RWMutex

	mu      sync.Mutex
	pending map[deleted]bool
	// closed are the namespaces that are being emptied: no plan may be made in them any more.
	closed map[string]bool
}

// deleted is an object that is being deleted.
type deleted struct{ resource, namespace, name string }

func newDeletions(log *slog.Logger) *deletions {
	return &deletions{log: log, held: map[string]*registry.Held{}, kick: make(chan struct{}, 1), pending: map[deleted]bool{}, closed: map[string]bool{}}
}

// hold names what settles the objects of a resource. It is called before the first request.
func (d *deletions) hold(resource string, h *registry.Held) { d.held[resource] = h }

// add has an object looked at until it is gone, or its deletion is taken back.
func (d *deletions) add(resource, namespace, name string) {
	d.mu.Lock()
	d.pending[deleted{resource, namespace, name}] = true
	d.any.Store(true)
	d.mu.Unlock()
	d.wake()
}

// changed has everything looked at that is being deleted.
func (d *deletions) changed() {
	if d.any.Load() {
		d.wake()
	}
}

func (d *deletions) wake() {
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

func (d *deletions) has(resource, namespace, name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending[deleted{resource, namespace, name}]
}

// open says whether plans can be made in a namespace that is being deleted.
func (d *deletions) open(namespace string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending[deleted{namespaces, "", namespace}] && !d.closed[namespace]
}

// close says that a namespace is emptied from here on, unless its deletion was taken back.
func (d *deletions) close(namespace string) (closed bool) {
	d.phase.Lock()
	defer d.phase.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed[namespace] = d.pending[deleted{namespaces, "", namespace}]
	return d.closed[namespace]
}

// keep takes the deletion of a namespace back by a write, unless the namespace is being emptied. Nothing of it is marked afterwards.
func (d *deletions) keep(namespace string, write func() error) (kept bool, err error) {
	d.phase.Lock()
	defer d.phase.Unlock()
	d.mu.Lock()
	closed := d.closed[namespace]
	d.mu.Unlock()
	if closed {
		return false, nil
	}
	if err := write(); err != nil {
		return false, err
	}
	d.done(deleted{namespaces, "", namespace})
	return true, nil
}

func (d *deletions) list() []deleted {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]deleted, 0, len(d.pending))
	for x := range d.pending {
		out = append(out, x)
	}
	return out
}

func (d *deletions) done(x deleted) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pending, x)
	if x.resource == namespaces {
		delete(d.closed, x.name)
	}
	d.any.Store(len(d.pending) > 0)
}

// laterError asks for another look after a time.
type laterError struct{ after time.Duration }

func (e *laterError) Error() string { return fmt.Sprintf("look again after %s", e.after) }

// runDeletions settles what is being deleted until ctx ends.
func (s *Server) runDeletions(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for known := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-s.deletions.kick:
		case <-timer.C:
		}
		if !known {
			if err := s.findDeleted(ctx); err != nil {
				s.log.Warn("cannot list what is being deleted; trying again", "error", err)
				timer.Reset(settleRetry)
				continue
			}
			known = true
		}
		began := time.Now()
		next := s.settleAll(ctx)
		if next > 0 {
			timer.Reset(next)
		}
		select { // a look takes its time where there is much to look at; it must not take all of a core
		case <-ctx.Done():
		case <-time.After(max(settlePause, 4*time.Since(began))):
		}
	}
}

// settleAll looks at everything once, and returns when to look again although nothing changed; 0 means never.
func (s *Server) settleAll(ctx context.Context) (next time.Duration) {
	for _, x := range s.deletions.list() {
		waits, err := s.settle(ctx, x)
		if later, ok := errors.AsType[*laterError](err); ok {
			err = nil
			if next == 0 || later.after < next {
				next = later.after
			}
		}
		switch {
		case ctx.Err() != nil:
			return 0
		case err != nil:
			s.log.Warn("cannot settle what is being deleted; trying again", "resource", x.resource, "namespace", x.namespace, "name", x.name, "error", err)
			if next == 0 {
				next = settleRetry
			}
		case !waits:
			s.deletions.done(x)
		}
	}
	return next
}

func (s *Server) settle(ctx context.Context, x deleted) (waits bool, err error) {
	if x.resource == namespaces {
		return s.settleNamespace(ctx, x.name)
	}
	return s.deletions.held[x.resource].Settle(ctx, x.namespace, x.name)
}

// findDeleted finds what was being deleted when the server stopped.
func (s *Server) findDeleted(ctx context.Context) error {
	list, err := s.config.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp != nil {
			s.deletions.add(namespaces, "", list.Items[i].Name)
		}
	}
	for resource, h := range s.deletions.held {
		marked, err := h.Marked(ctx)
		if err != nil {
			return fmt.Errorf("list %s: %w", resource, err)
		}
		for _, m := range marked {
			s.deletions.add(resource, m.Namespace, m.Name)
		}
	}
	return nil
}
