package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/resourceset"
)

// This file saves the index and restores it. A snapshot has all entries as of one position. A server that starts
// restores it, and its first refresh reads only the changes after the position.

// snapshotFormat is the version of what entries.go writes.
const snapshotFormat = 3

// Position is the revisions of the objects, the records and the statuses that an index has read.
type Position struct {
	Objects  int64 `json:"objects"`
	Records  int64 `json:"records"`
	Statuses int64 `json:"statuses"`
}

// Snapshots stores the last snapshot of an index.
type Snapshots interface {
	// Load returns the snapshot's blocks. It returns an error if there is no snapshot, or if the snapshot does not
	// belong to the present state of the database. The sequence ends with an error if a block is missing or damaged.
	Load(ctx context.Context, format int) (Position, iter.Seq2[[]byte, error], error)
	// Save replaces the snapshot. If it fails, the earlier snapshot stays.
	Save(ctx context.Context, format int, at Position, blocks iter.Seq2[[]byte, error]) error
	// Move changes the position of the snapshot, whose blocks are those of the new position, too.
	Move(ctx context.Context, at Position) error
	// Outdated reports whether another key than the current one encrypts the snapshot.
	Outdated(ctx context.Context) bool
	// Remove removes the snapshot.
	Remove() error
}

// Persist makes the index restore its snapshot before the first refresh, and save snapshots while Run runs. It must be
// called before the first refresh.
func (x *Index) Persist(s Snapshots, log *slog.Logger) { x.snapshots, x.log = s, log }

func (x *Index) position() Position { return Position{x.objectsAt, x.recordsAt, x.statusesAt} }

// image has pointers to all entries, which are immutable, as of one time.
type image struct {
	at         Position
	key        string
	packages   map[string]packageID
	kinds      map[*Kind]Kind // kind completes a Kind later
	creating   map[recordKey]struct{}
	namespaces []namespaceImage
}

type namespaceImage struct {
	name string
	// slots has further addresses, too: those whose slots are not below len(nodes). slotsMu guards it.
	slotsMu    *sync.RWMutex
	slots      map[typeKey]map[string]int32
	nodes      []Node
	lost       []lostRecord
	duplicates []*Object
	statuses   []savedStatus
	sets       []*set
	modules    []*moduleEntry
}

type lostRecord struct {
	uid    types.UID
	record *Record
}

type savedStatus struct {
	uid    types.UID
	status instanceStatus
}

// image requires x.mu.
func (x *Index) image() *image {
	m := &image{at: x.position(), key: x.owners.key, packages: maps.Clone(x.packages), kinds: map[*Kind]Kind{},
		creating: maps.Clone(x.owners.creating)}
	for _, k := range x.kinds {
		m.kinds[k] = *k
	}
	for name, ns := range x.namespaces {
		n := namespaceImage{name: name, slotsMu: ns.slotsMu, slots: ns.slots, nodes: slices.Clone(ns.nodes),
			statuses: make([]savedStatus, 0, len(ns.statuses))}
		for uid, r := range ns.lost {
			n.lost = append(n.lost, lostRecord{uid, r})
		}
		for _, objects := range ns.duplicates {
			n.duplicates = slices.AppendSeq(n.duplicates, maps.Values(objects))
		}
		for uid, s := range ns.statuses {
			n.statuses = append(n.statuses, savedStatus{uid, s})
		}
		for _, s := range ns.sets {
			n.sets = append(n.sets, new(*s)) // compact changes its slots
		}
		n.modules = slices.Collect(maps.Values(ns.modules))
		m.namespaces = append(m.namespaces, n)
	}
	return m
}

// blocks encodes the image. A block is valid until the next one.
func (m *image) blocks(yield func([]byte, error) bool) {
	e := &entryEncoder{encoder: newEncoder(), kinds: map[*Kind]uint64{}}
	// full yields a block that is large enough, or any if last is true. It returns false if the caller wants no more.
	full := func(last bool) bool {
		if len(e.block) < blockBytes && !last || len(e.block) == 0 {
			return true
		}
		more := yield(e.block, nil)
		e.block = e.block[:0]
		return more
	}
	e.text(m.key)
	e.uint(uint64(len(m.packages)))
	for provider, p := range m.packages {
		e.text(provider)
		e.text(p.checksum)
		e.text(p.version)
	}
	e.uint(uint64(len(m.kinds)))
	for key, k := range m.kinds {
		e.kinds[key] = uint64(len(e.kinds))
		for _, s := range []string{k.Provider, k.Stored, k.APIVersion, k.Kind} {
			e.text(s)
		}
	}
	e.uint(uint64(len(m.namespaces)))
	for i := range m.namespaces {
		if ok, err := m.namespaces[i].encode(e, m.creating, full); err != nil {
			yield(nil, err)
			return
		} else if !ok {
			return
		}
	}
	full(true)
}

