package conform6

import (
	"context"
	"math"

	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hykube/hykube/tests/conformance/cloud"
)

// Serve runs the provider as a plugin, as tf6server.Serve does. In addition, it can return deferred answers that the
// client did not allow, which the library rejects.
func Serve(options cloud.Options) error {
	server, err := New(options)
	if err != nil {
		return err
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: 6, MagicCookieKey: "TF_PLUGIN_MAGIC_COOKIE",
			MagicCookieValue: "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
		},
		Plugins: plugin.PluginSet{"provider": &tf6server.GRPCProviderPlugin{
			Name: Address, GRPCProvider: func() tfprotov6.ProviderServer { return server },
		}},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(math.MaxInt32), grpc.MaxSendMsgSize(math.MaxInt32), grpc.UnaryInterceptor(allowDeferral))...)
		},
	})
	return nil
}

// allowDeferral makes the library accept deferred answers for every client.
func allowDeferral(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if m, ok := req.(proto.Message); ok {
		ctx = withKeeping(ctx, m)
		r := m.ProtoReflect()
		if caps := r.Descriptor().Fields().ByName("client_capabilities"); caps != nil {
			inner := r.Mutable(caps).Message()
			if allowed := inner.Descriptor().Fields().ByName("deferral_allowed"); allowed != nil {
				inner.Set(allowed, protoreflect.ValueOfBool(true))
			}
		}
	}
	return next(ctx, req)
}
