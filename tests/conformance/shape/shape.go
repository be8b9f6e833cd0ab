// Package shape is a Terraform provider that generates its schemas from seeds, so that no client can be fitted to it.
// It speaks protocol 6, or protocol 5 with the legacy type system. It manages files of tests/conformance/cloud. Each
// file has the whole state of an object, so tests can change it outside of the provider. The package knows no client
// and keeps all rules of the protocol.
package shape

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Shape is a resource type, or a data source.
type Shape struct {
	// Name is the type's, with the provider's prefix.
	Name string
	// Key is the computed attribute that tells objects apart, Title the required one that people name them with.
	Key, Title string
	// Identity says that the type has a resource identity, too.
	Identity bool
	Block    *Block
}

// Block is what a configuration may hold at a place.
type Block struct {
	Attributes []*Attribute
	Blocks     []*Nested
}

// Mode is how something is nested.
type Mode string

// The modes. Group is for blocks alone.
const (
	Single Mode = "single"
	Group  Mode = "group"
	List   Mode = "list"
	Set    Mode = "set"
	Map    Mode = "map"
)

// Nested is a block within a block. Zero for Min or Max is no bound.
type Nested struct {
	Name     string
	Mode     Mode
	Min, Max int
	Block    *Block
}

// Attribute is an argument, or what the provider says.
type Attribute struct {
	Name, Description string
	// Type is nil when there are Attributes, which are nested by Mode; protocol 5 has none of those.
	Type       tftypes.Type
	Mode       Mode
	Attributes []*Attribute

	Required, Optional, Computed, Sensitive, WriteOnly, Deprecated bool
	// ForcesNew says that the object must be replaced when the value changes.
	ForcesNew bool
	Fill      Fill
	Quirk     Quirk
}

// Settable says that a configuration may set it.
func (a *Attribute) Settable() bool { return a.Required || a.Optional }

// Fill is what becomes of a computed value that nobody configured.
type Fill int

const (
	// Kept is unknown until it is made, and stays.
	Kept Fill = iota
	// Volatile is unknown again whenever anything else changes.
	Volatile
	// Default is the same for all, and planned.
	Default
	// Nothing is unknown until it turns out to be null, and stays.
	Nothing
)

// Quirk is what the legacy type system makes of a value; protocol 6 has none.
type Quirk int

const (
	// Honest is as it was configured.
	Honest Quirk = iota
	// Zero plans what is zero or empty for null.
	Zero
	// Null plans null for what is zero or empty.
	Null
	// Lower plans text in small letters.
	Lower
	// Suppress keeps the prior text where only the case differs.
	Suppress
	// Late plans what is configured, and makes it Zero when it is applied.
	Late
)

// Count is how many resource types a seed has; there is one data source beside them.
const Count = 3

// maker makes the shapes of one seed.
type maker struct {
	*rand.Rand
	legacy bool
	names  int
}

// Make makes the resource types and the data source of a seed for a provider. The same seed makes the same.
func Make(provider string, seed int64, legacy bool) (resources []*Shape, data *Shape) {
	m := &maker{Rand: rand.New(rand.NewPCG(uint64(seed), 7)), legacy: legacy}
	for i := range Count {
		resources = append(resources, m.shape(fmt.Sprintf("%s_s%d_%c", provider, seed, 'a'+i)))
	}
	data = m.shape(fmt.Sprintf("%s_s%d_look", provider, seed))
	data.Block.readable()
	return resources, data
}

// readable takes away what a data source does not have: values that are written and not kept.
func (b *Block) readable() {
	for _, a := range b.Attributes {
		a.WriteOnly = false
		a.stored()
	}
	for _, n := range b.Blocks {
		n.Block.readable()
	}
}

func (m *maker) shape(name string) *Shape {
	s := &Shape{Name: name, Key: pick(m, "id", "id", "id", "uid", "self_link"), Title: pick(m, "name", "title"), Identity: m.one(4) && !m.legacy}
	m.names = 0
	s.Block = m.block(0, false)
	s.Block.Attributes = append(s.Block.Attributes,
		&Attribute{Name: s.Key, Type: tftypes.String, Computed: true},
		&Attribute{Name: s.Title, Type: tftypes.String, Required: true, ForcesNew: m.one(4)})
	return s
}

