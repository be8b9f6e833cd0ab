package shape

//lint:file-ignore SA1019 a provider of the legacy SDK says so with it

import (
	"context"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// server5 speaks protocol 5 for a server of protocol 6. Only the names differ.
type server5 struct {
	tfprotov5.ProviderServer
	inner *server
}

// New5 returns the provider for protocol 5, with the legacy type system.
func New5(name string, o Options) tfprotov5.ProviderServer {
	return &server5{inner: newServer(name, o, true)}
}

func to6(v *tfprotov5.DynamicValue) *tfprotov6.DynamicValue { return (*tfprotov6.DynamicValue)(v) }
func to5(v *tfprotov6.DynamicValue) *tfprotov5.DynamicValue { return (*tfprotov5.DynamicValue)(v) }

func diagnostics5(in []*tfprotov6.Diagnostic) (out []*tfprotov5.Diagnostic) {
	for _, d := range in {
		out = append(out, &tfprotov5.Diagnostic{Severity: tfprotov5.DiagnosticSeverity(d.Severity), Summary: d.Summary, Detail: d.Detail, Attribute: d.Attribute})
	}
	return out
}

func (s *server5) GetMetadata(ctx context.Context, _ *tfprotov5.GetMetadataRequest) (*tfprotov5.GetMetadataResponse, error) {
	all, err := s.inner.GetMetadata(ctx, nil)
	if err != nil {
		return nil, err
	}
	out := &tfprotov5.GetMetadataResponse{}
	for _, r := range all.Resources {
		out.Resources = append(out.Resources, tfprotov5.ResourceMetadata(r))
	}
	for _, d := range all.DataSources {
		out.DataSources = append(out.DataSources, tfprotov5.DataSourceMetadata(d))
	}
	return out, nil
}

func (s *server5) GetProviderSchema(context.Context, *tfprotov5.GetProviderSchemaRequest) (*tfprotov5.GetProviderSchemaResponse, error) {
	out := &tfprotov5.GetProviderSchemaResponse{
		Provider: &tfprotov5.Schema{Block: &tfprotov5.SchemaBlock{Attributes: []*tfprotov5.SchemaAttribute{
			{Name: "directory", Type: providerType().AttributeTypes["directory"], Optional: true},
		}}},
		ResourceSchemas: map[string]*tfprotov5.Schema{}, DataSourceSchemas: map[string]*tfprotov5.Schema{},
	}
	for name, r := range s.inner.resources {
		out.ResourceSchemas[name] = &tfprotov5.Schema{Block: r.Block.schema5()}
	}
	for name, d := range s.inner.data {
		out.DataSourceSchemas[name] = &tfprotov5.Schema{Block: d.Block.schema5()}
	}
	return out, nil
}

func (s *server5) GetResourceIdentitySchemas(context.Context, *tfprotov5.GetResourceIdentitySchemasRequest) (*tfprotov5.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov5.GetResourceIdentitySchemasResponse{}, nil
}

func (s *server5) PrepareProviderConfig(_ context.Context, req *tfprotov5.PrepareProviderConfigRequest) (*tfprotov5.PrepareProviderConfigResponse, error) {
	return &tfprotov5.PrepareProviderConfigResponse{PreparedConfig: req.Config}, nil
}

func (s *server5) ConfigureProvider(ctx context.Context, req *tfprotov5.ConfigureProviderRequest) (*tfprotov5.ConfigureProviderResponse, error) {
	_, err := s.inner.ConfigureProvider(ctx, &tfprotov6.ConfigureProviderRequest{Config: to6(req.Config)})
	return &tfprotov5.ConfigureProviderResponse{}, err
}

func (s *server5) StopProvider(context.Context, *tfprotov5.StopProviderRequest) (*tfprotov5.StopProviderResponse, error) {
	return &tfprotov5.StopProviderResponse{}, nil
}

func (s *server5) GetFunctions(context.Context, *tfprotov5.GetFunctionsRequest) (*tfprotov5.GetFunctionsResponse, error) {
	return &tfprotov5.GetFunctionsResponse{}, nil
}

func (s *server5) ValidateResourceTypeConfig(ctx context.Context, req *tfprotov5.ValidateResourceTypeConfigRequest) (*tfprotov5.ValidateResourceTypeConfigResponse, error) {
	out, err := s.inner.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{TypeName: req.TypeName, Config: to6(req.Config)})
	if err != nil {
		return nil, err
	}
	return &tfprotov5.ValidateResourceTypeConfigResponse{Diagnostics: diagnostics5(out.Diagnostics)}, nil
}

