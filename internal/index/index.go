// Package index keeps a compact entry for each object of the providers, with the facts that plans need about all
// objects: their references, their differences from their records, and their marks for deletion. All of it is derived
// from the objects and the ledger. An index reads the changes since its last refresh, so several servers can have one
// each. A plan refreshes it first, and then sees all writes before the plan.
package index

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"
	"unique"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/metrics"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// pageSize is the number of changes that a refresh reads at once.
const pageSize = 1000

// Change is the state of an object after a change. Object is nil if the object was deleted.
type Change struct {
	// Provider is the name of the object's provider, and Stored is the name of its type in the store: "sim_network" or
	// "data.sim_image".
	Provider, Stored string
	Namespace, Name  string
	Revision         int64
	Object           *unstructured.Unstructured
}

// Objects reads the stored objects of the providers.
type Objects interface {
	// All returns the objects of a provider in all namespaces. If provider is empty, it returns those of all providers,
	// the ResourceSets and the Modules.
	All(ctx context.Context, provider string) iter.Seq2[Change, error]
	// Since returns the last changes of the objects, of ResourceSets, Modules and ConfigMaps that changed after a
	// revision. current is the revision for the next call, and more is true if further changes follow. It returns
	// errors as ledger.KV's Since does.
	Since(ctx context.Context, revision int64, limit int) (changes []Change, current int64, more bool, err error)
	// ConfigMap returns the content of a ConfigMap and the revision of its last write. The content is nil if there is
	// no such ConfigMap.
	ConfigMap(ctx context.Context, namespace, name string) (data map[string][]byte, revision int64, err error)
}

// Index is the index of all namespaces.
type Index struct {
	objects Objects
	ledger  *ledger.Ledger
	catalog *catalog.Catalog

	mu sync.Mutex
	// all counts the refreshes, and stored those of objects alone.
	all, stored refreshCount
	// objectsAt, recordsAt and statusesAt are the revisions that were read; 0 means none.
	objectsAt, recordsAt, statusesAt int64
	namespaces                       map[string]*namespace
	kinds                            map[kindKey]*Kind
	// packages holds, by provider, the version with whose schema its objects were parsed.
	packages map[string]packageID
	owners   owners
	// touched holds the ResourceSets and Modules whose instances may have changed since the last call of Touched, with
	// the UID of a removed one.
	touched map[touchedOwner]types.UID
	// outdated holds the Modules that the refresh expands again; true for one that must be expanded even if nobody has
	// written it. catalogAt is the number of changes of the catalog for which all were expanded. reparsing is true
	// while the refresh parses their expressions again.
	outdated  map[types.NamespacedName]bool
	catalogAt int
	reparsing bool
	// changed holds the namespaces with changed objects, ResourceSets or records for which Changed was not called yet.
	changed map[string]bool
	// Changed is called at the end of a refresh for each namespace in which something changed; nil calls nothing. It
	// must not block, nor call the index. It must be set before the first refresh.
	Changed func(namespace string)

	// uncounted holds the namespaces that changed since Counts counted them. counts holds the numbers; counting guards
	// it.
	uncounted map[string]bool
	counting  sync.Mutex
	counts    map[string]metrics.Resources

	// feed has the last changes of instances, for watches.
	feed *feed

	// sharing guards outside.
	sharing sync.Mutex
	outside map[string]*Outside

	// snapshots stores snapshots; nil stores none. log is set with it. restored is true after the attempt to restore
	// one.
	snapshots Snapshots
	log       *slog.Logger
	restored  bool
	// saving is held while a snapshot is saved or removed, and locked before mu.
	saving sync.Mutex
	// saved describes the last snapshot, and unsaved is the number of entries that changed since.
	saved   saved
	unsaved int
}

// New returns an empty index. Its first refresh reads all objects and records.
func New(objects Objects, l *ledger.Ledger, c *catalog.Catalog) *Index {
	return &Index{objects: objects, ledger: l, catalog: c, namespaces: map[string]*namespace{},
		kinds:    map[kindKey]*Kind{},
		packages: map[string]packageID{}, owners: newOwners(), touched: map[touchedOwner]types.UID{},
		outdated: map[types.NamespacedName]bool{}, changed: map[string]bool{}, uncounted: map[string]bool{},
		counts: map[string]metrics.Resources{}, outside: map[string]*Outside{}, feed: newFeed()}
}

// View refreshes the index and returns the current entries of a namespace.
func (x *Index) View(ctx context.Context, namespace string) (*View, error) {
	unlock, err := x.lockFresh(ctx)
	defer unlock()
	if err != nil {
		return nil, err
	}
	return x.viewOf(namespace), nil
}

// Refresh reads the changes since the last refresh.
func (x *Index) Refresh(ctx context.Context) error {
	unlock, err := x.lockFresh(ctx)
	unlock()
	return err
}

// interval is the time between two refreshes of Run.
const interval = time.Second

