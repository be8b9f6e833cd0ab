package batch

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hykube/hykube/sdk/batch/batchv1"
	"github.com/hykube/hykube/sdk/batch/tfplugin6"
)

// recorder is a provider that returns one answer to each call, and keeps the requests. Its other calls are nil.
type recorder struct {
	tfprotov6.ProviderServer
	answer func(resp any) error

	mu       sync.Mutex
	requests []any
}

// respond keeps a request and returns a response.
func respond[Resp any](r *recorder, request any) (*Resp, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, request)
	resp := new(Resp)
	if err := r.answer(resp); err != nil {
		return nil, err
	}
	return resp, nil
}

func (r *recorder) ValidateResourceConfig(_ context.Context, req *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return respond[tfprotov6.ValidateResourceConfigResponse](r, req)
}

func (r *recorder) ReadResource(_ context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return respond[tfprotov6.ReadResourceResponse](r, req)
}

func (r *recorder) PlanResourceChange(_ context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	return respond[tfprotov6.PlanResourceChangeResponse](r, req)
}

func (r *recorder) ApplyResourceChange(_ context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	return respond[tfprotov6.ApplyResourceChangeResponse](r, req)
}

// fill sets every field of a struct of terraform-plugin-go. It returns the path of a field that it cannot set, or "".
func fill(v reflect.Value, path string) string {
	if v.Type() == reflect.TypeFor[*tftypes.AttributePath]() {
		v.Set(reflect.ValueOf(tftypes.NewAttributePath().WithAttributeName("rules").WithElementKeyInt(3).WithElementKeyString("port")))
		return ""
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return fill(v.Elem(), path)
	case reflect.Struct:
		for i := range v.NumField() {
			if left := fill(v.Field(i), path+"."+v.Type().Field(i).Name); left != "" {
				return left
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			if left := fill(v.Index(i), path); left != "" {
				return left
			}
		}
	case reflect.String:
		v.SetString("text of " + path)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(uint64(len(path)))
	case reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(1)
	default:
		return path
	}
	return ""
}

// empty returns the path of a field without a value, or "".
func empty(v reflect.Value, path string) string {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return empty(v.Elem(), path)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if left := empty(v.Field(i), path+"."+v.Type().Field(i).Name); left != "" {
				return left
			}
		}
		return ""
	}
	if v.IsZero() {
		return path
	}
	return ""
}

// fillMessage sets every field of a message, and one that no version of the protocol has.
func fillMessage(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		switch f := fields.Get(i); f.Kind() {
		case protoreflect.MessageKind:
			fillMessage(m.Mutable(f).Message())
		case protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString("text of "+string(f.Name())))
		case protoreflect.BytesKind:
			m.Set(f, protoreflect.ValueOfBytes([]byte("bytes of "+string(f.Name()))))
		case protoreflect.BoolKind:
			m.Set(f, protoreflect.ValueOfBool(true))
		default:
			panic(f.FullName())
		}
	}
	m.SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 7))
}

