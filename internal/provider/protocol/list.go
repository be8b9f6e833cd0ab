package protocol

import (
	"context"
	"errors"
	"io"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	pb "github.com/hykube/hykube/sdk/batch/tfplugin6"
)

var _ tfprotov6.ListResourceServer = (*Client)(nil)

// ValidateListResourceConfig validates a list configuration, which may hold unknown values.
func (c *Client) ValidateListResourceConfig(ctx context.Context,
	req *tfprotov6.ValidateListResourceConfigRequest) (*tfprotov6.ValidateListResourceConfigResponse, error) {
	r, err := call[pb.ValidateListResourceConfig_Response](ctx, c, "ValidateListResourceConfig",
		&pb.ValidateListResourceConfig_Request{
			TypeName: req.TypeName, Config: pb.ToValue(req.Config),
			IncludeResourceObject: pb.ToValue(req.IncludeResourceObject), Limit: pb.ToValue(req.Limit),
		})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.ValidateListResourceConfigResponse{Diagnostics: c.diagnostics(r.Diagnostics)}, nil
}

// ListResource lists existing resources. It calls the plugin when the caller ranges over the results, which is possible
// once. It cancels the call if the loop ends early, or at the limit, which the plugin may ignore. The stream has only
// results, so a failed call gives a last result with an error diagnostic.
func (c *Client) ListResource(ctx context.Context,
	req *tfprotov6.ListResourceRequest) (*tfprotov6.ListResourceServerStream, error) {
	results := func(yield func(tfprotov6.ListResourceResult) bool) {
		s, err := open[pb.ListResource_Event](ctx, c, "ListResource", &pb.ListResource_Request{
			TypeName: req.TypeName, Config: pb.ToValue(req.Config), IncludeResourceObject: req.IncludeResource,
			Limit: req.Limit,
		})
		if err != nil {
			yield(brokenList(err))
			return
		}
		defer s.close()
		for found := int64(0); req.Limit <= 0 || found < req.Limit; {
			e, err := s.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(brokenList(err))
				return
			}
			if e.GetIdentity().GetIdentityData() != nil {
				found++ // a warning about the whole list is not a result
			}
			if !yield(tfprotov6.ListResourceResult{
				DisplayName: e.DisplayName, Resource: pb.FromValue(e.ResourceObject),
				Identity:    pb.FromIdentity(e.Identity),
				Diagnostics: c.diagnostics(e.Diagnostic),
			}) {
				return
			}
		}
	}
	return &tfprotov6.ListResourceServerStream{Results: results}, nil
}

// brokenList returns the result for a failed call.
func brokenList(err error) tfprotov6.ListResourceResult {
	return tfprotov6.ListResourceResult{Diagnostics: []*tfprotov6.Diagnostic{{
		Severity: tfprotov6.DiagnosticSeverityError, Summary: "List resources: the provider's answer was cut off",
		Detail: err.Error(),
	}}}
}
