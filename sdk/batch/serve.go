package batch

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"

	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/hykube/hykube/internal/provider/batch"
)

// Method is a call of the provider protocol that may be batched.
type Method = pb.Method

// The methods.
const (
	Read  Method = pb.Method_READ_RESOURCE
	Plan  Method = pb.Method_PLAN_RESOURCE_CHANGE
	Apply Method = pb.Method_APPLY_RESOURCE_CHANGE
)

// Limit is the maximum number of calls of a method for a resource type in one batch.
type Limit struct {
	Method   Method
	Type     string
	MaxCalls int
}

// maxMessage is the maximum size of a message in bytes, as in tf6server.
const maxMessage = 256 << 20

// Serve serves a provider as a plugin, as tf6server.Serve does, and with it the service of batches. address is the
// provider's source address, such as registry.terraform.io/hashicorp/random. It returns when the plugin ends.
func Serve(address string, provider func() tfprotov6.ProviderServer, limits ...Limit) {
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: 6, MagicCookieKey: "TF_PLUGIN_MAGIC_COOKIE",
			MagicCookieValue: "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
		},
		Plugins: goplugin.PluginSet{"provider": Plugin(address, provider, limits...)},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))...)
		},
	})
}

// Plugin returns the plugin that Serve serves.
func Plugin(address string, provider func() tfprotov6.ProviderServer, limits ...Limit) goplugin.Plugin {
	return &plugin{
		GRPCProviderPlugin: tf6server.GRPCProviderPlugin{Name: address},
		provider:           provider, limits: slices.Clone(limits),
	}
}

type plugin struct {
	tf6server.GRPCProviderPlugin
	provider func() tfprotov6.ProviderServer
	limits   []Limit
}

// GRPCServer registers the provider and the service of batches. The calls of a batch go through another server in this
// process. So they get the interceptors that tf6server adds to every call, such as logging.
func (p *plugin) GRPCServer(broker *goplugin.GRPCBroker, s *grpc.Server) error {
	provider := p.provider()
	batches := &service{limits: p.limits, running: map[string]*batch{}}
	inner := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage), grpc.UnaryInterceptor(batches.withBatch))
	p.GRPCProvider = func() tfprotov6.ProviderServer { return stopsAlready{provider} }
	if err := p.GRPCProviderPlugin.GRPCServer(broker, inner); err != nil {
		return err
	}
	listener := bufconn.Listen(1 << 20)
	go inner.Serve(listener) //nolint:errcheck // it ends with the process
	conn, err := grpc.NewClient("passthrough:", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return err
	}
	batches.provider = conn
	p.GRPCProvider = func() tfprotov6.ProviderServer { return stopsBatches{provider, batches} }
	if err := p.GRPCProviderPlugin.GRPCServer(broker, s); err != nil {
		return err
	}
	s.RegisterService(&description, batches)
	return nil
}

var errStopped = errors.New("the provider was asked to stop")

// stopsBatches is a provider whose StopProvider ends the contexts of the running batches, too. As with single calls,
// each call of a batch still returns its answer.
type stopsBatches struct {
	tfprotov6.ProviderServer
	batches *service
}

func (p stopsBatches) StopProvider(ctx context.Context, req *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	resp, err := p.ProviderServer.StopProvider(ctx, req)
	return resp, errors.Join(err, p.batches.stopRunning(ctx))
}

// stopsAlready is the provider of the inner server. It ignores StopProvider, which stopsBatches has passed on before.
type stopsAlready struct{ tfprotov6.ProviderServer }

func (stopsAlready) StopProvider(context.Context, *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return &tfprotov6.StopProviderResponse{}, nil
}

// raw passes encoded messages through.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = slices.Clone(data)
	return nil
}

// service answers batches.
type service struct {
	limits []Limit
	// provider is the inner server.
	provider *grpc.ClientConn

	mu sync.Mutex
	// running are the batches that are being answered, by number.
	running map[string]*batch
	last    uint64
}

