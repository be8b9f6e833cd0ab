package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	namespacedeletion "k8s.io/kubernetes/pkg/controller/namespace/deletion"

	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/server/access"
	"github.com/hykube/hykube/server/auditlog"
	"github.com/hykube/hykube/server/engine"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/registry"
	"github.com/hykube/hykube/server/temporalapi"
)

const (
	// drainTimeout is the maximum time for running requests at a shutdown.
	drainTimeout = 4 * time.Second
	// workTimeout is the maximum time for controllers and workers to stop.
	workTimeout = 3 * time.Second
	// closeTimeout is the maximum time for the providers to stop, and then for the engine.
	closeTimeout = 2 * time.Second
)

// Server is an API server that is ready to run.
type Server struct {
	config   *completedConfig
	log      *slog.Logger
	generic  *genericapiserver.GenericAPIServer
	prepared interface{ RunWithContext(context.Context) error }
	kinds    *kinds.Kinds
	plans    *registry.StoredPlans
	engine   *engine.Engine
	gate     *gate
	temporal *temporalapi.Service
	// processors are the slots of requests and activities that need a processor.
	processors *fair.Slots
	wiring     Wiring
	deletions  *deletions
	rebuild    indexRebuild
	backingUp  sync.Mutex // held during a backup
	// namespaceUndelete serves the undelete of namespaces.
	namespaceUndelete *undeleteNamespaceREST
	// emptier deletes the content of a deleted namespace without resources. dynamic is a client for resources. Both are
	// set at startup.
	emptier namespacedeletion.NamespacedResourcesDeleterInterface
	dynamic dynamic.Interface
	// certificates is held while certificates are replaced.
	certificates sync.Mutex
	running      atomic.Bool // true after Wiring.Run was called
	background   sync.WaitGroup
}

// New creates a server from the open resources. It takes ownership of the config and closes it if it fails.
func (c CompletedConfig) New(ctx context.Context) (_ *Server, err error) {
	s := &Server{config: c.completedConfig, log: c.Logger, deletions: c.deletions,
		gate:       &gate{token: c.generic.LoopbackClientConfig.BearerToken, worker: c.Worker},
		processors: fair.NewProcessors(runtime.GOMAXPROCS(0))}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if err := s.makeAPIServer(); err != nil {
		return nil, err
	}
	c.serveAuditHead(s.generic)
	if err := s.installAPIs(); err != nil {
		return nil, err
	}
	if err := s.addEngine(ctx); err != nil {
		return nil, err
	}
	s.addKeys()
	s.addRebuildIndex()
	s.addBackup()
	s.addThaw()
	if err := s.wire(ctx); err != nil {
		return nil, err
	}
	if err := s.addHooks(); err != nil {
		return nil, err
	}
	s.prepared = s.generic.PrepareRun()
	return s, nil
}

