package protocol

//lint:file-ignore SA1019 the field is deprecated for providers, but their callers must honour it

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb5 "github.com/hykube/hykube/internal/provider/tfplugin5"
	pb "github.com/hykube/hykube/sdk/batch/tfplugin6"
)

// fakeConn answers calls with a function.
type fakeConn struct {
	invoke func(ctx context.Context, method string, args, reply any) error
	mu     sync.Mutex
	calls  []string
}

func (c *fakeConn) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	c.mu.Lock()
	c.calls = append(c.calls, method)
	c.mu.Unlock()
	return c.invoke(ctx, method, args, reply)
}

func (c *fakeConn) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("no streams")
}

func TestPlanPassesBytesThrough(t *testing.T) {
	conn := &fakeConn{invoke: func(_ context.Context, _ string, args, reply any) error {
		req, resp := args.(*pb.PlanResourceChange_Request), reply.(*pb.PlanResourceChange_Response)
		if !req.ClientCapabilities.WriteOnlyAttributesAllowed || req.ClientCapabilities.DeferralAllowed {
			t.Errorf("capabilities = %v", req.ClientCapabilities)
		}
		resp.PlannedState, resp.PlannedPrivate = req.ProposedNewState, req.PriorPrivate
		resp.LegacyTypeSystem = true
		resp.RequiresReplace = []*pb.AttributePath{{Steps: []*pb.AttributePath_Step{
			{Selector: &pb.AttributePath_Step_AttributeName{AttributeName: "rule"}},
			{Selector: &pb.AttributePath_Step_ElementKeyInt{ElementKeyInt: 2}},
			{Selector: &pb.AttributePath_Step_ElementKeyString{ElementKeyString: "a"}},
		}}}
		resp.Diagnostics = []*pb.Diagnostic{{Severity: pb.Diagnostic_WARNING, Summary: "w"}, {Severity: 77, Summary: "odd"}}
		return nil
	}}
	c, err := New(conn, 6)
	if err != nil {
		t.Fatal(err)
	}
	odd := []byte{0xd4, 0x00, 0x00, 0xff, 0x00, '{'}
	got, err := c.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		ProposedNewState: &tfprotov6.DynamicValue{MsgPack: odd}, PriorPrivate: odd,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &tfprotov6.PlanResourceChangeResponse{
		PlannedState: &tfprotov6.DynamicValue{MsgPack: odd}, PlannedPrivate: odd, UnsafeToUseLegacyTypeSystem: true,
		RequiresReplace: []*tftypes.AttributePath{tftypes.NewAttributePath().WithAttributeName("rule").WithElementKeyInt(2).WithElementKeyString("a")},
		Diagnostics: []*tfprotov6.Diagnostic{
			{Severity: tfprotov6.DiagnosticSeverityWarning, Summary: "w"}, {Severity: tfprotov6.DiagnosticSeverityError, Summary: "odd"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func TestProtocol5Names(t *testing.T) {
	conn := &fakeConn{invoke: func(_ context.Context, _ string, _, reply any) error {
		if r, ok := reply.(*pb5.GetProviderSchema_Response); ok {
			r.ResourceSchemas = map[string]*pb5.Schema{"x": {Version: 3, Block: &pb5.Schema_Block{
				Attributes: []*pb5.Schema_Attribute{{Name: "a", Type: []byte(`"string"`), WriteOnly: true, DeprecationMessage: "old"}},
				BlockTypes: []*pb5.Schema_NestedBlock{{TypeName: "b", Nesting: pb5.Schema_NestedBlock_GROUP, Block: &pb5.Schema_Block{}}},
			}}}
		}
		return nil
	}}
	c, err := New(conn, 5)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	schema, err := c.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, err1 := c.ValidateProviderConfig(ctx, &tfprotov6.ValidateProviderConfigRequest{})
	_, err2 := c.ConfigureProvider(ctx, &tfprotov6.ConfigureProviderRequest{})
	_, err3 := c.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{})
	_, err4 := c.ValidateDataResourceConfig(ctx, &tfprotov6.ValidateDataResourceConfigRequest{})
	_, err5 := c.ReadResource(ctx, &tfprotov6.ReadResourceRequest{})
	_, err6 := c.StopProvider(ctx, &tfprotov6.StopProviderRequest{})
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		t.Fatal(err)
	}
	want := []string{"GetSchema", "PrepareProviderConfig", "Configure", "ValidateResourceTypeConfig", "ValidateDataSourceConfig", "ReadResource", "Stop"}
	for i := range want {
		want[i] = "/tfplugin5.Provider/" + want[i]
	}
	if diff := cmp.Diff(want, conn.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	x := schema.ResourceSchemas["x"]
	if a := x.Block.Attributes[0]; x.Version != 3 || !a.WriteOnly || a.DeprecationMessage != "old" || !a.Type.Is(tftypes.String) {
		t.Errorf("schema = %+v, attribute = %+v", x, a)
	}
	if b := x.Block.BlockTypes[0]; b.Nesting != tfprotov6.SchemaNestedBlockNestingModeGroup {
		t.Errorf("block = %+v", b)
	}
}

func TestErrors(t *testing.T) {
	lost := errors.New("lost")
	for _, tc := range []struct {
		why  string
		err  error
		is   error
		want string
	}{
		{"a call that the plugin lacks", status.Error(codes.Unimplemented, "unknown method"), errors.ErrUnsupported, "does not implement this call"},
		{"a lost plugin", lost, lost, "call provider ReadResource: lost"},
	} {
		t.Run(tc.why, func(t *testing.T) {
			c, _ := New(&fakeConn{invoke: func(context.Context, string, any, any) error { return tc.err }}, 6)
			_, err := c.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{})
			if err == nil || !strings.Contains(err.Error(), tc.want) || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	t.Run("features that old plugins lack are empty", func(t *testing.T) {
		c, _ := New(&fakeConn{invoke: func(context.Context, string, any, any) error { return status.Error(codes.Unimplemented, "") }}, 6)
		ids, err := c.GetResourceIdentitySchemas(t.Context(), nil)
		if err != nil || len(ids.IdentitySchemas) != 0 {
			t.Errorf("identities: %v, %v", ids, err)
		}
		fs, err := c.GetFunctions(t.Context(), nil)
		if err != nil || len(fs.Functions) != 0 {
			t.Errorf("functions: %v, %v", fs, err)
		}
	})
	if _, err := New(nil, 4); err == nil {
		t.Error("protocol 4 was accepted")
	}
}

// TestApplyIsNeverCutOff cancels two applies of one process, one after the other. The calls' contexts stay valid. The
// client sends Stop only after all calls of the process are cancelled.
func TestApplyIsNeverCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := make(chan struct{})
		stop := sync.OnceFunc(func() { close(stopped) }) // both may ask for it
		conn := &fakeConn{invoke: func(ctx context.Context, method string, _, reply any) error {
			if method == service+"StopProvider" {
				stop()
				return nil
			}
			select {
			case <-ctx.Done():
				t.Error("the context of an apply was cancelled")
			case <-stopped:
			}
			reply.(*pb.ApplyResourceChange_Response).Private = []byte("kept")
			return nil
		}}
		c, _ := New(conn, 6)
		var all sync.WaitGroup
		var cancels []context.CancelFunc
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			all.Go(func() {
				r, err := c.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{})
				if err != nil || string(r.Private) != "kept" {
					t.Errorf("apply = %+v, %v; want the provider's answer", r, err)
				}
			})
		}
		synctest.Wait()
		cancels[0]()
		time.Sleep(time.Minute)
		select {
		case <-stopped:
			t.Error("stopped while the apply of another caller was running")
		default:
		}
		cancels[1]()
		all.Wait()
	})
}
