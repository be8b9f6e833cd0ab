package conform6

import (
	"context"
	"os"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/hykube/hykube/tests/conformance/cloud"
)

func (s *server) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	name, b := s.behaviours(req.TypeName, req.Config)
	s.log(cloud.Call{RPC: "ReadDataSource", Type: req.TypeName, Name: name, Detail: s.module(req.ProviderMeta)})
	resp, err := s.framework.ReadDataSource(ctx, req)
	if err != nil {
		return nil, err
	}
	set := func(behaviour, attribute string, v tftypes.Value) {
		if b.Has(behaviour) {
			resp.State = s.edit(req.TypeName, resp.State, func(m map[string]tftypes.Value) { m[attribute] = v })
		}
	}
	set("data-unknown", "note", unknown(tftypes.String))
	set("data-not-config", "name", text("somebody else"))
	if b.Has("data-null") {
		resp.State = encode(s.types[req.TypeName], nil)
	}
	if b.Has("data-misfit") {
		resp.State = misfit()
	}
	if b.Has("data-deferred") {
		resp.Deferred = &tfprotov6.Deferred{Reason: tfprotov6.DeferredReasonAbsentPrereq}
	}
	return resp, nil
}

func (s *server) OpenEphemeralResource(ctx context.Context, req *tfprotov6.OpenEphemeralResourceRequest) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	name, b := s.behaviours(req.TypeName, req.Config)
	s.log(cloud.Call{RPC: "OpenEphemeralResource", Type: req.TypeName, Name: name})
	resp, err := s.framework.OpenEphemeralResource(ctx, req)
	if err != nil || hasError(resp.Diagnostics) {
		return resp, err
	}
	resp.Private = sealed(b, resp.Private)
	if b.Has("open-error") {
		return &tfprotov6.OpenEphemeralResourceResponse{Diagnostics: failed()}, nil
	}
	if b.Has("open-unknown") {
		resp.Result = s.edit(req.TypeName, resp.Result, func(m map[string]tftypes.Value) { m["value"] = unknown(tftypes.String) })
	}
	if b.Has("open-not-config") {
		resp.Result = s.edit(req.TypeName, resp.Result, func(m map[string]tftypes.Value) { m["name"] = text("somebody else") })
	}
	if b.Has("open-deferred") {
		resp.Deferred = &tfprotov6.Deferred{Reason: tfprotov6.DeferredReasonAbsentPrereq}
	}
	return resp, nil
}

// RenewEphemeralResource takes commands by the type's name, because the call has no configuration.
func (s *server) RenewEphemeralResource(ctx context.Context, req *tfprotov6.RenewEphemeralResourceRequest) (*tfprotov6.RenewEphemeralResourceResponse, error) {
	s.log(cloud.Call{RPC: "RenewEphemeralResource", Type: req.TypeName, Private: req.Private})
	b := s.where().Behaviours(req.TypeName, "")
	if b.Has("renew-error") {
		return &tfprotov6.RenewEphemeralResourceResponse{Diagnostics: failed()}, nil
	}
	if b.Has("renew-crash") {
		os.Exit(3)
	}
	framed := *req
	framed.Private = opened(req.Private)
	resp, err := s.framework.RenewEphemeralResource(ctx, &framed)
	if err == nil && len(framed.Private) < len(req.Private) {
		resp.Private = slices.Concat([]byte(marker), resp.Private)
	}
	return resp, err
}

func (s *server) CloseEphemeralResource(ctx context.Context, req *tfprotov6.CloseEphemeralResourceRequest) (*tfprotov6.CloseEphemeralResourceResponse, error) {
	s.log(cloud.Call{RPC: "CloseEphemeralResource", Type: req.TypeName, Private: req.Private})
	if s.where().Behaviours(req.TypeName, "").Has("close-error") {
		return &tfprotov6.CloseEphemeralResourceResponse{Diagnostics: failed()}, nil
	}
	framed := *req
	framed.Private = opened(req.Private)
	return s.framework.CloseEphemeralResource(ctx, &framed)
}

func (s *server) ListResource(ctx context.Context, req *tfprotov6.ListResourceRequest) (*tfprotov6.ListResourceServerStream, error) {
	s.log(cloud.Call{RPC: "ListResource", Type: req.TypeName})
	stream, err := s.framework.ListResource(ctx, req)
	if err != nil {
		return nil, err
	}
	results := stream.Results
	stream.Results = func(push func(tfprotov6.ListResourceResult) bool) {
		for r := range results {
			if !push(r) {
				break
			}
		}
		s.log(cloud.Call{RPC: "ListResourceEnded", Type: req.TypeName})
	}
	return stream, nil
}

func (s *server) PlanAction(ctx context.Context, req *tfprotov6.PlanActionRequest) (*tfprotov6.PlanActionResponse, error) {
	name, b := s.behaviours(req.ActionType, req.Config)
	s.log(cloud.Call{RPC: "PlanAction", Type: req.ActionType, Name: name})
	resp, err := s.framework.PlanAction(ctx, req)
	if err == nil && b.Has("action-deferred") {
		resp.Deferred = &tfprotov6.Deferred{Reason: tfprotov6.DeferredReasonAbsentPrereq}
	}
	return resp, err
}

func (s *server) InvokeAction(ctx context.Context, req *tfprotov6.InvokeActionRequest) (*tfprotov6.InvokeActionServerStream, error) {
	name, b := s.behaviours(req.ActionType, req.Config)
	s.log(cloud.Call{RPC: "InvokeAction", Type: req.ActionType, Name: name})
	stream, err := s.framework.InvokeAction(ctx, req)
	if err != nil {
		return nil, err
	}
	events := stream.Events
	stream.Events = func(push func(tfprotov6.InvokeActionEvent) bool) {
		for e := range events {
			_, completed := e.Type.(tfprotov6.CompletedInvokeActionEventType)
			if completed && b.Has("never-completed") {
				return
			}
			if completed && b.Has("invoke-crash") {
				os.Exit(3)
			}
			if !push(e) {
				return
			}
		}
	}
	return stream, nil
}

func (s *server) CallFunction(ctx context.Context, req *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	s.log(cloud.Call{RPC: "CallFunction", Name: req.Name})
	return s.framework.CallFunction(ctx, req)
}
