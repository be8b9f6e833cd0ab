package protocol

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"google.golang.org/grpc"

	pb "github.com/hykube/hykube/sdk/batch/tfplugin6"
)

// GetMetadata returns errors.ErrUnsupported. Hykube calls GetProviderSchema instead, which returns more, and many
// plugins do not implement GetMetadata.
func (c *Client) GetMetadata(context.Context, *tfprotov6.GetMetadataRequest) (*tfprotov6.GetMetadataResponse, error) {
	return nil, errors.ErrUnsupported
}

// GetProviderSchema returns the provider's schemas, functions and capabilities.
func (c *Client) GetProviderSchema(ctx context.Context,
	_ *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	r, err := call[pb.GetProviderSchema_Response](ctx, c, "GetProviderSchema", &pb.GetProviderSchema_Request{},
		grpc.MaxCallRecvMsgSize(maxSchemaBytes))
	if err != nil {
		return nil, err
	}
	var read schemaReader
	out := &tfprotov6.GetProviderSchemaResponse{
		ServerCapabilities:       fromCapabilities(r.ServerCapabilities),
		Provider:                 read.schema(r.Provider),
		ProviderMeta:             read.schema(r.ProviderMeta),
		ResourceSchemas:          mapValues(r.ResourceSchemas, read.schema),
		DataSourceSchemas:        mapValues(r.DataSourceSchemas, read.schema),
		Functions:                mapValues(r.Functions, read.function),
		EphemeralResourceSchemas: mapValues(r.EphemeralResourceSchemas, read.schema),
		ListResourceSchemas:      mapValues(r.ListResourceSchemas, read.schema),
		ActionSchemas:            mapValues(r.ActionSchemas, read.action),
		StateStoreSchemas:        mapValues(r.StateStoreSchemas, read.schema),
		Diagnostics:              c.diagnostics(r.Diagnostics),
	}
	if read.err != nil {
		return nil, fmt.Errorf("read provider schema: %w", read.err)
	}
	return out, nil
}

// GetResourceIdentitySchemas returns the identity schemas. It returns none for a plugin that does not implement the
// call.
func (c *Client) GetResourceIdentitySchemas(ctx context.Context,
	_ *tfprotov6.GetResourceIdentitySchemasRequest) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	r, err := call[pb.GetResourceIdentitySchemas_Response](ctx, c, "GetResourceIdentitySchemas",
		&pb.GetResourceIdentitySchemas_Request{})
	if errors.Is(err, errors.ErrUnsupported) {
		return &tfprotov6.GetResourceIdentitySchemasResponse{IdentitySchemas: map[string]*tfprotov6.
			ResourceIdentitySchema{}}, nil
	}
	if err != nil {
		return nil, err
	}
	var read schemaReader
	out := &tfprotov6.GetResourceIdentitySchemasResponse{
		IdentitySchemas: mapValues(r.IdentitySchemas, read.identity),
		Diagnostics:     c.diagnostics(r.Diagnostics),
	}
	if read.err != nil {
		return nil, fmt.Errorf("read identity schemas: %w", read.err)
	}
	return out, nil
}

// ValidateProviderConfig validates a configuration of the provider.
func (c *Client) ValidateProviderConfig(ctx context.Context,
	req *tfprotov6.ValidateProviderConfigRequest) (*tfprotov6.ValidateProviderConfigResponse, error) {
	r, err := call[pb.ValidateProviderConfig_Response](ctx, c, "ValidateProviderConfig",
		&pb.ValidateProviderConfig_Request{Config: pb.ToValue(req.Config)})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: req.Config,
		Diagnostics: c.diagnostics(r.Diagnostics)}, nil
}

// ConfigureProvider sets the provider's configuration. It must be called once per process.
func (c *Client) ConfigureProvider(ctx context.Context,
	req *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	r, err := call[pb.ConfigureProvider_Response](ctx, c, "ConfigureProvider", &pb.ConfigureProvider_Request{
		TerraformVersion:   req.TerraformVersion,
		Config:             pb.ToValue(req.Config),
		ClientCapabilities: capabilities(req.ClientCapabilities != nil && req.ClientCapabilities.DeferralAllowed),
	})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.ConfigureProviderResponse{Diagnostics: c.diagnostics(r.Diagnostics)}, nil
}

// capabilities returns the client's capabilities. It always supports write-only attributes, and keeps a plan's private
// data until the apply (see PlanAgain). It supports deferrals only if the caller handles them. It does not support
// computed blocks, which Terraform also announces.
func capabilities(deferral bool) *pb.ClientCapabilities {
	return &pb.ClientCapabilities{DeferralAllowed: deferral, WriteOnlyAttributesAllowed: true,
		StorePlannedPrivate: true}
}

// GetFunctions returns the provider's functions. It returns none for a plugin that does not implement the call.
func (c *Client) GetFunctions(ctx context.Context,
	_ *tfprotov6.GetFunctionsRequest) (*tfprotov6.GetFunctionsResponse, error) {
	r, err := call[pb.GetFunctions_Response](ctx, c, "GetFunctions", &pb.GetFunctions_Request{})
	if errors.Is(err, errors.ErrUnsupported) {
		return &tfprotov6.GetFunctionsResponse{Functions: map[string]*tfprotov6.Function{}}, nil
	}
	if err != nil {
		return nil, err
	}
	var read schemaReader
	out := &tfprotov6.GetFunctionsResponse{Functions: mapValues(r.Functions, read.function),
		Diagnostics: c.diagnostics(r.Diagnostics)}
	if read.err != nil {
		return nil, fmt.Errorf("read functions: %w", read.err)
	}
	return out, nil
}

