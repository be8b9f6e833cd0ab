package instance

import (
	"context"
	"errors"
	"fmt"

	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// Action is an action type with a provider process for it.
type Action struct {
	// Name is the Terraform type name, such as "sim_reboot".
	Name   string
	Schema *schema.Schema
	// Provider is configured, unless its configuration is unknown. It implements tfprotov6.ActionServer.
	Provider tfprotov6.ProviderServer
	// Deferral is true if the caller handles a *DeferredError. The provider receives it as the capability
	// DeferralAllowed.
	Deferral bool
	// Audit records each run; nil records nothing.
	Audit RecordFunc
}

// request returns the provider and the encoded configuration for a call.
func (a *Action) request(config cty.Value) (tfprotov6.ActionServer, *tfprotov6.DynamicValue, error) {
	s, ok := a.Provider.(tfprotov6.ActionServer)
	if !ok {
		return nil, nil, fmt.Errorf("action %s: the provider has no actions: %w", a.Name, errors.ErrUnsupported)
	}
	c, err := encodeFor(a.Name, a.Schema, config)
	return s, c, err
}

// Validate makes the provider validate the configuration, which may hold unknown values.
func (a *Action) Validate(ctx context.Context, config cty.Value) (diag.Diagnostics, error) {
	s, c, err := a.request(config)
	if err != nil {
		return nil, err
	}
	resp, err := s.ValidateActionConfig(ctx, &tfprotov6.ValidateActionConfigRequest{ActionType: a.Name, Config: c})
	if err != nil {
		return nil, fmt.Errorf("validate action %s: %w", a.Name, err)
	}
	return diag.Answer("validate", resp.Diagnostics)
}

// Plan makes the provider validate the configuration, which may hold unknown values, and plan the action.
func (a *Action) Plan(ctx context.Context, config cty.Value) (diag.Diagnostics, error) {
	diags, err := a.Validate(ctx, config)
	if err != nil {
		return diags, err
	}
	s, c, err := a.request(config)
	if err != nil {
		return diags, err
	}
	resp, err := s.PlanAction(ctx, &tfprotov6.PlanActionRequest{
		ActionType: a.Name, Config: c,
		ClientCapabilities: &tfprotov6.PlanActionClientCapabilities{DeferralAllowed: a.Deferral},
	})
	if err != nil {
		return diags, fmt.Errorf("plan action %s: %w", a.Name, err)
	}
	more, err := diag.Answer("plan", resp.Diagnostics)
	diags = append(diags, more...)
	if err != nil {
		return diags, err
	}
	return diags, deferred("plan action", a.Name, resp.Deferred, a.Deferral)
}

// Invoke runs the action. config must be wholly known. progress, which may be nil, receives the provider's progress
// messages. The end of ctx does not interrupt the call, because the action's effect would then be unknown.
func (a *Action) Invoke(ctx context.Context, config cty.Value, progress func(string)) (diag.Diagnostics, error) {
	if !unmarked(config).IsWhollyKnown() {
		return nil, fmt.Errorf("invoke action %s: its configuration is not known yet", a.Name)
	}
	s, c, err := a.request(config)
	if err != nil {
		return nil, err
	}
	end, err := a.Audit.begin(audit.Invoke, a.Name)
	if err != nil {
		return nil, err
	}
	diags, err := a.call(ctx, s, c, progress)
	end(err)
	return diags, err
}

// call makes the provider run the action, and follows its events to the end.
func (a *Action) call(ctx context.Context, s tfprotov6.ActionServer, c *tfprotov6.DynamicValue,
	progress func(string)) (diag.Diagnostics, error) {
	stream, err := s.InvokeAction(context.WithoutCancel(ctx), &tfprotov6.InvokeActionRequest{
		ActionType: a.Name, Config: c, ClientCapabilities: &tfprotov6.InvokeActionClientCapabilities{},
	})
	lost := func(err error) error {
		return &diag.Failure{Kind: diag.Lost, Operation: "invoke action " + a.Name, Cause: err}
	}
	if err != nil {
		return nil, lost(err)
	}
	var said []*tfprotov6.Diagnostic
	completed := 0
	for event := range stream.Events {
		switch e := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			if progress != nil {
				progress(e.Message)
			}
		case tfprotov6.CompletedInvokeActionEventType:
			completed++
			said = append(said, e.Diagnostics...)
		case error: // the stream failed
			return diag.Limit(diag.FromProto(said)), lost(e)
		}
	}
	diags, err := diag.Answer("invoke", said)
	if err == nil && completed != 1 {
		err = lost(fmt.Errorf("the provider reported completion %d times instead of once, which is a bug of the provider; check the infrastructure to see what the action did", completed))
	}
	return diags, err
}
