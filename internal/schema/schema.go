// Package schema represents a Terraform provider's schema: blocks, attributes and their cty types, and the wire
// encoding of values. It converts the messages of the provider protocol. It does not know processes, objects or plans.
package schema

//lint:file-ignore SA1019 types cross the wire as JSON, and there is no other way to write them

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Provider is the content of a provider's GetProviderSchema response.
type Provider struct {
	// Config is the schema of the provider's own configuration.
	Config *Schema
	// Meta is the schema of the module-level provider metadata; nil if the provider has none.
	Meta *Schema
	// Resources are the managed resource types, by Terraform type name.
	Resources map[string]*Schema
	// DataSources are the data source types, by Terraform type name.
	DataSources map[string]*Schema
	// Ephemerals are the ephemeral resource types, by Terraform type name.
	Ephemerals map[string]*Schema
	// ListResources are the schemas of list configurations, by the name of the managed resource type.
	ListResources map[string]*Schema
	// Actions are the action types, by Terraform type name.
	Actions map[string]*Schema
	// Identities are the identity schemas of those managed resource types that have one, by Terraform type name.
	Identities map[string]*Identity
	// Functions are the provider's functions, by name.
	Functions map[string]*Function
	// PlanDestroy is true if the provider plans destroys.
	PlanDestroy bool
	// MoveState is true if the provider converts states of other types or providers.
	MoveState bool
	// GenerateConfig is true if the provider generates the configuration of an imported instance.
	GenerateConfig bool
	// Protocol is the major version of the plugin protocol, 5 or 6; 0 for a provider that is not a plugin.
	Protocol int
	// Batches has the managed resource types whose calls the provider takes in batches.
	Batches map[string]bool
	// DeterministicPlans has the managed resource types of which the provider answers the same plan request always
	// alike.
	DeterministicPlans map[string]bool
	// SchemaOptional is true if a process can be used without a GetProviderSchema call.
	SchemaOptional bool
}

// Schema is one version of the schema of a resource type, data source or provider configuration.
type Schema struct {
	// Version increases when the stored form of the type changes.
	Version int64
	// Block is the outermost block; never nil.
	Block *Block
}

// Block is a set of attributes and nested blocks.
type Block struct {
	// Attributes, sorted by name.
	Attributes []*Attribute
	// Blocks, sorted by type name.
	Blocks []*NestedBlock
	// Description, in plain text or Markdown; may be empty.
	Description string
	// Deprecated is true if the provider discourages the use of the block.
	Deprecated bool

	// implied is the result of ImpliedType; nil before the first call.
	implied atomic.Pointer[cty.Type]
}

// Attribute is one argument or one computed value.
type Attribute struct {
	Name string
	// Type is the attribute's type. If Nested is set, Type is Nested.ImpliedType().
	Type cty.Type
	// Nested is the schema of a nested attribute, whose value is one or several objects; otherwise nil.
	Nested      *Object
	Description string
	// Required: the configuration must set it. Optional: the configuration may set it. Computed: the provider may set
	// it.
	Required, Optional, Computed bool
	// Sensitive is true if the value must be masked wherever a user could see it.
	Sensitive bool
	// WriteOnly is true if the value is sent to the provider but never stored.
	WriteOnly  bool
	Deprecated bool
}

// Configurable reports whether a configuration may set the attribute.
func (a *Attribute) Configurable() bool { return a.Required || a.Optional }

// Object is the schema of a nested attribute.
type Object struct {
	// Nesting is Single, List, Set or Map.
	Nesting Nesting
	// Attributes, sorted by name.
	Attributes []*Attribute
}

// NestedBlock is a block within a block.
type NestedBlock struct {
	TypeName string
	// Nesting is Single, Group, List, Set or Map.
	Nesting Nesting
	Block   *Block
	// MinItems and MaxItems limit the number of blocks; a MaxItems of 0 means no limit.
	MinItems, MaxItems int64
}

// Nesting is the nesting mode of a nested block or attribute.
type Nesting int

// The nesting modes of the provider protocol.
const (
	NestingSingle Nesting = iota + 1
	// NestingGroup is a single block whose value is an empty block if it is not written.
	NestingGroup
	NestingList
	NestingSet
	NestingMap
)

