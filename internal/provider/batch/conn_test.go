package batch

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/sdk/batch/batchv1"
	"github.com/hykube/hykube/sdk/batch/tfplugin6"
)

const applyMethod = "/tfplugin6.Provider/ApplyResourceChange"

// plugin is the other end of a connection. It answers single calls, and batches with answer.
type plugin struct {
	limits []*batchv1.GetLimits_Limit
	answer func(stream grpc.ServerStream, requests []string) error

	mu sync.Mutex
	// batches are the requests by batch, and single is the number of single calls.
	batches [][]string
	single  int
	// accepts is the maximum size of an answer that the last batch named.
	accepts int64
}

// explained is a connection that marks the errors of streams.
type explained struct{ *grpc.ClientConn }

func (explained) Explain(_ context.Context, err error) error {
	return status.Errorf(status.Code(err), "explained: %s", status.Convert(err).Message())
}

func (explained) MessageLimit() int { return 16 << 20 }

// dial serves a plugin in this process and returns a connection that makes batches.
func (p *plugin) dial(t *testing.T) ClientConn {
	t.Helper()
	server, listener := grpc.NewServer(), bufconn.Listen(1<<20)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "tfplugin6.Provider", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "ApplyResourceChange", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.single++
			req := new(tfplugin6.ApplyResourceChange_Request)
			return &tfplugin6.ApplyResourceChange_Response{Private: []byte("alone")}, decode(req)
		}}},
	}, p)
	if p.answer != nil {
		server.RegisterService(&grpc.ServiceDesc{
			ServiceName: batchv1.Service, HandlerType: (*any)(nil),
			Methods: []grpc.MethodDesc{{MethodName: batchv1.GetLimitsMethod, Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				return &batchv1.GetLimits_Response{Limits: p.limits}, decode(new(batchv1.GetLimits_Request))
			}}},
			Streams: []grpc.StreamDesc{{StreamName: batchv1.CallMethod, ServerStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
				req := new(batchv1.Call_Request)
				if err := stream.RecvMsg(req); err != nil {
					return err
				}
				var names []string
				for _, text := range req.Requests {
					one := new(tfplugin6.ApplyResourceChange_Request)
					if err := proto.Unmarshal(text, one); err != nil {
						return err
					}
					name, _, _ := strings.Cut(string(one.PlannedPrivate), " ")
					names = append(names, name)
				}
				p.mu.Lock()
				p.batches, p.accepts = append(p.batches, names), req.MaxResponseBytes
				p.mu.Unlock()
				return p.answer(stream, names)
			}}},
		}, p)
	}
	go server.Serve(listener) //nolint:errcheck // Stop ends it
	t.Cleanup(server.Stop)
	client, err := grpc.NewClient("passthrough:", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	limits, err := ReadLimits(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	return NewConn(explained{client}, limits)
}

// thing is the limit of the type that call uses.
func thing(n int32) []*batchv1.GetLimits_Limit {
	return []*batchv1.GetLimits_Limit{{Method: batchv1.Method_APPLY_RESOURCE_CHANGE, TypeName: "thing", MaxCalls: n}}
}

// invoke makes a call. The text before the first space is its name.
func invoke(ctx context.Context, c ClientConn, text string) (string, error) {
	resp := new(tfplugin6.ApplyResourceChange_Response)
	err := c.Invoke(ctx, applyMethod, &tfplugin6.ApplyResourceChange_Request{TypeName: "thing", PlannedPrivate: []byte(text)}, resp)
	return string(resp.Private), err
}

// answered returns the answer of a call.
func answered(i int, name string) *batchv1.Call_Response {
	b, err := proto.Marshal(&tfplugin6.ApplyResourceChange_Response{Private: []byte("made " + name)})
	if err != nil {
		panic(err)
	}
	return &batchv1.Call_Response{Index: int32(i), Answer: &batchv1.Call_Response_Response{Response: b}}
}

// answerAll answers all calls, the last one first.
func answerAll(stream grpc.ServerStream, names []string) error {
	time.Sleep(5 * time.Millisecond)
	for i := len(names) - 1; i >= 0; i-- {
		if err := stream.SendMsg(answered(i, names[i])); err != nil {
			return err
		}
	}
	return nil
}

func TestABatchStaysWithinItsLimits(t *testing.T) {
	t.Parallel()
	p := &plugin{limits: thing(10), answer: answerAll}
	c := p.dial(t)
	large := strings.Repeat("x", 1<<20)
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			name, text := fmt.Sprint(i), ""
			if i%2 == 0 {
				name, text = "large-"+name, large
			}
			if got, err := invoke(t.Context(), c, name+" "+text); err != nil || got != "made "+name {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		})
	}
	all.Wait()
	total := 0
	for _, b := range p.batches {
		size := 0
		for _, name := range b {
			if strings.HasPrefix(name, "large-") {
				size++
			}
		}
		if total += len(b); len(b) > 10 || size > 2 { // three of them have more than maxBytes
			t.Errorf("a batch of %d calls, %d of them large: %v", len(b), size, b)
		}
	}
	if total != 60 || len(p.batches) > 50 {
		t.Errorf("%d calls in %d batches, want 60 in few", total, len(p.batches))
	}
	if p.accepts != int64(c.MessageLimit()) {
		t.Errorf("the batch accepts answers of %d bytes, want %d", p.accepts, c.MessageLimit())
	}
	if saved := c.(*Conn).Saved(); saved != total-len(p.batches) {
		t.Errorf("%d of %d calls in %d batches are counted as saved", saved, total, len(p.batches))
	}
}