// encode encodes a namespace. It returns false if full did.
func (n *namespaceImage) encode(e *entryEncoder, creating map[recordKey]struct{},
	full func(last bool) bool) (ok bool, err error) {
	isCreating := func(uid types.UID) bool { _, is := creating[recordKey{n.name, uid}]; return is }
	e.text(n.name)
	for _, count := range []int{len(n.nodes), len(n.lost), len(n.duplicates), len(n.statuses), len(n.sets),
		len(n.modules)} {
		e.uint(uint64(count))
	}
	unused := n.unused()
	for i, node := range n.nodes {
		e.bits(node.Object != nil, node.Record != nil)
		if node.Object == nil {
			e.address(unused[int32(i)].typeKey, unused[int32(i)].name)
		} else {
			e.object(node.Object)
		}
		if node.Record != nil {
			e.record(node.Record, isCreating(node.Object.UID))
		}
		if !full(false) {
			return false, nil
		}
	}
	for _, l := range n.lost {
		e.uid(string(l.uid))
		e.record(l.record, isCreating(l.uid))
		if !full(false) {
			return false, nil
		}
	}
	for _, o := range n.duplicates {
		e.object(o)
		if !full(false) {
			return false, nil
		}
	}
	for _, s := range n.statuses {
		e.uid(string(s.uid))
		e.status(s.status)
		if !full(false) {
			return false, nil
		}
	}
	for _, s := range n.sets {
		if err := e.set(s); err != nil {
			return false, fmt.Errorf("encode ResourceSet %q: %w", s.Name, err)
		}
		if !full(false) {
			return false, nil
		}
	}
	for _, m := range n.modules {
		if err := e.module(m.object, m.revision); err != nil {
			return false, fmt.Errorf("encode Module %q: %w", m.object.Name, err)
		}
		if !full(false) {
			return false, nil
		}
	}
	return true, nil
}

// slotAddress is the address of a slot.
type slotAddress struct {
	typeKey
	name string
}

// unused returns the addresses of the slots without an object.
func (n *namespaceImage) unused() map[int32]slotAddress {
	out := map[int32]slotAddress{}
	n.slotsMu.RLock()
	defer n.slotsMu.RUnlock()
	for key, names := range n.slots {
		for name, i := range names {
			if int(i) < len(n.nodes) && n.nodes[i].Object == nil {
				out[i] = slotAddress{key, name}
			}
		}
	}
	return out
}

// restore restores the snapshot, once. If it cannot, the next refresh reads everything. It requires x.mu.
func (x *Index) restore(ctx context.Context) {
	if x.restored || x.snapshots == nil {
		return
	}
	x.restored = true
	began := time.Now()
	ctx = context.WithoutCancel(ctx) // there is no second attempt
	at, blocks, err := x.snapshots.Load(ctx, snapshotFormat)
	if err == nil {
		err = x.read(ctx, blocks)
	}
	if err != nil {
		x.reset()
		x.owners = newOwners()
		x.log.Info("the index reads all objects and records, because it cannot use its snapshot", "reason", err)
		// The next start must not find it, because it could then seem to fit: the database goes on from here.
		if err := x.snapshots.Remove(); err != nil {
			x.log.Warn("remove the snapshot that the index cannot use", "error", err)
		}
		return
	}
	x.objectsAt, x.recordsAt, x.statusesAt = at.Objects, at.Records, at.Statuses
	x.feed.begin(at.Objects)
	for name, ns := range x.namespaces {
		x.changed[name] = true
		ns.touchAll(func(owner string, module bool) { x.touch(name, owner, module) })
	}
	x.saved = saved{at: at, when: time.Now()}
	x.log.Info("restored the index from its snapshot", "objects", x.objectCount(), "duration", time.Since(began))
}

// reset removes all entries, but keeps the key of the owners. It requires x.mu.
func (x *Index) reset() {
	for name := range x.namespaces {
		x.uncounted[name] = true
	}
	x.namespaces, x.packages, x.owners = map[string]*namespace{}, map[string]packageID{}, ownersWith(x.owners.key)
	x.objectsAt, x.recordsAt, x.statusesAt = 0, 0, 0
}

// touchAll calls touch with the names of all ResourceSets and Modules that have, or had, instances with an entry.
func (ns *namespace) touchAll(touch func(owner string, module bool)) {
	for name := range ns.sets {
		touch(name, false)
	}
	for name := range ns.modules {
		touch(name, true)
	}
	for uid := range ns.leaving {
		o := ns.objectOf(uid)
		touch(o.Instance.Set, v1alpha1.InModule(o.Name))
	}
	for _, r := range ns.lost {
		if r.instance() {
			touch(r.of.Value().Set, v1alpha1.InModule(r.name))
		}
	}
}

