// Package shape is a Terraform provider that generates its schemas from seeds, so that no client can be written for
// them. It speaks protocol 6, or protocol 5 with the legacy type system. It manages files of tests/conformance/cloud.
// Each file has the whole state of an object, so tests can change it outside of the provider. The package knows no
// client and keeps all rules of the protocol.
package shape

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Shape is a resource type, or a data source.
type Shape struct {
	// Name is the name of the type, with the provider's prefix.
	Name string
	// Key is the computed attribute that identifies an object. Title is the required attribute by which users name it.
	Key, Title string
	// Identity is true if the type also has a resource identity.
	Identity bool
	Block    *Block
}

// Block is the schema of a configuration, or of a part of it.
type Block struct {
	Attributes []*Attribute
	Blocks     []*Nested
}

// Mode is a nesting mode.
type Mode string

// The modes. Only blocks have the mode Group.
const (
	Single Mode = "single"
	Group  Mode = "group"
	List   Mode = "list"
	Set    Mode = "set"
	Map    Mode = "map"
)

// Nested is a block within a block. For Min and Max, 0 means no limit.
type Nested struct {
	Name     string
	Mode     Mode
	Min, Max int
	Block    *Block
}

// Attribute is an argument, or a computed value.
type Attribute struct {
	Name, Description string
	// Type is nil if there are Attributes, which Mode nests. Protocol 5 has no such attributes.
	Type       tftypes.Type
	Mode       Mode
	Attributes []*Attribute

	Required, Optional, Computed, Sensitive, WriteOnly, Deprecated bool
	// ForcesNew is true if a change of the value forces a replace.
	ForcesNew bool
	Fill      Fill
	Quirk     Quirk
}

// Settable reports whether a configuration may set the attribute.
func (a *Attribute) Settable() bool { return a.Required || a.Optional }

// Fill defines the computed value of an attribute that is not configured.
type Fill int

const (
	// Kept is unknown until the create, and then stays.
	Kept Fill = iota
	// Volatile becomes unknown whenever something else changes.
	Volatile
	// Default is the same for all objects, and known in the plan.
	Default
	// Nothing is unknown until the create, and then stays null.
	Nothing
)

// Quirk is how the legacy type system changes a value. Protocol 6 has no quirks.
type Quirk int

const (
	// Honest keeps the configured value.
	Honest Quirk = iota
	// Zero plans a zero or empty value for null.
	Zero
	// Null plans null for a zero or empty value.
	Null
	// Lower plans text in lower case.
	Lower
	// Suppress keeps the prior text if only the case differs.
	Suppress
	// Late plans the configured value, and applies Zero.
	Late
)

// Count is the number of resource types of a seed. Each seed also has one data source.
const Count = 3

// maker generates the shapes of one seed.
type maker struct {
	*rand.Rand
	legacy bool
	names  int
}

// Make generates the resource types and the data source of a seed for a provider. The same seed gives the same result.
func Make(provider string, seed int64, legacy bool) (resources []*Shape, data *Shape) {
	m := &maker{Rand: rand.New(rand.NewPCG(uint64(seed), 7)), legacy: legacy}
	for i := range Count {
		resources = append(resources, m.shape(fmt.Sprintf("%s_s%d_%c", provider, seed, 'a'+i)))
	}
	data = m.shape(fmt.Sprintf("%s_s%d_look", provider, seed))
	data.Block.readable()
	return resources, data
}

// readable removes what a data source does not have: write-only values.
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

// one returns true once in n times.
func (m *maker) one(n int) bool { return m.IntN(n) == 0 }

// block generates a block. within is true within a collection, where no value can have its own type.
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

// plain removes what elements of a set may not have: write-only values, and computed values that are null or change.
// The provider cannot match the elements of two sets.
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

// attribute generates an attribute. computed is true within a computed attribute.
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

// stored makes no value within the attribute write-only, because the provider returns it.
func (a *Attribute) stored() {
	for _, n := range a.Attributes {
		if n.WriteOnly {
			n.WriteOnly, n.Optional, n.Required = false, true, false
		}
		n.stored()
	}
}

// read makes all values within a computed attribute computed.
func (a *Attribute) read() {
	for _, n := range a.Attributes {
		n.Required, n.Optional, n.Computed, n.WriteOnly = false, false, true, false
		n.read()
	}
}

// holdsSet reports whether there is a nested set, whose elements cannot be write-only.
func (a *Attribute) holdsSet() bool {
	return a.Mode == Set || slices.ContainsFunc(a.Attributes, (*Attribute).holdsSet)
}

// written makes all values within a write-only attribute write-only.
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

// ObjectType returns the type of a block's values.
func (b *Block) ObjectType() tftypes.Object {
	o := attributesType(b.Attributes)
	for _, n := range b.Blocks {
		o.AttributeTypes[n.Name] = collection(n.Mode, n.Block.ObjectType())
	}
	return o
}

// ValueType returns the type of an attribute's values.
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

// find returns the attribute or the block with a name; both are nil if there is none.
func find(b *Block, name string) (*Attribute, *Nested) {
	if i := slices.IndexFunc(b.Attributes, func(a *Attribute) bool { return a.Name == name }); i >= 0 {
		return b.Attributes[i], nil
	}
	if i := slices.IndexFunc(b.Blocks, func(n *Nested) bool { return n.Name == name }); i >= 0 {
		return nil, b.Blocks[i]
	}
	return nil, nil
}