func TestABatchHasNoMoreCallsThanTheProviderTakes(t *testing.T) {
	t.Parallel()
	p := &plugin{limits: thing(3), answer: answerAll}
	c := p.dial(t).(*Conn)
	c.queues[Kind{batchv1.Method_APPLY_RESOURCE_CHANGE, "thing"}] = &queue{running: 1, delay: minDelay} // so that all calls wait for others
	var all sync.WaitGroup
	for i := range 31 {
		all.Go(func() {
			if got, err := invoke(t.Context(), c, fmt.Sprint(i)); err != nil || got != fmt.Sprintf("made %d", i) {
				t.Errorf("%d: %q, %v", i, got, err)
			}
		})
	}
	all.Wait()
	for _, b := range p.batches {
		if len(b) > 3 {
			t.Errorf("a batch of %d calls, want at most 3", len(b))
		}
	}
}

func TestACallAboveTheLimitOfSizeIsMadeAlone(t *testing.T) {
	t.Parallel()
	p := &plugin{limits: thing(10), answer: answerAll}
	if got, err := invoke(t.Context(), p.dial(t), strings.Repeat("x", maxBytes+1)); err != nil || got != "alone" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		what     string
		plugin   *plugin
		want     int // largest batch; 0 means none
		announce int32
	}{
		{"a provider without the service", &plugin{}, 0, 0},
		{"a provider that announces nothing", &plugin{answer: answerAll}, 0, 0},
		{"one call at once", &plugin{answer: answerAll}, 0, 1},
		{"a negative number", &plugin{answer: answerAll}, 0, -1},
		{"too many", &plugin{answer: answerAll}, maxCalls, 1 << 30},
	} {
		tt.plugin.limits = thing(tt.announce)
		c, ok := tt.plugin.dial(t).(*Conn)
		if got := 0; ok {
			if got = c.limits[Kind{batchv1.Method_APPLY_RESOURCE_CHANGE, "thing"}].MaxCalls; got != tt.want {
				t.Errorf("%s: batches of %d, want %d", tt.what, got, tt.want)
			}
		} else if tt.want != 0 {
			t.Errorf("%s: no batches, want %d", tt.what, tt.want)
		}
	}
}