// read fills an empty index with the entries of a snapshot.
func (x *Index) read(ctx context.Context, blocks iter.Seq2[[]byte, error]) error {
	next, stop := iter.Pull2(blocks)
	defer stop()
	d := &entryDecoder{labels: map[string]labels.Set{}, outside: map[string]*Outside{}, sharedOutside: x.shared}
	// more reads the next block when it is necessary.
	more := func() error {
		if d.err != nil || len(d.block) > 0 {
			return d.err
		}
		block, err, ok := next()
		if !ok {
			return errors.Join(errDamaged, errors.New("it ends too early"))
		}
		d.block = block
		return err
	}
	if err := more(); err != nil {
		return err
	}
	x.owners = ownersWith(d.text())
	for n := d.uint(); n > 0 && d.err == nil; n-- {
		provider := d.text()
		x.packages[provider] = packageID{checksum: d.text(), version: d.text()}
	}
	d.kinds = decodeList(&d.decoder, func() *Kind {
		k := x.kind(Change{Provider: d.text(), Stored: d.text()})
		k.APIVersion, k.Kind = d.text(), d.text()
		return k
	})
	for n := d.uint(); n > 0; n-- {
		if err := x.readNamespace(ctx, d, more); err != nil {
			return err
		}
	}
	if d.err != nil || len(d.block) > 0 {
		return errDamaged
	}
	if _, err, ok := next(); ok {
		return cmp.Or(err, errDamaged)
	}
	return nil
}

func (x *Index) readNamespace(ctx context.Context, d *entryDecoder, more func() error) error {
	if err := more(); err != nil {
		return err
	}
	name := unique.Make(d.text()).Value()
	ns := x.namespace(name)
	ns.unsettled = true
	restoreRecord := func(uid types.UID, o *Object) *Record {
		r, creating := d.record(o)
		key := recordKey{name, uid}
		ns.countRecords(nil, r)
		x.owners.add(key, r.owned)
		if creating {
			x.owners.creating[key] = struct{}{}
		}
		return r
	}
	var savedSets []savedSet
	nodes, lost, duplicates, statuses, sets, modules := d.uint(), d.uint(), d.uint(), d.uint(), d.uint(), d.uint()
	parts := []struct {
		count uint64
		read  func() error
	}{
		{nodes, func() error { return ns.readNode(d, restoreRecord) }},
		{lost, func() error { uid := types.UID(d.uid()); ns.lost[uid] = restoreRecord(uid, nil); return nil }},
		{duplicates, func() error {
			if o := d.object(); d.err == nil {
				ns.addDuplicate(o)
			}
			return nil
		}},
		{statuses, func() error { uid := types.UID(d.uid()); ns.statuses[ns.ownUID(uid)] = d.status(); return nil }},
		{sets, func() error { s, err := d.set(); savedSets = append(savedSets, s); return err }},
		{modules, func() error { return x.restoreModule(ns, d) }},
	}
	for _, part := range parts {
		for range part.count {
			if err := more(); err != nil {
				return err
			}
			if err := part.read(); err != nil {
				return err
			}
		}
	}
	for _, s := range savedSets {
		if err := x.restoreSet(ctx, ns, s); err != nil {
			return err
		}
	}
	return d.err
}

// restoreModule reads the next Module, whose instances are restored. The first refresh expands it.
func (x *Index) restoreModule(ns *namespace, d *entryDecoder) error {
	obj, revision, err := d.module()
	if err != nil {
		return err
	}
	m := &moduleEntry{object: obj, revision: revision}
	for i, n := range ns.nodes {
		if n.isOf(obj.UID) {
			m.slots = append(m.slots, int32(i))
		}
	}
	ns.modules[obj.Name] = m
	x.outdate(ns.name, obj.Name)
	return nil
}

// readNode reads the next node.
func (ns *namespace) readNode(d *entryDecoder, record func(types.UID, *Object) *Record) error {
	var hasObject, hasRecord bool
	d.bits(&hasObject, &hasRecord)
	var n Node
	var key typeKey
	var name string
	if hasObject {
		if n.Object = d.object(); d.err != nil {
			return d.err
		}
		key, name = keyOf(n.Object.Mode, n.Object.Type), n.Object.Name
	} else {
		key, name = d.address()
	}
	i := ns.slot(key.mode, key.name, name)
	if int(i) != len(ns.nodes)-1 {
		return errDamaged
	}
	if !hasObject {
		return d.err
	}
	if hasRecord {
		n.Record = record(n.Object.UID, n.Object)
	}
	ns.nodes[i] = n
	ns.objects++
	ns.uids[n.Object.UID] = i
	if n.Object.Instance != nil && n.Object.Instance.Leaving {
		ns.leaving[n.Object.UID] = true
	}
	ns.setVersion(i)
	return nil
}

// restoreSet restores a set, whose instances are restored. Its keys may be newer: then it has the old Revision, and the
// change of its ConfigMap, which the next refresh reads, expands it again.
func (x *Index) restoreSet(ctx context.Context, ns *namespace, s savedSet) error {
	data, at, err := x.keysOf(ctx, s.object)
	if err != nil {
		return err
	}
	restored, err := resourceset.New(s.object, at, data)
	if err != nil {
		return fmt.Errorf("expand ResourceSet %q: %w", s.object.Name, err)
	}
	restored.Revision = s.content
	ns.sets[s.object.Name] = &set{Set: restored, object: s.object, revision: s.revision, kind: s.kind, slots: s.slots}
	return nil
}
