package protocol

//lint:file-ignore SA1019 types cross the wire as JSON, and there is no other parser of them

import (
	"strings"

	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/hykube/hykube/sdk/batch/tfplugin6"
)

func mapSlice[A, B any](in []A, f func(A) B) []B {
	if in == nil {
		return nil
	}
	out := make([]B, len(in))
	for i, a := range in {
		out[i] = f(a)
	}
	return out
}

func mapValues[A, B any](in map[string]A, f func(A) B) map[string]B {
	out := make(map[string]B, len(in))
	for k, a := range in {
		out[k] = f(a)
	}
	return out
}

func toRawState(s *tfprotov6.RawState) *pb.RawState {
	if s == nil {
		return nil
	}
	return &pb.RawState{Json: s.JSON, Flatmap: s.Flatmap}
}

func fromDeferred(d *pb.Deferred) *tfprotov6.Deferred {
	if d == nil {
		return nil
	}
	return &tfprotov6.Deferred{Reason: tfprotov6.DeferredReason(d.Reason)}
}

func fromTime(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

func fromCapabilities(c *pb.ServerCapabilities) *tfprotov6.ServerCapabilities {
	if c == nil {
		return nil
	}
	return &tfprotov6.ServerCapabilities{
		GetProviderSchemaOptional: c.GetProviderSchemaOptional,
		MoveResourceState:         c.MoveResourceState,
		PlanDestroy:               c.PlanDestroy,
		GenerateResourceConfig:    c.GenerateResourceConfig,
	}
}

// diagnostics converts diagnostics, and adds a hint to errors.
func (c *Client) diagnostics(in []*pb.Diagnostic) []*tfprotov6.Diagnostic {
	return mapSlice(in, func(d *pb.Diagnostic) *tfprotov6.Diagnostic {
		out := &tfprotov6.Diagnostic{Severity: tfprotov6.DiagnosticSeverityError, Summary: d.Summary, Detail: d.Detail}
		if d.Severity == pb.Diagnostic_WARNING { // treat every other severity as an error, so that none is lost
			out.Severity = tfprotov6.DiagnosticSeverityWarning
		} else if c.Hint != nil {
			if hint := c.Hint(d.Summary + "\n" + d.Detail); hint != "" {
				out.Detail = strings.TrimSpace(d.Detail + "\n\n" + hint)
			}
		}
		if len(d.GetAttribute().GetSteps()) > 0 {
			out.Attribute = fromPath(d.Attribute)
		}
		return out
	})
}

// fromPath converts a path up to the first step of an unknown kind, so that it still names a parent.
func fromPath(p *pb.AttributePath) *tftypes.AttributePath {
	var steps []tftypes.AttributePathStep
	for _, s := range p.GetSteps() {
		switch s := s.Selector.(type) {
		case *pb.AttributePath_Step_AttributeName:
			steps = append(steps, tftypes.AttributeName(s.AttributeName))
		case *pb.AttributePath_Step_ElementKeyString:
			steps = append(steps, tftypes.ElementKeyString(s.ElementKeyString))
		case *pb.AttributePath_Step_ElementKeyInt:
			steps = append(steps, tftypes.ElementKeyInt(s.ElementKeyInt))
		default:
			return tftypes.NewAttributePathWithSteps(steps)
		}
	}
	return tftypes.NewAttributePathWithSteps(steps)
}

// schemaReader converts schemas and keeps the first error, so that a conversion can be a single expression.
type schemaReader struct {
	err error
	// types has the types that were read, by their wire form. A large provider has tens of thousands of attributes of a
	// few types.
	types map[string]tftypes.Type
}

func (r *schemaReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *schemaReader) typ(name string, raw []byte) tftypes.Type {
	if t := r.types[string(raw)]; t != nil {
		return t
	}
	t, err := tftypes.ParseJSONType(raw) //nolint:staticcheck // the one public way from the wire form to a tftypes.Type
	if err != nil {
		r.fail("decode type of %q: %w", name, err)
		return tftypes.DynamicPseudoType
	}
	if r.types == nil {
		r.types = map[string]tftypes.Type{}
	}
	r.types[string(raw)] = t
	return t
}

func (r *schemaReader) schema(s *pb.Schema) *tfprotov6.Schema {
	if s == nil {
		return nil
	}
	return &tfprotov6.Schema{Version: s.Version, Block: r.block(s.Block)}
}

func (r *schemaReader) block(b *pb.Schema_Block) *tfprotov6.SchemaBlock {
	if b == nil {
		return &tfprotov6.SchemaBlock{}
	}
	return &tfprotov6.SchemaBlock{
		Version:    b.Version,
		Attributes: mapSlice(b.Attributes, r.attribute),
		BlockTypes: mapSlice(b.BlockTypes, func(n *pb.Schema_NestedBlock) *tfprotov6.SchemaNestedBlock {
			return &tfprotov6.SchemaNestedBlock{
				TypeName: n.TypeName, Block: r.block(n.Block),
				Nesting:  tfprotov6.SchemaNestedBlockNestingMode(n.Nesting),
				MinItems: n.MinItems, MaxItems: n.MaxItems,
			}
		}),
		Description: b.Description, DescriptionKind: tfprotov6.StringKind(b.DescriptionKind),
		Deprecated: b.Deprecated, DeprecationMessage: b.DeprecationMessage,
	}
}

func (r *schemaReader) attribute(a *pb.Schema_Attribute) *tfprotov6.SchemaAttribute {
	out := &tfprotov6.SchemaAttribute{
		Name: a.Name, Description: a.Description, DescriptionKind: tfprotov6.StringKind(a.DescriptionKind),
		Required: a.Required, Optional: a.Optional, Computed: a.Computed, Sensitive: a.Sensitive,
		WriteOnly:  a.WriteOnly,
		Deprecated: a.Deprecated, DeprecationMessage: a.DeprecationMessage,
	}
	if n := a.NestedType; n != nil {
		out.NestedType = &tfprotov6.SchemaObject{
			Attributes: mapSlice(n.Attributes, r.attribute), Nesting: tfprotov6.SchemaObjectNestingMode(n.Nesting),
		}
		return out
	}
	out.Type = r.typ(a.Name, a.Type)
	return out
}

func (r *schemaReader) action(a *pb.ActionSchema) *tfprotov6.ActionSchema {
	return &tfprotov6.ActionSchema{Schema: r.schema(a.Schema)}
}

func (r *schemaReader) identity(s *pb.ResourceIdentitySchema) *tfprotov6.ResourceIdentitySchema {
	return &tfprotov6.ResourceIdentitySchema{
		Version: s.Version,
		IdentityAttributes: mapSlice(s.IdentityAttributes,
			func(a *pb.ResourceIdentitySchema_IdentityAttribute) *tfprotov6.ResourceIdentitySchemaAttribute {
				return &tfprotov6.ResourceIdentitySchemaAttribute{
					Name: a.Name, Type: r.typ(a.Name, a.Type), Description: a.Description,
					RequiredForImport: a.RequiredForImport, OptionalForImport: a.OptionalForImport,
				}
			}),
	}
}

func (r *schemaReader) function(f *pb.Function) *tfprotov6.Function {
	out := &tfprotov6.Function{
		Parameters: mapSlice(f.Parameters, r.parameter), Summary: f.Summary,
		Description: f.Description, DescriptionKind: tfprotov6.StringKind(f.DescriptionKind),
		DeprecationMessage: f.DeprecationMessage,
	}
	if f.VariadicParameter != nil {
		out.VariadicParameter = r.parameter(f.VariadicParameter)
	}
	if f.Return != nil {
		out.Return = &tfprotov6.FunctionReturn{Type: r.typ("return", f.Return.Type)}
	}
	return out
}

func (r *schemaReader) parameter(p *pb.Function_Parameter) *tfprotov6.FunctionParameter {
	return &tfprotov6.FunctionParameter{
		Name: p.Name, Type: r.typ(p.Name, p.Type), AllowNullValue: p.AllowNullValue,
		AllowUnknownValues: p.AllowUnknownValues,
		Description:        p.Description, DescriptionKind: tfprotov6.StringKind(p.DescriptionKind),
	}
}