// TestWrongAnswers makes batches of three calls whose provider does not answer as it should. No call waits forever, and
// no call gets another one's answer.
func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		what   string
		answer func(stream grpc.ServerStream, names []string) error
		want   []string // by index: the answer, or a part of the error
	}{
		{"the stream ends early", func(s grpc.ServerStream, names []string) error {
			return s.SendMsg(answered(1, names[1]))
		}, []string{"left 2 of 3 calls", "made", "left 2 of 3 calls"}},
		{"the stream fails", func(s grpc.ServerStream, names []string) error {
			if err := s.SendMsg(answered(0, names[0])); err != nil {
				return err
			}
			return status.Error(codes.Internal, "a panic")
		}, []string{"made", "explained: a panic", "explained: a panic"}},
		{"an index outside", func(s grpc.ServerStream, names []string) error {
			return s.SendMsg(answered(3, "x"))
		}, []string{"answered call 3 of a batch of 3", "answered call 3", "answered call 3"}},
		{"a negative index", func(s grpc.ServerStream, names []string) error {
			return s.SendMsg(answered(-1, "x"))
		}, []string{"answered call -1", "answered call -1", "answered call -1"}},
		{"an index twice", func(s grpc.ServerStream, names []string) error {
			if err := s.SendMsg(answered(0, names[0])); err != nil {
				return err
			}
			return s.SendMsg(answered(0, "x"))
		}, []string{"made", "answered call 0 of a batch of 3", "answered call 0"}},
		{"an answer that is no message", func(s grpc.ServerStream, names []string) error {
			for i, text := range []string{"\xff\xff", ""} {
				if err := s.SendMsg(&batchv1.Call_Response{Index: int32(i), Answer: &batchv1.Call_Response_Response{Response: []byte(text)}}); err != nil {
					return err
				}
			}
			return s.SendMsg(&batchv1.Call_Response{Index: 2})
		}, []string{"cannot be decoded", "", "neither a response nor an error"}},
		{"errors", func(s grpc.ServerStream, names []string) error {
			for i, e := range []*batchv1.Call_Error{{Code: int32(codes.NotFound), Message: "no such thing"}, {Code: int32(codes.DataLoss)}, {}} {
				if err := s.SendMsg(&batchv1.Call_Response{Index: int32(i), Answer: &batchv1.Call_Response_Error{Error: e}}); err != nil {
					return err
				}
			}
			return nil
		}, []string{"NotFound desc = explained: no such thing", "DataLoss", "without a code"}},
	} {
		p := &plugin{limits: thing(3), answer: tt.answer}
		c := p.dial(t).(*Conn)
		// A running batch lets the next one fill.
		queue := &queue{running: 1, delay: minDelay}
		c.queues[Kind{batchv1.Method_APPLY_RESOURCE_CHANGE, "thing"}] = queue
		type result struct {
			name, answer string
			err          error
		}
		results := make(chan result)
		for i := range tt.want {
			go func() {
				name := fmt.Sprint(i)
				answer, err := invoke(t.Context(), c, name)
				results <- result{name, answer, err}
			}()
		}
		byName := map[string]result{}
		for range tt.want {
			r := <-results
			byName[r.name] = r
		}
		for i, name := range p.batches[0] {
			r, want := byName[name], tt.want[i]
			switch {
			case want == "made" && (r.err != nil || r.answer != "made "+name):
				t.Errorf("%s: call %d: %q, %v, want its own answer", tt.what, i, r.answer, r.err)
			case want == "" && r.err != nil, want != "" && want != "made" && (r.err == nil || !strings.Contains(r.err.Error(), want)):
				t.Errorf("%s: call %d: error %v, want %q", tt.what, i, r.err, want)
			}
		}
	}
}

// TestASlowCallDelaysNoOther makes a call that is never answered. Other calls of its batch and later ones are.
func TestASlowCallDelaysNoOther(t *testing.T) {
	t.Parallel()
	p := &plugin{limits: thing(10), answer: func(stream grpc.ServerStream, names []string) error {
		slow := false
		for i, name := range names {
			if name == "slow" {
				slow = true
			} else if err := stream.SendMsg(answered(i, name)); err != nil {
				return err
			}
		}
		if slow {
			<-stream.Context().Done()
		}
		return stream.Context().Err()
	}}
	c := p.dial(t)
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := invoke(ctx, c, "slow")
		ended <- err
	}()
	for began := 0; began == 0; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		began = len(p.batches)
		p.mu.Unlock()
	}
	var all sync.WaitGroup
	for i := range 33 { // the last ones do not fill a batch
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if got, err := invoke(ctx, c, fmt.Sprint(i)); err != nil || got != fmt.Sprintf("made %d", i) {
				t.Errorf("%d: %q, %v", i, got, err)
			}
		})
	}
	all.Wait()
	leave()
	if err := <-ended; status.Code(err) != codes.Canceled {
		t.Errorf("slow: error %v, want that of the context", err)
	}
}

