package batch

//lint:file-ignore SA1019 the field is deprecated for providers, but a plugin must pass it on

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/hykube/hykube/sdk/batch/tfplugin6"
)

// encodedCall makes a call of a provider. It takes and returns encoded messages. Its errors are those that a gRPC
// server returns.
type encodedCall func(ctx context.Context, request []byte) (response []byte, err error)

// callsOf returns the calls of a provider that validate, read, plan and apply a resource. They answer as those of
// terraform-plugin-go's tf6server do, which also make loggers for each call. That takes longer than many a call.
func callsOf(p tfprotov6.ProviderServer) map[Method]encodedCall {
	return map[Method]encodedCall{
		Validate: callOf(p.ValidateResourceConfig, validateRequest, validateResponse),
		Read:     callOf(p.ReadResource, readRequest, readResponse),
		Plan:     callOf(p.PlanResourceChange, planRequest, planResponse),
		Apply:    callOf(p.ApplyResourceChange, applyRequest, applyResponse),
	}
}

// callOf returns the encodedCall for a method of a provider, with the functions that convert its messages.
func callOf[Req, Resp, M any, PM interface {
	*M
	proto.Message
}](method func(context.Context, *Req) (*Resp, error), request func(PM) *Req,
	response func(*Req, *Resp) proto.Message) encodedCall {
	return func(ctx context.Context, encoded []byte) ([]byte, error) {
		message := PM(new(M))
		if err := proto.Unmarshal(encoded, message); err != nil {
			return nil, status.Errorf(codes.Internal, "grpc: error unmarshalling request: %v", err)
		}
		req := request(message)
		resp, err := method(ctx, req)
		if _, ok := status.FromError(err); !ok {
			err = status.FromContextError(err).Err()
		}
		if err != nil {
			return nil, err
		}
		encoded, err = proto.Marshal(response(req, resp))
		if err != nil {
			return nil, status.Errorf(codes.Internal, "grpc: error while marshaling: %v", err)
		}
		return encoded, nil
	}
}

func validateRequest(m *pb.ValidateResourceConfig_Request) *tfprotov6.ValidateResourceConfigRequest {
	req := &tfprotov6.ValidateResourceConfigRequest{TypeName: m.TypeName, Config: pb.FromValue(m.Config)}
	if c := m.ClientCapabilities; c != nil {
		req.ClientCapabilities = &tfprotov6.
			ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: c.WriteOnlyAttributesAllowed}
	}
	return req
}

func validateResponse(_ *tfprotov6.ValidateResourceConfigRequest,
	resp *tfprotov6.ValidateResourceConfigResponse) proto.Message {
	return &pb.ValidateResourceConfig_Response{Diagnostics: toDiagnostics(resp.Diagnostics)}
}

func readRequest(m *pb.ReadResource_Request) *tfprotov6.ReadResourceRequest {
	req := &tfprotov6.ReadResourceRequest{
		TypeName: m.TypeName, CurrentState: pb.FromValue(m.CurrentState), Private: m.Private,
		ProviderMeta:    pb.FromValue(m.ProviderMeta),
		CurrentIdentity: pb.FromIdentity(m.CurrentIdentity),
	}
	if c := m.ClientCapabilities; c != nil {
		req.ClientCapabilities = &tfprotov6.ReadResourceClientCapabilities{DeferralAllowed: c.DeferralAllowed}
	}
	return req
}

func readResponse(req *tfprotov6.ReadResourceRequest, resp *tfprotov6.ReadResourceResponse) proto.Message {
	allowed := req.ClientCapabilities != nil && req.ClientCapabilities.DeferralAllowed
	return &pb.ReadResource_Response{
		NewState:    pb.ToValue(resp.NewState),
		Diagnostics: toDiagnostics(checkDeferral(resp.Diagnostics, resp.Deferred, allowed)), Private: resp.Private,
		Deferred: toDeferred(resp.Deferred), NewIdentity: pb.ToIdentity(resp.NewIdentity),
	}
}

func planRequest(m *pb.PlanResourceChange_Request) *tfprotov6.PlanResourceChangeRequest {
	req := &tfprotov6.PlanResourceChangeRequest{
		TypeName: m.TypeName, PriorState: pb.FromValue(m.PriorState),
		ProposedNewState: pb.FromValue(m.ProposedNewState), Config: pb.FromValue(m.Config),
		PriorPrivate: m.PriorPrivate, ProviderMeta: pb.FromValue(m.ProviderMeta),
		PriorIdentity: pb.FromIdentity(m.PriorIdentity),
	}
	if c := m.ClientCapabilities; c != nil {
		req.ClientCapabilities = &tfprotov6.PlanResourceChangeClientCapabilities{DeferralAllowed: c.DeferralAllowed}
	}
	return req
}

