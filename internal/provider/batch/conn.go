package batch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/sdk/batch/batchv1"
)

const (
	// maxCalls is the maximum number of calls in a batch, even if the provider announces more.
	maxCalls = 1000
	// maxBytes is the maximum size of the requests in a batch. gRPC servers refuse more than 4 MiB by default.
	maxBytes = 3 << 20
	// A call waits in the queue while a batch of its kind is running, at most for half of the duration of the last one.
	// So a slower API gets larger batches. These bounds keep a slow batch from delaying later calls much.
	minDelay, maxDelay = 20 * time.Millisecond, 250 * time.Millisecond
	// keptCalls is the number of calls of a batch of which a plugin keeps as much memory as of a single call: 11 KiB,
	// if package batch of the SDK serves a provider of terraform-plugin-framework.
	keptCalls = 32
)

// ClientConn is the connection to a plugin.
type ClientConn interface {
	grpc.ClientConnInterface
	// Explain returns the cause of a failed call of a stream; see plugin.Process.
	Explain(ctx context.Context, err error) error
	// MessageLimit is the maximum size of a response, in bytes.
	MessageLimit() int
}

// ReadLimits asks a provider for its limits. They are empty if the provider does not serve batches.
func ReadLimits(ctx context.Context, conn grpc.ClientConnInterface) (Limits, error) {
	resp := new(batchv1.GetLimits_Response)
	err := conn.Invoke(ctx, "/"+batchv1.Service+"/"+batchv1.GetLimitsMethod, &batchv1.GetLimits_Request{}, resp)
	if status.Code(err) == codes.Unimplemented {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the limits of batches: %w", err)
	}
	limits := Limits{}
	for _, l := range resp.Limits {
		if l.MaxCalls > 1 {
			limits[Kind{l.Method, l.TypeName}] = Limit{min(int(l.MaxCalls), maxCalls), l.Deterministic}
		}
	}
	return limits, nil
}

// Conn is a connection that makes batches of calls. It is safe for concurrent use.
type Conn struct {
	ClientConn
	limits Limits

	mu     sync.Mutex
	queues map[Kind]*queue
	saved  int
}

// Saved returns by how many its calls are more than those that count for the replacement of the plugin. Of a batch,
// keptCalls calls count as one.
func (c *Conn) Saved() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.saved
}

// NewConn returns a connection that makes batches of the calls with limits. Without limits it is the connection itself.
func NewConn(conn ClientConn, limits Limits) ClientConn {
	if len(limits) == 0 {
		return conn
	}
	return &Conn{ClientConn: conn, limits: limits, queues: map[Kind]*queue{}}
}

// queue holds the calls of one kind. The mutex of Conn guards it.
type queue struct {
	waiting []*call
	// running is the number of batches with unanswered calls.
	running int
	// delay is the maximum time for which a call waits in the queue.
	delay time.Duration
	timer *time.Timer
}

// call is one call in a queue or in a batch.
type call struct {
	request  []byte
	since    time.Time
	leave    func() // removes the call's caller from the batch; nil while the call is in the queue
	secrets  Secrets
	hidden   *hidden // hides the secrets of all calls of the batch; nil if they have none
	answered chan struct{}
	// response and err are set before answered is closed.
	response []byte
	err      error
}

func (c *call) answer(response []byte, err error) {
	c.response, c.err = response, err
	close(c.answered)
}

// Invoke makes a call, in a batch if there are several. A caller whose context ends gets its error; the call then
// leaves the queue, or its answer is ignored.
func (c *Conn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	typed, ok := args.(interface{ GetTypeName() string })
	if !ok {
		return c.ClientConn.Invoke(ctx, method, args, reply, opts...)
	}
	kind := Kind{batchv1.Methods[method], typed.GetTypeName()}
	if c.limits[kind].MaxCalls == 0 {
		return c.ClientConn.Invoke(ctx, method, args, reply, opts...)
	}
	request, err := proto.Marshal(args.(proto.Message))
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if len(request) > maxBytes {
		return c.ClientConn.Invoke(ctx, method, args, reply, opts...)
	}
	one := &call{request: request, secrets: secretsOf(ctx), answered: make(chan struct{})}
	c.enqueue(kind, one)
	if err := c.await(ctx, kind, one); err != nil {
		return c.Explain(ctx, one.hidden.inError(err))
	}
	if err := proto.Unmarshal(one.response, reply.(proto.Message)); err != nil {
		return status.Error(codes.Internal, fmt.Sprintf("the provider's answer cannot be decoded: %v", err))
	}
	one.hidden.inDiagnostics(reply.(proto.Message))
	return nil
}

func (c *Conn) enqueue(kind Kind, one *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queues[kind]
	if q == nil {
		q = &queue{delay: minDelay}
		c.queues[kind] = q
	}
	one.since = time.Now() // not earlier: a wait for the mutex is no reason for a small batch
	q.waiting = append(q.waiting, one)
	c.dispatch(kind, q)
}