// TestABatchAnswersAsASingleCall makes each call alone and in a batch, with a value in each field of the request and of the
// response. The provider gets the same request, and the client the same answer. A field of a new version of
// terraform-plugin-go needs one in tfplugin6.proto, so that it has a value here.
func TestABatchAnswersAsASingleCall(t *testing.T) {
	full := func(resp any) error {
		if left := fill(reflect.ValueOf(resp).Elem(), "response"); left != "" {
			t.Fatalf("the test cannot set %s", left)
		}
		return nil
	}
	noCapabilities := func(m proto.Message) {
		if f := m.ProtoReflect().Descriptor().Fields().ByName("client_capabilities"); f != nil {
			m.ProtoReflect().Clear(f)
		}
	}
	diagnostic := func(d tfprotov6.Diagnostic) func(resp any) error {
		return func(resp any) error {
			reflect.ValueOf(resp).Elem().FieldByName("Diagnostics").Set(reflect.ValueOf([]*tfprotov6.Diagnostic{&d}))
			return nil
		}
	}
	for _, tt := range []struct {
		what   string
		change func(proto.Message)
		answer func(resp any) error
	}{
		{"every field", nil, full},
		{"the client allows no deferral", noCapabilities, full},
		{"empty messages", func(m proto.Message) { proto.Reset(m) }, func(any) error { return nil }},
		{"text that is not UTF-8", nil, diagnostic(tfprotov6.Diagnostic{Severity: tfprotov6.DiagnosticSeverityError, Summary: "a\xffb", Detail: "\xff"})},
		{"a name in a path that is not UTF-8", nil, diagnostic(tfprotov6.Diagnostic{Attribute: tftypes.NewAttributePath().WithAttributeName("\xff")})},
		{"a path through a set", nil, diagnostic(tfprotov6.Diagnostic{Attribute: tftypes.NewAttributePath().WithAttributeName("a").WithElementKeyValue(tftypes.NewValue(tftypes.String, "x"))})},
		{"an error", nil, func(any) error { return errors.New("the disk is gone") }},
		{"an error with a code", nil, func(any) error { return status.Error(codes.DataLoss, "the disk is gone") }},
		{"a wrapped error with a code", nil, func(any) error { return fmt.Errorf("read: %w", status.Error(codes.DataLoss, "the disk is gone")) }},
		{"the end of a context", nil, func(any) error { return fmt.Errorf("read: %w", context.DeadlineExceeded) }},
	} {
		for method, messages := range map[string][2]proto.Message{
			"ValidateResourceConfig": {new(tfplugin6.ValidateResourceConfig_Request), new(tfplugin6.ValidateResourceConfig_Response)},
			"ReadResource":           {new(tfplugin6.ReadResource_Request), new(tfplugin6.ReadResource_Response)},
			"PlanResourceChange":     {new(tfplugin6.PlanResourceChange_Request), new(tfplugin6.PlanResourceChange_Response)},
			"ApplyResourceChange":    {new(tfplugin6.ApplyResourceChange_Request), new(tfplugin6.ApplyResourceChange_Response)},
		} {
			r := &recorder{answer: tt.answer}
			method, request := "/tfplugin6.Provider/"+method, messages[0]
			fillMessage(request.ProtoReflect())
			if tt.change != nil {
				tt.change(request)
			}
			c := serve(t, r)
			single, batched := proto.Clone(messages[1]), proto.Clone(messages[1])
			wantErr := c.Invoke(t.Context(), method, request, single)
			err := invokeInBatch(t, c, batchv1.Methods[method], request, batched)
			if status.Code(err) != status.Code(wantErr) || status.Convert(err).Message() != status.Convert(wantErr).Message() {
				t.Errorf("%s, %s: error %v in a batch, want %v", method, tt.what, err, wantErr)
			}
			if !proto.Equal(batched, single) {
				t.Errorf("%s, %s: the answer in a batch is\n%v, want\n%v", method, tt.what, batched, single)
			}
			if diff := cmp.Diff(r.requests[:1], r.requests[1:]); diff != "" {
				t.Errorf("%s, %s: the request in a batch differs:\n%s", method, tt.what, diff)
			}
			if tt.what != "every field" {
				continue
			}
			if left := empty(reflect.ValueOf(r.requests[1]), "request"); left != "" {
				t.Errorf("%s: the test sends no value of %s", method, left)
			}
			fields := batched.ProtoReflect().Descriptor().Fields()
			for i := range fields.Len() {
				if !batched.ProtoReflect().Has(fields.Get(i)) {
					t.Errorf("%s: the answer has no %s", method, fields.Get(i).Name())
				}
			}
		}
	}
}

// encoded is the codec of messages that are encoded already.
type encoded struct{}

func (encoded) Name() string { return "proto" }

func (encoded) Marshal(v any) ([]byte, error) { return []byte(*v.(*string)), nil }

func (encoded) Unmarshal(data []byte, v any) error {
	*v.(*string) = string(data)
	return nil
}

// makeBatch makes a batch of encoded requests. It returns the answers in the order of the requests.
func makeBatch(t *testing.T, c grpc.ClientConnInterface, method Method, requests ...string) (answers []*batchv1.Call_Response, err error) {
	t.Helper()
	req := &batchv1.Call_Request{Method: method, TypeName: "thing"}
	for _, r := range requests {
		req.Requests = append(req.Requests, []byte(r))
	}
	return send(t, c, req)
}

// send sends a batch and returns its answers.
func send(t *testing.T, c grpc.ClientConnInterface, req *batchv1.Call_Request) (answers []*batchv1.Call_Response, err error) {
	t.Helper()
	stream, err := c.NewStream(t.Context(), &grpc.StreamDesc{StreamName: batchv1.CallMethod, ServerStreams: true}, "/"+batchv1.Service+"/"+batchv1.CallMethod)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stream.SendMsg(req), stream.CloseSend()); err != nil {
		t.Fatal(err)
	}
	answers = make([]*batchv1.Call_Response, len(req.Requests))
	for range req.Requests {
		a := new(batchv1.Call_Response)
		if err := stream.RecvMsg(a); err != nil {
			return answers, err
		}
		answers[a.Index] = a
	}
	return answers, nil
}

// invokeInBatch makes a call in a batch of its own.
func invokeInBatch(t *testing.T, c grpc.ClientConnInterface, method Method, request, response proto.Message) error {
	t.Helper()
	b, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	answers, err := makeBatch(t, c, method, string(b))
	if err != nil {
		return err
	}
	if e := answers[0].GetError(); e != nil {
		return status.Error(codes.Code(e.Code), e.Message)
	}
	return proto.Unmarshal(answers[0].GetResponse(), response)
}

