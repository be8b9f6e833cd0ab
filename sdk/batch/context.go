package batch

import (
	"context"

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

// callKey is the key of the context of a call of a batch, as it was before tf6server added values.
type callKey struct{}

// shared returns the context of a call with the values that tf6server added to that of the batch's first call.
func shared(ctx context.Context) context.Context {
	b := batchOf(ctx)
	call, ok := ctx.Value(callKey{}).(context.Context)
	if b == nil || !ok {
		return ctx
	}
	b.sharing.Do(func() { b.first = ctx })
	return valuesOf{call, b.first}
}

// valuesOf is a context with the values of another one.
type valuesOf struct {
	context.Context
	values context.Context
}

// Value asks the context itself first: package context finds there how its children end.
func (v valuesOf) Value(key any) any {
	if found := v.Context.Value(key); found != nil {
		return found
	}
	return v.values.Value(key)
}