// makeAPIServer makes the API server and the providers' kinds, to which requests for other paths go. The kinds come
// second, because they register their discovery with the server.
func (s *Server) makeAPIServer() (err error) {
	c := s.config
	late, documents := new(lateHandler), new(lateHandler)
	read := &bodies{time: bodyTime, memory: bodyMemory}
	buildChain := c.generic.BuildHandlerChainFunc
	c.generic.BuildHandlerChainFunc = func(inner http.Handler, g *genericapiserver.Config) http.Handler {
		documents.Handler = inner
		read.identify = identifier(g.Authentication.Authenticator)
		g.Authentication.Authenticator = auditlog.ReceiveCause(g.Authentication.Authenticator)
		build := func(inner http.Handler) http.Handler { return buildChain(inner, g) }
		explained := withReasons(s.warnFrozen(sharingProcessors(documents, s.processors)), g.Authorization.Authorizer)
		chain := explainUnrecorded(explained, build, c.unwritableLog)
		return temporalapi.WithStatus(endStalled(s.gate.wrap(read.wrap(withExpressionBudget(chain))),
			defaultStallLimits))
	}
	if s.generic, err = c.generic.Complete(c.informers).New("hykube",
		genericapiserver.NewEmptyDelegateWithCustomHandler(late)); err != nil {
		return fmt.Errorf("make API server: %w", err)
	}
	s.generic.ShutdownTimeout = drainTimeout
	s.kinds, err = kinds.New(kinds.Config{
		RESTOptions:         c.store.RESTOptions(nil, false),
		Authorizer:          c.generic.Authorization.Authorizer,
		Admission:           c.generic.AdmissionControl,
		Discovery:           s.generic.DiscoveryGroupManager,
		AggregatedDiscovery: s.generic.AggregatedDiscoveryGroupManager,
		Infrastructure:      &s.wiring.Infrastructure,
		ProviderConfigs:     providerConfigs(c.store.Objects()),
		ProviderConfig:      providerOf(c.store.Objects()),
		Changed:             s.deletions.changed,
		Logger:              c.Logger.With("component", "kinds"),
	})
	if err != nil {
		return err
	}
	hinted := registry.WithPatchHints(documents.Handler, c.codecs, kinds.MaxRequestBodyBytes)
	fixed := registry.WithReadOnlyResources(registry.WithShortPatchErrors(hinted, c.codecs), c.codecs)
	late.Handler = s.kinds
	documents.Handler = registry.WithUnreadableAnswers(s.kinds.WithOpenAPI(fixed), c.generic.Authorization.Authorizer)
	return nil
}

// wire connects the packages that this one does not import.
func (s *Server) wire(ctx context.Context) (err error) {
	c := s.config
	hold, err := c.hold(ctx)
	if err != nil {
		return err
	}
	s.wiring, err = c.Wire(ctx, &Components{
		DataDir:      c.DataDir,
		KeyFiles:     c.keyFiles(),
		Settings:     c.Settings,
		Worker:       c.Worker,
		Loopback:     rest.CopyConfig(s.generic.LoopbackClientConfig),
		KV:           c.store.KV(),
		Processes:    c.store.Processes(),
		Objects:      c.store.Objects(),
		Snapshots:    c.store.Snapshots(c.DataDir, build()),
		Plans:        s.plans,
		Kinds:        s.kinds,
		Authorizer:   c.generic.Authorization.Authorizer,
		Users:        c.users,
		Engine:       s.engine,
		WorkflowRoom: s.workflowRoom,
		Stamps:       c.stamps,
		Processors:   s.processors,
		Hold:         hold,
		Record:       c.recorder(),
		Metrics:      legacyregistry.Registerer(),
		Logger:       c.Logger,
	})
	if err != nil {
		return err
	}
	wired := healthz.NamedCheck("kinds", func(*http.Request) error { return s.wiring.Ready() })
	if err := s.generic.AddReadyzChecks(c.health.wrap(wired,
		healthz.NamedCheck(gateCheck, s.gate.check))...); err != nil {
		return fmt.Errorf("add readiness check: %w", err)
	}
	return nil
}

// addEngine creates the Temporal engine and serves its Web UI to authorized users.
func (s *Server) addEngine(ctx context.Context) error {
	installation, err := s.config.store.Identity(ctx)
	if err != nil {
		return err
	}
	s.engine, err = engine.New(engine.Config{
		DataDir:      s.config.DataDir,
		Address:      s.config.TemporalAddress,
		Credentials:  s.config.TemporalCredentials,
		Namespace:    s.config.TemporalNamespace,
		Process:      s.config.store.Processes().Own(),
		Installation: installation,
		Logger:       s.config.Logger.With("component", "temporal"),

		NamespaceOwner: s.namespaceOwner,
	})
	if err != nil {
		return fmt.Errorf("make engine: %w", err)
	}
	if err := s.addTemporalAPI(); err != nil {
		return err
	}
	ui := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.running.Load() {
			http.Error(w, "Temporal is still starting; try again in a moment.", http.StatusServiceUnavailable)
			return
		}
		s.engine.UIHandler().ServeHTTP(w, r)
	})
	mux := s.generic.Handler.NonGoRestfulMux
	mux.Handle(engine.UIPath, http.RedirectHandler(engine.UIPath+"/", http.StatusMovedPermanently))
	mux.HandlePrefix(engine.UIPath+"/", ui)
	return s.generic.AddReadyzChecks(s.config.health.wrap(healthz.NamedCheck("engine", func(*http.Request) error {
		if !s.running.Load() {
			return errors.New("starting")
		}
		return s.engine.Healthy()
	}))...)
}

