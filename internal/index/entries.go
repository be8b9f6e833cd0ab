package index

import (
	"encoding/json"
	"maps"
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
)

// This file encodes and decodes the entries of a snapshot. Raise snapshotFormat with each change of it.

// entryEncoder encodes entries.
type entryEncoder struct {
	*encoder
	kinds map[*Kind]uint64
	// scratch encodes lists that many entries have, which then are shared texts.
	scratch encoder
}

// entryDecoder decodes what an entryEncoder wrote.
type entryDecoder struct {
	decoder
	kinds []*Kind
	// labels and outside hold the decoded lists that many entries have, by their encoded form.
	labels        map[string]labels.Set
	outside       map[string]*Outside
	sharedOutside func([]lang.Reference) *Outside
}

func (e *entryEncoder) address(a typeKey, name string) {
	e.share(string(a.mode))
	e.share(a.name)
	e.text(name)
}

func (d *entryDecoder) address() (typeKey, string) {
	a := typeKey{v1alpha1.Mode(d.share()), d.share()}
	return a, d.text()
}

func (e *entryEncoder) object(o *Object) {
	e.uint(e.kinds[o.Kind])
	e.text(o.Name)
	e.uid(string(o.UID))
	e.int(o.Generation)
	e.int(o.Revision)
	e.uint(uint64(o.Flags))
	e.labels(o.Labels)
	e.share(o.Config)
	e.share(o.Moved)
	e.slots(o.DependsOn)
	encodeList(e.encoder, o.References, func(r Reference) {
		e.uint(uint64(r.Slot))
		e.share(r.Attribute.Value())
	})
	e.outside(o.Outside)
	if e.bits(o.Instance != nil); o.Instance != nil {
		i := o.Instance
		e.bits(i.Key.Named, i.Leaving, i.Stalled, i.Applying)
		e.int(int64(i.Key.Index))
		e.text(i.Key.Name)
		e.share(i.Set)
		e.share(string(i.SetUID))
		e.status(i.status)
	}
}

func (d *entryDecoder) object() *Object {
	o := &Object{Kind: d.kind(), Name: d.text(), UID: types.UID(d.uid()), Generation: d.int(), Revision: d.int(),
		Flags: Flags(d.uint()), Labels: d.labelSet(),
		Config: d.share(), Moved: d.share(), DependsOn: d.slots()}
	o.References = decodeList(&d.decoder,
		func() Reference { return Reference{int32(d.uint()), unique.Make(d.share())} })
	o.Outside = d.outsideList()
	var isInstance bool
	if d.bits(&isInstance); isInstance {
		i := &Instance{}
		d.bits(&i.Key.Named, &i.Leaving, &i.Stalled, &i.Applying)
		i.Key.Index, i.Key.Name, i.Set, i.SetUID = int(d.int()), d.text(), d.share(), types.UID(d.share())
		i.status = d.status()
		o.Instance = i
	}
	return o
}

func (d *entryDecoder) kind() *Kind {
	if len(d.kinds) == 0 {
		d.fail()
		return nil
	}
	return d.kinds[d.index(len(d.kinds))]
}

func (e *entryEncoder) slots(slots []int32) {
	encodeList(e.encoder, slots, func(i int32) { e.uint(uint64(i)) })
}

func (d *entryDecoder) slots() []int32 {
	return decodeList(&d.decoder, func() int32 { return int32(d.uint()) })
}

func (e *entryEncoder) labels(set labels.Set) {
	e.scratch.block = e.scratch.block[:0]
	for _, key := range slices.Sorted(maps.Keys(set)) {
		e.scratch.text(key)
		e.scratch.text(set[key])
	}
	e.share(string(e.scratch.block))
}

func (d *entryDecoder) labelSet() labels.Set {
	list := d.share()
	if set, ok := d.labels[list]; ok || list == "" {
		return set
	}
	set, in := labels.Set{}, decoder{block: []byte(list)}
	for len(in.block) > 0 {
		set[in.text()] = in.text()
	}
	if in.err != nil {
		d.fail()
	}
	d.labels[list] = set
	return set
}

func (e *entryEncoder) outside(o *Outside) {
	e.scratch.block = e.scratch.block[:0]
	if o != nil {
		for _, r := range o.References {
			for _, s := range []string{r.Namespace, r.Module, string(r.Mode), r.Type, r.Name, r.Attribute} {
				e.scratch.text(s)
			}
		}
	}
	e.share(string(e.scratch.block))
}

func (d *entryDecoder) outsideList() *Outside {
	list := d.share()
	if o, ok := d.outside[list]; ok || list == "" {
		return o
	}
	var refs []lang.Reference
	for in := (decoder{block: []byte(list)}); len(in.block) > 0; {
		a := lang.Address{Namespace: in.text(), Module: in.text(), Mode: v1alpha1.Mode(in.text()), Type: in.text(),
			Name: in.text()}
		refs = append(refs, lang.Reference{Address: a, Attribute: in.text()})
		if in.err != nil {
			d.fail()
		}
	}
	d.outside[list] = d.sharedOutside(refs)
	return d.outside[list]
}

