package protocol

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	pb "github.com/hykube/hykube/sdk/batch/tfplugin6"
)

// memory keeps all answers, by method and request.
type memory map[string][]byte

func (m memory) Recall(method string, request []byte) ([]byte, bool) {
	answer, ok := m[method+string(request)]
	return answer, ok
}

func (m memory) Keep(method string, request, answer []byte) { m[method+string(request)] = answer }

// TestAnswersAreRecalled makes each call twice. Only calls that change and open nothing are answered from memory.
func TestAnswersAreRecalled(t *testing.T) {
	plan := func(state string) func(context.Context, *Client) error {
		return func(ctx context.Context, c *Client) error {
			resp, err := c.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{TypeName: "t", Config: &tfprotov6.DynamicValue{MsgPack: []byte(state)}})
			if err == nil && string(resp.PlannedState.MsgPack) != state {
				t.Errorf("planned %q for %q", resp.PlannedState.MsgPack, state)
			}
			return err
		}
	}
	for name, tc := range map[string]struct {
		first, second func(context.Context, *Client) error
		severity      pb.Diagnostic_Severity
		calls         int
	}{
		"a plan":                {first: plan("a"), calls: 1},
		"a plan with a warning": {first: plan("a"), severity: pb.Diagnostic_WARNING, calls: 1},
		"a plan with an error":  {first: plan("a"), severity: pb.Diagnostic_ERROR, calls: 1},
		"plans of two configs":  {first: plan("a"), second: plan("b"), calls: 2},
		"an apply": {calls: 2, first: func(ctx context.Context, c *Client) error {
			_, err := c.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{TypeName: "t"})
			return err
		}},
		"an ephemeral resource": {calls: 2, first: func(ctx context.Context, c *Client) error {
			_, err := c.OpenEphemeralResource(ctx, &tfprotov6.OpenEphemeralResourceRequest{TypeName: "t"})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			conn := &fakeConn{invoke: func(_ context.Context, _ string, args, reply any) error {
				if req, ok := args.(*pb.PlanResourceChange_Request); ok {
					resp := reply.(*pb.PlanResourceChange_Response)
					resp.PlannedState = req.Config
					if tc.severity != pb.Diagnostic_INVALID {
						resp.Diagnostics = []*pb.Diagnostic{{Severity: tc.severity, Summary: "s"}}
					}
				}
				return nil
			}}
			c, err := New(conn, 6)
			if err != nil {
				t.Fatal(err)
			}
			ctx := WithAnswers(t.Context(), memory{})
			if tc.second == nil {
				tc.second = tc.first
			}
			if err := tc.first(ctx, c); err != nil {
				t.Fatal(err)
			}
			if err := tc.second(ctx, c); err != nil {
				t.Fatal(err)
			}
			if len(conn.calls) != tc.calls || c.Made() != tc.calls {
				t.Errorf("%d calls, and %d are counted, want %d", len(conn.calls), c.Made(), tc.calls)
			}
		})
	}
}
