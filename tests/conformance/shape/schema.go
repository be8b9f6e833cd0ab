package shape

import (
	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// This file converts a shape to the schemas of the protocols.

func (b *Block) schema6() *tfprotov6.SchemaBlock {
	out := &tfprotov6.SchemaBlock{Attributes: attributes6(b.Attributes)}
	for _, n := range b.Blocks {
		out.BlockTypes = append(out.BlockTypes, &tfprotov6.SchemaNestedBlock{
			TypeName: n.Name, MinItems: int64(n.Min), MaxItems: int64(n.Max), Block: n.Block.schema6(),
			Nesting: map[Mode]tfprotov6.SchemaNestedBlockNestingMode{
				Single: tfprotov6.SchemaNestedBlockNestingModeSingle, Group: tfprotov6.SchemaNestedBlockNestingModeGroup,
				List: tfprotov6.SchemaNestedBlockNestingModeList, Set: tfprotov6.SchemaNestedBlockNestingModeSet, Map: tfprotov6.SchemaNestedBlockNestingModeMap,
			}[n.Mode],
		})
	}
	return out
}

func attributes6(attributes []*Attribute) (out []*tfprotov6.SchemaAttribute) {
	for _, a := range attributes {
		s := &tfprotov6.SchemaAttribute{
			Name: a.Name, Description: a.Description, Type: a.Type, Required: a.Required, Optional: a.Optional, Computed: a.Computed,
			Sensitive: a.Sensitive, WriteOnly: a.WriteOnly, Deprecated: a.Deprecated,
		}
		if a.Type == nil {
			s.NestedType = &tfprotov6.SchemaObject{
				Attributes: attributes6(a.Attributes),
				Nesting: map[Mode]tfprotov6.SchemaObjectNestingMode{
					Single: tfprotov6.SchemaObjectNestingModeSingle, List: tfprotov6.SchemaObjectNestingModeList,
					Set: tfprotov6.SchemaObjectNestingModeSet, Map: tfprotov6.SchemaObjectNestingModeMap,
				}[a.Mode],
			}
		}
		out = append(out, s)
	}
	return out
}

func (b *Block) schema5() *tfprotov5.SchemaBlock {
	out := &tfprotov5.SchemaBlock{}
	for _, a := range b.Attributes {
		out.Attributes = append(out.Attributes, &tfprotov5.SchemaAttribute{
			Name: a.Name, Description: a.Description, Type: a.Type, Required: a.Required, Optional: a.Optional, Computed: a.Computed,
			Sensitive: a.Sensitive, WriteOnly: a.WriteOnly, Deprecated: a.Deprecated,
		})
	}
	for _, n := range b.Blocks {
		nesting := tfprotov5.SchemaNestedBlockNestingModeList
		if n.Mode == Set {
			nesting = tfprotov5.SchemaNestedBlockNestingModeSet
		}
		out.BlockTypes = append(out.BlockTypes, &tfprotov5.SchemaNestedBlock{
			TypeName: n.Name, MinItems: int64(n.Min), MaxItems: int64(n.Max), Block: n.Block.schema5(), Nesting: nesting,
		})
	}
	return out
}

// identityType is the type of every identity of the provider.
func identityType() tftypes.Object {
	return tftypes.Object{AttributeTypes: map[string]tftypes.Type{"key": tftypes.String}}
}
