package protocol

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/hykube/hykube/sdk/batch/tfplugin6"
)

const (
	// service is the service name in the protocol. The generated messages have another package name; see
	// tfplugin6.proto.
	service = "/tfplugin6.Provider/"

	// maxSchemaBytes is the maximum size of a GetProviderSchema response, as in Terraform.
	maxSchemaBytes = 64 << 20

	// stopTimeout is the maximum time of the Stop call after the cancellation of an apply.
	stopTimeout = 10 * time.Second
)

var _ tfprotov6.ProviderServer = (*Client)(nil)

// Client is a client of a provider. A call that the plugin does not implement returns an error that wraps
// errors.ErrUnsupported. Every other error wraps the connection's error about a lost plugin.
type Client struct {
	conn grpc.ClientConnInterface
	// Hint returns a remedy for the text of a provider's error, which ends with it; "" or nil adds nothing.
	Hint func(text string) string
	// Called is called after each call, with the method of the protocol and its duration; nil calls nothing.
	Called func(method string, took time.Duration)

	mu sync.Mutex
	// calls is the number of running calls. cancelled is the number of running applies whose caller's context has
	// ended.
	calls, cancelled int
	// made is the number of all calls.
	made int
}

// Made returns the number of calls so far. It counts a batch of calls as one; see batch.Conn.
func (c *Client) Made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b, ok := c.conn.(interface{ Saved() int }); ok {
		return c.made - b.Saved()
	}
	return c.made
}

// InFlight returns the number of running calls.
func (c *Client) InFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// New returns a client of a plugin with the major protocol version 5 or 6. It returns an error for other versions.
func New(conn grpc.ClientConnInterface, version int) (*Client, error) {
	switch version {
	case 5:
		return &Client{conn: version5{conn}}, nil
	case 6:
		return &Client{conn: conn}, nil
	default:
		return nil, fmt.Errorf("speak provider protocol %d: only 5 and 6 are known; use another version of the provider", version)
	}
}

// call calls one method and returns its response.
func call[R any, P interface {
	*R
	proto.Message
}](ctx context.Context, c *Client, method string, req proto.Message, opts ...grpc.CallOption) (P, error) {
	resp := P(new(R))
	err := answer(ctx, method, req, resp, func() error { return c.invoke(ctx, method, req, resp, opts) })
	if err != nil {
		return nil, callError(ctx, method, err)
	}
	return resp, nil
}

// invoke calls one method of the plugin, and counts the call.
func (c *Client) invoke(ctx context.Context, method string, req, resp proto.Message, opts []grpc.CallOption) error {
	c.mu.Lock()
	c.calls++
	c.made++
	c.mu.Unlock()
	began := time.Now()
	defer func() {
		c.mu.Lock()
		c.calls--
		c.mu.Unlock()
		c.called(method, began)
	}()
	return c.conn.Invoke(ctx, service+method, req, resp, opts...)
}

func (c *Client) called(method string, began time.Time) {
	if c.Called != nil {
		c.Called(method, time.Since(began))
	}
}

func callError(ctx context.Context, method string, err error) error {
	switch status.Code(err) {
	case codes.Unimplemented:
		return fmt.Errorf("call provider %s: the provider does not implement this call: %w", method,
			errors.ErrUnsupported)
	case codes.Canceled, codes.DeadlineExceeded:
		if cause := context.Cause(ctx); cause != nil {
			return fmt.Errorf("call provider %s: %w", method, cause)
		}
	}
	return fmt.Errorf("call provider %s: %w", method, err)
}

// apply makes a call that must not be interrupted, because the provider could leave unrecorded infrastructure behind.
// The call's context never ends. When the caller's context ends, apply tells the provider to stop and still waits for
// its response. A stop affects all calls of the process. So it is sent only when all running calls are cancelled; until
// then, the call continues normally.
func apply[R any, P interface {
	*R
	proto.Message
}](ctx context.Context, c *Client, method string, req proto.Message) (P, error) {
	var resp P
	err := uninterrupted(ctx, c, func(ctx context.Context) error {
		var err error
		resp, err = call[R, P](ctx, c, method, req)
		return err
	})
	return resp, err
}

// uninterrupted runs f with a context that never ends; see apply.
func uninterrupted(ctx context.Context, c *Client, f func(context.Context) error) error {
	done := make(chan struct{})
	var watch sync.WaitGroup
	if ctx.Done() != nil {
		watch.Go(func() {
			select {
			case <-done:
			case <-ctx.Done():
				c.stopWhenCancelled(done)
			}
		})
	}
	defer watch.Wait()
	defer close(done)
	return f(context.WithoutCancel(ctx))
}

// stopWhenCancelled tells the provider to stop as soon as all its running calls are cancelled applies.
func (c *Client) stopWhenCancelled(done <-chan struct{}) {
	c.mu.Lock()
	c.cancelled++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.cancelled--
		c.mu.Unlock()
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		c.mu.Lock()
		allCancelled := c.calls == c.cancelled
		c.mu.Unlock()
		if allCancelled {
			ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
			defer cancel()
			// Ignore the error of the stop: the response of the apply has the result.
			_, _ = c.StopProvider(ctx, &tfprotov6.StopProviderRequest{})
			return
		}
		select {
		case <-done:
			return
		case <-tick.C:
		}
	}
}

// StopProvider tells the provider to stop its calls gracefully.
func (c *Client) StopProvider(ctx context.Context,
	_ *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	// Do not count this call as running, because stopWhenCancelled waits for the others.
	resp := new(pb.StopProvider_Response)
	if err := c.conn.Invoke(ctx, service+"StopProvider", &pb.StopProvider_Request{}, resp); err != nil {
		return nil, callError(ctx, "StopProvider", err)
	}
	return &tfprotov6.StopProviderResponse{Error: resp.Error}, nil
}
