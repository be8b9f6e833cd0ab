package plugin

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/fair"
)

var _ grpc.ClientConnInterface = (*Process)(nil)

// exitWait is the time that a failed call waits for the end of the process, because the connection fails first.
const exitWait = 2 * time.Second

// Invoke calls the plugin.
func (p *Process) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	defer fair.Pause(ctx)()
	return p.Explain(ctx, p.conn.Invoke(ctx, method, args, reply, p.limited(opts)...))
}

// NewStream opens a stream to the plugin.
func (p *Process) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string,
	opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := p.conn.NewStream(ctx, desc, method, p.limited(opts)...)
	return s, p.Explain(ctx, err)
}

// limited puts the limit on responses before the options of a call, which may have another one.
func (p *Process) limited(opts []grpc.CallOption) []grpc.CallOption {
	return append([]grpc.CallOption{grpc.MaxCallRecvMsgSize(p.spec.MessageLimit)}, opts...)
}

// MessageLimit returns the maximum size of a response in bytes.
func (p *Process) MessageLimit() int { return p.spec.MessageLimit }

// Explain converts an error of a lost connection to a *diag.Failure whose cause is an *UnavailableError. It converts
// the error of a response above the limit to a *TooLargeError. It returns other errors unchanged. Readers of a stream
// call it for the stream's errors.
func (p *Process) Explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if status.Code(err) == codes.ResourceExhausted {
		return &TooLargeError{Provider: p.spec.Name, Cause: err}
	}
	if p.connectionLost(ctx, err) {
		reason := p.child.exitState()
		if reason == "" {
			reason = firstLine(status.Convert(err).Message())
		}
		return &diag.Failure{Kind: diag.Unreachable,
			Cause: &UnavailableError{Provider: p.spec.Name, Reason: reason, Stderr: p.child.lastLines()}}
	}
	return err
}

func (p *Process) connectionLost(ctx context.Context, err error) bool {
	code := status.Code(err)
	if code == codes.Canceled && ctx.Err() == nil { // the connection was closed during the call
		return true
	}
	if code != codes.Unavailable {
		return false
	}
	timer := time.NewTimer(exitWait)
	defer timer.Stop()
	select {
	case <-p.child.exited:
	case <-ctx.Done():
	case <-timer.C:
	}
	return true
}
