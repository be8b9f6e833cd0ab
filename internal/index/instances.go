package index

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
)

// This file lists the instances of all ResourceSets in pages, and finds objects and instances by name or ID. Both read
// the entries alone.

// Place is a position in the list of all instances. They are sorted by namespace, set and key. Instances that left
// their set come last in a namespace, sorted by type and name.
type Place struct {
	Namespace string `json:"n"`
	// Of is the name of the set, or of the type of an instance that left its set.
	Of      string `json:"o,omitempty"`
	Name    string `json:"i,omitempty"`
	Leaving bool   `json:"l,omitempty"`
}

// Located is an instance, or a stored object, with its namespace.
type Located struct {
	Namespace string
	Found
}

// InstancePage is a page of instances.
type InstancePage struct {
	Items []Located
	// More is true if further instances follow. Last is the place of the last item.
	More bool
	Last Place
	// Position is the position of the changes after the page; see ChangesSince. At is the revision of the objects.
	Position uint64
	At       int64
}

// WantFunc selects nodes of a namespace. The index calls it while it is locked, so it must neither call the index nor
// wait.
type WantFunc func(namespace string, n Node) bool

// InstancesAfter refreshes the index and returns a page of at most limit instances that come after a place. An empty
// namespace means all. It reads the index from the place on, until the page is full.
func (x *Index) InstancesAfter(ctx context.Context, namespace string, after Place, limit int,
	want WantFunc) (*InstancePage, error) {
	unlock, err := x.lockFresh(ctx)
	defer unlock()
	if err != nil {
		return nil, err
	}
	page := &InstancePage{At: x.objectsAt}
	_, page.Position, _, _ = x.feed.since(^uint64(0))
	for _, name := range slices.Sorted(maps.Keys(x.namespaces)) {
		if namespace != "" && name != namespace || name < after.Namespace {
			continue
		}
		from := after
		if name != after.Namespace {
			from = Place{Namespace: name}
		}
		if !x.namespaces[name].page(page, from, limit, want) {
			break
		}
	}
	return page, nil
}

// page adds instances to a page. It returns false if the page is full and more instances follow.
func (ns *namespace) page(page *InstancePage, after Place, limit int, want WantFunc) bool {
	add := func(at Place, n Node) bool {
		if !want(ns.name, n) {
			return true
		}
		if len(page.Items) == limit {
			page.More = true
			return false
		}
		page.Items = append(page.Items, Located{ns.name, Found{n.Object, n.Record, ns.setOf(n.Object.Ref(ns.name))}})
		page.Last = at
		return true
	}
	if !after.Leaving {
		sets := slices.SortedFunc(ns.allSets(), func(a, b *set) int { return cmp.Compare(a.place(), b.place()) })
		for _, s := range sets {
			name := s.place()
			if name < after.Of {
				continue
			}
			begin := 0
			if name == after.Of {
				begin = s.indexAfter(after.Name)
			}
			for _, i := range s.slots[begin:] {
				n := ns.nodes[i]
				if !n.isOf(s.UID) {
					continue // another object has the address
				}
				if !add(Place{Namespace: ns.name, Of: name, Name: n.Object.Name}, n) {
					return false
				}
			}
		}
	}
	for _, n := range ns.leavingAfter(after, limit+1-len(page.Items), want) {
		if !add(Place{ns.name, n.Object.Stored, n.Object.Name, true}, n) {
			return false
		}
	}
	return true
}

// isOf reports whether a node is an instance that the set with a UID has now.
func (n Node) isOf(set types.UID) bool {
	return n.Object != nil && n.Object.Instance != nil && n.Object.Instance.SetUID == set && !n.Object.Instance.Leaving
}

// indexAfter returns the index of the first instance after the one with a name, which the set need not have.
func (s *set) indexAfter(name string) int {
	_, key, ok := v1alpha1.ParseInstanceName(name)
	switch {
	case s.Repeats == "" && name != "":
		return len(s.slots)
	case !ok:
		return 0
	}
	own := v1alpha1.InstanceName(s.Template, key) // the template may have another name now
	return sort.Search(len(s.slots), func(i int) bool {
		return v1alpha1.CompareNames(v1alpha1.InstanceName(s.Template, s.Key(i)), own) > 0
	})
}

// leavingAfter returns at most limit wanted instances that left their set and come after a place, sorted.
func (ns *namespace) leavingAfter(after Place, limit int, want WantFunc) []Node {
	compare := func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Object.Stored, b.Object.Stored),
			v1alpha1.CompareNames(a.Object.Name, b.Object.Name))
	}
	out := smallest[Node]{limit: limit, compare: compare}
	for uid := range ns.leaving {
		i, ok := ns.uids[uid]
		if !ok {
			continue
		}
		n := ns.nodes[i]
		if after.Leaving && cmp.Or(cmp.Compare(n.Object.Stored, after.Of),
			v1alpha1.CompareNames(n.Object.Name, after.Name)) <= 0 {
			continue
		}
		if want(ns.name, n) {
			out.add(n)
		}
	}
	return out.items
}