// Run refreshes the index until ctx ends, so that a plan after many writes need not read all of them. It begins when
// ready returns nil: without the providers' schemas, it would have to read the objects twice. It also saves snapshots,
// the last one after ctx ends; see Persist.
func (x *Index) Run(ctx context.Context, ready func() error, log *slog.Logger) {
	if x.snapshots != nil {
		var saves sync.WaitGroup
		defer saves.Wait()
		saves.Go(func() { x.keepSaved(ctx) })
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	began := time.Now()
	for first := true; ; {
		if ready() == nil {
			err := x.Refresh(ctx)
			bug.Log(log, "refresh index", err)
			switch {
			case err != nil && ctx.Err() == nil:
				log.Warn("refresh index", "error", err)
			case err == nil && first:
				first = false
				log.Info("indexed the objects", "duration", time.Since(began))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// refresh requires x.mu.
func (x *Index) refresh(ctx context.Context) error {
	if err := x.refreshObjects(ctx); err != nil {
		return fmt.Errorf("refresh index of objects: %w", err)
	}
	if err := x.refreshRecords(ctx); err != nil {
		return fmt.Errorf("refresh index of records: %w", err)
	}
	if err := x.expandModules(ctx); err != nil {
		return fmt.Errorf("refresh index of objects: %w", err)
	}
	if err := x.refreshStatuses(ctx); err != nil {
		return fmt.Errorf("refresh index of statuses: %w", err)
	}
	if err := x.reparse(ctx); err != nil {
		return fmt.Errorf("refresh index of objects: %w", err)
	}
	for name, ns := range x.namespaces {
		x.settleLeaving(name, ns)
		ns.compact()
	}
	x.feed.commit(x.objectsAt, x.setOf)
	x.notifyChanged()
	return nil
}

// notifyChanged calls Changed.
func (x *Index) notifyChanged() {
	for name := range x.changed {
		x.uncounted[name] = true
		if x.Changed != nil {
			x.Changed(name)
		}
	}
	clear(x.changed)
}

// readChanges applies the changes after the revision at, in pages. If these changes have expired, read replaces
// everything.
func readChanges[C any](ctx context.Context, at *int64,
	since func(context.Context, int64, int) ([]C, int64, bool, error), read func() error, apply func(C) error) error {
	for {
		changes, current, more, err := since(ctx, *at, pageSize)
		if errors.Is(err, ledger.ErrExpired) {
			*at = 0 // if the read fails, the next refresh begins anew
			if err := read(); err != nil {
				return err
			}
			if *at = current; current == 0 {
				return nil // nothing was ever written
			}
			continue
		}
		if err != nil {
			return err
		}
		for _, c := range changes {
			if err := apply(c); err != nil {
				return err
			}
		}
		if *at = current; !more {
			return nil
		}
	}
}

func (x *Index) refreshObjects(ctx context.Context) error {
	apply := func(c Change) error {
		x.all.done = 0 // a refresh of objects alone does not reparse and settle, so the next reader of all must refresh
		return x.apply(ctx, c, false)
	}
	err := readChanges(ctx, &x.objectsAt, x.objects.Since, func() error { x.all.done = 0; return x.readObjects(ctx) },
		apply)
	if err != nil {
		return err
	}
	return x.expandModules(ctx)
}

// readObjects replaces all objects.
func (x *Index) readObjects(ctx context.Context) error {
	x.feed.interrupt()
	for name, ns := range x.namespaces {
		ns.dropObjects()
		clear(ns.sets)
		clear(ns.modules)
		x.uncounted[name] = true
	}
	for c, err := range x.objects.All(ctx, "") {
		if err != nil {
			return err
		}
		if err := x.apply(ctx, c, false); err != nil {
			return err
		}
	}
	return nil
}

// refreshStatuses reads the changed statuses of the instances of ResourceSets.
func (x *Index) refreshStatuses(ctx context.Context) error {
	apply := func(s ledger.Status) error { x.applyStatus(s); return nil }
	read := func() error {
		x.dropStatuses()
		for s, err := range x.ledger.Statuses(ctx) {
			if err != nil {
				return err
			}
			x.applyStatus(s)
		}
		return nil
	}
	return readChanges(ctx, &x.statusesAt, x.ledger.StatusesSince, read, apply)
}

func (x *Index) refreshRecords(ctx context.Context) error {
	apply := func(c ledger.ChangedInstance) error { x.record(c.Namespace, c.UID, c.Revision, c.Instance); return nil }
	return readChanges(ctx, &x.recordsAt, x.ledger.InstancesSince, func() error { return x.readRecords(ctx) }, apply)
}

// readRecords replaces all records.
func (x *Index) readRecords(ctx context.Context) error {
	x.feed.interrupt()
	for _, ns := range x.namespaces {
		ns.dropRecords()
	}
	x.owners = ownersWith(x.owners.key)
	for rec, err := range x.ledger.Instances(ctx, "") {
		if err != nil {
			return err
		}
		x.record(rec.Object.Namespace, rec.Object.UID, rec.Revision(), rec)
	}
	x.outdateAll() // moved blocks depend on what is recorded
	return nil
}

// record applies a change of a record. i is nil if the record was deleted.
func (x *Index) record(namespace string, uid types.UID, revision int64, i *ledger.Instance) {
	x.changed[namespace] = true
	x.unsaved++
	ns, hashes := x.namespace(namespace), x.owners.hashesOf(i)
	namespace, uid = unique.Make(namespace).Value(), ns.ownUID(uid)
	of := ns.objectOf(uid)
	r := recordOf(ns, i, of)
	if r != nil {
		r.owned = hashes
	}
	old, ok := ns.record(uid, revision, r)
	if !ok {
		return
	}
	ns.countRecords(old, r)
	x.noteMoves(ns, uid, old, r)
	x.noteNeeds(ns, of)
	for _, changed := range []*Record{old, r} {
		if changed != nil && changed.instance() {
			x.touch(namespace, changed.of.Value().Set, v1alpha1.InModule(changed.name))
		}
	}
	key := recordKey{namespace, uid}
	if old != nil {
		x.owners.remove(key, old.owned)
	}
	x.owners.add(key, hashes)
	x.owners.setCreating(key, i)
}

// packageID identifies the schema of a provider.
type packageID struct {
	checksum, version string
	// schema distinguishes providers without a checksum, which exist only in tests.
	schema any
}

func (x *Index) packageOf(provider string) packageID {
	e, ok := x.catalog.Get(provider)
	switch {
	case !ok:
		return packageID{}
	case e.Package.Checksum == "":
		return packageID{version: e.Package.Version, schema: e.Schema}
	}
	return packageID{checksum: e.Package.Checksum, version: e.Package.Version}
}

// noteProvider notes the version of a provider whose objects are parsed, so that reparse sees another version.
func (x *Index) noteProvider(provider string) {
	if _, ok := x.packages[provider]; !ok {
		x.packages[provider] = x.packageOf(provider)
	}
}

// reparse parses the objects of each provider again whose schema is not the one they were parsed with.
func (x *Index) reparse(ctx context.Context) error {
	for provider, parsed := range x.packages {
		now := x.packageOf(provider)
		if now == parsed {
			continue
		}
		for c, err := range x.objects.All(ctx, provider) {
			if err != nil {
				return err
			}
			if err := x.apply(ctx, c, true); err != nil {
				return err
			}
		}
		for _, ns := range x.namespaces {
			for _, s := range ns.sets {
				if s.kind.Provider != provider {
					continue
				}
				if err := x.expand(ctx, ns, s.object, s.revision, true, true); err != nil {
					return err
				}
			}
			for uid := range ns.leaving {
				if o := ns.objectOf(uid); o != nil && o.Provider == provider {
					ns.clear(ns.uids[uid]) // settleLeaving adds it again
				}
			}
		}
		x.packages[provider] = now
	}
	return x.reparseModules(ctx)
}

// reparseModules expands all Modules again after a change of the installed providers: a type may have another provider
// or another schema.
func (x *Index) reparseModules(ctx context.Context) error {
	now := x.catalog.Changes()
	if now == x.catalogAt {
		return nil
	}
	x.outdateAll()
	x.reparsing = true
	defer func() { x.reparsing = false }()
	if err := x.expandModules(ctx); err != nil {
		return err
	}
	x.catalogAt = now
	return nil
}

// apply applies a change of an object. If reparse is true, it parses an object of the same revision again.
func (x *Index) apply(ctx context.Context, c Change, reparse bool) error {
	x.changed[c.Namespace] = true
	x.unsaved++
	switch {
	case c.Provider == "" && c.Stored == StoredSets:
		return x.applySet(ctx, c, reparse)
	case c.Provider == "" && c.Stored == StoredModules:
		return x.applyModule(c, reparse)
	case c.Provider == "" && c.Stored == StoredConfigMaps:
		return x.applyConfigMap(ctx, c)
	}
	kind := x.kind(c)
	ns := x.namespace(c.Namespace)
	if c.Object == nil {
		ns.remove(kind, c.Name, c.Revision)
		return nil
	}
	x.noteProvider(c.Provider)
	old := ns.find(kind, c.Name)
	if old != nil && (old.Revision > c.Revision || old.Revision == c.Revision && !reparse) {
		return nil
	}
	if reparse {
		old = nil // its parsed parts are outdated
	}
	ns.put(x.objectOf(ns, kind, c, old))
	return nil
}

func (x *Index) namespace(name string) *namespace {
	ns := x.namespaces[name]
	if ns == nil {
		ns = newNamespace(name, x.feed)
		x.namespaces[name] = ns
	}
	return ns
}

// kindKey identifies a Kind.
type kindKey struct{ provider, stored string }

// kind returns the shared Kind of an object. It requires x.mu.
func (x *Index) kind(c Change) *Kind {
	key := kindKey{c.Provider, c.Stored}
	k := x.kinds[key]
	if k == nil {
		k = &Kind{Provider: c.Provider, Stored: c.Stored}
		k.Mode, k.Type = modeOf(c.Stored)
		x.kinds[key] = k
	}
	if k.Kind == "" && c.Object != nil {
		k.APIVersion, k.Kind = c.Object.GetAPIVersion(), c.Object.GetKind()
	}
	return k
}