func planResponse(req *tfprotov6.PlanResourceChangeRequest, resp *tfprotov6.PlanResourceChangeResponse) proto.Message {
	allowed := req.ClientCapabilities != nil && req.ClientCapabilities.DeferralAllowed
	var replaces []*pb.AttributePath
	for _, path := range resp.RequiresReplace {
		replaces = append(replaces, toPath(path))
	}
	return &pb.PlanResourceChange_Response{
		PlannedState: pb.ToValue(resp.PlannedState), RequiresReplace: replaces, PlannedPrivate: resp.PlannedPrivate,
		Diagnostics:      toDiagnostics(checkDeferral(resp.Diagnostics, resp.Deferred, allowed)),
		LegacyTypeSystem: resp.UnsafeToUseLegacyTypeSystem, Deferred: toDeferred(resp.Deferred),
		PlannedIdentity: pb.ToIdentity(resp.PlannedIdentity),
	}
}

func applyRequest(m *pb.ApplyResourceChange_Request) *tfprotov6.ApplyResourceChangeRequest {
	return &tfprotov6.ApplyResourceChangeRequest{
		TypeName: m.TypeName, PriorState: pb.FromValue(m.PriorState), PlannedState: pb.FromValue(m.PlannedState),
		Config:         pb.FromValue(m.Config),
		PlannedPrivate: m.PlannedPrivate, ProviderMeta: pb.FromValue(m.ProviderMeta),
		PlannedIdentity: pb.FromIdentity(m.PlannedIdentity),
	}
}

func applyResponse(_ *tfprotov6.ApplyResourceChangeRequest, resp *tfprotov6.ApplyResourceChangeResponse) proto.Message {
	return &pb.ApplyResourceChange_Response{
		NewState: pb.ToValue(resp.NewState), Private: resp.Private, Diagnostics: toDiagnostics(resp.Diagnostics),
		LegacyTypeSystem: resp.UnsafeToUseLegacyTypeSystem, NewIdentity: pb.ToIdentity(resp.NewIdentity),
	}
}

func toDeferred(d *tfprotov6.Deferred) *pb.Deferred {
	if d == nil {
		return nil
	}
	return &pb.Deferred{Reason: pb.Deferred_Reason(d.Reason)}
}

// checkDeferral adds an error to an answer that is deferred although the client does not allow that. The text is that
// of tf6server.
func checkDeferral(in []*tfprotov6.Diagnostic, d *tfprotov6.Deferred, allowed bool) []*tfprotov6.Diagnostic {
	if d == nil || allowed {
		return in
	}
	return append(in, &tfprotov6.Diagnostic{
		Severity: tfprotov6.DiagnosticSeverityError, Summary: "Invalid Deferred Response",
		Detail: "Provider returned a deferred response but the Terraform request did not indicate support for deferred actions." +
			"This is an issue with the provider and should be reported to the provider developers.\n\n" +
			fmt.Sprintf("Deferred reason - %q", d.Reason.String()),
	})
}

// toDiagnostics converts diagnostics. Text that is not UTF-8 cannot be encoded, so the invalid bytes are replaced.
func toDiagnostics(in []*tfprotov6.Diagnostic) []*pb.Diagnostic {
	if in == nil {
		return nil
	}
	out := make([]*pb.Diagnostic, len(in))
	for i, d := range in {
		if d != nil {
			out[i] = &pb.Diagnostic{
				Severity: pb.Diagnostic_Severity(d.Severity), Summary: strings.ToValidUTF8(d.Summary, "\uFFFD"),
				Detail: strings.ToValidUTF8(d.Detail, "\uFFFD"), Attribute: toPath(d.Attribute),
			}
		}
	}
	return out
}

// toPath converts a path up to the first element of a set, for which the protocol has no step.
func toPath(p *tftypes.AttributePath) *pb.AttributePath {
	if p == nil {
		return nil
	}
	out := &pb.AttributePath{}
	for _, s := range p.Steps() {
		step := &pb.AttributePath_Step{}
		switch s := s.(type) {
		case tftypes.AttributeName:
			step.Selector = &pb.AttributePath_Step_AttributeName{AttributeName: string(s)}
		case tftypes.ElementKeyString:
			step.Selector = &pb.AttributePath_Step_ElementKeyString{ElementKeyString: string(s)}
		case tftypes.ElementKeyInt:
			step.Selector = &pb.AttributePath_Step_ElementKeyInt{ElementKeyInt: int64(s)}
		default:
			return out
		}
		out.Steps = append(out.Steps, step)
	}
	return out
}