// await waits for the answer of a call. The call's caller then leaves its batch, or the queue.
func (c *Conn) await(ctx context.Context, kind Kind, one *call) (err error) {
	defer fair.Pause(ctx)()
	select {
	case <-one.answered:
		err = one.err
	case <-ctx.Done():
		err = status.FromContextError(ctx.Err()).Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.leave != nil {
		one.leave()
	} else if q := c.queues[kind]; q != nil {
		q.waiting = slices.DeleteFunc(q.waiting, func(other *call) bool { return other == one })
	}
	return err
}

// dispatch starts batches of the waiting calls: at once if no batch of their kind is running, if they fill one, or if
// the oldest has waited for long enough. The caller holds the mutex.
func (c *Conn) dispatch(kind Kind, q *queue) {
	for len(q.waiting) > 0 {
		wait := q.delay - time.Since(q.waiting[0].since)
		if q.running > 0 && len(q.waiting) < c.limits[kind].MaxCalls && wait > 0 {
			c.later(kind, q, wait)
			return
		}
		n, size := 0, 0
		for n < len(q.waiting) && (n == 0 || size+len(q.waiting[n].request) <= maxBytes) {
			size += len(q.waiting[n].request)
			n++
		}
		batch := slices.Clone(q.waiting[:n])
		q.waiting = slices.Delete(q.waiting, 0, n)
		q.running++
		c.start(kind, q, batch)
	}
}

// later dispatches again after a time.
func (c *Conn) later(kind Kind, q *queue, wait time.Duration) {
	if q.timer != nil {
		return
	}
	q.timer = time.AfterFunc(wait, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		q.timer = nil
		c.dispatch(kind, q)
	})
}

// start makes a batch. Its context ends when no caller waits for an answer any more.
func (c *Conn) start(kind Kind, q *queue, batch []*call) {
	ctx, cancel := context.WithCancel(context.Background())
	c.saved += len(batch) - (len(batch)+keptCalls-1)/keptCalls
	wanted := len(batch)
	hidden := secretsOfAll(batch)
	for _, one := range batch {
		one.hidden = hidden
		one.leave = func() {
			if wanted--; wanted == 0 {
				cancel()
			}
		}
	}
	go func() {
		defer cancel()
		began := time.Now()
		c.run(ctx, kind, batch)
		c.mu.Lock()
		defer c.mu.Unlock()
		q.running--
		q.delay = min(max(time.Since(began)/2, minDelay), maxDelay)
		c.dispatch(kind, q)
	}()
}

// run makes the call of a batch and answers each of its calls once.
func (c *Conn) run(ctx context.Context, kind Kind, batch []*call) {
	open := make(map[int32]*call, len(batch))
	for i, one := range batch {
		open[int32(i)] = one
	}
	err := bug.Catch(func() error { return c.stream(ctx, kind, batch, open) })
	if err == nil && len(open) > 0 {
		err = status.Errorf(codes.Internal, "the provider left %d of %d calls of a batch without an answer", len(open),
			len(batch))
	}
	for _, one := range open {
		one.answer(nil, err)
	}
}

// stream sends a batch and receives answers until none is open. It removes the answered calls from open.
func (c *Conn) stream(ctx context.Context, kind Kind, batch []*call, open map[int32]*call) error {
	stream, err := c.NewStream(ctx, &grpc.StreamDesc{StreamName: batchv1.CallMethod, ServerStreams: true},
		"/"+batchv1.Service+"/"+batchv1.CallMethod)
	if err != nil {
		return err
	}
	request := &batchv1.Call_Request{Method: kind.Method, TypeName: kind.Type,
		MaxResponseBytes: int64(c.MessageLimit())}
	for _, one := range batch {
		request.Requests = append(request.Requests, one.request)
	}
	// io.EOF means that the stream has ended already; RecvMsg returns the reason.
	if err := stream.SendMsg(request); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for len(open) > 0 {
		answer := new(batchv1.Call_Response)
		if err := stream.RecvMsg(answer); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		one := open[answer.Index]
		if one == nil {
			return status.Errorf(codes.Internal,
				"the provider answered call %d of a batch of %d, which it had answered or did not get", answer.Index,
				len(batch))
		}
		delete(open, answer.Index)
		switch a := answer.Answer.(type) {
		case *batchv1.Call_Response_Response:
			one.answer(a.Response, nil)
		case *batchv1.Call_Response_Error:
			one.answer(nil, callError(a.Error))
		default:
			one.answer(nil, status.Error(codes.Internal,
				"the provider answered a call of a batch with neither a response nor an error"))
		}
	}
	return nil
}

// callError returns the error of a call. A call with an error never succeeds.
func callError(e *batchv1.Call_Error) error {
	if codes.Code(e.GetCode()) == codes.OK {
		return status.Errorf(codes.Internal, "the provider answered a call of a batch with an error without a code: %q",
			e.GetMessage())
	}
	return status.Error(codes.Code(e.Code), e.Message)
}
