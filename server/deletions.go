package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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

	mu sync.Mutex
	// pending counts how often an object was added.
	pending map[deleted]int
	// undeleting are the namespaces whose deletion is being taken back: nothing of them is marked, and no plan may be made in them.
	undeleting map[string]bool
	// undeletes are closed when the undelete of a namespace ends that works now.
	undeletes map[string]chan struct{}
	// closed are the namespaces that are being emptied: no plan may be made in them any more.
	closed map[string]bool
}

// deleted is an object that is being deleted.
type deleted struct{ resource, namespace, name string }

func newDeletions(log *slog.Logger) *deletions {
	return &deletions{log: log, held: map[string]*registry.Held{}, kick: make(chan struct{}, 1), pending: map[deleted]int{}, closed: map[string]bool{},
		undeleting: map[string]bool{}, undeletes: map[string]chan struct{}{}}
}

// hold names what settles the objects of a resource. It is called before the first request.
func (d *deletions) hold(resource string, h *registry.Held) { d.held[resource] = h }

// add has an object looked at until it is gone, or its deletion is taken back.
func (d *deletions) add(resource, namespace, name string) {
	d.mu.Lock()
	d.pending[deleted{resource, namespace, name}]++
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
	return d.pending[deleted{resource, namespace, name}] > 0
}

// open says whether plans can be made in a namespace that is being deleted.
func (d *deletions) open(namespace string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending[deleted{namespaces, "", namespace}] > 0 && !d.closed[namespace] && !d.undeleting[namespace]
}

// close says that a namespace is emptied from here on, unless its deletion was taken back, or is being taken back.
func (d *deletions) close(namespace string) (closed bool) {
	d.phase.Lock()
	defer d.phase.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed[namespace] = d.pending[deleted{namespaces, "", namespace}] > 0 && !d.undeleting[namespace]
	return d.closed[namespace]
}

// keep records by a write that the deletion of a namespace is taken back, unless the namespace is being emptied. The server marks nothing of
// the namespace afterwards.
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
	d.setUndeleting(namespace, true)
	return true, nil
}

// drop records by a write that a namespace is deleted after all, whose deletion was being taken back.
func (d *deletions) drop(namespace string, write func() error) error {
	d.phase.Lock()
	defer d.phase.Unlock()
	if err := write(); err != nil {
		return err
	}
	d.setUndeleting(namespace, false)
	return nil
}

// finish makes a namespace active again by a write.
func (d *deletions) finish(namespace string, write func() error) error {
	d.phase.Lock()
	defer d.phase.Unlock()
	if err := write(); err != nil {
		return err
	}
	x := deleted{namespaces, "", namespace}
	d.mu.Lock()
	added := d.pending[x]
	d.mu.Unlock()
	d.done(x, added)
	return nil
}

func (d *deletions) setUndeleting(namespace string, undeleting bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if undeleting {
		d.undeleting[namespace] = true
		return
	}
	delete(d.undeleting, namespace)
}

// isUndeleting says whether the deletion of a namespace is being taken back.
func (d *deletions) isUndeleting(namespace string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.undeleting[namespace]
}

// beginUndelete lets one caller at a time work on the undelete of a namespace. end is nil while another caller works, and working is then
// closed when that caller ends.
func (d *deletions) beginUndelete(namespace string) (end func(), working <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if other, ok := d.undeletes[namespace]; ok {
		return nil, other
	}
	own := make(chan struct{})
	d.undeletes[namespace] = own
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.undeletes, namespace)
		close(own)
	}, nil
}

// list returns what is being deleted, and how often each was added.
func (d *deletions) list() map[deleted]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.pending)
}

// done ends the looking at an object, unless it was added again meanwhile: it was deleted anew.
func (d *deletions) done(x deleted, added int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pending[x] != added {
		return
	}
	delete(d.pending, x)
	if x.resource == namespaces {
		delete(d.closed, x.name)
		delete(d.undeleting, x.name)
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
	for x, added := range s.deletions.list() {
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
			s.deletions.done(x, added)
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
		ns := &list.Items[i]
		if ns.DeletionTimestamp == nil {
			continue
		}
		if undeleteRequested(ns) {
			s.deletions.setUndeleting(ns.Name, true)
		}
		s.deletions.add(namespaces, "", ns.Name)
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
