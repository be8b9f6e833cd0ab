package temporalapi

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/proxy"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/lru"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/rights"
	"github.com/hykube/hykube/server/starter"
)

const (
	// maxMessage is the maximum size of a message in bytes, as in the API. maxBody is the maximum size of a request
	// body, in which gRPC adds a few bytes before the message. The limit is needed because gRPC buffers all data after
	// the message.
	maxMessage = 2 << 20
	maxBody    = maxMessage + 1<<10
	// callTime is the maximum time of a request that does not wait.
	callTime = 30 * time.Second
)

// Limits of concurrent requests: of requests that wait, and of the others. A request counts until its answer is
// written. A worker has about ten pollers.
var (
	waitLimits = limits{user: 100, namespace: 200, all: 2000}
	callLimits = limits{user: 50, namespace: 100, all: 400}
)

// Config is the configuration of a Service.
type Config struct {
	// Connection returns a connection to the frontend of the embedded Temporal, or nil while there is none.
	Connection func() grpc.ClientConnInterface
	// External is true if the server uses an external Temporal cluster. The service then refuses all requests.
	External bool
	// Reserved is the Temporal namespace of the server's own workflows. No user can reach it.
	Reserved string
	// Prepare creates the Temporal namespace of a Kubernetes namespace if it does not exist, and returns its ID. Its
	// errors are those of gRPC.
	Prepare func(ctx context.Context, namespace string) (id string, err error)
	// Room returns an error of gRPC if a namespace may not start a number of workflow executions, or may have no
	// further schedule.
	Room func(ctx context.Context, namespace string, starts int, schedule bool) error
	// Access checks the rights of users.
	Access store.Access
	// Stamps signs for whom workflows act.
	Stamps starter.Signer
	// Ended reports that the server ended a run in a namespace, because its starter lost the right to it.
	Ended func(namespace, message string)
}

// Service is the WorkflowService for users.
type Service struct {
	config         Config
	server         *grpc.Server
	waiting, short *counter
	// commands and resets limit the rates of commands of workflows, and of resets.
	commands, resets *rates
	temporal         workflowservice.WorkflowServiceClient
	// starters has the users who started the runs of the last tasks.
	starters *lru.Cache
	// info caches the answer to the public method. Users without any right may call it, so the service calls Temporal
	// only once.
	info atomic.Pointer[workflowservice.GetSystemInfoResponse]
	// stopped ends the requests that wait.
	stopped context.Context
	stop    context.CancelFunc
}

// New returns a service.
func New(config Config) (*Service, error) {
	s := &Service{
		config: config, waiting: newCounter(waitLimits), short: newCounter(callLimits),
		commands: newRates(commandRate, maxCommands), resets: newRates(rate.Every(resetEvery), resetBurst),
		temporal: workflowservice.NewWorkflowServiceClient(lateConnection(config.Connection)),
		starters: lru.New(rememberedRuns),
	}
	s.stopped, s.stop = context.WithCancel(context.Background())
	forward, err := proxy.NewWorkflowServiceProxyServer(proxy.WorkflowServiceProxyOptions{
		Client: s.temporal, DisableHeaderForwarding: true,
	})
	if err != nil {
		return nil, err
	}
	s.server = grpc.NewServer(grpc.UnaryInterceptor(s.intercept), grpc.MaxRecvMsgSize(maxMessage),
		grpc.StatsHandler(answers{}))
	workflowservice.RegisterWorkflowServiceServer(s.server, forward)
	return s, nil
}

// ServeHTTP serves a request that the API server has authenticated and authorized.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 2 || r.Method != http.MethodPost || !strings.HasPrefix(r.Header.Get("Content-Type"),
		"application/grpc") {
		http.Error(w, "this path serves gRPC over HTTP/2 only", http.StatusUnsupportedMediaType)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	s.server.ServeHTTP(w, r)
}

// Stop ends the requests that wait, and refuses all later ones.
func (s *Service) Stop() { s.stop() }

