package temporalapi

import (
	"context"

	"google.golang.org/grpc/stats"
)

// answers releases the places that calls hold in the limits of concurrent requests. A call holds its place until gRPC
// has written its answer: a client that reads no answers would otherwise fill the memory of the server with them.
type answers struct{}

var _ stats.Handler = answers{}

type callKey struct{}

// call is one call of gRPC. Its goroutine runs the interceptor, writes the answer, and then reports the end.
type call struct {
	// release gives the place back; nil if the call holds none.
	release func()
}

// TagRPC implements stats.Handler.
func (answers) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, callKey{}, new(call))
}

// HandleRPC implements stats.Handler.
func (answers) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, ended := event.(*stats.End); !ended {
		return
	}
	if c, _ := ctx.Value(callKey{}).(*call); c != nil && c.release != nil {
		c.release()
		c.release = nil
	}
}

// TagConn implements stats.Handler.
func (answers) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (answers) HandleConn(context.Context, stats.ConnStats) {}

// holdUntilAnswered calls release when gRPC has written the answer to the call of ctx, or has given up.
func holdUntilAnswered(ctx context.Context, release func()) {
	ctx.Value(callKey{}).(*call).release = release // gRPC has called TagRPC before
}
