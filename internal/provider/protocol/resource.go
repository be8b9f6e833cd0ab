package protocol

//lint:file-ignore SA1019 the field is deprecated for providers, but their callers must honour it

import (
	"context"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	pb "github.com/hykube/hykube/sdk/batch/tfplugin6"
)

// ValidateResourceConfig validates the configuration of a resource, which may hold unknown values.
func (c *Client) ValidateResourceConfig(ctx context.Context,
	req *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	r, err := call[pb.ValidateResourceConfig_Response](ctx, c, "ValidateResourceConfig",
		&pb.ValidateResourceConfig_Request{
			TypeName: req.TypeName, Config: pb.ToValue(req.Config), ClientCapabilities: capabilities(false),
		})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.ValidateResourceConfigResponse{Diagnostics: c.diagnostics(r.Diagnostics)}, nil
}

// UpgradeResourceState upgrades a stored state to the current schema version.
func (c *Client) UpgradeResourceState(ctx context.Context,
	req *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	r, err := call[pb.UpgradeResourceState_Response](ctx, c, "UpgradeResourceState", &pb.UpgradeResourceState_Request{
		TypeName: req.TypeName, Version: req.Version, RawState: toRawState(req.RawState),
	})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.UpgradeResourceStateResponse{
		UpgradedState: pb.FromValue(r.UpgradedState), Diagnostics: c.diagnostics(r.Diagnostics),
	}, nil
}

// UpgradeResourceIdentity upgrades a stored identity to the current identity schema version.
func (c *Client) UpgradeResourceIdentity(ctx context.Context,
	req *tfprotov6.UpgradeResourceIdentityRequest) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	r, err := call[pb.UpgradeResourceIdentity_Response](ctx, c, "UpgradeResourceIdentity",
		&pb.UpgradeResourceIdentity_Request{
			TypeName: req.TypeName, Version: req.Version, RawIdentity: toRawState(req.RawIdentity),
		})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.UpgradeResourceIdentityResponse{
		UpgradedIdentity: pb.FromIdentity(r.UpgradedIdentity), Diagnostics: c.diagnostics(r.Diagnostics),
	}, nil
}

// ReadResource reads the current state of a resource; a null state means that it no longer exists.
func (c *Client) ReadResource(ctx context.Context,
	req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	r, err := call[pb.ReadResource_Response](ctx, c, "ReadResource", &pb.ReadResource_Request{
		TypeName: req.TypeName, CurrentState: pb.ToValue(req.CurrentState), Private: req.Private,
		ProviderMeta: pb.ToValue(req.ProviderMeta), CurrentIdentity: pb.ToIdentity(req.CurrentIdentity),
		ClientCapabilities: capabilities(req.ClientCapabilities != nil && req.ClientCapabilities.DeferralAllowed),
	})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.ReadResourceResponse{
		NewState: pb.FromValue(r.NewState), Diagnostics: c.diagnostics(r.Diagnostics), Private: r.Private,
		Deferred: fromDeferred(r.Deferred), NewIdentity: pb.FromIdentity(r.NewIdentity),
	}, nil
}

// PlanResourceChange plans a change.
func (c *Client) PlanResourceChange(ctx context.Context,
	req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	return c.PlanAgain(ctx, req, nil)
}

// PlanAgain is PlanResourceChange for the apply of a change. planned is the private data of the approved plan, where
// the provider finds the values that it generated for that plan. terraform-plugin-go's request lacks this field.
func (c *Client) PlanAgain(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest,
	planned []byte) (*tfprotov6.PlanResourceChangeResponse, error) {
	r, err := call[pb.PlanResourceChange_Response](ctx, c, "PlanResourceChange", &pb.PlanResourceChange_Request{
		TypeName: req.TypeName, PriorState: pb.ToValue(req.PriorState),
		ProposedNewState: pb.ToValue(req.ProposedNewState),
		Config:           pb.ToValue(req.Config), PriorPrivate: req.PriorPrivate,
		ProviderMeta:       pb.ToValue(req.ProviderMeta),
		PriorIdentity:      pb.ToIdentity(req.PriorIdentity),
		PlannedPrivate:     planned,
		ClientCapabilities: capabilities(req.ClientCapabilities != nil && req.ClientCapabilities.DeferralAllowed),
	})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.PlanResourceChangeResponse{
		PlannedState: pb.FromValue(r.PlannedState), RequiresReplace: mapSlice(r.RequiresReplace, fromPath),
		PlannedPrivate: r.PlannedPrivate, Diagnostics: c.diagnostics(r.Diagnostics),
		UnsafeToUseLegacyTypeSystem: r.LegacyTypeSystem, Deferred: fromDeferred(r.Deferred),
		PlannedIdentity: pb.FromIdentity(r.PlannedIdentity),
	}, nil
}