// encode returns the request of the apply of a thing.
func encode(t *testing.T, name string) string {
	t.Helper()
	b, err := proto.Marshal(&tfplugin6.ApplyResourceChange_Request{TypeName: "thing", PlannedPrivate: []byte(name)})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestARequestThatIsNoMessage sends one alone and in a batch.
func TestARequestThatIsNoMessage(t *testing.T) {
	c := serve(t, echo{})
	request, response := "\xff\xff", ""
	want := status.Convert(c.Invoke(t.Context(), "/tfplugin6.Provider/ApplyResourceChange", &request, &response, grpc.ForceCodec(encoded{})))
	answers, err := makeBatch(t, c, Apply, request)
	if err != nil {
		t.Fatal(err)
	}
	if got := answers[0].GetError(); codes.Code(got.GetCode()) != want.Code() || !strings.HasPrefix(got.GetMessage(), "grpc: error unmarshalling request: ") {
		t.Errorf("error %v, want %v", got, want)
	}
}

// noStatus is an error whose code says that there is none.
type noStatus struct{ error }

func (noStatus) GRPCStatus() *status.Status { return status.New(codes.OK, "") }

// TestAnErrorIsNoSuccess lets a call fail with an error whose code is OK. An empty answer would mean that it succeeded.
func TestAnErrorIsNoSuccess(t *testing.T) {
	r := &recorder{answer: func(any) error { return noStatus{errors.New("the disk is gone")} }}
	answers, err := makeBatch(t, serve(t, r), Apply, encode(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if answers[0].GetError() == nil {
		t.Errorf("answer %v, want an error", answers[0])
	}
}

func TestAnUnknownMethod(t *testing.T) {
	if _, err := makeBatch(t, serve(t, echo{}), 7, ""); status.Code(err) != codes.Unimplemented {
		t.Errorf("error %v, want code Unimplemented", err)
	}
}

// TestAnAnswerThatIsTooLarge lets one call of a batch have an answer above the limit of the provider, or above that of the client.
// The other one gets its answer.
func TestAnAnswerThatIsTooLarge(t *testing.T) {
	for _, limit := range []struct{ provider, client int }{{1000, 0}, {1000, 1 << 20}, {1 << 20, 1000}} {
		plugin := newPlugin("registry.terraform.io/hykube/things", func() tfprotov6.ProviderServer { return echo{} })
		plugin.batches.maxMessage = limit.provider
		req := &batchv1.Call_Request{Method: Apply, TypeName: "thing", MaxResponseBytes: int64(limit.client)}
		for _, name := range []string{strings.Repeat("x", 1000), "small"} {
			req.Requests = append(req.Requests, []byte(encode(t, name)))
		}
		answers, err := send(t, servePlugin(t, plugin), req)
		if err != nil {
			t.Fatal(err)
		}
		if e := answers[0].GetError(); codes.Code(e.GetCode()) != codes.ResourceExhausted {
			t.Errorf("%+v: error %v, want code ResourceExhausted", limit, e)
		}
		resp := new(tfplugin6.ApplyResourceChange_Response)
		if err := proto.Unmarshal(answers[1].GetResponse(), resp); err != nil || string(resp.Private) != "id-small" {
			t.Errorf("%+v: answer %q, %v, want that of the other call", limit, resp.Private, err)
		}
	}
}

// lister is a provider with calls that tfprotov6.ProviderServer does not have. The others are nil.
type lister struct {
	echo
	tfprotov6.ListResourceServer
	tfprotov6.ActionServer
	tfprotov6.StateStoreServer
}

func (lister) ValidateListResourceConfig(context.Context, *tfprotov6.ValidateListResourceConfigRequest) (*tfprotov6.ValidateListResourceConfigResponse, error) {
	return &tfprotov6.ValidateListResourceConfigResponse{}, nil
}

func (lister) PlanAction(context.Context, *tfprotov6.PlanActionRequest) (*tfprotov6.PlanActionResponse, error) {
	return &tfprotov6.PlanActionResponse{}, nil
}

// TestAProviderKeepsItsOtherCalls makes calls that tf6server offers only if the provider has their methods.
func TestAProviderKeepsItsOtherCalls(t *testing.T) {
	c := serve(t, lister{})
	list := new(tfplugin6.ValidateListResourceConfig_Response)
	if err := c.Invoke(t.Context(), "/tfplugin6.Provider/ValidateListResourceConfig", &tfplugin6.ValidateListResourceConfig_Request{}, list); err != nil || len(list.Diagnostics) > 0 {
		t.Errorf("list: %v, %v", list, err)
	}
	action := new(tfplugin6.PlanAction_Response)
	if err := c.Invoke(t.Context(), "/tfplugin6.Provider/PlanAction", &tfplugin6.PlanAction_Request{}, action); err != nil || len(action.Diagnostics) > 0 {
		t.Errorf("action: %v, %v", action, err)
	}
}
