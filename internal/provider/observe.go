package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// This file reports the answers of calls that reach the API of a provider.

// Observe sets the function that is called with the diagnostics of each such answer. It must be called before the first
// call.
func (l *Lease) Observe(answered func([]*tfprotov6.Diagnostic)) { l.answered = answered }

// ReadResource implements tfprotov6.ResourceServer.
func (l *Lease) ReadResource(ctx context.Context,
	req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	resp, err := l.Server.ReadResource(ctx, req)
	if resp != nil {
		l.observed(resp.Diagnostics)
	}
	return resp, err
}

// ApplyResourceChange implements tfprotov6.ResourceServer.
func (l *Lease) ApplyResourceChange(ctx context.Context,
	req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	resp, err := l.Server.ApplyResourceChange(ctx, req)
	if resp != nil {
		l.observed(resp.Diagnostics)
	}
	return resp, err
}

// ImportResourceState implements tfprotov6.ResourceServer.
func (l *Lease) ImportResourceState(ctx context.Context,
	req *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	resp, err := l.Server.ImportResourceState(ctx, req)
	if resp != nil {
		l.observed(resp.Diagnostics)
	}
	return resp, err
}

// ReadDataSource implements tfprotov6.DataSourceServer.
func (l *Lease) ReadDataSource(ctx context.Context,
	req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	resp, err := l.Server.ReadDataSource(ctx, req)
	if resp != nil {
		l.observed(resp.Diagnostics)
	}
	return resp, err
}

func (l *Lease) observed(ds []*tfprotov6.Diagnostic) {
	if l.answered != nil {
		l.answered(ds)
	}
}