// stopRunning ends the contexts of the running batches, and then those of their calls. Batches that begin later run, as
// single calls do in tf6server. The lock prevents that a batch begins between the two ends: its calls would end without
// the call of their Group.
func (s *service) stopRunning(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.running {
		b.stop(errStopped)
	}
	var request, response []byte // an empty message
	return s.provider.Invoke(ctx, "/tfplugin6.Provider/StopProvider", &request, &response)
}

// begin adds a batch of n calls that ends with a context. The caller must call done.
func (s *service) begin(ctx context.Context, n int) (b *batch, id string, done func()) {
	b = &batch{active: n, waiting: map[any]*waiting{}}
	b.over, b.stop = context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	id = strconv.FormatUint(s.last, 10)
	s.running[id] = b
	return b, id, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, id)
		b.stop(nil)
	}
}

// metadataKey is the key of a call's metadata with the number of its batch.
const metadataKey = "hykube-batch"

// withBatch puts the batch of a call into its context.
func (s *service) withBatch(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	for _, id := range metadata.ValueFromIncomingContext(ctx, metadataKey) {
		s.mu.Lock()
		b := s.running[id]
		s.mu.Unlock()
		if b != nil {
			ctx = context.WithValue(ctx, contextKey{}, b)
		}
	}
	return handler(ctx, req)
}

type contextKey struct{}

// batchOf returns the batch of a call; nil if there is none.
func batchOf(ctx context.Context) *batch {
	b, _ := ctx.Value(contextKey{}).(*batch)
	return b
}

var description = grpc.ServiceDesc{
	ServiceName: pb.Service,
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: pb.GetLimitsMethod, Handler: func(srv any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		if err := decode(new(pb.GetLimits_Request)); err != nil {
			return nil, err
		}
		return srv.(*service).announce(), nil
	}}},
	Streams: []grpc.StreamDesc{{StreamName: pb.CallMethod, ServerStreams: true, Handler: func(srv any, stream grpc.ServerStream) error {
		req := new(pb.Call_Request)
		if err := stream.RecvMsg(req); err != nil {
			return err
		}
		return srv.(*service).call(stream, req)
	}}},
	Metadata: "batch.proto",
}

func (s *service) announce() *pb.GetLimits_Response {
	resp := new(pb.GetLimits_Response)
	for _, l := range s.limits {
		resp.Limits = append(resp.Limits, &pb.GetLimits_Limit{Method: l.Method, TypeName: l.Type, MaxCalls: int32(l.MaxCalls)})
	}
	return resp
}

// call makes the calls of a batch at once, and sends each answer when it is known.
func (s *service) call(stream grpc.ServerStream, req *pb.Call_Request) error {
	method := ""
	for name, m := range pb.Methods {
		if m == req.Method {
			method = name
		}
	}
	if method == "" {
		return status.Errorf(codes.Unimplemented, "unknown method %v of a batch", req.Method)
	}
	// The client's context ends if no caller waits for the answers. Calls that change infrastructure then continue, and
	// the client calls StopProvider to end them.
	ctx := stream.Context()
	if req.Method == Apply {
		ctx = context.WithoutCancel(ctx)
	}
	b, id, done := s.begin(ctx, len(req.Requests))
	defer done()
	answers := make(chan *pb.Call_Response)
	for i, request := range req.Requests {
		go func() {
			var response []byte
			err := s.provider.Invoke(metadata.AppendToOutgoingContext(ctx, metadataKey, id), method, &request, &response)
			b.ended()
			answers <- answer(i, response, err)
		}()
	}
	var failed error
	for range req.Requests {
		if a := <-answers; failed == nil {
			failed = stream.SendMsg(a)
		}
	}
	return failed
}

func answer(i int, response []byte, err error) *pb.Call_Response {
	a := &pb.Call_Response{Index: int32(i), Answer: &pb.Call_Response_Response{Response: response}}
	if err != nil {
		s := status.Convert(err)
		a.Answer = &pb.Call_Response_Error{Error: &pb.Call_Error{Code: int32(s.Code()), Message: s.Message()}}
	}
	return a
}
