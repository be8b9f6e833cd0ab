package temporalapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// answeringConnection is a connection to a Temporal whose answers have a size.
type answeringConnection struct {
	grpc.ClientConnInterface
	size int
}

func (c answeringConnection) Invoke(_ context.Context, _ string, _, reply any, _ ...grpc.CallOption) error {
	if list, ok := reply.(*workflowservice.ListWorkflowExecutionsResponse); ok {
		list.NextPageToken = make([]byte, c.size)
	}
	return nil
}

// serve serves a service over HTTP/2, as the API server does for a user with all rights in the namespace "a".
func serve(t *testing.T, s *Service) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, m, _ := methodOf(r.URL.Path)
		ctx := request.WithUser(r.Context(), &user.DefaultInfo{Name: "u"})
		ctx = request.WithRequestInfo(ctx, &request.RequestInfo{IsResourceRequest: true, Resource: Resource, Verb: m.verb, Namespace: "a"})
		s.ServeHTTP(w, r.WithContext(ctx))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// unreading is a client that calls the service and never opens the window for the answers.
type unreading struct {
	conn    *tls.Conn
	framer  *http2.Framer
	headers bytes.Buffer
	encoder *hpack.Encoder
	stream  uint32
}

func newUnreading(t *testing.T, server *httptest.Server) *unreading {
	t.Helper()
	secure := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	secure.NextProtos = []string{http2.NextProtoTLS}
	conn, err := tls.Dial("tcp", server.Listener.Addr().String(), secure)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	u := &unreading{conn: conn, framer: http2.NewFramer(conn, conn), stream: 1}
	u.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	u.encoder = hpack.NewEncoder(&u.headers)
	if err := u.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		t.Fatal(err)
	}
	return u
}

// call sends a call, and waits until the server has sent the headers of its answer.
func (u *unreading) call(t *testing.T, method string, message proto.Message) {
	t.Helper()
	body, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	u.headers.Reset()
	for _, field := range []hpack.HeaderField{
		{Name: ":method", Value: http.MethodPost}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "server"}, {Name: ":path", Value: PathPrefix + method},
		{Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"},
	} {
		if err := u.encoder.WriteField(field); err != nil {
			t.Fatal(err)
		}
	}
	stream := u.stream
	u.stream += 2
	if err := u.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: u.headers.Bytes(), EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
	if err := u.framer.WriteData(stream, true, append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)); err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := u.framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if f, ok := frame.(*http2.MetaHeadersFrame); ok && f.StreamID == stream {
			return
		}
		if f, ok := frame.(*http2.SettingsFrame); ok && !f.IsAck() {
			if err := u.framer.WriteSettingsAck(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestUnreadAnswersCount has a client that reads no answers. Its calls count for the limits until it is gone.
func TestUnreadAnswersCount(t *testing.T) {
	s := serviceOf(t, answeringConnection{size: 1 << 20})
	s.short = newCounter(limits{user: 2, namespace: 10, all: 10})
	server := serve(t, s)
	conn, err := grpc.NewClient(server.Listener.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(server.Client().Transport.(*http.Transport).TLSClientConfig)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	message := &workflowservice.ListWorkflowExecutionsRequest{Namespace: "hykube.a"}
	list := func() codes.Code {
		_, err := workflowservice.NewWorkflowServiceClient(conn).ListWorkflowExecutions(t.Context(), message)
		return status.Code(err)
	}
	u := newUnreading(t, server)
	u.call(t, "ListWorkflowExecutions", message)
	if got := list(); got != codes.OK {
		t.Fatalf("a call beside one whose answer is not read: %v, want %v", got, codes.OK)
	}
	within(t, "an answer that was read", func() bool { return s.short.running() == 1 })
	// These calls end before the interceptor, or inside of it, and their answers have no message.
	u.call(t, "NoSuchMethod", message)
	u.call(t, "RegisterNamespace", message)
	u.call(t, "ListWorkflowExecutions", &workflowservice.ListWorkflowExecutionsRequest{Namespace: "hykube.b"})
	within(t, "an error", func() bool { return s.short.running() == 1 })
	u.call(t, "ListWorkflowExecutions", message)
	if got := list(); got != codes.ResourceExhausted {
		t.Errorf("a call beside two whose answers are not read: %v, want %v", got, codes.ResourceExhausted)
	}
	_ = u.conn.Close()
	within(t, "the end of the client", func() bool { return s.short.running() == 0 })
	if got := list(); got != codes.OK {
		t.Errorf("a call after the end of the client: %v, want %v", got, codes.OK)
	}
	within(t, "the last answer", func() bool { return s.short.running() == 0 })
	if len(s.short.of) != 0 {
		t.Errorf("calls of %v count for ever", s.short.of)
	}
}

// running returns the number of calls that count.
func (c *counter) running() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

func within(t *testing.T, what string, reached func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !reached(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s does not give a place back", what)
		}
	}
}