func (e *entryEncoder) record(r *Record, creating bool) {
	e.int(r.Revision)
	e.int(r.Generation)
	e.bits(r.Exists, r.Living, r.Tainted, r.Intent, r.Deposed, r.Planned, creating, r.instance(), r.Unapplied)
	for _, s := range []string{string(r.Mode), r.Config, r.Version, r.Base} {
		e.share(s)
	}
	e.text(string(r.MovedFrom))
	e.uint(uint64(len(r.Since)))
	for name, version := range r.Since {
		e.share(name)
		e.share(version)
	}
	e.slots(r.Requires)
	for _, half := range r.DependencyVersions {
		e.uint(half)
	}
	encodeList(e.encoder, r.owned, e.uint)
	if r.instance() {
		of := r.of.Value()
		for _, s := range []string{of.APIVersion, of.Kind, of.Namespace, of.Set, string(of.SetUID)} {
			e.share(s)
		}
		e.text(r.name)
	}
}

// record returns a record, and whether it has an intent to create. o is its object; nil without one.
func (d *entryDecoder) record(o *Object) (r *Record, creating bool) {
	r = &Record{Revision: d.int(), Generation: d.int()}
	var isInstance bool
	d.bits(&r.Exists, &r.Living, &r.Tainted, &r.Intent, &r.Deposed, &r.Planned, &creating, &isInstance, &r.Unapplied)
	r.Mode, r.Config = v1alpha1.Mode(d.share()), d.share()
	r.Versions = ledger.Versions{Version: d.share(), Base: d.share()}
	r.MovedFrom = types.UID(d.text())
	if n := d.uint(); n > 0 {
		r.Since = map[string]string{}
		for ; n > 0 && d.err == nil; n-- {
			name := d.share()
			r.Since[name] = d.share()
		}
	}
	r.Requires = d.slots()
	r.DependencyVersions = Sum{d.uint(), d.uint()}
	r.owned = decodeList(&d.decoder, d.uint)
	if isInstance {
		of := instancesOf{APIVersion: d.share(), Kind: d.share(), Namespace: d.share(), Set: d.share(),
			SetUID: types.UID(d.share())}
		r.setInstance(of, d.text(), o)
	}
	return r, creating
}

func (e *entryEncoder) status(s instanceStatus) {
	e.int(s.revision)
	e.int(s.applied)
	e.int(s.drifted)
	e.int(s.observed)
	never := unique.Handle[Readiness]{}
	e.bits(s.ready, s.stalled, s.failed, s.cancelled, s.applying, s.readiness != never)
	if s.readiness != never {
		r := s.readiness.Value()
		e.share(string(r.Status))
		e.share(r.Reason)
	}
}

func (d *entryDecoder) status() instanceStatus {
	s := instanceStatus{revision: d.int(), applied: d.int(), drifted: d.int(), observed: d.int()}
	var known bool
	d.bits(&s.ready, &s.stalled, &s.failed, &s.cancelled, &s.applying, &known)
	if known {
		s.readiness = unique.Make(Readiness{metav1.ConditionStatus(d.share()), d.share()})
	}
	return s
}

// savedSet is a ResourceSet of a snapshot. Its object has the content, but not the keys from a ConfigMap.
type savedSet struct {
	object *v1alpha1.ResourceSet
	// revision is that of the object, and content is resourceset.Set's Revision.
	revision, content int64
	kind              *Kind
	slots             []int32
}

func (e *entryEncoder) set(s *set) error {
	object, err := json.Marshal(s.object)
	if err != nil {
		return err
	}
	e.text(string(object))
	e.int(s.revision)
	e.int(s.Revision)
	e.uint(e.kinds[s.kind])
	e.slots(s.slots)
	return nil
}

func (d *entryDecoder) set() (s savedSet, err error) {
	s.object = &v1alpha1.ResourceSet{}
	object := d.bytes(d.uint())
	s.revision, s.content, s.kind, s.slots = d.int(), d.int(), d.kind(), d.slots()
	if d.err != nil {
		return s, d.err
	}
	return s, json.Unmarshal(object, s.object)
}

// module encodes a Module. The first refresh after a restore expands it.
func (e *entryEncoder) module(obj *v1alpha1.Module, revision int64) error {
	object, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	e.text(string(object))
	e.int(revision)
	return nil
}

func (d *entryDecoder) module() (obj *v1alpha1.Module, revision int64, err error) {
	obj = &v1alpha1.Module{}
	object := d.bytes(d.uint())
	if revision = d.int(); d.err != nil {
		return nil, 0, d.err
	}
	return obj, revision, json.Unmarshal(object, obj)
}