func pick[T any](m *maker, of ...T) T { return of[m.IntN(len(of))] }

// one is true once in n times.
func (m *maker) one(n int) bool { return m.IntN(n) == 0 }

// block makes a block. within says that it is within a collection, where no value can have a type of its own.
func (m *maker) block(depth int, within bool) *Block {
	b := &Block{}
	for range 1 + m.IntN(8-3*min(depth, 2)) {
		b.Attributes = append(b.Attributes, m.attribute(depth, within, false))
	}
	for range m.IntN(4 - min(depth, 2)) {
		if depth == 2 {
			break
		}
		b.Blocks = append(b.Blocks, m.nested(depth, within))
	}
	return b
}

func (m *maker) name() string {
	m.names++
	return fmt.Sprintf("%s_%d", pick(m, "size", "zone", "rule", "spec", "on", "x"), m.names)
}

func (m *maker) nested(depth int, within bool) *Nested {
	n := &Nested{Name: m.name(), Mode: pick(m, Single, Group, List, List, Set, Map)}
	if m.legacy {
		n.Mode = pick(m, List, Set)
	}
	n.Block = m.block(depth+1, within || n.Mode != Single && n.Mode != Group)
	switch n.Mode {
	case List, Set:
		n.Min = max(0, m.IntN(5)-3)
		n.Max = pick(m, 0, 0, 1, 2) * max(1, n.Min)
	case Single:
		if m.one(5) {
			n.Min, n.Max = 1, 1
		}
	}
	if n.Mode == Set {
		plain(n.Block)
	}
	return n
}

// plain takes away what no element of a set may have: values that are written and not kept, and, since nobody can tell which element
// was which, computed ones that are null or change.
func plain(b *Block) {
	for _, a := range b.Attributes {
		plainAttribute(a)
	}
	for _, n := range b.Blocks {
		plain(n.Block)
	}
}

func plainAttribute(a *Attribute) {
	a.WriteOnly, a.ForcesNew = false, false
	a.stored()
	if a.Fill != Default {
		a.Fill = Kept
	}
	for _, n := range a.Attributes {
		plainAttribute(n)
	}
}

// attribute makes an attribute. computed says that it is within something computed.
func (m *maker) attribute(depth int, within, computed bool) *Attribute {
	a := &Attribute{Name: m.name()}
	switch m.IntN(10) {
	case 0:
		a.Required = true
	case 1, 2:
		a.Computed = true
	case 3, 4, 5:
		a.Optional, a.Computed = true, true
	default:
		a.Optional = true
	}
	if computed && m.one(2) {
		a.Required, a.Optional, a.Computed = false, false, true
	}
	if a.Computed {
		a.Fill = pick(m, Kept, Kept, Volatile, Default, Nothing)
	}
	if !m.legacy && m.one(4) && depth < 2 {
		a.Mode = pick(m, Single, Single, List, Set, Map)
		inner := within || a.Mode != Single
		for range 1 + m.IntN(4) {
			a.Attributes = append(a.Attributes, m.attribute(depth+1, inner, a.Computed && !a.Optional))
		}
		if a.Computed {
			a.stored()
		}
		if a.Computed && !a.Optional {
			a.read()
		}
		if a.Mode == Set {
			plainAttribute(a)
		}
	} else {
		a.Type = m.typ(0, within)
	}
	a.Sensitive, a.Deprecated, a.ForcesNew = m.one(8), m.one(20), m.one(7)
	if !a.Computed && m.one(10) && !computed && !a.holdsSet() {
		a.WriteOnly, a.ForcesNew = true, false
		for _, n := range a.Attributes {
			n.written()
		}
	}
	if m.legacy && !a.Computed && !a.WriteOnly {
		a.Quirk = pick(m, Honest, Honest, Zero, Null, Lower, Suppress, Late)
	}
	return a
}

