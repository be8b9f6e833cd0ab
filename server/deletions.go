package server

import (
	"cmp"
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
	// deletionPause is the minimum time between two checks of the deletions. It combines changes that occur together.
	deletionPause = 200 * time.Millisecond
	// deletionRetry is the time after which a failed check is repeated.
	deletionRetry = 5 * time.Second
	// workersCheck is the time between two checks while there are workers, whose writes start none.
	workersCheck = 5 * time.Second
)

// deletions tracks objects that are marked for deletion but still needed: namespaces, Providers, ProviderConfigs,
// Secrets and ConfigMaps. It checks them after each change, and does nothing while there are none.
type deletions struct {
	log  *slog.Logger
	held map[string]*registry.Held
	// requested signals that a check is due. It has a capacity of one.
	requested chan struct{}
	// any is true if pending is not empty.
	any atomic.Bool

	// phase is read-locked while a resource of a deleted namespace is marked. It is write-locked while a namespace is
	// closed or its deletion is reverted.
	phase sync.RWMutex

	mu sync.Mutex
	// pending counts how often an object was added.
	pending map[deleted]int
	// undeleting holds the namespaces whose deletion is being reverted. None of their objects may be marked, and no
	// plan may be created.
	undeleting map[string]bool
	// undeletes maps a namespace to a channel that closes when the running undelete of the namespace ends.
	undeletes map[string]chan struct{}
	// closed holds the namespaces whose content is being deleted, so that no plan may be created.
	closed map[string]bool
}

// deleted is an object that is marked for deletion.
type deleted struct{ resource, namespace, name string }

func newDeletions(log *slog.Logger) *deletions {
	return &deletions{log: log, held: map[string]*registry.Held{}, requested: make(chan struct{}, 1),
		pending: map[deleted]int{}, closed: map[string]bool{},
		undeleting: map[string]bool{}, undeletes: map[string]chan struct{}{}}
}

// hold sets the handler for the deleted objects of a resource. It must be called before the first request.
func (d *deletions) hold(resource string, h *registry.Held) { d.held[resource] = h }

// add tracks an object until it no longer exists or its deletion is reverted.
func (d *deletions) add(resource, namespace, name string) {
	d.mu.Lock()
	d.pending[deleted{resource, namespace, name}]++
	d.any.Store(true)
	d.mu.Unlock()
	d.wake()
}

// changed schedules a check of all tracked objects.
func (d *deletions) changed() {
	if d.any.Load() {
		d.wake()
	}
}

func (d *deletions) wake() {
	select {
	case d.requested <- struct{}{}:
	default:
	}
}

func (d *deletions) has(resource, namespace, name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending[deleted{resource, namespace, name}] > 0
}

// open reports whether plans may be created in a namespace that is marked for deletion.
func (d *deletions) open(namespace string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending[deleted{namespaces, "", namespace}] > 0 && !d.closed[namespace] && !d.undeleting[namespace]
}

// close marks a namespace as closed before its content is deleted. It returns false, and does nothing, if the deletion
// was reverted or is being reverted.
func (d *deletions) close(namespace string) (closed bool) {
	d.phase.Lock()
	defer d.phase.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed[namespace] = d.pending[deleted{namespaces, "", namespace}] > 0 && !d.undeleting[namespace]
	return d.closed[namespace]
}

// keep calls write, which records that the deletion of a namespace is being reverted. It returns false without a write
// if the namespace is closed. After keep, the server marks none of the namespace's resources.
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

// drop calls write, which records that a namespace whose deletion was being reverted is deleted after all.
func (d *deletions) drop(namespace string, write func() error) error {
	d.phase.Lock()
	defer d.phase.Unlock()
	if err := write(); err != nil {
		return err
	}
	d.setUndeleting(namespace, false)
	return nil
}

// finish calls write, which makes a namespace active again.
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

// isUndeleting reports whether the deletion of a namespace is being reverted.
func (d *deletions) isUndeleting(namespace string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.undeleting[namespace]
}

// beginUndelete allows one caller at a time to undelete a namespace. If another caller is active, end is nil and
// working closes when that caller ends.
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

// list returns the tracked objects and how often each was added.
func (d *deletions) list() map[deleted]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.pending)
}

// done stops tracking an object, unless it was deleted and added again in the meantime.
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

// laterError requests another check after a delay.
type laterError struct{ after time.Duration }

func (e *laterError) Error() string { return fmt.Sprintf("check again after %s", e.after) }

// runDeletions processes the tracked deletions until ctx ends.
func (s *Server) runDeletions(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for known := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-s.deletions.requested:
		case <-timer.C:
		}
		if !known {
			if err := s.findDeleted(ctx); err != nil {
				s.log.Warn("cannot list the objects that are being deleted; trying again", "error", err)
				timer.Reset(deletionRetry)
				continue
			}
			known = true
		}
		began := time.Now()
		next := s.checkDeletions(ctx)
		// a worker's writes signal nothing here
		if s.deletions.any.Load() && s.config.store.Processes().Processes() > 1 {
			next = min(cmp.Or(next, workersCheck), workersCheck)
		}
		if next > 0 {
			timer.Reset(next)
		}
		select { // pause: with many objects a check takes long, and must not occupy a core continuously
		case <-ctx.Done():
		case <-time.After(max(deletionPause, 4*time.Since(began))):
		}
	}
}

// checkDeletions checks all tracked objects once. It returns the time until the next check without a change; 0 means
// never.
func (s *Server) checkDeletions(ctx context.Context) (next time.Duration) {
	for x, added := range s.deletions.list() {
		waits, err := s.checkDeletion(ctx, x)
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
			s.log.Warn("cannot check an object that is being deleted; trying again", "resource", x.resource,
				"namespace", x.namespace, "name", x.name, "error", err)
			if next == 0 {
				next = deletionRetry
			}
		case !waits:
			s.deletions.done(x, added)
		}
	}
	return next
}

// checkDeletion performs the next step for a tracked object. waits is true while the server must track the object.
func (s *Server) checkDeletion(ctx context.Context, x deleted) (waits bool, err error) {
	if x.resource == namespaces {
		return s.continueNamespaceDeletion(ctx, x.name)
	}
	return s.deletions.held[x.resource].RemoveUnused(ctx, x.namespace, x.name)
}

// findDeleted adds the objects that were marked for deletion when the server stopped.
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
