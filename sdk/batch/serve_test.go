package batch

import (
	"context"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/hykube/hykube/sdk/batch/tfplugin6"
)

// echo is a provider whose applies return the name of the thing as its ID. Its other calls are nil.
type echo struct{ tfprotov6.ProviderServer }

func (echo) ApplyResourceChange(_ context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	return &tfprotov6.ApplyResourceChangeResponse{Private: append([]byte("id-"), req.PlannedPrivate...)}, nil
}

// serve serves a provider and returns a connection to it.
func serve(t *testing.T, p tfprotov6.ProviderServer, limits ...Limit) *grpc.ClientConn {
	t.Helper()
	return servePlugin(t, newPlugin("registry.terraform.io/hykube/things", func() tfprotov6.ProviderServer { return p }, limits...))
}

func servePlugin(t *testing.T, plugin *plugin) *grpc.ClientConn {
	t.Helper()
	server, err := plugin.register(plugin.server(nil))
	if err != nil {
		t.Fatal(err)
	}
	listener := bufconn.Listen(1 << 20)
	go server.Serve(listener) //nolint:errcheck // Stop ends it
	t.Cleanup(server.Stop)
	client, err := grpc.NewClient("passthrough:", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// stop calls StopProvider.
func stop(t *testing.T, c grpc.ClientConnInterface) {
	t.Helper()
	if err := c.Invoke(t.Context(), "/tfplugin6.Provider/StopProvider", &tfplugin6.StopProvider_Request{}, new(tfplugin6.StopProvider_Response)); err != nil {
		t.Error(err)
	}
}

// watcher is a provider whose applies with the private data "watch" end with their contexts. Its other calls are nil.
type watcher struct {
	tfprotov6.ProviderServer
	quick, watch chan context.Context
}

func (p *watcher) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	if string(req.PlannedPrivate) == "watch" {
		p.watch <- ctx
		<-ctx.Done()
	} else {
		p.quick <- ctx
	}
	return &tfprotov6.ApplyResourceChangeResponse{}, nil
}

func (p *watcher) StopProvider(context.Context, *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return &tfprotov6.StopProviderResponse{}, nil
}

// TestTheContextOfACallEnds makes a batch of two calls. The context of the quick one ends with its call, and that of the
// other one with StopProvider.
func TestTheContextOfACallEnds(t *testing.T) {
	p := &watcher{quick: make(chan context.Context, 1), watch: make(chan context.Context, 1)}
	c := serve(t, p, Limit{Method: Apply, Type: "thing", MaxCalls: 10})
	ended := make(chan error)
	go func() {
		_, err := makeBatch(t, c, Apply, encode(t, "quick"), encode(t, "watch"))
		ended <- err
	}()
	watch := <-p.watch
	select {
	case <-(<-p.quick).Done():
	case <-time.After(10 * time.Second):
		t.Error("the context of a call did not end with the call")
	}
	if watch.Err() != nil {
		t.Errorf("the context of a running call has ended: %v", watch.Err())
	}
	stop(t, c)
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("StopProvider did not end the context of a call")
	}
}

// keeper is a provider that keeps the contexts of its calls as that of terraform-plugin-framework does: by the functions that
// end them.
type keeper struct {
	tfprotov6.ProviderServer
	mu   sync.Mutex
	kept []context.CancelFunc
}

func (k *keeper) ValidateResourceConfig(ctx context.Context, _ *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, cancel := context.WithCancel(ctx)
	k.kept = append(k.kept, cancel)
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

// TestABatchLeavesLittleMemory makes many calls in batches to a provider that keeps their contexts.
func TestABatchLeavesLittleMemory(t *testing.T) {
	const batches, calls = 20, 500
	k := &keeper{}
	conn := serve(t, k, Limit{Method: Validate, Type: "thing", MaxCalls: calls})
	request, err := proto.Marshal(&tfplugin6.ValidateResourceConfig_Request{TypeName: "thing", Config: &tfplugin6.DynamicValue{Msgpack: []byte{0xc0}}})
	if err != nil {
		t.Fatal(err)
	}
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	if _, err := makeBatch(t, conn, Validate, string(request)); err != nil { // makes the connection
		t.Fatal(err)
	}
	before := used()
	for range batches {
		if _, err := makeBatch(t, conn, Validate, slices.Repeat([]string{string(request)}, calls)...); err != nil {
			t.Fatal(err)
		}
	}
	if len(k.kept) != batches*calls+1 {
		t.Fatalf("%d calls", len(k.kept))
	}
	if each := (int64(used()) - int64(before)) / (batches * calls); each > 250 {
		t.Errorf("each call keeps %d bytes", each)
	}
	runtime.KeepAlive(k)
}
