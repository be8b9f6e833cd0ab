package batch

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// sharedContext gives all calls of a batch the values of one context. tf6server makes loggers for the context of each call,
// 11 KiB, and the server of terraform-plugin-framework keeps each context that it gets until StopProvider. The log lines of a
// batch therefore have the request ID of its first call.
type sharedContext struct{ tfprotov6.ProviderServer }

func (s sharedContext) ValidateResourceConfig(ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return s.ProviderServer.ValidateResourceConfig(shared(ctx), req)
}

func (s sharedContext) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return s.ProviderServer.ReadResource(shared(ctx), req)
}

func (s sharedContext) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	return s.ProviderServer.PlanResourceChange(shared(ctx), req)
}

func (s sharedContext) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	return s.ProviderServer.ApplyResourceChange(shared(ctx), req)
}

// callKey is the key of the *callContext of a call of a batch.
type callKey struct{}

// shared returns the context of a call with the values that tf6server added to that of the batch's first call.
func shared(ctx context.Context) context.Context {
	b := batchOf(ctx)
	call, ok := ctx.Value(callKey{}).(*callContext)
	if b == nil || !ok {
		return ctx
	}
	b.sharing.Do(func() { b.first = ctx })
	call.use(b.first)
	return call
}

// callContext is the context of a call with the values of another one. After the call it is a context that has ended and
// refers to nothing of the call or its batch, so a provider that keeps it keeps little.
type callContext struct{ current atomic.Pointer[contexts] }

// contexts are the contexts of a call: as it was before tf6server added values, and the one with the values.
type contexts struct{ call, values context.Context }

func newCallContext(ctx context.Context) *callContext {
	c := &callContext{}
	c.current.Store(&contexts{ctx, ctx})
	return c
}

// ended are the contexts of all calls that have ended.
var ended = func() *contexts {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &contexts{ctx, ctx}
}()

// use sets the context with the values, before the provider gets the context.
func (c *callContext) use(values context.Context) {
	c.current.Store(&contexts{c.current.Load().call, values})
}

// end ends the context. The context of the call must have ended before.
func (c *callContext) end() { c.current.Store(ended) }

func (c *callContext) Deadline() (deadline time.Time, ok bool) {
	return c.current.Load().call.Deadline()
}

func (c *callContext) Done() <-chan struct{} { return c.current.Load().call.Done() }

func (c *callContext) Err() error { return c.current.Load().call.Err() }

// Value asks the context of the call first: package context finds there how its children end.
func (c *callContext) Value(key any) any {
	now := c.current.Load()
	if found := now.call.Value(key); found != nil {
		return found
	}
	return now.values.Value(key)
}
