package batch

import (
	"context"
	"errors"
	"slices"
	"sync"

	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hykube/hykube/sdk/batch/batchv1"
)

// Method is a call of the provider protocol that may be batched.
type Method = batchv1.Method

// The methods.
const (
	Validate Method = batchv1.Method_VALIDATE_RESOURCE_CONFIG
	Read     Method = batchv1.Method_READ_RESOURCE
	Plan     Method = batchv1.Method_PLAN_RESOURCE_CHANGE
	Apply    Method = batchv1.Method_APPLY_RESOURCE_CHANGE
)

// Limit is the maximum number of calls of a method for a resource type in one batch.
type Limit struct {
	Method   Method
	Type     string
	MaxCalls int
	// Deterministic promises, for Plan, that each process of this version of the provider, configured with the same
	// arguments, answers the same request alike, whenever it is asked. So a plan may not depend on the cloud, the time,
	// or earlier calls. Hykube then plans a create only once if the first plan knew its whole configuration, and not
	// again before its apply.
	Deterministic bool
}

// maxMessage is the maximum size of a message in bytes, as in tf6server.
const maxMessage = 256 << 20

// Serve serves a provider as a plugin, as tf6server.Serve does, and with it the service of batches. address is the
// provider's source address, such as registry.terraform.io/hashicorp/random. It returns when the plugin ends.
func Serve(address string, provider func() tfprotov6.ProviderServer, limits ...Limit) {
	p := newPlugin(address, provider, limits...)
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: 6, MagicCookieKey: "TF_PLUGIN_MAGIC_COOKIE",
			MagicCookieValue: "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
		},
		Plugins:    goplugin.PluginSet{"provider": p},
		GRPCServer: p.server,
	})
}

// NewServer returns the gRPC server of the plugin that Serve runs, for tests of a provider in their own process.
func NewServer(address string, provider func() tfprotov6.ProviderServer, limits ...Limit) (*grpc.Server, error) {
	p := newPlugin(address, provider, limits...)
	return p.register(p.server(nil))
}

// plugin is a provider with the service of batches.
type plugin struct {
	tf6server.GRPCProviderPlugin
	batches *service
}

func newPlugin(address string, provider func() tfprotov6.ProviderServer, limits ...Limit) *plugin {
	return &plugin{
		GRPCProviderPlugin: tf6server.GRPCProviderPlugin{Name: address, GRPCProvider: sync.OnceValue(provider)},
		batches: &service{limits: slices.Clone(limits), running: map[*batch]context.CancelFunc{},
			maxMessage: maxMessage},
	}
}

// server returns the gRPC server of the plugin. Its StopProvider ends the running batches, too.
func (p *plugin) server(opts []grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo,
			handler grpc.UnaryHandler) (any, error) {
			if info.FullMethod == stopMethod {
				defer p.batches.stopRunning()()
			}
			return handler(ctx, req)
		}))...)
}

// register registers the plugin at a server, and returns the server.
func (p *plugin) register(s *grpc.Server) (*grpc.Server, error) { return s, p.GRPCServer(nil, s) }

// GRPCServer registers the provider and the service of batches.
func (p *plugin) GRPCServer(broker *goplugin.GRPCBroker, s *grpc.Server) error {
	if err := p.GRPCProviderPlugin.GRPCServer(broker, s); err != nil {
		return err
	}
	p.batches.calls = callsOf(p.GRPCProvider())
	p.batches.loggers = newLoggers(p.Name)
	s.RegisterService(&description, p.batches)
	return nil
}

const stopMethod = "/tfplugin6.Provider/StopProvider"

var errStopped = errors.New("the provider was asked to stop")

// service answers batches.
type service struct {
	limits []Limit
	calls  map[Method]encodedCall
	// loggers add loggers to the context of a batch, which has its first request.
	loggers map[Method]func(ctx context.Context, request []byte) context.Context
	// maxMessage is the maximum size of an answer in bytes. A client may accept less.
	maxMessage int

	mu sync.Mutex
	// running are the batches that are being answered, with functions that end the contexts of their calls.
	running map[*batch]context.CancelFunc
}