// CallFunction calls a function of the provider.
func (c *Client) CallFunction(ctx context.Context,
	req *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	r, err := call[pb.CallFunction_Response](ctx, c, "CallFunction", &pb.CallFunction_Request{
		Name: req.Name, Arguments: mapSlice(req.Arguments, pb.ToValue),
	})
	if err != nil {
		return nil, err
	}
	out := &tfprotov6.CallFunctionResponse{Result: pb.FromValue(r.Result)}
	if r.Error != nil {
		out.Error = &tfprotov6.FunctionError{Text: r.Error.Text, FunctionArgument: r.Error.FunctionArgument}
	}
	return out, nil
}

// ValidateDataResourceConfig validates the configuration of a data source.
func (c *Client) ValidateDataResourceConfig(ctx context.Context,
	req *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	r, err := call[pb.ValidateDataResourceConfig_Response](ctx, c, "ValidateDataResourceConfig",
		&pb.ValidateDataResourceConfig_Request{
			TypeName: req.TypeName, Config: pb.ToValue(req.Config),
		})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.ValidateDataResourceConfigResponse{Diagnostics: c.diagnostics(r.Diagnostics)}, nil
}

// ReadDataSource reads a data source.
func (c *Client) ReadDataSource(ctx context.Context,
	req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	r, err := call[pb.ReadDataSource_Response](ctx, c, "ReadDataSource", &pb.ReadDataSource_Request{
		TypeName: req.TypeName, Config: pb.ToValue(req.Config), ProviderMeta: pb.ToValue(req.ProviderMeta),
		ClientCapabilities: capabilities(req.ClientCapabilities != nil && req.ClientCapabilities.DeferralAllowed),
	})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.ReadDataSourceResponse{
		State: pb.FromValue(r.State), Diagnostics: c.diagnostics(r.Diagnostics), Deferred: fromDeferred(r.Deferred),
	}, nil
}

// ValidateEphemeralResourceConfig validates the configuration of an ephemeral resource.
func (c *Client) ValidateEphemeralResourceConfig(ctx context.Context,
	req *tfprotov6.ValidateEphemeralResourceConfigRequest) (*tfprotov6.ValidateEphemeralResourceConfigResponse, error) {
	r, err := call[pb.ValidateEphemeralResourceConfig_Response](ctx, c, "ValidateEphemeralResourceConfig",
		&pb.ValidateEphemeralResourceConfig_Request{
			TypeName: req.TypeName, Config: pb.ToValue(req.Config),
		})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.ValidateEphemeralResourceConfigResponse{Diagnostics: c.diagnostics(r.Diagnostics)}, nil
}

// OpenEphemeralResource opens an ephemeral resource. Its result must never be stored.
func (c *Client) OpenEphemeralResource(ctx context.Context,
	req *tfprotov6.OpenEphemeralResourceRequest) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	r, err := call[pb.OpenEphemeralResource_Response](ctx, c, "OpenEphemeralResource",
		&pb.OpenEphemeralResource_Request{
			TypeName: req.TypeName, Config: pb.ToValue(req.Config),
			ClientCapabilities: capabilities(req.ClientCapabilities != nil && req.ClientCapabilities.DeferralAllowed),
		})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.OpenEphemeralResourceResponse{
		Result: pb.FromValue(r.Result), Diagnostics: c.diagnostics(r.Diagnostics), Private: r.Private,
		RenewAt: fromTime(r.RenewAt), Deferred: fromDeferred(r.Deferred),
	}, nil
}

// RenewEphemeralResource renews an ephemeral resource.
func (c *Client) RenewEphemeralResource(ctx context.Context,
	req *tfprotov6.RenewEphemeralResourceRequest) (*tfprotov6.RenewEphemeralResourceResponse, error) {
	r, err := call[pb.RenewEphemeralResource_Response](ctx, c, "RenewEphemeralResource",
		&pb.RenewEphemeralResource_Request{
			TypeName: req.TypeName, Private: req.Private,
		})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.RenewEphemeralResourceResponse{
		Diagnostics: c.diagnostics(r.Diagnostics), Private: r.Private, RenewAt: fromTime(r.RenewAt),
	}, nil
}

// CloseEphemeralResource closes an ephemeral resource.
func (c *Client) CloseEphemeralResource(ctx context.Context,
	req *tfprotov6.CloseEphemeralResourceRequest) (*tfprotov6.CloseEphemeralResourceResponse, error) {
	r, err := call[pb.CloseEphemeralResource_Response](ctx, c, "CloseEphemeralResource",
		&pb.CloseEphemeralResource_Request{
			TypeName: req.TypeName, Private: req.Private,
		})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.CloseEphemeralResourceResponse{Diagnostics: c.diagnostics(r.Diagnostics)}, nil
}
