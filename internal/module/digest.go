package module

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/lang"
)

// This file has digests of what modules and blocks can see. Equal digests mean that nothing needs to be evaluated
// again. The values of objects are no part of them: a plan compares these by the versions of its dependencies.

// Digests returns a function that gives the digest of the i-th instance of a block: of its template, its key and value,
// and the parts of the named values that it refers to. It is not safe for concurrent use.
func (x *Expansion) Digests() func(s *Set, i int) [sha256.Size]byte {
	d := &digester{x.Values(func(lang.Address) (cty.Value, bool) { return cty.NilVal, false })}
	return d.instance
}

// OutputDigests returns a function that gives the digest of an output of the root module: of its value, as far as that
// does not depend on objects. It is not safe for concurrent use.
func (x *Expansion) OutputDigests() func(name string) [sha256.Size]byte {
	d := &digester{x.Values(func(lang.Address) (cty.Value, bool) { return cty.NilVal, false })}
	return func(name string) [sha256.Size]byte {
		h, n := new(content), d.named(lang.Address{Module: x.Root.Path, Mode: lang.ModeOutput, Name: name})
		d.value(h, n.value, n)
		return sha256.Sum256(h.bytes)
	}
}

type digester struct{ *Values }

// arguments returns the digest of what an instance of a module gets from its caller.
func (d *digester) arguments(i *Instance) [sha256.Size]byte {
	h := new(content)
	d.repetition(h, i.each, i.from)
	for _, name := range sortedKeys(i.Call.Arguments) {
		d.text(h, name)
		d.references(h, i.Call.Arguments[name].parsed, i.Parent, i.each)
	}
	return sha256.Sum256(h.bytes)
}

// instance returns the digest of the i-th instance of a block.
func (d *digester) instance(s *Set, i int) [sha256.Size]byte {
	h := new(content)
	each, from := d.each(s.Instance(i), s.Module, s.ForEach, s.from)
	h.bytes = append(h.bytes, s.digest[:]...)
	d.repetition(h, each, from)
	d.references(h, s.spec, s.Module, each)
	l := &s.Lifecycle
	for _, c := range slices.Concat(l.Preconditions, l.Postconditions) {
		for _, e := range []*Expr{c.Condition, c.Message} {
			if e.parsed != nil {
				d.references(h, e.parsed, s.Module, each)
			}
		}
	}
	return sha256.Sum256(h.bytes)
}

// Digest returns the digest of the block as written, which all its instances share.
func (b *Block) Digest() [sha256.Size]byte { return b.digest }

// digestOfTemplate returns the digest of a block as written, and of the files of the module if it may read some.
func (b *Block) digestOfTemplate(files [sha256.Size]byte) [sha256.Size]byte {
	provider := ""
	if b.Provider != nil {
		provider = b.Provider.String()
		if b.Provider.Key != nil {
			provider += b.Provider.Key.bare()
		}
	}
	text, err := json.Marshal([]any{b.Mode, b.Type, b.Name, b.Spec, b.Template(), provider})
	if err != nil {
		text = []byte(err.Error()) // JSON values can always be encoded
	}
	if ReadsFiles(text) {
		text = append(text, files[:]...)
	}
	return sha256.Sum256(text)
}

// repetition adds the key and the value of an instance. from is what the value comes from.
func (d *digester) repetition(h *content, each *lang.Instance, from *named) {
	if each == nil {
		return
	}
	d.text(h, each.Key.String())
	if each.Value != cty.NilVal {
		d.value(h, each.Value, from)
	}
}

// references adds the values that an expression refers to.
func (d *digester) references(h *content, e *lang.Expression, i *Instance, each *lang.Instance) {
	bound := e.With(lang.EvaluationContext{Module: i.Path, Instance: each})
	for _, r := range bound.References() {
		if d.x.outside(r.Address) {
			continue
		}
		n := d.named(r.Address)
		part, ok := r.At(n.value)
		if !ok {
			d.text(h, "missing")
			continue
		}
		d.value(h, part, n)
	}
}

// content is what a digest covers.
type content struct{ bytes []byte }

func (d *digester) text(h *content, s string) {
	h.bytes = binary.BigEndian.AppendUint64(h.bytes, uint64(len(s)))
	h.bytes = append(h.bytes, s...)
}

// value adds a value. Of a sensitive or unknown value, it adds what the value comes from.
func (d *digester) value(h *content, v cty.Value, of *named) {
	bare, marks := v.Unmark()
	if len(marks) > 0 || !bare.IsKnown() {
		d.origin(h, of)
		return
	}
	ty := bare.Type()
	switch {
	case bare.IsNull():
		d.text(h, "null")
	case ty == cty.String:
		d.text(h, "s"+bare.AsString())
	case ty == cty.Bool:
		d.text(h, fmt.Sprint(bare.True()))
	case ty == cty.Number:
		if n, accuracy := bare.AsBigFloat().Int64(); accuracy == big.Exact {
			h.bytes = binary.BigEndian.AppendUint64(append(h.bytes, 'i'), uint64(n))
			return
		}
		d.text(h, "n"+bare.AsBigFloat().Text('g', -1))
	case bare.CanIterateElements():
		d.text(h, fmt.Sprintf("%t%t%t %d", ty.IsObjectType() || ty.IsMapType(), ty.IsSetType(), ty.IsCollectionType(),
			bare.LengthInt()))
		for it := bare.ElementIterator(); it.Next(); {
			key, member := it.Element()
			if !ty.IsSetType() {
				d.value(h, key, of)
			}
			d.value(h, member, of)
		}
	}
}

// origin adds what a value comes from: the files, the written inputs, and the addresses of objects.
func (d *digester) origin(h *content, of *named) {
	for _, name := range slices.Sorted(maps.Keys(of.inputs)) {
		text, err := json.Marshal(d.x.inputs.Values[name])
		if err != nil {
			text = nil // inputs come from JSON
		}
		d.text(h, name)
		d.text(h, string(text))
	}
	for _, a := range slices.SortedFunc(maps.Keys(of.needs), lang.Address.Compare) {
		d.text(h, a.String())
	}
	h.bytes = append(h.bytes, d.x.tree.digest[:]...)
}

// digestOf returns the digest of files.
func digestOf(files Files) [sha256.Size]byte {
	h, d := new(content), &digester{}
	for _, name := range sortedKeys(files) {
		sum := sha256.Sum256(files[name])
		d.text(h, name)
		h.bytes = append(h.bytes, sum[:]...)
	}
	return sha256.Sum256(h.bytes)
}