func (s *server5) ValidateDataSourceConfig(ctx context.Context, req *tfprotov5.ValidateDataSourceConfigRequest) (*tfprotov5.ValidateDataSourceConfigResponse, error) {
	out, err := s.inner.ValidateDataResourceConfig(ctx, &tfprotov6.ValidateDataResourceConfigRequest{TypeName: req.TypeName, Config: to6(req.Config)})
	if err != nil {
		return nil, err
	}
	return &tfprotov5.ValidateDataSourceConfigResponse{Diagnostics: diagnostics5(out.Diagnostics)}, nil
}

func (s *server5) UpgradeResourceState(ctx context.Context, req *tfprotov5.UpgradeResourceStateRequest) (*tfprotov5.UpgradeResourceStateResponse, error) {
	out, err := s.inner.UpgradeResourceState(ctx, &tfprotov6.UpgradeResourceStateRequest{TypeName: req.TypeName, Version: req.Version, RawState: (*tfprotov6.RawState)(req.RawState)})
	if err != nil {
		return nil, err
	}
	return &tfprotov5.UpgradeResourceStateResponse{UpgradedState: to5(out.UpgradedState)}, nil
}

func (s *server5) ReadResource(ctx context.Context, req *tfprotov5.ReadResourceRequest) (*tfprotov5.ReadResourceResponse, error) {
	out, err := s.inner.ReadResource(ctx, &tfprotov6.ReadResourceRequest{TypeName: req.TypeName, CurrentState: to6(req.CurrentState), Private: req.Private})
	if err != nil {
		return nil, err
	}
	return &tfprotov5.ReadResourceResponse{NewState: to5(out.NewState), Diagnostics: diagnostics5(out.Diagnostics), Private: out.Private}, nil
}

func (s *server5) PlanResourceChange(ctx context.Context, req *tfprotov5.PlanResourceChangeRequest) (*tfprotov5.PlanResourceChangeResponse, error) {
	out, err := s.inner.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName: req.TypeName, PriorState: to6(req.PriorState), ProposedNewState: to6(req.ProposedNewState), Config: to6(req.Config), PriorPrivate: req.PriorPrivate,
	})
	if err != nil {
		return nil, err
	}
	return &tfprotov5.PlanResourceChangeResponse{
		PlannedState: to5(out.PlannedState), RequiresReplace: out.RequiresReplace, PlannedPrivate: out.PlannedPrivate,
		Diagnostics: diagnostics5(out.Diagnostics), UnsafeToUseLegacyTypeSystem: true, //nolint:staticcheck // the protocol defines it for this use
	}, nil
}

func (s *server5) ApplyResourceChange(ctx context.Context, req *tfprotov5.ApplyResourceChangeRequest) (*tfprotov5.ApplyResourceChangeResponse, error) {
	out, err := s.inner.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: req.TypeName, PriorState: to6(req.PriorState), PlannedState: to6(req.PlannedState), Config: to6(req.Config), PlannedPrivate: req.PlannedPrivate,
	})
	if err != nil {
		return nil, err
	}
	return &tfprotov5.ApplyResourceChangeResponse{
		NewState: to5(out.NewState), Private: out.Private,
		Diagnostics: diagnostics5(out.Diagnostics), UnsafeToUseLegacyTypeSystem: true, //nolint:staticcheck // the protocol defines it for this use
	}, nil
}

func (s *server5) ImportResourceState(ctx context.Context, req *tfprotov5.ImportResourceStateRequest) (*tfprotov5.ImportResourceStateResponse, error) {
	found, err := s.inner.ImportResourceState(ctx, &tfprotov6.ImportResourceStateRequest{TypeName: req.TypeName, ID: req.ID})
	if err != nil {
		return nil, err
	}
	out := &tfprotov5.ImportResourceStateResponse{Diagnostics: diagnostics5(found.Diagnostics)}
	for _, r := range found.ImportedResources {
		out.ImportedResources = append(out.ImportedResources, &tfprotov5.ImportedResource{TypeName: r.TypeName, State: to5(r.State), Private: r.Private})
	}
	return out, nil
}

func (s *server5) ReadDataSource(ctx context.Context, req *tfprotov5.ReadDataSourceRequest) (*tfprotov5.ReadDataSourceResponse, error) {
	out, err := s.inner.ReadDataSource(ctx, &tfprotov6.ReadDataSourceRequest{TypeName: req.TypeName, Config: to6(req.Config)})
	if err != nil {
		return nil, err
	}
	return &tfprotov5.ReadDataSourceResponse{State: to5(out.State), Diagnostics: diagnostics5(out.Diagnostics)}, nil
}
