package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/kinds"
	hykubestorage "github.com/hykube/hykube/server/storage"
)

// Watch implements rest.Watcher. It checks the rights anew at each change.
func (r resourcesREST) Watch(ctx context.Context, opts *metainternalversion.ListOptions) (watch.Interface, error) {
	selected, err := newResourceSelection(opts)
	if err != nil {
		return nil, err
	}
	if selected.searches() {
		return nil, apierrors.NewBadRequest(
			fmt.Sprintf("the field selectors %q, %q and %q are for lists: a watch cannot have them",
				v1alpha1.ResourceFieldSearch, v1alpha1.ResourceFieldAttribute, v1alpha1.ResourceFieldRecord))
	}
	who, err := requireUser(ctx, "watch resources")
	if err != nil {
		return nil, err
	}
	may := func(ctx context.Context, right store.Right) (bool, error) { return r.access.May(ctx, who, right) }
	view := r.view(ctx, "watch", selected.SelectionPredicate, may)
	stored := func(ctx context.Context) (watch.Interface, error) {
		return r.collection.Watch(ctx, view, storage.ListOptions{
			ResourceVersion: opts.ResourceVersion, ResourceVersionMatch: opts.ResourceVersionMatch,
			Predicate:         selected.SelectionPredicate,
			SendInitialEvents: opts.SendInitialEvents,
		})
	}
	if r.backend.Index == nil {
		return stored(ctx)
	}
	w := &resourceWatch{resourcesREST: r, resourceSelection: selected, view: view, events: make(chan watch.Event)}
	version, err := storage.APIObjectVersioner{}.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	if w.revision = int64(version); opts.SendInitialEvents != nil && *opts.SendInitialEvents ||
		opts.SendInitialEvents == nil && version == 0 {
		w.initial = true
	} else if err := w.begin(ctx); err != nil {
		return nil, err
	}
	ctx, w.stop = context.WithCancel(ctx)
	if w.stored, err = stored(ctx); err != nil {
		w.stop()
		return nil, err
	}
	go w.run(ctx)
	return w, nil
}

// resourceWatch is a watch of Resources: the watch of the stored objects, with the changes of instances of
// ResourceSets.
//
// A client may watch again from the resource version of each event. An instance has none of its own, so its events have
// the highest version that the watch knows. Before the watch sends an event of a stored object, or a bookmark, it sends
// all earlier changes of instances; see index.PositionAt.
type resourceWatch struct {
	resourcesREST
	resourceSelection
	view   hykubestorage.View
	stored watch.Interface
	events chan watch.Event
	stop   context.CancelFunc
	// initial is true if the watch begins with the existing instances.
	initial bool
	// position is that of the changes of instances that were not sent yet. revision is that of the last event.
	position uint64
	revision int64
}

func (w *resourceWatch) ResultChan() <-chan watch.Event { return w.events }

func (w *resourceWatch) Stop() { w.stop() }

// errTooOld ends a watch whose changes of instances are not known any more. The client lists again.
func errTooOld() *apierrors.StatusError {
	return apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.")
}

// begin determines the position of a watch that begins at a revision; 0 is the current one.
func (w *resourceWatch) begin(ctx context.Context) error {
	if w.revision == 0 {
		page, err := w.backend.Index.InstancesAfter(ctx, w.view.Namespace, index.Place{}, 0,
			func(string, index.Node) bool { return false })
		if err != nil {
			return apiError(err)
		}
		w.position, w.revision = page.Position, page.At
		return nil
	}
	position, ok, err := w.backend.Index.PositionAt(ctx, w.view.Namespace, w.revision)
	switch {
	case err != nil:
		return apiError(err)
	case !ok:
		return errTooOld()
	}
	w.position = position
	return nil
}

func (w *resourceWatch) run(ctx context.Context) {
	defer close(w.events)
	defer w.stop()
	defer w.stored.Stop()
	err := w.follow(ctx)
	if err == nil || ctx.Err() != nil {
		return
	}
	status, ok := apiError(err).(*apierrors.StatusError)
	if !ok {
		status = apierrors.NewInternalError(err)
	}
	_ = w.send(ctx, watch.Event{Type: watch.Error, Object: &status.ErrStatus})
}

// follow sends events until the client stops or the watch of the stored objects ends. Neither is an error.
func (w *resourceWatch) follow(ctx context.Context) error {
	if w.initial {
		if err := w.sendExisting(ctx); err != nil {
			return err
		}
	}
	for {
		changed, err := w.sendChanges(ctx)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case e, open := <-w.stored.ResultChan():
			if !open {
				return nil
			}
			if _, err := w.sendChanges(ctx); err != nil {
				return err
			}
			w.know(e.Object)
			if err := w.send(ctx, e); err != nil {
				return err
			}
		}
	}
}

