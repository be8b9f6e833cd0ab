package protocol

import (
	"context"
	"strings"

	"google.golang.org/grpc"

	pb5 "github.com/hykube/hykube/internal/provider/tfplugin5"
	pb "github.com/hykube/hykube/sdk/batch/tfplugin6"
)

// version5 is a connection to a protocol 5 plugin that accepts calls of protocol 6.
type version5 struct{ conn grpc.ClientConnInterface }

const service5 = "/tfplugin5.Provider/"

// method5 returns the protocol 5 name of a protocol 6 method.
func method5(method string) string {
	name := strings.TrimPrefix(method, service)
	switch name {
	case "GetProviderSchema":
		name = "GetSchema"
	case "ValidateProviderConfig":
		// The response also has a prepared configuration, which Hykube ignores, as Terraform does.
		name = "PrepareProviderConfig"
	case "ValidateResourceConfig":
		name = "ValidateResourceTypeConfig"
	case "ValidateDataResourceConfig":
		name = "ValidateDataSourceConfig"
	case "ConfigureProvider":
		name = "Configure"
	case "StopProvider":
		name = "Stop"
	}
	return service5 + name
}

func (c version5) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	out, ok := reply.(*pb.GetProviderSchema_Response)
	if !ok {
		return c.conn.Invoke(ctx, method5(method), args, reply, opts...)
	}
	in := new(pb5.GetProviderSchema_Response)
	if err := c.conn.Invoke(ctx, method5(method), args, in, opts...); err != nil {
		return err
	}
	*out = pb.GetProviderSchema_Response{
		Provider:                 schema5(in.Provider),
		ResourceSchemas:          mapValues(in.ResourceSchemas, schema5),
		DataSourceSchemas:        mapValues(in.DataSourceSchemas, schema5),
		Diagnostics:              in.Diagnostics,
		ProviderMeta:             schema5(in.ProviderMeta),
		ServerCapabilities:       in.ServerCapabilities,
		Functions:                in.Functions,
		EphemeralResourceSchemas: mapValues(in.EphemeralResourceSchemas, schema5),
		ListResourceSchemas:      mapValues(in.ListResourceSchemas, schema5),
		ActionSchemas: mapValues(in.ActionSchemas, func(a *pb5.ActionSchema) *pb.ActionSchema {
			return &pb.ActionSchema{Schema: schema5(a.Schema)}
		}),
	}
	return nil
}

func (c version5) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string,
	opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return c.conn.NewStream(ctx, desc, method5(method), opts...)
}

// Explain returns the connection's explanation of an error.
func (c version5) Explain(ctx context.Context, err error) error {
	if e, ok := c.conn.(explainer); ok {
		return e.Explain(ctx, err)
	}
	return err
}

func schema5(s *pb5.Schema) *pb.Schema {
	if s == nil {
		return nil
	}
	return &pb.Schema{Version: s.Version, Block: block5(s.Block)}
}

func block5(b *pb5.Schema_Block) *pb.Schema_Block {
	if b == nil {
		return nil
	}
	return &pb.Schema_Block{
		Version: b.Version,
		Attributes: mapSlice(b.Attributes, func(a *pb5.Schema_Attribute) *pb.Schema_Attribute {
			return &pb.Schema_Attribute{
				Name: a.Name, Type: a.Type, Description: a.Description, DescriptionKind: a.DescriptionKind,
				Required: a.Required, Optional: a.Optional, Computed: a.Computed, Sensitive: a.Sensitive,
				Deprecated: a.Deprecated, DeprecationMessage: a.DeprecationMessage, WriteOnly: a.WriteOnly,
			}
		}),
		BlockTypes: mapSlice(b.BlockTypes, func(n *pb5.Schema_NestedBlock) *pb.Schema_NestedBlock {
			return &pb.Schema_NestedBlock{
				TypeName: n.TypeName, Block: block5(n.Block), Nesting: pb.Schema_NestedBlock_NestingMode(n.Nesting),
				MinItems: n.MinItems, MaxItems: n.MaxItems,
			}
		}),
		Description: b.Description, DescriptionKind: b.DescriptionKind,
		Deprecated: b.Deprecated, DeprecationMessage: b.DeprecationMessage,
	}
}
