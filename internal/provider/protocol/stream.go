package protocol

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/hykube/hykube/internal/fair"
)

// stream is a response of many messages.
type stream[R any, P interface {
	*R
	proto.Message
}] struct {
	client *Client
	grpc   grpc.ClientStream
	method string
	began  time.Time
	ctx    context.Context
	cancel context.CancelFunc
}

// open makes a call with a streaming response. The call counts as running until close.
func open[R any, P interface {
	*R
	proto.Message
}](ctx context.Context, c *Client, method string, req proto.Message) (*stream[R, P], error) {
	s := &stream[R, P]{client: c, method: method, began: time.Now()}
	s.ctx, s.cancel = context.WithCancel(ctx)
	c.mu.Lock()
	c.calls++
	c.made++
	c.mu.Unlock()
	var err error
	s.grpc, err = c.conn.NewStream(s.ctx, &grpc.StreamDesc{StreamName: method, ServerStreams: true}, service+method)
	if err == nil {
		err = s.grpc.SendMsg(req)
		// io.EOF means that the stream has ended already; RecvMsg returns the reason.
		if err == nil || errors.Is(err, io.EOF) {
			err = s.grpc.CloseSend()
		}
	}
	if err != nil {
		s.close()
		return nil, callError(ctx, method, err)
	}
	return s, nil
}

// next waits for a message. It returns io.EOF after the last one.
func (s *stream[R, P]) next() (P, error) {
	defer fair.Pause(s.ctx)()
	m := P(new(R))
	if err := s.grpc.RecvMsg(m); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, callError(s.ctx, s.method, s.client.explain(s.ctx, err))
	}
	return m, nil
}

// close cancels the call if it still runs.
func (s *stream[R, P]) close() {
	s.cancel()
	s.client.mu.Lock()
	s.client.calls--
	s.client.mu.Unlock()
	s.client.called(s.method, s.began)
}

// explainer is a connection that knows the cause of a failed stream, such as the end of the process.
type explainer interface {
	Explain(ctx context.Context, err error) error
}

func (c *Client) explain(ctx context.Context, err error) error {
	if e, ok := c.conn.(explainer); ok {
		return e.Explain(ctx, err)
	}
	return err
}