// URL returns the URL of the server.
func (s *Server) URL() string { return s.config.url() }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (s *Server) Kubeconfig() string { return access.AdminPath(s.config.DataDir) }

// Run serves until ctx ends, then drains and closes everything within ten seconds. It returns nil after such an end.
func (s *Server) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, s.close()) }()
	// If one part fails, stop the whole server: a restart is better than a partial server.
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	context.AfterFunc(ctx, s.config.store.StopCalls) // those that run have a moment to end
	serveCtx, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()

	served := make(chan error, 1)
	go func() { served <- s.prepared.RunWithContext(serveCtx) }()

	worked := make(chan error, 1)
	go func() { worked <- s.work(ctx) }()

	opened := make(chan struct{})
	go func() {
		defer close(opened)
		if s.gate.openWhenReady(ctx, s.config.client) {
			s.background.Go(func() { s.config.health.run(ctx) })
			if s.config.Worker {
				s.log.Info("working", "temporal", s.config.TemporalAddress)
				return
			}
			s.background.Go(func() { s.endWorkers(ctx) })
			s.background.Go(func() { s.config.quotas.Run(ctx, s.countObjects) })
			s.log.Info("serving", "url", s.URL(), "kubeconfig", s.Kubeconfig())
		}
	}()

	select {
	case <-ctx.Done():
	case err := <-served:
		stop(fmt.Errorf("serve: %w", err))
		served <- nil
	case err := <-worked:
		stop(err)
		worked <- nil
	case <-s.config.store.Lost():
		stop(s.config.store.Reason())
	}
	s.log.Info("stopping")
	s.temporal.Stop()
	if err := wait(worked, workTimeout); err != nil {
		s.log.Warn("controllers did not stop cleanly", "error", err)
	}
	<-opened
	s.gate.close()
	stopServing()
	if err := wait(served, drainTimeout); err != nil {
		s.log.Warn("requests did not drain", "error", err)
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// work starts the engine in parallel to the API server, and the controllers after both run. It returns nil when ctx
// ends.
func (s *Server) work(ctx context.Context) error {
	if err := s.engine.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("start engine: %w", err)
	}
	s.running.Store(true)
	if err := s.wiring.Run(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("run controllers: %w", err)
	}
	return nil
}

func (s *Server) close() error {
	var errs []error
	if err := within(closeTimeout, s.wiring.Close); err != nil {
		// The interrupted calls are recorded as such, so the shutdown itself succeeded.
		s.log.Warn("providers did not stop cleanly", "error", err)
	}
	errs = append(errs, within(closeTimeout, s.engine.Stop))
	s.kinds.Close()
	stopped := make(chan error)
	go func() { s.background.Wait(); close(stopped) }()
	if err := wait(stopped, time.Second); err != nil {
		s.log.Warn("controllers of Kubernetes did not stop cleanly", "error", err)
	}
	return errors.Join(append(errs, s.config.close())...)
}

// within calls f with a context that ends after limit.
func within(limit time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return f(ctx)
}

func wait(done <-chan error, limit time.Duration) error {
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return fmt.Errorf("still busy after %s", limit)
	}
}

// withExpressionBudget limits the expressions of each request. At most one costly evaluation a processor runs at once.
func withExpressionBudget(inner http.Handler) http.Handler {
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r.WithContext(lang.WithBudget(r.Context(), slots)))
	})
}

// lateHandler is a handler that is set after its installation.
type lateHandler struct{ http.Handler }