// intercept checks each call and forwards it to Temporal.
func (s *Service) intercept(ctx context.Context, message any, info *grpc.UnaryServerInfo,
	handler grpc.UnaryHandler) (any, error) {
	name, m, _ := methodOf(info.FullMethod)
	switch {
	case s.config.External:
		return nil, status.Error(codes.Unimplemented,
			"this server uses an external Temporal cluster: connect to that with credentials of your own")
	case s.stopped.Err() != nil:
		return nil, status.Error(codes.Unavailable, "the server stops")
	case name == publicMethod:
		return s.systemInfo(ctx, message, handler)
	case m.verb == "":
		return nil, status.Errorf(codes.PermissionDenied, "the method %s is not for users of this server", name)
	}
	// The API server has authorized the request for this namespace.
	authorized, _ := request.RequestInfoFrom(ctx)
	who, _ := request.UserFrom(ctx)
	if authorized == nil || who == nil || authorized.Resource != Resource || authorized.Verb != m.verb {
		return nil, status.Error(codes.Internal, "the request was not authorized")
	}
	namespace := v1alpha1.TemporalNamespace(authorized.Namespace)
	if authorized.Namespace == "" || namespace == s.config.Reserved {
		return nil, status.Errorf(codes.PermissionDenied,
			"the header %q must name the Temporal namespace of a Kubernetes namespace, such as %q", header,
			v1alpha1.TemporalNamespace("prod"))
	}
	at := s.short
	if m.waits {
		at = s.waiting
	}
	done, err := at.enter(authorized.Namespace, who.GetName())
	if err != nil {
		return nil, err
	}
	holdUntilAnswered(ctx, done)
	if err := check(message.(proto.Message), namespace); err != nil {
		return nil, err
	}
	id, err := s.config.Prepare(ctx, authorized.Namespace)
	if err != nil {
		return nil, err
	}
	by := caller{client: client{Identity: rights.IdentityOf(who)}, namespace: authorized.Namespace}
	task, err := s.unseal(ctx, message)
	if err != nil {
		return nil, err
	}
	by.queue, by.updaters = task.Queue, task.Users
	if err := checkToken(message, id); err != nil {
		return nil, err
	}
	asking := forwarded(ctx, namespace)
	if by.Trusted, err = s.authorize(asking, by.Identity, m.verb, by.namespace, by.queue, message); err != nil {
		return nil, err
	}
	if by.queue == "" {
		by.queue = polled(message)
	}
	replaceIdentities(message.(proto.Message).ProtoReflect(), by.client)
	if err := ownSticky(message, by.Username); err != nil {
		return nil, err
	}
	if err := s.checkCommands(authorized.Namespace, message); err != nil {
		return nil, err
	}
	if err := s.checkReset(asking, authorized.Namespace, message); err != nil {
		return nil, err
	}
	if err := s.stamp(asking, by, message); err != nil {
		return nil, err
	}
	if starts := startsOf(message); m.starts && starts > 0 {
		_, schedule := message.(*workflowservice.CreateScheduleRequest)
		if err := s.config.Room(ctx, authorized.Namespace, starts, schedule); err != nil {
			return nil, err
		}
	}
	limitPage(message)
	answer, err := s.forward(asking, m, message, handler)
	if err != nil {
		return nil, err
	}
	return s.delivered(asking, by, answer)
}

// forward sends a request to Temporal. ctx is that of a request for Temporal.
func (s *Service) forward(ctx context.Context, m method, message any, handler grpc.UnaryHandler) (any, error) {
	if !m.waits {
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		return handler(ctx, message)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(s.stopped, cancel)()
	defer cancel()
	answer, err := handler(ctx, message)
	if err != nil && s.stopped.Err() != nil {
		return nil, status.Error(codes.Unavailable, "the server stops")
	}
	return answer, err
}

// delivered returns the answer for the client. A task of a run that the server ended becomes an answer without a task.
func (s *Service) delivered(ctx context.Context, by caller, answer any) (any, error) {
	ok, err := s.deliver(ctx, by, answer)
	if err != nil {
		return nil, err
	}
	if !ok {
		return emptied(answer), nil
	}
	return answer, nil
}

// systemInfo answers the public method.
func (s *Service) systemInfo(ctx context.Context, message any, handler grpc.UnaryHandler) (any, error) {
	if known := s.info.Load(); known != nil {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	answer, err := handler(forwarded(ctx, ""), message)
	if info, ok := answer.(*workflowservice.GetSystemInfoResponse); ok && err == nil {
		s.info.Store(info)
	}
	return answer, err
}

// forwardedHeaders describe the client. Temporal adapts its answers to them. No other header reaches Temporal: those
// with credentials are for this server, and others would set the caller's priority.
var forwardedHeaders = []string{"client-name", "client-version", "supported-server-versions", "supported-features"}

// forwarded returns a context with the headers for Temporal.
func forwarded(ctx context.Context, namespace string) context.Context {
	received, _ := metadata.FromIncomingContext(ctx)
	sent := metadata.MD{}
	for _, name := range forwardedHeaders {
		if values := received.Get(name); len(values) > 0 {
			sent.Set(name, values[0])
		}
	}
	if namespace != "" {
		sent.Set(header, namespace)
	}
	return metadata.NewOutgoingContext(ctx, sent)
}

// lateConnection is a connection that exists only some time after the service.
type lateConnection func() grpc.ClientConnInterface

func (c lateConnection) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	conn := c()
	if conn == nil {
		return status.Error(codes.Unavailable, "Temporal is still starting; try again in a moment")
	}
	return conn.Invoke(ctx, method, args, reply, options...)
}

func (c lateConnection) NewStream(context.Context, *grpc.StreamDesc, string,
	...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "the service has no streams")
}

// limits are maximum numbers of requests at once: of one user in one namespace, of one namespace, and of all.
type limits struct{ user, namespace, all int }

// counter counts requests whose answers are not written yet.
type counter struct {
	limits limits
	mu     sync.Mutex
	all    int
	of     map[string]int // by namespace, and by namespace and user
}

func newCounter(l limits) *counter { return &counter{limits: l, of: map[string]int{}} }

// enter counts a request until done is called, or returns an error if too many run.
func (c *counter) enter(namespace, user string) (done func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := namespace + " " + user // no namespace has a space in its name
	switch {
	case c.of[own] >= c.limits.user:
		err = status.Errorf(codes.ResourceExhausted,
			"user %q has %d requests at once in namespace %q; use fewer pollers, or wait", user, c.limits.user,
			namespace)
	case c.of[namespace] >= c.limits.namespace:
		err = status.Errorf(codes.ResourceExhausted, "namespace %q has %d requests at once; use fewer pollers, or wait",
			namespace, c.limits.namespace)
	case c.all >= c.limits.all:
		err = status.Errorf(codes.ResourceExhausted,
			"the server has %d requests for workflows at once; try again later", c.limits.all)
	}
	if err != nil {
		return nil, err
	}
	keys := []string{own, namespace}
	c.all++
	for _, key := range keys {
		c.of[key]++
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all--
		for _, key := range keys {
			if c.of[key]--; c.of[key] == 0 {
				delete(c.of, key)
			}
		}
	}, nil
}
