package instance

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/provider/batch"
	"github.com/hykube/hykube/internal/provider/protocol"
	"github.com/hykube/hykube/sdk/batch/batchv1"
	"github.com/hykube/hykube/sdk/batch/tfplugin6"
)

// refusing is a provider that refuses all calls of a batch with one text, which quotes the requests of all. It answers the first batch
// after the second one, so that the second one has as many calls as the provider takes.
type refusing struct {
	*grpc.ClientConn
	first, second chan struct{}
}

func (refusing) Explain(_ context.Context, err error) error { return err }
func (refusing) MessageLimit() int                          { return 1 << 20 }

func (p *refusing) call(_ any, stream grpc.ServerStream) error {
	req := new(batchv1.Call_Request)
	if err := stream.RecvMsg(req); err != nil {
		return err
	}
	if len(req.Requests) == 1 {
		close(p.first)
		<-p.second
	} else {
		defer close(p.second)
	}
	var quoted strings.Builder
	for _, r := range req.Requests {
		fmt.Fprintf(&quoted, "%q ", r)
	}
	diags := []*tfplugin6.Diagnostic{{Severity: tfplugin6.Diagnostic_ERROR, Summary: "Refused", Detail: quoted.String()}}
	for i := range req.Requests {
		response := map[batchv1.Method]proto.Message{
			batchv1.Method_VALIDATE_RESOURCE_CONFIG: &tfplugin6.ValidateResourceConfig_Response{Diagnostics: diags},
			batchv1.Method_READ_RESOURCE:            &tfplugin6.ReadResource_Response{Diagnostics: diags},
			batchv1.Method_PLAN_RESOURCE_CHANGE:     &tfplugin6.PlanResourceChange_Response{Diagnostics: diags},
			batchv1.Method_APPLY_RESOURCE_CHANGE:    &tfplugin6.ApplyResourceChange_Response{Diagnostics: diags},
		}[req.Method]
		b, err := proto.Marshal(response)
		if err != nil {
			return err
		}
		if err := stream.SendMsg(&batchv1.Call_Response{Index: int32(i), Answer: &batchv1.Call_Response_Response{Response: b}}); err != nil {
			return err
		}
	}
	return nil
}

// provider returns a client that makes batches of up to two calls of the method.
func (p *refusing) provider(t *testing.T, method batchv1.Method) *protocol.Client {
	p.first, p.second = make(chan struct{}), make(chan struct{})
	server, listener := grpc.NewServer(), bufconn.Listen(1<<20)
	server.RegisterService(&grpc.ServiceDesc{ServiceName: batchv1.Service, HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{{
		StreamName: batchv1.CallMethod, ServerStreams: true, Handler: p.call,
	}}}, p)
	go server.Serve(listener) //nolint:errcheck // Stop ends it
	t.Cleanup(server.Stop)
	var err error
	p.ClientConn, err = grpc.NewClient("passthrough:", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	client, err := protocol.New(batch.NewConn(p, batch.Limits{{Method: method, Type: "test_thing"}: {MaxCalls: 2}}), 6)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestSecretsOfABatchAreHidden makes a batch of two calls, whose values have a secret each. One is sensitive by its attribute, and
// the other one by its mark.
func TestSecretsOfABatchAreHidden(t *testing.T) {
	t.Parallel()
	bySchema := cty.ObjectVal(map[string]cty.Value{"id": str("1"), "name": str("first"), "secret": str("hunter22-hunter22")})
	byMark := thing(str("2"), str("correct-horse").Mark(lang.Sensitive))
	for what, tt := range map[string]struct {
		method batchv1.Method
		call   func(ctx context.Context, ty *Type, v cty.Value) error
	}{
		"validate": {batchv1.Method_VALIDATE_RESOURCE_CONFIG, func(ctx context.Context, ty *Type, v cty.Value) error {
			_, _, err := ty.Plan(ctx, ty.Null(), config(v), false)
			return err
		}},
		"read": {batchv1.Method_READ_RESOURCE, func(ctx context.Context, ty *Type, v cty.Value) error {
			_, _, err := ty.Read(ctx, State{Value: v})
			return err
		}},
		"plan": {batchv1.Method_PLAN_RESOURCE_CHANGE, func(ctx context.Context, ty *Type, v cty.Value) error {
			_, _, err := ty.planOnce(ctx, State{Value: v}, nil, config(v), true)
			return err
		}},
		"plan the destroy": {batchv1.Method_PLAN_RESOURCE_CHANGE, func(ctx context.Context, ty *Type, v cty.Value) error {
			_, _, err := ty.PlanDelete(ctx, State{Value: v}, nil)
			return err
		}},
		"create": {batchv1.Method_APPLY_RESOURCE_CHANGE, func(ctx context.Context, ty *Type, v cty.Value) error {
			return ty.Apply(ctx, ty.Null(), &Planned{Value: v}, v).Err
		}},
		"delete": {batchv1.Method_APPLY_RESOURCE_CHANGE, func(ctx context.Context, ty *Type, v cty.Value) error {
			return ty.Apply(ctx, State{Value: v}, &Planned{Value: ty.Null().Value}, ty.Null().Value).Err
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := new(refusing)
			ty := newType(t, &scripted{})
			ty.Provider, ty.PlanDestroy = p.provider(t, tt.method), true
			results := make(chan error)
			call := func(v cty.Value) { results <- tt.call(t.Context(), ty, v) }
			go call(thing(str("0"), str("first")))
			<-p.first
			go call(bySchema)
			go call(byMark)
			masked := 0
			for range 3 {
				err := <-results
				if err == nil || strings.Contains(err.Error(), "hunter22") || strings.Contains(err.Error(), "correct-horse") {
					t.Errorf("error %v, want one without secrets", err)
				}
				if err != nil && strings.Count(err.Error(), lang.Mask) >= 2 {
					masked++
				}
			}
			if masked != 2 {
				t.Errorf("%d errors hide secrets, want those of both calls of the batch", masked)
			}
		})
	}
}