// FromProto converts a GetProviderSchema response. Errors name the type and the attribute.
func FromProto(r *tfprotov6.GetProviderSchemaResponse) (*Provider, error) {
	p := &Provider{
		Actions:    make(map[string]*Schema, len(r.ActionSchemas)),
		Identities: map[string]*Identity{},
	}
	if c := r.ServerCapabilities; c != nil {
		p.PlanDestroy, p.SchemaOptional = c.PlanDestroy, c.GetProviderSchemaOptional
		p.MoveState, p.GenerateConfig = c.MoveResourceState, c.GenerateResourceConfig
	}
	var err error
	if p.Config, err = fromSchema(r.Provider); err != nil {
		return nil, fmt.Errorf("provider configuration: %w", err)
	}
	if r.ProviderMeta != nil {
		if p.Meta, err = fromSchema(r.ProviderMeta); err != nil {
			return nil, fmt.Errorf("provider metadata: %w", err)
		}
	}
	if p.Resources, err = fromSchemas("resource type", r.ResourceSchemas); err != nil {
		return nil, err
	}
	if p.DataSources, err = fromSchemas("data source", r.DataSourceSchemas); err != nil {
		return nil, err
	}
	if p.Ephemerals, err = fromSchemas("ephemeral resource type", r.EphemeralResourceSchemas); err != nil {
		return nil, err
	}
	if p.ListResources, err = fromSchemas("list resource type", r.ListResourceSchemas); err != nil {
		return nil, err
	}
	for name, a := range r.ActionSchemas {
		if p.Actions[name], err = fromAction(a); err != nil {
			return nil, fmt.Errorf("action %q: %w", name, err)
		}
	}
	if p.Functions, err = FunctionsFromProto(r.Functions); err != nil {
		return nil, err
	}
	return p, nil
}

func fromSchemas(kind string, in map[string]*tfprotov6.Schema) (map[string]*Schema, error) {
	out := make(map[string]*Schema, len(in))
	for name, s := range in {
		var err error
		if out[name], err = fromSchema(s); err != nil {
			return nil, fmt.Errorf("%s %q: %w", kind, name, err)
		}
	}
	return out, nil
}

func fromAction(a *tfprotov6.ActionSchema) (*Schema, error) {
	if a == nil {
		return fromSchema(nil)
	}
	return fromSchema(a.Schema)
}

func fromSchema(s *tfprotov6.Schema) (*Schema, error) {
	if s == nil || s.Block == nil {
		return &Schema{Block: &Block{}}, nil
	}
	b, err := fromBlock(s.Block)
	if err != nil {
		return nil, err
	}
	return &Schema{Version: s.Version, Block: b}, nil
}

func fromBlock(b *tfprotov6.SchemaBlock) (*Block, error) {
	out := &Block{Description: b.Description, Deprecated: b.Deprecated}
	var err error
	if out.Attributes, err = fromAttributes(b.Attributes); err != nil {
		return nil, err
	}
	for _, nb := range b.BlockTypes {
		inner, err := fromBlock(nb.Block)
		if err != nil {
			return nil, fmt.Errorf("block %q: %w", nb.TypeName, err)
		}
		nesting, ok := blockNesting[nb.Nesting]
		if !ok {
			return nil, fmt.Errorf("block %q: unknown nesting %v", nb.TypeName, nb.Nesting)
		}
		out.Blocks = append(out.Blocks, &NestedBlock{
			TypeName: nb.TypeName, Nesting: nesting, Block: inner, MinItems: nb.MinItems, MaxItems: nb.MaxItems,
		})
	}
	slices.SortFunc(out.Blocks, func(a, b *NestedBlock) int { return strings.Compare(a.TypeName, b.TypeName) })
	return out, nil
}

var blockNesting = map[tfprotov6.SchemaNestedBlockNestingMode]Nesting{
	tfprotov6.SchemaNestedBlockNestingModeSingle: NestingSingle,
	tfprotov6.SchemaNestedBlockNestingModeGroup:  NestingGroup,
	tfprotov6.SchemaNestedBlockNestingModeList:   NestingList,
	tfprotov6.SchemaNestedBlockNestingModeSet:    NestingSet,
	tfprotov6.SchemaNestedBlockNestingModeMap:    NestingMap,
}

var objectNesting = map[tfprotov6.SchemaObjectNestingMode]Nesting{
	tfprotov6.SchemaObjectNestingModeSingle: NestingSingle,
	tfprotov6.SchemaObjectNestingModeList:   NestingList,
	tfprotov6.SchemaObjectNestingModeSet:    NestingSet,
	tfprotov6.SchemaObjectNestingModeMap:    NestingMap,
}

