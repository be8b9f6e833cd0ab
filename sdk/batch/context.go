package batch

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"google.golang.org/protobuf/proto"
)

// newLoggers returns the functions that add the loggers of tf6server to a context, for each method that may be batched.
// tf6server makes them for each call. That takes longer than many a call, so all calls of a batch have those of its
// first one, and with them its request ID.
func newLoggers(address string) map[Method]func(ctx context.Context, request []byte) context.Context {
	server := tf6server.New(address, contextKeeper{})
	return map[Method]func(context.Context, []byte) context.Context{
		Validate: loggersOf(server.ValidateResourceConfig), Read: loggersOf(server.ReadResource),
		Plan:  loggersOf(server.PlanResourceChange),
		Apply: loggersOf(server.ApplyResourceChange),
	}
}

// loggersOf returns the function for a method of a tf6server with a contextKeeper. Its messages belong to an internal
// package of terraform-plugin-go, so they have no names here.
func loggersOf[M, Resp any, PM interface {
	*M
	proto.Message
}](method func(context.Context, PM) (Resp, error)) func(ctx context.Context, request []byte) context.Context {
	return func(ctx context.Context, request []byte) context.Context {
		m, kept := PM(new(M)), ctx
		if err := proto.Unmarshal(request, m); err != nil {
			return ctx // the call returns the error
		}
		if _, err := method(context.WithValue(ctx, keptKey{}, &kept), m); err != nil {
			return ctx
		}
		return kept
	}
}

// keptKey is the key of the variable for the context that a contextKeeper gets.
type keptKey struct{}

// contextKeeper is a provider that keeps the context of a call and does nothing else. Its other calls are nil.
type contextKeeper struct{ tfprotov6.ProviderServer }

func keep[Resp any](ctx context.Context) (*Resp, error) {
	*ctx.Value(keptKey{}).(*context.Context) = ctx
	return new(Resp), nil
}

func (contextKeeper) ValidateResourceConfig(ctx context.Context,
	_ *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return keep[tfprotov6.ValidateResourceConfigResponse](ctx)
}

func (contextKeeper) ReadResource(ctx context.Context,
	_ *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return keep[tfprotov6.ReadResourceResponse](ctx)
}

func (contextKeeper) PlanResourceChange(ctx context.Context,
	_ *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	return keep[tfprotov6.PlanResourceChangeResponse](ctx)
}

func (contextKeeper) ApplyResourceChange(ctx context.Context,
	_ *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	return keep[tfprotov6.ApplyResourceChangeResponse](ctx)
}

// callContext is the context of a call. After the call it is a context that has ended and refers to nothing of the call
// or its batch: the server of terraform-plugin-framework keeps each context that it gets until StopProvider.
type callContext struct {
	current atomic.Pointer[context.Context]
}

func newCallContext(ctx context.Context) *callContext {
	c := &callContext{}
	c.current.Store(&ctx)
	return c
}

// ended is the context of all calls that have ended.
var ended = func() *context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &ctx
}()

// end ends the context. The context of the call must have ended before.
func (c *callContext) end() { c.current.Store(ended) }

func (c *callContext) now() context.Context { return *c.current.Load() }

func (c *callContext) Deadline() (deadline time.Time, ok bool) { return c.now().Deadline() }

func (c *callContext) Done() <-chan struct{} { return c.now().Done() }

func (c *callContext) Err() error { return c.now().Err() }

func (c *callContext) Value(key any) any { return c.now().Value(key) }
