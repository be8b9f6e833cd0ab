package canary

import (
	"maps"
	"net"
	"strconv"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// collector receives the spans of a server, as an OpenTelemetry collector does. It keeps them as they arrive.
type collector struct {
	address string

	mu    sync.Mutex
	spans map[string][]byte
}

// newCollector starts a collector. The embedded Temporal sends spans to the address that environment returns; the API
// server has no spans of its own.
func newCollector(t *testing.T) *collector {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{address: listener.Addr().String(), spans: map[string][]byte{}}
	server := grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var message []byte
		if err := stream.RecvMsg(&message); err != nil {
			return err
		}
		c.mu.Lock()
		c.spans["export "+strconv.Itoa(len(c.spans))] = message
		c.mu.Unlock()
		return stream.SendMsg(new([]byte))
	}))
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return c
}

// environment switches tracing on. The debug mode adds the contents of requests to the spans.
func (c *collector) environment() []string {
	return []string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://" + c.address, "TEMPORAL_OTEL_DEBUG=true"}
}

func traces(_ *testing.T, w *world) map[string][]byte {
	w.traces.mu.Lock()
	defer w.traces.mu.Unlock()
	return maps.Clone(w.traces.spans)
}

// raw is a codec that leaves messages encoded.
type raw struct{}

var _ encoding.CodecV2 = raw{}

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

func (raw) Name() string { return "proto" }