// ApplyResourceChange applies a planned change. A cancelled ctx does not interrupt it; see apply.
func (c *Client) ApplyResourceChange(ctx context.Context,
	req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	r, err := apply[pb.ApplyResourceChange_Response](ctx, c, "ApplyResourceChange", &pb.ApplyResourceChange_Request{
		TypeName: req.TypeName, PriorState: pb.ToValue(req.PriorState), PlannedState: pb.ToValue(req.PlannedState),
		Config: pb.ToValue(req.Config), PlannedPrivate: req.PlannedPrivate, ProviderMeta: pb.ToValue(req.ProviderMeta),
		PlannedIdentity: pb.ToIdentity(req.PlannedIdentity),
	})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.ApplyResourceChangeResponse{
		NewState: pb.FromValue(r.NewState), Private: r.Private, Diagnostics: c.diagnostics(r.Diagnostics),
		UnsafeToUseLegacyTypeSystem: r.LegacyTypeSystem, NewIdentity: pb.FromIdentity(r.NewIdentity),
	}, nil
}

// ImportResourceState imports a resource by its ID or identity.
func (c *Client) ImportResourceState(ctx context.Context,
	req *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	r, err := call[pb.ImportResourceState_Response](ctx, c, "ImportResourceState", &pb.ImportResourceState_Request{
		TypeName: req.TypeName, Id: req.ID, Identity: pb.ToIdentity(req.Identity),
		ClientCapabilities: capabilities(req.ClientCapabilities != nil && req.ClientCapabilities.DeferralAllowed),
	})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.ImportResourceStateResponse{
		ImportedResources: mapSlice(r.ImportedResources,
			func(i *pb.ImportResourceState_ImportedResource) *tfprotov6.ImportedResource {
				return &tfprotov6.ImportedResource{
					TypeName: i.TypeName, State: pb.FromValue(i.State), Private: i.Private,
					Identity: pb.FromIdentity(i.Identity),
				}
			}),
		Diagnostics: c.diagnostics(r.Diagnostics), Deferred: fromDeferred(r.Deferred),
	}, nil
}

// MoveResourceState converts the state of a resource of another type or provider.
func (c *Client) MoveResourceState(ctx context.Context,
	req *tfprotov6.MoveResourceStateRequest) (*tfprotov6.MoveResourceStateResponse, error) {
	r, err := call[pb.MoveResourceState_Response](ctx, c, "MoveResourceState", &pb.MoveResourceState_Request{
		SourceProviderAddress: req.SourceProviderAddress, SourceTypeName: req.SourceTypeName,
		SourceSchemaVersion: req.SourceSchemaVersion, SourceState: toRawState(req.SourceState),
		TargetTypeName: req.TargetTypeName,
		SourcePrivate:  req.SourcePrivate, SourceIdentity: toRawState(req.SourceIdentity),
		SourceIdentitySchemaVersion: req.SourceIdentitySchemaVersion,
	})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.MoveResourceStateResponse{
		TargetPrivate: r.TargetPrivate, TargetState: pb.FromValue(r.TargetState),
		Diagnostics:    c.diagnostics(r.Diagnostics),
		TargetIdentity: pb.FromIdentity(r.TargetIdentity),
	}, nil
}

// GenerateResourceConfig generates a configuration that could have produced a state.
func (c *Client) GenerateResourceConfig(ctx context.Context,
	req *tfprotov6.GenerateResourceConfigRequest) (*tfprotov6.GenerateResourceConfigResponse, error) {
	r, err := call[pb.GenerateResourceConfig_Response](ctx, c, "GenerateResourceConfig",
		&pb.GenerateResourceConfig_Request{
			TypeName: req.TypeName, State: pb.ToValue(req.State),
		})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.GenerateResourceConfigResponse{Config: pb.FromValue(r.Config),
		Diagnostics: c.diagnostics(r.Diagnostics)}, nil
}