// stopRunning ends the running batches. The function that it returns then ends the contexts of their calls. In between,
// the provider's StopProvider may do the same. So no member ends without the result of its Group's call: as with single
// calls, each returns its answer. Batches that begin later run, as single calls do in tf6server. None begins in
// between: the provider would end the contexts of its calls, but not the batch.
func (s *service) stopRunning() (endCalls func()) {
	s.mu.Lock()
	for b := range s.running {
		b.stop(errStopped)
	}
	return func() {
		defer s.mu.Unlock()
		for _, cancel := range s.running {
			cancel()
		}
	}
}

// begin adds a batch that ends with a context. It returns the context of the calls. The caller must call done.
func (s *service) begin(ctx context.Context, req *batchv1.Call_Request) (b *batch, calls context.Context, done func()) {
	b = &batch{active: len(req.Requests), waiting: map[any]*waiting{}}
	b.over, b.stop = context.WithCancelCause(ctx)
	calls, cancel := context.WithCancel(context.WithValue(ctx, contextKey{}, b))
	if len(req.Requests) > 0 {
		calls = s.loggers[req.Method](calls, req.Requests[0])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[b] = cancel
	return b, calls, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, b)
		cancel()
		b.stop(nil)
	}
}

type contextKey struct{}

// batchOf returns the batch of a call; nil if there is none.
func batchOf(ctx context.Context) *batch {
	b, _ := ctx.Value(contextKey{}).(*batch)
	return b
}

var description = grpc.ServiceDesc{
	ServiceName: batchv1.Service,
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: batchv1.GetLimitsMethod,
		Handler: func(srv any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			if err := decode(new(batchv1.GetLimits_Request)); err != nil {
				return nil, err
			}
			return srv.(*service).announce(), nil
		}}},
	Streams: []grpc.StreamDesc{{StreamName: batchv1.CallMethod, ServerStreams: true,
		Handler: func(srv any, stream grpc.ServerStream) error {
			req := new(batchv1.Call_Request)
			if err := stream.RecvMsg(req); err != nil {
				return err
			}
			return srv.(*service).call(stream, req)
		}}},
	Metadata: "batch.proto",
}

func (s *service) announce() *batchv1.GetLimits_Response {
	resp := new(batchv1.GetLimits_Response)
	for _, l := range s.limits {
		resp.Limits = append(resp.Limits,
			&batchv1.GetLimits_Limit{Method: l.Method, TypeName: l.Type, MaxCalls: int32(l.MaxCalls),
				Deterministic: l.Deterministic})
	}
	return resp
}

// call makes the calls of a batch at once, and sends each answer when it is known.
func (s *service) call(stream grpc.ServerStream, req *batchv1.Call_Request) error {
	call := s.calls[req.Method]
	if call == nil {
		return status.Errorf(codes.Unimplemented, "unknown method %v of a batch", req.Method)
	}
	// The client's context ends if no caller waits for the answers. Calls that change infrastructure then continue, and
	// the client calls StopProvider to end them.
	ctx := stream.Context()
	if req.Method == Apply {
		ctx = context.WithoutCancel(ctx)
	}
	b, ctx, done := s.begin(ctx, req)
	defer done()
	most := s.maxMessage
	if n := req.MaxResponseBytes; n > 0 {
		most = int(min(n, int64(most)))
	}
	answers := make(chan *batchv1.Call_Response, len(req.Requests))
	for i, request := range req.Requests {
		go func() {
			ctx, cancel := context.WithCancel(ctx)
			own := newCallContext(ctx)
			defer own.end()
			defer cancel()
			response, err := call(own, request)
			b.ended()
			answers <- answer(i, response, err, most)
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

// answer returns the answer of a call. One of more than most bytes is an error, and does not end the stream of the
// others.
func answer(i int, response []byte, err error, most int) *batchv1.Call_Response {
	a := &batchv1.Call_Response{Index: int32(i), Answer: &batchv1.Call_Response_Response{Response: response}}
	if size := proto.Size(a); err == nil && size > most {
		err = status.Errorf(codes.ResourceExhausted, "grpc: trying to send message larger than max (%d vs. %d)", size,
			most)
	}
	if err != nil {
		s := status.Convert(err)
		a.Answer = &batchv1.Call_Response_Error{Error: &batchv1.Call_Error{Code: int32(s.Code()), Message: s.Message()}}
	}
	return a
}