// TestABatchEndsWithItsLastCaller makes a batch of two calls, of which one is answered. The batch ends when the caller of the
// other one leaves.
func TestABatchEndsWithItsLastCaller(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan struct{})
	p := &plugin{limits: thing(2), answer: func(stream grpc.ServerStream, names []string) error {
		for i, name := range names {
			if name == "quick" {
				if err := stream.SendMsg(answered(i, name)); err != nil {
					return err
				}
			}
		}
		close(began)
		<-stream.Context().Done()
		close(ended)
		return stream.Context().Err()
	}}
	c := p.dial(t).(*Conn)
	c.queues[Kind{batchv1.Method_APPLY_RESOURCE_CHANGE, "thing"}] = &queue{running: 1, delay: time.Hour} // both calls are in one batch
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := invoke(ctx, c, "slow"); status.Code(err) != codes.Canceled {
			t.Errorf("slow: error %v, want that of the context", err)
		}
	})
	if got, err := invoke(t.Context(), c, "quick"); err != nil || got != "made quick" {
		t.Errorf("quick: %q, %v", got, err)
	}
	<-began
	leave()
	all.Wait()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the batch goes on without a caller")
	}
}

// TestACallerThatLeavesTheQueue ends its context before the batch starts. The provider does not get the call.
func TestACallerThatLeavesTheQueue(t *testing.T) {
	t.Parallel()
	p := &plugin{limits: thing(10), answer: answerAll}
	c := p.dial(t).(*Conn)
	kind := Kind{batchv1.Method_APPLY_RESOURCE_CHANGE, "thing"}
	c.queues[kind] = &queue{running: 1, delay: minDelay}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := invoke(ctx, c, "left"); status.Code(err) != codes.Canceled {
		t.Errorf("error %v, want that of the context", err)
	}
	if got, err := invoke(t.Context(), c, "stayed"); err != nil || got != "made stayed" {
		t.Errorf("%q, %v", got, err)
	}
	if len(p.batches) != 1 || len(p.batches[0]) != 1 {
		t.Errorf("batches %v, want one of one call", p.batches)
	}
}

// TestABatchWaitsLongerForASlowProvider makes calls of a provider that takes 200 ms for each batch.
func TestABatchWaitsLongerForASlowProvider(t *testing.T) {
	t.Parallel()
	p := &plugin{limits: thing(maxCalls), answer: func(stream grpc.ServerStream, names []string) error {
		time.Sleep(200 * time.Millisecond)
		return answerAll(stream, names)
	}}
	c := p.dial(t).(*Conn)
	if _, err := invoke(t.Context(), c, "first"); err != nil {
		t.Fatal(err)
	}
	var got time.Duration
	for end := time.Now().Add(10 * time.Second); (got == 0 || got == minDelay) && time.Now().Before(end); time.Sleep(time.Millisecond) {
		c.mu.Lock()
		got = c.queues[Kind{batchv1.Method_APPLY_RESOURCE_CHANGE, "thing"}].delay
		c.mu.Unlock()
	}
	if got < 100*time.Millisecond || got > maxDelay {
		t.Errorf("calls wait for %s after a batch of 200 ms, want half of that or a little more", got)
	}
}

// panicking is a connection whose streams panic.
type panicking struct{ ClientConn }

func (panicking) Explain(_ context.Context, err error) error { return err }

func (panicking) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	panic("no stream")
}

// TestAPanicAnswersTheCallsOfABatch expects an error for each call.
func TestAPanicAnswersTheCallsOfABatch(t *testing.T) {
	conn := NewConn(panicking{}, Limits{{Method: batchv1.Method_APPLY_RESOURCE_CHANGE, Type: "thing"}: {MaxCalls: 2}})
	for range 2 {
		if _, err := invoke(t.Context(), conn, "a"); !bug.Is(err) {
			t.Errorf("the error is %v", err)
		}
	}
}
