package index

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/resourceset"
)

// This file keeps the last changes of the instances of ResourceSets, for watches. An instance is no stored object, so
// the log of the store does not have them.

// maxFed is the maximum number of changes that a feed keeps.
const maxFed = 20_000

// maxListed is the maximum number of lists whose positions a feed keeps.
const maxListed = 1000

// InstanceChange is a change of an instance: its nodes before and after. The object of a node is nil if the instance
// did not exist.
type InstanceChange struct {
	Namespace     string
	Before, After Node
	// In is the set after the change; nil if it does not exist.
	In *resourceset.Set
}

// Batch is the changes of the instances that one refresh found. An instance has at most one change in it.
type Batch struct {
	// At is the revision of the objects that the refresh read. The changes of the statuses and records may be newer.
	At      int64
	Changes []InstanceChange
}

// feed keeps the last batches. A position is the number of batches that were made before it.
type feed struct {
	// pending has the changes of the running refresh, and order their UIDs. interrupted is true if it read everything,
	// so that the changes are unknown. The mutex of the index guards them.
	pending     map[types.UID]*InstanceChange
	order       []types.UID
	interrupted bool

	mu      sync.Mutex
	batches []Batch
	// first is the position of the first batch, and held the number of changes in all.
	first uint64
	held  int
	// floor is the lowest revision from which the feed has all later changes.
	floor int64
	// listed has the positions of lists, by their revision.
	listed map[int64]uint64
	// changed is closed with the next batch.
	changed chan struct{}
}

func newFeed() *feed {
	return &feed{pending: map[types.UID]*InstanceChange{}, listed: map[int64]uint64{}, changed: make(chan struct{})}
}

// begin says that the feed has all changes after a revision: a snapshot of the index is of that.
func (f *feed) begin(revision int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.floor = revision
}

// note adds a change of an instance to the running refresh.
func (f *feed) note(namespace string, before, after Node) {
	if f.interrupted {
		return
	}
	known := after.Object
	if known == nil {
		known = before.Object
	}
	c := f.pending[known.UID]
	if c == nil && sameInstance(before, after) {
		return
	}
	if c == nil {
		if len(f.order) == maxFed {
			f.interrupt()
			return
		}
		c = &InstanceChange{Namespace: namespace, Before: before}
		f.pending[known.UID], f.order = c, append(f.order, known.UID)
	}
	c.After = after
}

// sameInstance reports whether a reader of an instance sees no change of it. An edit of a set gives all its instances
// another revision, but few of them another content.
func sameInstance(before, after Node) bool {
	a, b := before.Object, after.Object
	return a != nil && b != nil && a.UID == b.UID && a.Generation == b.Generation && a.Flags == b.Flags &&
		a.Config == b.Config && maps.Equal(a.Labels, b.Labels) &&
		a.Instance.Leaving == b.Instance.Leaving && slices.Equal(before.Record.ids(), after.Record.ids()) &&
		a.Instance.status == b.Instance.status && before.Readiness() == after.Readiness()
}

// ids returns the hashes of the IDs of a record, which may be nil.
func (r *Record) ids() []uint64 {
	if r == nil {
		return nil
	}
	return r.owned
}

// interrupt makes the running refresh end all watches: its changes are too many, or unknown.
func (f *feed) interrupt() {
	f.interrupted, f.order = true, nil
	clear(f.pending)
}

// commit makes a batch of the changes of the refresh that ends. at is the revision of the objects that it read, and
// setOf returns the set of an instance.
func (f *feed) commit(at int64, setOf func(v1alpha1.ObjectReference) *resourceset.Set) {
	if !f.interrupted && len(f.order) == 0 {
		return
	}
	b := Batch{At: at}
	for _, uid := range f.order {
		c := f.pending[uid]
		if c.Before.Object == nil && c.After.Object == nil || sameInstance(c.Before, c.After) {
			continue // such as an instance that appeared and left
		}
		if o := c.After.Object; o != nil {
			c.In = setOf(o.Ref(c.Namespace))
		}
		b.Changes = append(b.Changes, *c)
	}
	interrupted := f.interrupted
	f.interrupted, f.order = false, nil
	clear(f.pending)
	f.add(b, interrupted)
}

