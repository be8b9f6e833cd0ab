package protocol

import (
	"context"
	"errors"
	"io"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	pb "github.com/hykube/hykube/sdk/batch/tfplugin6"
)

var _ tfprotov6.ActionServer = (*Client)(nil)

// ValidateActionConfig validates the configuration of an action, which may hold unknown values.
func (c *Client) ValidateActionConfig(ctx context.Context,
	req *tfprotov6.ValidateActionConfigRequest) (*tfprotov6.ValidateActionConfigResponse, error) {
	r, err := call[pb.ValidateActionConfig_Response](ctx, c, "ValidateActionConfig", &pb.ValidateActionConfig_Request{
		ActionType: req.ActionType, Config: pb.ToValue(req.Config),
	})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.ValidateActionConfigResponse{Diagnostics: c.diagnostics(r.Diagnostics)}, nil
}

// PlanAction plans an action.
func (c *Client) PlanAction(ctx context.Context,
	req *tfprotov6.PlanActionRequest) (*tfprotov6.PlanActionResponse, error) {
	r, err := call[pb.PlanAction_Response](ctx, c, "PlanAction", &pb.PlanAction_Request{
		ActionType: req.ActionType, Config: pb.ToValue(req.Config),
		ClientCapabilities: capabilities(req.ClientCapabilities != nil && req.ClientCapabilities.DeferralAllowed),
	})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.PlanActionResponse{Diagnostics: c.diagnostics(r.Diagnostics), Deferred: fromDeferred(r.Deferred)},
		nil
}

// InvokeAction runs an action when the caller ranges over its events, which is possible once. A cancelled ctx or an
// early break does not interrupt the action, because it changes infrastructure; see apply. The last event is the
// completion. If the stream fails before, the last event is an error.
func (c *Client) InvokeAction(ctx context.Context,
	req *tfprotov6.InvokeActionRequest) (*tfprotov6.InvokeActionServerStream, error) {
	events := func(yield func(tfprotov6.InvokeActionEvent) bool) {
		listening := true
		var done *pb.InvokeAction_Event_Completed
		err := uninterrupted(ctx, c, func(ctx context.Context) error {
			s, err := open[pb.InvokeAction_Event](ctx, c, "InvokeAction", &pb.InvokeAction_Request{
				ActionType: req.ActionType, Config: pb.ToValue(req.Config), ClientCapabilities: capabilities(false),
			})
			if err != nil {
				return err
			}
			defer s.close()
			for {
				e, err := s.next()
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				switch t := e.Type.(type) {
				case *pb.InvokeAction_Event_Progress_:
					if listening && done == nil {
						listening = yield(tfprotov6.InvokeActionEvent{Type: tfprotov6.
							ProgressInvokeActionEventType{Message: t.Progress.GetMessage()}})
					}
				case *pb.InvokeAction_Event_Completed_:
					if done != nil {
						return errors.New("the provider reported completion of the action twice, which is a bug of the provider")
					}
					if done = t.Completed; done == nil {
						done = new(pb.InvokeAction_Event_Completed)
					}
				}
			}
		})
		if !listening {
			return
		}
		if done == nil {
			if err == nil {
				err = errors.New("the provider did not report completion of the action, which is a bug of the provider; check the infrastructure to see what the action did")
			}
			yield(tfprotov6.InvokeActionEvent{Type: brokenStream{error: err}})
			return
		}
		out := tfprotov6.CompletedInvokeActionEventType{Diagnostics: c.diagnostics(done.Diagnostics)}
		if err != nil {
			out.Diagnostics = append(out.Diagnostics, &tfprotov6.Diagnostic{
				Severity: tfprotov6.DiagnosticSeverityWarning, Summary: "Run action: the provider broke the protocol",
				Detail: err.Error(),
			})
		}
		yield(tfprotov6.InvokeActionEvent{Type: out})
	}
	return &tfprotov6.InvokeActionServerStream{Events: events}, nil
}

// brokenStream is the event for a stream that failed before the completion. The effect of the action is unknown.
type brokenStream struct {
	tfprotov6.InvokeActionEventType
	error
}