// stored makes nothing within the attribute write-only: what the provider says cannot be forgotten.
func (a *Attribute) stored() {
	for _, n := range a.Attributes {
		if n.WriteOnly {
			n.WriteOnly, n.Optional, n.Required = false, true, false
		}
		n.stored()
	}
}

// read makes all that is within a computed attribute computed.
func (a *Attribute) read() {
	for _, n := range a.Attributes {
		n.Required, n.Optional, n.Computed, n.WriteOnly = false, false, true, false
		n.read()
	}
}

// holdsSet says whether there is a nested set, whose elements cannot be write-only.
func (a *Attribute) holdsSet() bool {
	return a.Mode == Set || slices.ContainsFunc(a.Attributes, (*Attribute).holdsSet)
}

// written makes all that is within a write-only attribute write-only.
func (a *Attribute) written() {
	if a.Computed && !a.Required {
		a.Optional = true
	}
	a.Computed, a.WriteOnly, a.ForcesNew, a.Fill = false, true, false, Kept
	for _, n := range a.Attributes {
		n.written()
	}
}

func (m *maker) typ(depth int, within bool) tftypes.Type {
	if depth > 2 {
		return pick[tftypes.Type](m, tftypes.String, tftypes.Number, tftypes.Bool)
	}
	switch m.IntN(16) {
	case 0, 1, 2, 3, 4:
		return tftypes.String
	case 5, 6:
		return tftypes.Number
	case 7, 8:
		return tftypes.Bool
	case 9, 10:
		return tftypes.List{ElementType: m.typ(depth+1, true)}
	case 11:
		return tftypes.Set{ElementType: m.typ(depth+1, true)}
	case 12:
		return tftypes.Map{ElementType: m.typ(depth+1, true)}
	case 13:
		o := tftypes.Object{AttributeTypes: map[string]tftypes.Type{}}
		for range 1 + m.IntN(3) {
			o.AttributeTypes[pick(m, "left", "right", "middle", "top")] = m.typ(depth+1, within)
		}
		return o
	case 14:
		if m.legacy || !m.one(3) {
			return tftypes.String
		}
		return tftypes.Tuple{ElementTypes: []tftypes.Type{m.typ(depth+1, within), m.typ(depth+1, within)}}
	default:
		if within || m.legacy {
			return tftypes.Number
		}
		return tftypes.DynamicPseudoType
	}
}

// ObjectType is the type of a block's values.
func (b *Block) ObjectType() tftypes.Object {
	o := attributesType(b.Attributes)
	for _, n := range b.Blocks {
		o.AttributeTypes[n.Name] = collection(n.Mode, n.Block.ObjectType())
	}
	return o
}

// ValueType is the type of an attribute's values.
func (a *Attribute) ValueType() tftypes.Type {
	if a.Type != nil {
		return a.Type
	}
	return collection(a.Mode, attributesType(a.Attributes))
}

func attributesType(attributes []*Attribute) tftypes.Object {
	o := tftypes.Object{AttributeTypes: map[string]tftypes.Type{}}
	for _, a := range attributes {
		o.AttributeTypes[a.Name] = a.ValueType()
	}
	return o
}

func collection(mode Mode, element tftypes.Type) tftypes.Type {
	switch mode {
	case List:
		return tftypes.List{ElementType: element}
	case Set:
		return tftypes.Set{ElementType: element}
	case Map:
		return tftypes.Map{ElementType: element}
	}
	return element
}

// find finds an attribute or a block by name; both are nil when there is none.
func find(b *Block, name string) (*Attribute, *Nested) {
	if i := slices.IndexFunc(b.Attributes, func(a *Attribute) bool { return a.Name == name }); i >= 0 {
		return b.Attributes[i], nil
	}
	if i := slices.IndexFunc(b.Blocks, func(n *Nested) bool { return n.Name == name }); i >= 0 {
		return nil, b.Blocks[i]
	}
	return nil, nil
}
