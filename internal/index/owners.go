package index

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"

	"k8s.io/apimachinery/pkg/types"
)

// owners maps the hashes of the IDs and identities of all recorded resources to their records. It keeps the first
// record of a hash in one map and further ones in another, because nearly all hashes have only one.
type owners struct {
	// key makes the hashes differ from those of other indexes, so that no user can choose IDs with equal hashes.
	key   string
	first map[uint64]recordKey
	more  map[uint64][]recordKey
	// creating holds the records with an intent to create: a create runs, or its outcome is unknown.
	creating map[recordKey]struct{}
}

// recordKey identifies a record.
type recordKey struct {
	namespace string
	uid       types.UID
}

func newOwners() owners { return ownersWith(rand.Text()) }

// ownersWith returns empty owners with the key of earlier ones.
func ownersWith(key string) owners {
	return owners{key, map[uint64]recordKey{}, map[uint64][]recordKey{}, map[recordKey]struct{}{}}
}

func (o *owners) hash(kind, text string) uint64 {
	sum := sha256.Sum256([]byte(o.key + kind + "\x00" + ledger.FoldID(text)))
	return binary.LittleEndian.Uint64(sum[:])
}

// hashes returns the hashes of an identity and an ID; see ledger.FoldID. An empty one has no hash.
func (o *owners) hashes(identity, id string) (out []uint64) {
	if identity != "" {
		out = append(out, o.hash("identity", identity))
	}
	if id != "" {
		out = append(out, o.hash("id", id))
	}
	return out
}

// hashesOf returns the hashes of a record's current instance and of its deposed ones. A record of a data source or an
// action has none.
func (o *owners) hashesOf(i *ledger.Instance) []uint64 {
	if i == nil || i.Mode != "" && i.Mode != v1alpha1.ModeManaged {
		return nil
	}
	out := o.hashes(i.IdentityText(), i.ID())
	for k := range i.Deposed {
		d := &i.Deposed[k].State
		out = append(out, o.hashes(d.IdentityText(), d.ID())...)
	}
	return out
}

func (o *owners) add(key recordKey, hashes []uint64) {
	for _, h := range hashes {
		if first, taken := o.first[h]; !taken {
			o.first[h] = key
		} else if first != key && !slices.Contains(o.more[h], key) {
			o.more[h] = append(o.more[h], key)
		}
	}
}

func (o *owners) remove(key recordKey, hashes []uint64) {
	for _, h := range hashes {
		more := o.more[h]
		switch i := slices.Index(more, key); {
		case i >= 0:
			more = slices.Delete(more, i, i+1)
		case o.first[h] == key && len(more) > 0:
			o.first[h], more = more[0], more[1:]
		case o.first[h] == key:
			delete(o.first, h)
		}
		if o.more[h] = more; len(more) == 0 {
			delete(o.more, h)
		}
	}
}

// setCreating notes whether a record has an intent to create. i is nil if the record was deleted.
func (o *owners) setCreating(key recordKey, i *ledger.Instance) {
	if i != nil && i.Intent != nil && i.Intent.Action == v1alpha1.ActionCreate {
		o.creating[key] = struct{}{}
		return
	}
	delete(o.creating, key)
}

// Creating is an object whose create runs or has an unknown outcome.
type Creating struct {
	// Object has the namespace and the UID.
	Object v1alpha1.ObjectReference
	// Revision is that of its record.
	Revision int64
}

// Creating returns the objects whose create runs or has an unknown outcome. It does not refresh the index.
func (x *Index) Creating() []Creating {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []Creating
	for key := range x.owners.creating {
		c := Creating{Object: v1alpha1.ObjectReference{Namespace: key.namespace, UID: key.uid}}
		if r := x.namespace(key.namespace).recordAt(key.uid); r != nil {
			c.Revision = r.Revision
		}
		out = append(out, c)
	}
	return out
}

// Owners returns the namespaces and UIDs of the objects whose records have an instance with the identity or the ID. It
// searches all namespaces and providers; see ledger.SameID. An empty identity or ID matches nothing. The index compares
// hashes, so the caller must compare the records. Owners does not refresh the index.
func (x *Index) Owners(identity, id string) []v1alpha1.ObjectReference {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []v1alpha1.ObjectReference
	found := map[recordKey]bool{}
	add := func(key recordKey) {
		if !found[key] {
			found[key] = true
			out = append(out, v1alpha1.ObjectReference{Namespace: key.namespace, UID: key.uid})
		}
	}
	for _, h := range x.owners.hashes(identity, id) {
		if first, ok := x.owners.first[h]; ok {
			add(first)
		}
		for _, key := range x.owners.more[h] {
			add(key)
		}
	}
	return out
}

// WithoutObject refreshes the index and returns the namespaces and UIDs of at most limit recorded resources whose
// object does not exist, after a place and sorted by it. An empty namespace means all. A plan destroys an instance that
// left its ResourceSet, so it is none of them.
func (x *Index) WithoutObject(ctx context.Context, namespace string, after v1alpha1.ObjectReference,
	limit int) (refs []v1alpha1.ObjectReference, at int64, err error) {
	unlock, err := x.lockFresh(ctx)
	defer unlock()
	if err != nil {
		return nil, 0, err
	}
	compare := func(a, b v1alpha1.ObjectReference) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.UID, b.UID))
	}
	out := smallest[v1alpha1.ObjectReference]{limit: limit, compare: compare}
	for name, ns := range x.namespaces {
		if namespace != "" && name != namespace {
			continue
		}
		duplicates := ns.duplicateUIDs()
		for uid, r := range ns.lost {
			ref := v1alpha1.ObjectReference{Namespace: name, UID: uid}
			managed := r.Mode == "" || r.Mode == v1alpha1.ModeManaged
			if managed && !r.instance() && (r.Living || r.Intent) && !duplicates[uid] && compare(ref, after) > 0 {
				out.add(ref)
			}
		}
	}
	return out.items, x.objectsAt, nil
}

// duplicateUIDs returns the UIDs of the objects whose address another object has.
func (ns *namespace) duplicateUIDs() map[types.UID]bool {
	uids := map[types.UID]bool{}
	for _, names := range ns.duplicates {
		for _, o := range names {
			uids[o.UID] = true
		}
	}
	return uids
}