// smallest keeps the smallest items that are added to it, sorted.
type smallest[T any] struct {
	limit   int
	compare func(a, b T) int
	items   []T
}

func (s *smallest[T]) add(item T) {
	if len(s.items) == s.limit && (s.limit == 0 || s.compare(item, s.items[s.limit-1]) >= 0) {
		return
	}
	i, _ := slices.BinarySearchFunc(s.items, item, s.compare)
	s.items = slices.Insert(s.items, i, item)
	s.items = s.items[:min(len(s.items), s.limit)]
}

// Names is a search by name and ID.
type Names struct {
	// Namespace restricts the search to one; empty means all.
	Namespace string
	// Contains is a part of the name in any case. ID is a whole ID or identity, and matches as ledger.SameID does. An
	// object with either is found. Empty ones find nothing.
	Contains, ID string
	// Unowned makes the search find each object whose IDs the index does not know: those that are not managed.
	// Unrecorded makes it find each managed object without a record.
	Unowned, Unrecorded bool
}

// FoundPlace is a position in the result of a search, which is sorted by namespace, provider, type and name.
type FoundPlace struct {
	Namespace string `json:"n"`
	Provider  string `json:"p"`
	Stored    string `json:"s"`
	Name      string `json:"i"`
}

func (p FoundPlace) compare(other FoundPlace) int {
	return cmp.Or(cmp.Compare(p.Namespace, other.Namespace), cmp.Compare(p.Provider, other.Provider),
		cmp.Compare(p.Stored, other.Stored),
		v1alpha1.CompareNames(p.Name, other.Name))
}

// Place returns the position of an object in the result of a search.
func (l Located) Place() FoundPlace {
	return FoundPlace{l.Namespace, l.Provider, l.Stored, l.Name}
}

// Search refreshes the index and returns at most limit objects and instances that come after a place, and the revision
// of the objects. The index compares hashes of IDs, so the caller must compare the IDs themselves.
func (x *Index) Search(ctx context.Context, s Names, after FoundPlace, limit int,
	want WantFunc) (found []Located, at int64, err error) {
	unlock, err := x.lockFresh(ctx)
	defer unlock()
	if err != nil {
		return nil, 0, err
	}
	owning := x.owning(s.ID)
	out := smallest[Located]{limit: limit, compare: func(a, b Located) int { return a.Place().compare(b.Place()) }}
	for name, ns := range x.namespaces {
		if s.Namespace != "" && name != s.Namespace {
			continue
		}
		consider := func(n Node) {
			o := n.Object
			matches := owning[recordKey{name, o.UID}] || s.Unowned && o.Mode != v1alpha1.ModeManaged ||
				s.Unrecorded && o.Mode == v1alpha1.ModeManaged && ns.recordAt(o.UID) == nil ||
				s.Contains != "" && containsFold(o.Name, s.Contains)
			l := Located{Namespace: name, Found: Found{Object: o, Record: n.Record}}
			if !matches || after.compare(l.Place()) >= 0 || !want(name, n) {
				return
			}
			if o.Instance != nil {
				l.In = ns.setOf(o.Ref(name))
			}
			out.add(l)
		}
		for _, n := range ns.nodes {
			if n.Object != nil {
				consider(n)
			}
		}
		for _, names := range ns.duplicates {
			for _, o := range names {
				consider(Node{Object: o})
			}
		}
	}
	return out.items, x.objectsAt, nil
}

// owning returns the records with an ID or an identity. It requires x.mu.
func (x *Index) owning(id string) map[recordKey]bool {
	out := map[recordKey]bool{}
	for _, h := range x.owners.hashes(id, id) {
		if first, ok := x.owners.first[h]; ok {
			out[first] = true
		}
		for _, key := range x.owners.more[h] {
			out[key] = true
		}
	}
	return out
}

// Owns reports whether the record of a node has an ID, by its hash.
func (x *Index) Owns(n Node, id string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.ContainsFunc(x.owners.hashes("", id),
		func(h uint64) bool { return slices.Contains(n.Record.ids(), h) })
}

// containsFold reports whether a text contains another one in any case.
func containsFold(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// Matches reports whether a search finds an object with a name and the ID that it shows.
func (s Names) Matches(name, id string) bool {
	return s.Contains != "" && containsFold(name, s.Contains) ||
		s.ID != "" && id != "" && ledger.FoldID(id) == ledger.FoldID(s.ID)
}
