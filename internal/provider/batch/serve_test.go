package batch_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/hykube/hykube/internal/provider/batch"
	sdk "github.com/hykube/hykube/sdk/batch"
	"github.com/hykube/hykube/sdk/batch/tfplugin6"
)

// This file tests both ends of the service: a provider that package sdk/batch serves, and its client.

// stopped is the cause of the end of a call after StopProvider.
const stopped = "the provider was asked to stop"

// things is a provider whose applies create things by name through a Group. Its other calls are nil.
type things struct {
	tfprotov6.ProviderServer
	create sdk.Group[string, string]

	mu sync.Mutex
	// sizes are the numbers of things of each call.
	sizes []int
	// began receives a value when a call for a thing named slow begins. It ends with its context.
	began chan struct{}
	// ended receives the cause of the end.
	ended chan error
	stops int
	// running are the running applies. StopProvider ends their contexts, as that of terraform-plugin-framework does, and
	// waits for their end.
	running map[*running]bool
}

type running struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

func newThings() *things {
	p := &things{began: make(chan struct{}, 10), ended: make(chan error, 10), running: map[*running]bool{}}
	p.create.Call = func(ctx context.Context, names []string) []sdk.Result[string] {
		p.mu.Lock()
		p.sizes = append(p.sizes, len(names))
		p.mu.Unlock()
		time.Sleep(10 * time.Millisecond) // without a latency, each call would end before the next one begins
		out := make([]sdk.Result[string], len(names))
		for i, name := range names {
			switch {
			case strings.HasPrefix(name, "slow"):
				p.began <- struct{}{}
				<-ctx.Done()
				out[i] = sdk.Result[string]{Err: context.Cause(ctx)}
				p.ended <- context.Cause(ctx)
			case strings.HasPrefix(name, "full"):
				out[i] = sdk.Result[string]{Err: errors.New("the quota is exhausted")}
			default:
				out[i] = sdk.Result[string]{Value: "id-" + name}
			}
		}
		return out
	}
	return p
}

func (p *things) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &running{cancel, make(chan struct{})}
	defer close(a.ended)
	p.mu.Lock()
	p.running[a] = true
	p.mu.Unlock()
	id, err := p.create.Do(ctx, string(req.PlannedPrivate))
	if err != nil {
		return &tfprotov6.ApplyResourceChangeResponse{Diagnostics: []*tfprotov6.Diagnostic{{Severity: tfprotov6.DiagnosticSeverityError, Summary: err.Error()}}}, nil
	}
	return &tfprotov6.ApplyResourceChangeResponse{Private: []byte(id)}, nil
}

// ReadResource fails as a call, and not with diagnostics.
func (p *things) ReadResource(context.Context, *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return nil, status.Error(codes.DataLoss, "the disk is gone")
}

func (p *things) StopProvider(context.Context, *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	p.mu.Lock()
	p.stops++
	var ended []<-chan struct{}
	for a := range p.running {
		a.cancel()
		ended = append(ended, a.ended)
	}
	p.mu.Unlock()
	for _, end := range ended {
		<-end
	}
	return &tfprotov6.StopProviderResponse{}, nil
}

// conn is a connection to a plugin in this process.
type conn struct{ *grpc.ClientConn }

func (conn) Explain(_ context.Context, err error) error { return err }

func (conn) MessageLimit() int { return 16 << 20 }

