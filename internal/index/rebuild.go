package index

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unique"

	"github.com/hykube/hykube/internal/ledger"
)

// This file rebuilds the index and compares the result with the previous entries.

// maxDifferences is the maximum number of differences that a Rebuilt lists.
const maxDifferences = 20

// Rebuilt is the result of a rebuild.
type Rebuilt struct {
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
	// Objects is the number of objects and instances in the new index.
	Objects int `json:"objects"`
	// Differences names the entries that were wrong before, at most 20. Different is their number.
	Differences []string `json:"differences,omitempty"`
	Different   int      `json:"different"`
	// Skipped lists the namespaces that were not compared, because something changed in them meanwhile.
	Skipped []string `json:"skipped,omitempty"`
}

// Rebuild removes the snapshot and all entries, reads all objects and records again, and compares. Other users of the
// index wait.
func (x *Index) Rebuild(ctx context.Context) (r Rebuilt, err error) {
	r.Started = time.Now().UTC().Truncate(time.Second)
	x.saving.Lock() // so that no snapshot of the old index is saved after the removal
	defer x.saving.Unlock()
	unlock, err := x.lockFresh(ctx)
	defer unlock()
	if err != nil {
		return r, err
	}
	if x.snapshots != nil {
		if err := x.snapshots.Remove(); err != nil {
			return r, fmt.Errorf("remove the snapshot of the index: %w", err)
		}
	}
	before, at := x.facts(), x.position()
	x.reset()
	x.saved = saved{}
	if err := x.refresh(ctx); err != nil {
		return r, err
	}
	changed, err := x.changedSince(ctx, at)
	if err != nil {
		return r, err
	}
	for name := range x.namespaces {
		if _, ok := before[name]; !ok {
			before[name] = nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if changed == nil || changed[name] {
			r.Skipped = append(r.Skipped, name)
			continue
		}
		r.compare(x, name, before[name])
	}
	slices.Sort(r.Differences)
	r.Objects, r.Finished = x.objectCount(), time.Now().UTC().Truncate(time.Second)
	return r, nil
}

// compare compares the facts of a namespace with earlier ones, which it removes.
func (r *Rebuilt) compare(x *Index, name string, before map[string]digest) {
	differs := func(what string) {
		if r.Different++; len(r.Differences) < maxDifferences {
			r.Differences = append(r.Differences, fmt.Sprintf("namespace %s: %s", name, what))
		}
	}
	x.describe(name, func(what, text string, record *Record) {
		if was, ok := before[what]; !ok || was != digestOf(text, record) {
			differs(what)
		}
		delete(before, what)
	})
	for what := range before {
		differs(what)
	}
}

// changedSince returns the namespaces with changes after a position. It returns nil if these changes have expired.
func (x *Index) changedSince(ctx context.Context, at Position) (map[string]bool, error) {
	out, expired := map[string]bool{}, false
	restart := func() error { expired = true; return nil }
	err := errors.Join(
		readChanges(ctx, &at.Objects, x.objects.Since, restart,
			func(c Change) error { out[c.Namespace] = true; return nil }),
		readChanges(ctx, &at.Records, x.ledger.InstancesSince, restart,
			func(c ledger.ChangedInstance) error { out[c.Namespace] = true; return nil }),
		readChanges(ctx, &at.Statuses, x.ledger.StatusesSince, restart,
			func(c ledger.Status) error { out[c.Namespace] = true; return nil }),
	)
	if err != nil {
		return nil, fmt.Errorf("read the changes during the rebuild: %w", err)
	}
	if expired {
		return nil, nil
	}
	return out, nil
}

// digest is a hash of a fact.
type digest [16]byte

// digestOf returns the hash of a fact that is about a record; nil for another one.
func digestOf(text string, r *Record) digest {
	if r != nil {
		text += fmt.Sprint(slices.Sorted(slices.Values(r.owned)))
	}
	sum := sha256.Sum256([]byte(text))
	return digest(sum[:])
}

// facts returns hashes of all facts of the index, by namespace and description. They do not depend on the slots, nor on
// the order of changes.
func (x *Index) facts() map[string]map[string]digest {
	out := map[string]map[string]digest{}
	for name := range x.namespaces {
		facts := map[string]digest{}
		x.describe(name, func(what, text string, r *Record) { facts[what] = digestOf(text, r) })
		if len(facts) > 0 {
			out[name] = facts
		}
	}
	return out
}

// Facts returns all facts of the index as text, sorted, in a form that does not depend on the slots, nor on the order
// of changes. It lacks the hashes of owners, which differ for each index.
func (x *Index) Facts() (out []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name := range x.namespaces {
		x.describe(name, func(what, text string, _ *Record) { out = append(out, name+": "+what+": "+text) })
	}
	slices.Sort(out)
	return out
}

// describe calls add with each fact of a namespace, and with the record that the fact is about; nil without one.
func (x *Index) describe(name string, add func(what, text string, r *Record)) {
	ns := x.namespaces[name]
	names := make([]string, len(ns.nodes))
	for key, all := range ns.slots {
		for name, i := range all {
			names[i] = addressOf(key.mode, key.name, name).String()
		}
	}
	if len(ns.duplicates) > 0 || ns.collisions > 0 || ns.sharedAddress() {
		add("addresses", "two objects have one address", nil) // the order of changes decides which one has the slot
		return
	}
	for i, n := range ns.nodes {
		if n.Object == nil {
			continue
		}
		text := describeNode(n, names)
		if n.Record != nil {
			text += x.describeOwner(recordKey{name, n.Object.UID}, n.Record)
		}
		add(names[i], text, n.Record)
	}
	for uid, r := range ns.lost {
		add("the record of "+string(uid), describeRecord(r, names)+x.describeOwner(recordKey{name, uid}, r), r)
	}
	for uid, s := range ns.statuses {
		add("the status of "+string(uid), fmt.Sprintf("%+v", s), nil)
	}
	for name, s := range ns.sets {
		object, err := json.Marshal(s.object)
		add("the ResourceSet "+name, fmt.Sprint(s.revision, s.Revision, s.Len(), *s.kind, slotNames(s.slots, names),
			string(object), err), nil)
	}
	for name, m := range ns.modules {
		object, err := json.Marshal(m.object)
		add("the Module "+name, fmt.Sprint(m.revision, m.Revision, m.Problem, slotNames(m.slots, names), string(object),
			err), nil)
	}
	for uid, n := range ns.records {
		add("the number of records of the ResourceSet "+string(uid), fmt.Sprint(n), nil)
	}
	for uid := range ns.leaving {
		add("the instance "+string(uid)+", which leaves", "", nil)
	}
	if ns.objects > 0 || len(ns.uids) > 0 {
		add("the number of objects", fmt.Sprint(ns.objects, len(ns.uids)), nil)
	}
}

// sharedAddress reports whether two sets have the same address.
func (ns *namespace) sharedAddress() bool {
	seen := map[string]bool{}
	for _, s := range ns.sets {
		a := s.Address().String()
		if seen[a] {
			return true
		}
		seen[a] = true
	}
	return false
}

func slotNames(slots []int32, names []string) []string {
	out := make([]string, len(slots))
	for k, i := range slots {
		out[k] = names[i]
	}
	return out
}

// describeNode returns the content of a node as text. names has the addresses of the slots.
func describeNode(n Node, names []string) string {
	o := n.Object
	var refs []string
	for _, r := range o.References {
		refs = append(refs, names[r.Slot]+"."+r.Attribute.Value())
	}
	text := fmt.Sprintf("%+v %s %d@%d flags %d labels %v config %q moved %q depends on %v refers to %v", *o.Kind, o.UID,
		o.Generation, o.Revision,
		o.Flags, o.Labels, o.Config, o.Moved, slotNames(o.DependsOn, names), refs)
	if o.Instance != nil {
		text += fmt.Sprintf(" instance %+v", *o.Instance)
	}
	if o.Outside != nil {
		text += fmt.Sprint(" outside ", o.Outside.References)
	}
	if n.Record != nil {
		text += describeRecord(n.Record, names) + fmt.Sprint(" version ", n.Version)
	}
	return text
}

func describeRecord(r *Record, names []string) (text string) {
	if r.instance() {
		text = fmt.Sprintf(" of %+v", r.of.Value())
	}
	record := *r
	record.Requires, record.owned, record.of = nil, nil, unique.Handle[instancesOf]{} // owned differs for each index
	return text + fmt.Sprintf(" record %+v requires %v", record, slotNames(r.Requires, names))
}

// describeOwner returns the number of the hashes for which a record is an owner, and whether it is being created.
func (x *Index) describeOwner(key recordKey, r *Record) string {
	n := 0
	for _, h := range r.owned {
		if x.owners.first[h] == key || slices.Contains(x.owners.more[h], key) {
			n++
		}
	}
	_, creating := x.owners.creating[key]
	return fmt.Sprintf(" owns %d of %d creating %t", n, len(r.owned), creating)
}
