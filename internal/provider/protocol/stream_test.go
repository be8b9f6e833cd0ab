package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "github.com/hykube/hykube/sdk/batch/tfplugin6"
)

// streamConn answers a call with messages, and then with an error.
type streamConn struct {
	messages []proto.Message
	err      error

	method string
	ctx    context.Context
	sent   []any
	read   int
}

func (*streamConn) Invoke(context.Context, string, any, any, ...grpc.CallOption) error { return nil }

func (c *streamConn) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	c.method, c.ctx = method, ctx
	return &fakeStream{conn: c}, nil
}

type fakeStream struct {
	grpc.ClientStream
	conn *streamConn
}

func (s *fakeStream) SendMsg(m any) error { s.conn.sent = append(s.conn.sent, m); return nil }
func (*fakeStream) CloseSend() error      { return nil }

func (s *fakeStream) RecvMsg(m any) error {
	if err := s.conn.ctx.Err(); err != nil {
		return err
	}
	if s.conn.read == len(s.conn.messages) {
		return s.conn.err
	}
	proto.Merge(m.(proto.Message), s.conn.messages[s.conn.read])
	s.conn.read++
	return nil
}

func progress(message string) proto.Message {
	return &pb.InvokeAction_Event{Type: &pb.InvokeAction_Event_Progress_{Progress: &pb.InvokeAction_Event_Progress{Message: message}}}
}

func completed(ds ...*pb.Diagnostic) proto.Message {
	return &pb.InvokeAction_Event{Type: &pb.InvokeAction_Event_Completed_{Completed: &pb.InvokeAction_Event_Completed{Diagnostics: ds}}}
}

func TestInvokeActionEndsInOneCompletion(t *testing.T) {
	odd := errors.New("the line is dead")
	for name, tc := range map[string]struct {
		reason   string
		messages []proto.Message
		err      error
		want     []string
	}{
		"as it should be":     {"events come as they are", []proto.Message{progress("1"), progress("2"), completed()}, io.EOF, []string{"1", "2", "complete"}},
		"refused":             {"the completion has the reason", []proto.Message{completed(&pb.Diagnostic{Summary: "no"})}, io.EOF, []string{"complete ERROR no"}},
		"lost in the middle":  {"it may have been done", []proto.Message{progress("1")}, odd, []string{"1", "lost"}},
		"no completion":       {"it may have been done", []proto.Message{progress("1")}, io.EOF, []string{"1", "lost"}},
		"lost when complete":  {"it is done, whatever follows", []proto.Message{completed()}, odd, []string{"complete WARNING Run action: the provider broke the protocol"}},
		"two completions":     {"the first counts", []proto.Message{completed(), completed()}, io.EOF, []string{"complete WARNING Run action: the provider broke the protocol"}},
		"progress afterwards": {"is no progress", []proto.Message{completed(), progress("late")}, io.EOF, []string{"complete"}},
	} {
		t.Run(name, func(t *testing.T) {
			conn := &streamConn{messages: tc.messages, err: tc.err}
			c, _ := New(conn, 5)
			s, err := c.InvokeAction(t.Context(), &tfprotov6.InvokeActionRequest{ActionType: "x_reboot", Config: &tfprotov6.DynamicValue{MsgPack: []byte{0xc0}}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for e := range s.Events {
				switch e := e.Type.(type) {
				case tfprotov6.ProgressInvokeActionEventType:
					got = append(got, e.Message)
				case tfprotov6.CompletedInvokeActionEventType:
					line := "complete"
					for _, d := range e.Diagnostics {
						line += fmt.Sprintf(" %s %s", d.Severity, d.Summary)
					}
					got = append(got, line)
				case error:
					got = append(got, "lost")
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if conn.method != service5+"InvokeAction" || c.InFlight() != 0 {
				t.Errorf("called %s, %d in flight", conn.method, c.InFlight())
			}
			if req := conn.sent[0].(*pb.InvokeAction_Request); req.ActionType != "x_reboot" || len(req.Config.Msgpack) != 1 {
				t.Errorf("sent %v", req)
			}
		})
	}
}

// TestInvokeActionIsNotCutOff stops listening, and cancels: the action runs to its end.
func TestInvokeActionIsNotCutOff(t *testing.T) {
	conn := &streamConn{messages: []proto.Message{progress("1"), progress("2"), completed()}, err: io.EOF}
	c, _ := New(conn, 6)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := c.InvokeAction(ctx, &tfprotov6.InvokeActionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for range s.Events {
		break
	}
	if conn.read != 3 {
		t.Errorf("%d of 3 events were waited for", conn.read)
	}
}

func TestListResourceEndsAtTheLimit(t *testing.T) {
	found := func(name string) proto.Message {
		return &pb.ListResource_Event{DisplayName: name, Identity: &pb.ResourceIdentityData{IdentityData: &pb.DynamicValue{Msgpack: []byte{0x80}}}}
	}
	warning := &pb.ListResource_Event{Diagnostic: []*pb.Diagnostic{{Severity: pb.Diagnostic_WARNING, Summary: "one region is down"}}}
	for name, tc := range map[string]struct {
		reason   string
		messages []proto.Message
		err      error
		limit    int64
		stopAt   int
		want     string
	}{
		"all":                   {"no limit, no end", []proto.Message{found("a"), found("b")}, io.EOF, 0, 0, "a, b"},
		"the limit":             {"a plugin need not know it", []proto.Message{found("a"), found("b"), found("c")}, io.EOF, 2, 0, "a, b"},
		"warnings do not count": {"they are no results", []proto.Message{warning, found("a"), warning, found("b"), found("c")}, io.EOF, 2, 0, "one region is down, a, one region is down, b"},
		"the loop ends":         {"the caller has enough", []proto.Message{found("a"), found("b")}, io.EOF, 0, 1, "a"},
		"lost":                  {"what came stays, and the error is the last", []proto.Message{found("a")}, errors.New("dead"), 0, 0, "a, List resources: the provider's answer was cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := &streamConn{messages: tc.messages, err: tc.err}
			c, _ := New(conn, 5)
			s, err := c.ListResource(t.Context(), &tfprotov6.ListResourceRequest{TypeName: "x_net", Limit: tc.limit})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for r := range s.Results {
				for _, d := range r.Diagnostics {
					got = append(got, d.Summary)
				}
				if r.DisplayName != "" {
					got = append(got, r.DisplayName)
				}
				if tc.stopAt > 0 && len(got) == tc.stopAt {
					break
				}
			}
			if text := strings.Join(got, ", "); text != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, text, tc.want)
			}
			if conn.ctx.Err() == nil || c.InFlight() != 0 {
				t.Error("the call was not cancelled")
			}
			if conn.method != service5+"ListResource" {
				t.Errorf("called %s", conn.method)
			}
		})
	}
}