// know notes the resource version of an event.
func (w *resourceWatch) know(obj runtime.Object) {
	if m, err := meta.CommonAccessor(obj); err == nil {
		if version, err := (storage.APIObjectVersioner{}).ParseResourceVersion(m.GetResourceVersion()); err == nil {
			w.revision = max(w.revision, int64(version))
		}
	}
}

// sendExisting sends the existing instances, in pages.
func (w *resourceWatch) sendExisting(ctx context.Context) error {
	after := index.Place{}
	for more := true; more; {
		var failed error
		page, err := w.backend.Index.InstancesAfter(ctx, w.view.Namespace, after, defaultPage, w.wants(w.view, &failed))
		if err == nil {
			err = failed
		}
		if err != nil {
			return err
		}
		if after == (index.Place{}) {
			w.position = page.Position
		}
		w.revision = max(w.revision, page.At)
		for _, found := range page.Items {
			if err := w.sendInstance(ctx, watch.Added, found); err != nil {
				return err
			}
		}
		after, more = page.Last, page.More
	}
	return nil
}

// sendChanges sends the changes of instances since the last call. changed is closed when there are more.
func (w *resourceWatch) sendChanges(ctx context.Context) (changed <-chan struct{}, err error) {
	batches, next, changed, ok := w.backend.Index.ChangesSince(w.position)
	if !ok {
		return nil, errTooOld()
	}
	for _, b := range batches {
		w.revision = max(w.revision, b.At)
		var failed error
		wants := w.wants(w.view, &failed)
		for _, c := range b.Changes {
			if err := w.sendChange(ctx, c, wants); err != nil {
				return nil, err
			}
			if failed != nil {
				return nil, failed
			}
		}
	}
	w.position = next
	return changed, nil
}

// sendChange sends a change of an instance if the selection has the instance, or had it.
func (w *resourceWatch) sendChange(ctx context.Context, c index.InstanceChange, wants index.WantFunc) error {
	selects := func(n index.Node) bool {
		return n.Object != nil && wants(c.Namespace, n) && w.hasID(n)
	}
	was, is := selects(c.Before), selects(c.After)
	if is && c.In == nil && !c.After.Object.Instance.Leaving {
		is = false // the set was removed, and the next batch has the rest
	}
	found := index.Located{Namespace: c.Namespace,
		Found: index.Found{Object: c.After.Object, Record: c.After.Record, In: c.In}}
	switch {
	case is && was:
		return w.sendInstance(ctx, watch.Modified, found)
	case is:
		return w.sendInstance(ctx, watch.Added, found)
	case was:
		r := kinds.Summarize(entryObject(c.Namespace, c.Before)).(*v1alpha1.ResourceSummary)
		r.ResourceVersion = fmt.Sprint(w.revision)
		return w.send(ctx, watch.Event{Type: watch.Deleted, Object: r})
	}
	return nil
}

// hasID reports whether the record of an instance has the IDs that the selection requires.
func (w *resourceWatch) hasID(n index.Node) bool {
	for _, r := range w.Field.Requirements() {
		if r.Field == v1alpha1.ResourceFieldID && w.backend.Index.Owns(n,
			r.Value) == (r.Operator == selection.NotEquals) {
			return false
		}
	}
	return true
}

// sendInstance sends the current state of an instance.
func (w *resourceWatch) sendInstance(ctx context.Context, t watch.EventType, found index.Located) error {
	u, err := w.backend.Instance(ctx, found)
	if err != nil {
		return err
	}
	u.SetResourceVersion(fmt.Sprint(w.revision))
	r := kinds.Summarize(u)
	if t == watch.Added && w.exactID {
		if matches, err := w.Matches(r); err != nil || !matches {
			return err // only a hash of its ID is equal, or the ID is masked
		}
	}
	return w.send(ctx, watch.Event{Type: t, Object: r})
}

func (w *resourceWatch) send(ctx context.Context, e watch.Event) error {
	select {
	case w.events <- e:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// entryObject returns the object of an entry, with the condition Ready and without what the index does not know.
func entryObject(namespace string, n index.Node) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(n.Object.APIVersion)
	u.SetKind(n.Object.Kind.Kind)
	u.SetNamespace(namespace)
	u.SetName(n.Object.Name)
	u.SetUID(n.Object.UID)
	u.SetGeneration(n.Object.Generation)
	if len(n.Object.Labels) > 0 {
		u.SetLabels(n.Object.Labels)
	}
	ready := n.Readiness()
	u.Object["status"] = map[string]any{
		"observedGeneration": n.Object.Generation,
		"conditions": []any{map[string]any{
			"type": v1alpha1.ConditionReady, "status": string(ready.Status), "reason": ready.Reason,
			"lastTransitionTime": metav1.Now().UTC().Format("2006-01-02T15:04:05Z"),
		}},
	}
	return u
}
