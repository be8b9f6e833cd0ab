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

	pb "github.com/hykube/hykube/internal/provider/tfplugin6"
)

const (
	// service is the name on the wire; that of our generated messages differs, see tfplugin6.proto.
	service = "/tfplugin6.Provider/"

	// maxSchemaBytes bounds the answer to GetProviderSchema, as Terraform does.
	maxSchemaBytes = 64 << 20

	// stopTimeout bounds the Stop call that follows the cancellation of an apply.
	stopTimeout = 10 * time.Second
)

var _ tfprotov6.ProviderServer = (*Client)(nil)

// Client is a provider behind a connection. A call that the plugin doesn't implement returns an error that wraps
// errors.ErrUnsupported; what the connection says of a lost plugin is kept in the chain of every other error.
type Client struct {
	conn grpc.ClientConnInterface

	mu sync.Mutex
	// calls counts the calls in flight, cancelled those of them that are applies whose caller has given up.
	calls, cancelled int
	// made counts all calls ever made.
	made int
}

// Made is the number of calls that were made so far.
func (c *Client) Made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made
}

// InFlight is the number of calls that have not ended yet.
func (c *Client) InFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// New returns the client of a plugin that speaks the given major version of the protocol, 5 or 6.
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

// call invokes one method and returns its answer.
func call[R any, P interface {
	*R
	proto.Message
}](ctx context.Context, c *Client, method string, req proto.Message, opts ...grpc.CallOption) (P, error) {
	c.mu.Lock()
	c.calls++
	c.made++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.calls--
		c.mu.Unlock()
	}()
	resp := P(new(R))
	if err := c.conn.Invoke(ctx, service+method, req, resp, opts...); err != nil {
		return nil, callError(ctx, method, err)
	}
	return resp, nil
}

func callError(ctx context.Context, method string, err error) error {
	switch status.Code(err) {
	case codes.Unimplemented:
		return fmt.Errorf("call provider %s: the provider does not implement it: %w", method, errors.ErrUnsupported)
	case codes.Canceled, codes.DeadlineExceeded:
		if cause := context.Cause(ctx); cause != nil {
			return fmt.Errorf("call provider %s: %w", method, cause)
		}
	case codes.ResourceExhausted:
		return fmt.Errorf("call provider %s: the answer is larger than the protocol allows: %w", method, err)
	}
	return fmt.Errorf("call provider %s: %w", method, err)
}

// apply runs a call that must not be interrupted, since a provider that is cut off leaves things behind that nobody
// knows of: the call's context never ends. When the caller gives up, the provider is asked to stop, and its answer is still
// awaited. Stop concerns everything that runs in the process, so it is sent only once nothing else does; until then the
// apply simply goes on to its end.
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

// uninterrupted runs f under a context that never ends, see apply.
func uninterrupted(ctx context.Context, c *Client, f func(context.Context) error) error {
	done := make(chan struct{})
	var watch sync.WaitGroup
	if ctx.Done() != nil {
		watch.Go(func() {
			select {
			case <-done:
			case <-ctx.Done():
				c.giveUp(done)
			}
		})
	}
	defer watch.Wait()
	defer close(done)
	return f(context.WithoutCancel(ctx))
}

// giveUp asks the provider to stop as soon as all that it is doing is work that nobody wants any more.
func (c *Client) giveUp(done <-chan struct{}) {
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
		alone := c.calls == c.cancelled
		c.mu.Unlock()
		if alone {
			ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
			defer cancel()
			// A failure to stop changes nothing: the apply's own answer tells what happened.
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

// StopProvider asks the provider to end what it is doing, soon and in good order.
func (c *Client) StopProvider(ctx context.Context, _ *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	// Not counted among the calls in flight: it is the one that waits for the others.
	resp := new(pb.StopProvider_Response)
	if err := c.conn.Invoke(ctx, service+"StopProvider", &pb.StopProvider_Request{}, resp); err != nil {
		return nil, callError(ctx, "StopProvider", err)
	}
	return &tfprotov6.StopProviderResponse{Error: resp.Error}, nil
}