func fromAttributes(attrs []*tfprotov6.SchemaAttribute) ([]*Attribute, error) {
	out := make([]*Attribute, 0, len(attrs))
	for _, a := range attrs {
		at := &Attribute{
			Name: a.Name, Description: a.Description, Required: a.Required, Optional: a.Optional, Computed: a.Computed,
			Sensitive: a.Sensitive, WriteOnly: a.WriteOnly, Deprecated: a.Deprecated,
		}
		switch {
		case a.NestedType != nil:
			nested, err := fromAttributes(a.NestedType.Attributes)
			if err != nil {
				return nil, fmt.Errorf("attribute %q: %w", a.Name, err)
			}
			nesting, ok := objectNesting[a.NestedType.Nesting]
			if !ok {
				return nil, fmt.Errorf("attribute %q: unknown nesting %v", a.Name, a.NestedType.Nesting)
			}
			at.Nested = &Object{Nesting: nesting, Attributes: nested}
			at.Type = at.Nested.ImpliedType()
		case a.Type != nil:
			var err error
			if at.Type, err = fromType(a.Type); err != nil {
				return nil, fmt.Errorf("attribute %q: %w", a.Name, err)
			}
		default:
			return nil, fmt.Errorf("attribute %q: no type", a.Name)
		}
		out = append(out, at)
	}
	slices.SortFunc(out, func(a, b *Attribute) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// fromType converts a type. A large provider has tens of thousands of attributes, so the most common types take no
// detour through JSON.
func fromType(t tftypes.Type) (cty.Type, error) {
	switch of := t.(type) {
	case nil:
		return cty.NilType, errors.New("no type")
	case tftypes.List:
		return fromElement(of.ElementType, cty.List)
	case tftypes.Set:
		return fromElement(of.ElementType, cty.Set)
	case tftypes.Map:
		return fromElement(of.ElementType, cty.Map)
	}
	switch {
	case t.Equal(tftypes.String):
		return cty.String, nil
	case t.Equal(tftypes.Number):
		return cty.Number, nil
	case t.Equal(tftypes.Bool):
		return cty.Bool, nil
	}
	js, err := t.MarshalJSON() //nolint:staticcheck // no other public function converts a tftypes.Type to its wire form
	if err != nil {
		return cty.NilType, fmt.Errorf("encode type: %w", err)
	}
	out, err := ctyjson.UnmarshalType(js)
	if err != nil {
		return cty.NilType, fmt.Errorf("decode type: %w", err)
	}
	return out, nil
}

// fromElement converts the type of a collection, given the type of its elements.
func fromElement(element tftypes.Type, collection func(cty.Type) cty.Type) (cty.Type, error) {
	inner, err := fromType(element)
	if err != nil {
		return cty.NilType, err
	}
	return collection(inner), nil
}

// HasArguments reports whether the block has attributes or nested blocks. It returns false for a nil block.
func (b *Block) HasArguments() bool { return b != nil && len(b.Attributes)+len(b.Blocks) > 0 }

// Attribute returns an attribute of the block by name, or nil.
func (b *Block) Attribute(name string) *Attribute { return findAttribute(b.Attributes, name) }

// Attribute returns an attribute of the object by name, or nil.
func (o *Object) Attribute(name string) *Attribute { return findAttribute(o.Attributes, name) }

func findAttribute(attrs []*Attribute, name string) *Attribute {
	i, ok := slices.BinarySearchFunc(attrs, name,
		func(a *Attribute, n string) int { return strings.Compare(a.Name, n) })
	if !ok {
		return nil
	}
	return attrs[i]
}

// NestedBlock returns a nested block by type name, or nil.
func (b *Block) NestedBlock(name string) *NestedBlock {
	i, ok := slices.BinarySearchFunc(b.Blocks, name,
		func(n *NestedBlock, s string) int { return strings.Compare(n.TypeName, s) })
	if !ok {
		return nil
	}
	return b.Blocks[i]
}

// ImpliedType returns the object type of the block's values. The block must not change after the first call.
func (b *Block) ImpliedType() cty.Type {
	if ty := b.implied.Load(); ty != nil {
		return *ty
	}
	atys := make(map[string]cty.Type, len(b.Attributes)+len(b.Blocks))
	for _, a := range b.Attributes {
		atys[a.Name] = a.Type
	}
	for _, nb := range b.Blocks {
		atys[nb.TypeName] = nb.ImpliedType()
	}
	ty := cty.Object(atys)
	b.implied.Store(&ty)
	return ty
}

// ImpliedType returns the type of the value that holds all blocks of the type. A list or map whose element type
// contains a dynamic attribute is dynamic itself. Its value is then a tuple or object of its own type:
// https://github.com/hashicorp/terraform/blob/main/docs/plugin-protocol/object-wire-format.md
func (nb *NestedBlock) ImpliedType() cty.Type { return nestedType(nb.Nesting, nb.Block.ImpliedType()) }

// ImpliedType returns the type of a nested attribute's value.
func (o *Object) ImpliedType() cty.Type {
	atys := make(map[string]cty.Type, len(o.Attributes))
	for _, a := range o.Attributes {
		atys[a.Name] = a.Type
	}
	return nestedType(o.Nesting, cty.Object(atys))
}

func nestedType(n Nesting, elem cty.Type) cty.Type {
	switch n {
	case NestingList:
		if elem.HasDynamicTypes() {
			return cty.DynamicPseudoType
		}
		return cty.List(elem)
	case NestingSet:
		return cty.Set(elem)
	case NestingMap:
		if elem.HasDynamicTypes() {
			return cty.DynamicPseudoType
		}
		return cty.Map(elem)
	default:
		return elem
	}
}