// add adds a batch and removes the oldest ones. If interrupted is true, no watch can pass it.
func (f *feed) add(b Batch, interrupted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() {
		close(f.changed)
		f.changed = make(chan struct{})
	}()
	if interrupted {
		f.first += uint64(len(f.batches)) + 1 // no position before it is valid
		f.batches, f.held, f.floor = nil, 0, b.At
		clear(f.listed)
		return
	}
	f.batches, f.held = append(f.batches, b), f.held+len(b.Changes)
	for f.held > maxFed {
		f.held -= len(f.batches[0].Changes)
		f.floor = f.batches[0].At + 1
		f.batches, f.first = append([]Batch(nil), f.batches[1:]...), f.first+1
	}
}

// next is the position after the last batch. It requires f.mu.
func (f *feed) next() uint64 { return f.first + uint64(len(f.batches)) }

// noteList notes the position of a list of a revision, so that a watch from that revision gets exactly the later
// changes.
func (f *feed) noteList(revision int64, position uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, ok := f.listed[revision]; ok && known <= position {
		return
	}
	if len(f.listed) == maxListed {
		clear(f.listed)
	}
	f.listed[revision] = position
}

// positionAt returns the position of a watch from a revision. ok is false if the feed no longer has all later changes.
//
// If no list had the revision, an event or a bookmark had it. When it was sent, all earlier batches were sent, too. A
// refresh may have been running then, whose batch has an earlier revision. So the last batch with an earlier one is
// sent again.
func (f *feed) positionAt(revision int64) (position uint64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at, ok := f.listed[revision]; ok && at >= f.first {
		return at, true
	}
	if revision < f.floor {
		return 0, false
	}
	i := len(f.batches)
	for i > 0 && f.batches[i-1].At >= revision {
		i--
	}
	return f.first + uint64(max(0, i-1)), true
}

// since returns the batches from a position on.
func (f *feed) since(position uint64) (batches []Batch, next uint64, changed <-chan struct{}, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if position < f.first {
		return nil, 0, nil, false
	}
	return f.batches[min(position-f.first, uint64(len(f.batches))):], f.next(), f.changed, true
}

// setOf returns the set of an instance, or nil. It requires x.mu.
func (x *Index) setOf(ref v1alpha1.ObjectReference) *resourceset.Set {
	if ns := x.namespaces[ref.Namespace]; ns != nil {
		return ns.setOf(ref)
	}
	return nil
}

// NoteList notes that a list of a revision has the instances of a position.
func (x *Index) NoteList(revision int64, position uint64) { x.feed.noteList(revision, position) }

// PositionAt returns the position from which a watch gets the changes of instances after a revision. ok is false if the
// index no longer has all of them; then the client must list again. A namespace without instances has no changes, so a
// watch of it may begin at any revision. An empty namespace means all.
func (x *Index) PositionAt(ctx context.Context, namespace string,
	revision int64) (position uint64, ok bool, err error) {
	if position, ok = x.feed.positionAt(revision); ok {
		return position, true, nil
	}
	unlock, err := x.lockFresh(ctx)
	defer unlock()
	if err != nil {
		return 0, false, err
	}
	for name, ns := range x.namespaces {
		if (namespace == "" || namespace == name) && len(ns.sets)+len(ns.modules)+len(ns.leaving) > 0 {
			return 0, false, nil
		}
	}
	_, position, _, _ = x.feed.since(^uint64(0))
	return position, true, nil
}

// ChangesSince returns the batches from a position on, the position after them, and a channel that is closed when there
// are more. ok is false if the index no longer has all of them. The batches have what Run, or another reader of the
// index, has refreshed.
func (x *Index) ChangesSince(position uint64) (batches []Batch, next uint64, changed <-chan struct{}, ok bool) {
	return x.feed.since(position)
}