// serve serves a provider and returns a client that makes batches as Hykube does.
func serve(t *testing.T, p tfprotov6.ProviderServer, limits ...sdk.Limit) batch.ClientConn {
	t.Helper()
	server, err := sdk.NewServer("registry.terraform.io/hykube/things", func() tfprotov6.ProviderServer { return p }, limits...)
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
	announced, err := batch.ReadLimits(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	return batch.NewConn(conn{client}, announced)
}

// apply creates a thing, and returns its ID or the provider's error.
func apply(ctx context.Context, c batch.ClientConn, name string) (string, error) {
	resp := new(tfplugin6.ApplyResourceChange_Response)
	if err := c.Invoke(ctx, "/tfplugin6.Provider/ApplyResourceChange", &tfplugin6.ApplyResourceChange_Request{TypeName: "thing", PlannedPrivate: []byte(name)}, resp); err != nil {
		return "", err
	}
	for _, d := range resp.Diagnostics {
		return "", errors.New(d.Summary)
	}
	return string(resp.Private), nil
}

// stop calls StopProvider.
func stop(t *testing.T, c batch.ClientConn) {
	t.Helper()
	if err := c.Invoke(t.Context(), "/tfplugin6.Provider/StopProvider", &tfplugin6.StopProvider_Request{}, new(tfplugin6.StopProvider_Response)); err != nil {
		t.Error(err)
	}
}

// TestManyCallsAreFewCallsOfTheAPI creates things at once, of which some fail. Each gets its own answer.
func TestManyCallsAreFewCallsOfTheAPI(t *testing.T) {
	const n, most = 500, 100
	p := newThings()
	c := serve(t, p, sdk.Limit{Method: sdk.Apply, Type: "thing", MaxCalls: most})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			name, fails := fmt.Sprint(i), i%7 == 0
			if fails {
				name = "full-" + name
			}
			id, err := apply(t.Context(), c, name)
			if fails && (err == nil || err.Error() != "the quota is exhausted") {
				t.Errorf("%s: error %v", name, err)
			}
			if !fails && (err != nil || id != "id-"+name) {
				t.Errorf("%s: %q, %v", name, id, err)
			}
		})
	}
	all.Wait()
	total := 0
	for _, size := range p.sizes {
		if total += size; size > most {
			t.Errorf("a call of %d things; the provider takes %d", size, most)
		}
	}
	if total != n || len(p.sizes) > n/5 {
		t.Errorf("%d calls for %d things, want %d things in few calls: %v", len(p.sizes), total, n, p.sizes)
	}
}

// TestATypeWithoutALimitIsCalledOneByOne announces a limit for another type.
func TestATypeWithoutALimitIsCalledOneByOne(t *testing.T) {
	p := newThings()
	c := serve(t, p, sdk.Limit{Method: sdk.Apply, Type: "other", MaxCalls: 100}, sdk.Limit{Method: sdk.Read, Type: "thing", MaxCalls: 100})
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if id, err := apply(t.Context(), c, fmt.Sprint(i)); err != nil || id != fmt.Sprintf("id-%d", i) {
				t.Errorf("%d: %q, %v", i, id, err)
			}
		})
	}
	all.Wait()
	if len(p.sizes) != 50 {
		t.Errorf("%d calls, want 50", len(p.sizes))
	}
}

// TestAnErrorOfACallIsThatOfASingleCall reads in a batch.
func TestAnErrorOfACallIsThatOfASingleCall(t *testing.T) {
	c := serve(t, newThings(), sdk.Limit{Method: sdk.Read, Type: "thing", MaxCalls: 100})
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			err := c.Invoke(t.Context(), "/tfplugin6.Provider/ReadResource", &tfplugin6.ReadResource_Request{TypeName: "thing"}, new(tfplugin6.ReadResource_Response))
			if s := status.Convert(err); s.Code() != codes.DataLoss || s.Message() != "the disk is gone" {
				t.Errorf("error %v", err)
			}
		})
	}
	all.Wait()
}

// TestStopProviderStopsABatch stops the provider during a batch. Each call returns the provider's answer. The provider
// takes later calls.
func TestStopProviderStopsABatch(t *testing.T) {
	p := newThings()
	c := serve(t, p, sdk.Limit{Method: sdk.Apply, Type: "thing", MaxCalls: 100})
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			if _, err := apply(t.Context(), c, fmt.Sprintf("slow-%d", i)); err == nil || err.Error() != stopped {
				t.Errorf("error %v, want %v", err, stopped)
			}
		})
	}
	<-p.began
	stop(t, c)
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	for stops := 1; ; stops++ {
		select {
		case <-ended:
			if p.stops != stops {
				t.Errorf("the provider was stopped %d times, want %d", p.stops, stops)
			}
			if id, err := apply(t.Context(), c, "later"); err != nil || id != "id-later" {
				t.Errorf("later: %q, %v", id, err)
			}
			return
		case <-p.began: // a batch that began after the stop
			stop(t, c)
		}
	}
}

// TestACallerThatLeavesStopsNoApply ends the context of all callers of an apply.
func TestACallerThatLeavesStopsNoApply(t *testing.T) {
	p := newThings()
	c := serve(t, p, sdk.Limit{Method: sdk.Apply, Type: "thing", MaxCalls: 100})
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := apply(ctx, c, "slow")
		ended <- err
	}()
	<-p.began
	leave()
	if err := <-ended; status.Code(err) != codes.Canceled {
		t.Errorf("error %v, want that of the context", err)
	}
	select {
	case cause := <-p.ended:
		t.Fatalf("the call of the API ended with %v", cause)
	case <-time.After(200 * time.Millisecond):
	}
	stop(t, c)
	if cause := <-p.ended; cause.Error() != stopped {
		t.Errorf("the call of the API ended with %v, want %v", cause, stopped)
	}
}
