package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
)

// Config configures an Engine. With only DataDir set, it runs an embedded server.
type Config struct {
	// DataDir is the server's data directory, which this process has locked. The engine owns its subdirectory
	// "temporal".
	DataDir string
	// Address is HOST:PORT of the frontend of an external Temporal cluster; empty means an embedded server.
	Address string
	// Credentials applies to an external cluster.
	Credentials Credentials
	// Namespace is the Temporal namespace of all workflows; empty means "hykube".
	Namespace string
	// Process identifies this process in the identity of its worker; empty takes a random name.
	Process string
	// Installation identifies this installation in the namespace of an external cluster; empty claims none.
	Installation string
	// NamespaceOwner returns the UID of a Kubernetes namespace; ok is false if it does not exist or is being deleted.
	// With an embedded server, it decides which namespaces have workflows of users. nil means none.
	NamespaceOwner func(namespace string) (uid string, ok bool)
	// Logger receives Temporal's log, each entry one level lower than Temporal's level; nil discards it.
	Logger *slog.Logger
}

// UIPath is the URL path of UIHandler.
const UIPath = "/temporal"

// Engine is a running Temporal server with a client, or only a client of an external cluster. It can be started once
// and stopped once.
type Engine struct {
	config   Config
	logger   *slog.Logger
	dir      string
	identity string

	mu       sync.Mutex // guards the following fields
	started  bool
	stopped  bool
	embedded *embedded
	client   client.Client
	webUI    atomic.Pointer[webUI]
	users    atomic.Pointer[UserNamespaces]
	// lost and worker are the reasons why the namespace is missing, and why no worker runs; nil without one.
	lost, worker atomic.Pointer[error]

	background sync.WaitGroup
	cancel     context.CancelFunc
	recovered  chan struct{} // closed after the search for activities of earlier runs
}

// New checks the configuration. It starts and writes nothing.
func New(config Config) (*Engine, error) {
	if config.DataDir == "" {
		return nil, errors.New("configure engine: no data directory is set")
	}
	if config.Namespace == "" {
		config.Namespace = "hykube"
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Engine{
		config:    config,
		logger:    config.Logger,
		dir:       filepath.Join(config.DataDir, "temporal"),
		identity:  newIdentity(config.Process),
		recovered: make(chan struct{}),
	}, nil
}

// Start starts the engine and returns when it accepts workflows. If it fails, it stops everything that it has started.
func (e *Engine) Start(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started {
		return errors.New("start engine: it was started before; make a new one")
	}
	e.started = true
	if err := e.start(ctx); err != nil {
		return errors.Join(err, e.stop(context.WithoutCancel(ctx)))
	}
	return nil
}

func (e *Engine) start(ctx context.Context) (err error) {
	begin := time.Now()
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return fmt.Errorf("start engine: %w", err)
	}
	f, err := e.frontend(ctx)
	if err != nil {
		return err
	}
	options := client.Options{
		HostPort:          f.address,
		Namespace:         f.namespace,
		Identity:          e.identity,
		Logger:            sdklog.NewStructuredLogger(slog.New(Quiet(e.logger.Handler()))),
		ConnectionOptions: client.ConnectionOptions{TLS: f.tls},
	}
	if f.apiKey != nil {
		options.Credentials = client.NewAPIKeyDynamicCredentials(f.apiKey)
	}
	if e.client, err = dial(ctx, options); err != nil {
		return err
	}
	if err := e.register(ctx); err != nil {
		return err
	}
	ui, err := newWebUI(f)
	if err != nil {
		return err
	}
	e.webUI.Store(ui)

	previous, err := rememberIdentity(e.dir, e.identity)
	if err != nil {
		return err
	}
	// The caller's context ends after startup, but the search for abandoned activities ends with the engine.
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e.cancel = cancel
	if e.embedded != nil && e.config.NamespaceOwner != nil {
		users, err := newUserNamespaces(f, e.embedded.main, e.logger)
		if err != nil {
			return err
		}
		users.Owner = e.config.NamespaceOwner
		e.users.Store(users)
		e.background.Go(func() { users.clean(background) })
	}
	if e.config.Address != "" {
		e.background.Go(func() { e.watchNamespace(background) })
	}
	e.background.Go(func() {
		defer close(e.recovered)
		e.recover(background, previous)
	})
	e.logger.Info("engine started", "address", f.address, "embedded", e.embedded != nil,
		"namespace", e.config.Namespace, "took", time.Since(begin).Round(time.Millisecond))
	return nil
}

// frontend returns the frontend of the external cluster, or starts an embedded server and returns its frontend.
func (e *Engine) frontend(ctx context.Context) (frontend, error) {
	f := frontend{address: e.config.Address, namespace: e.config.Namespace}
	var err error
	if f.address != "" {
		if e.config.Credentials.APIKeyFile != "" {
			f.apiKey = e.config.Credentials.apiKey
		}
		f.tls, err = e.config.Credentials.tls(f.address)
		return f, err
	}
	if e.embedded, err = startEmbedded(ctx, e.dir, f.namespace, e.logger); err != nil {
		return f, err
	}
	f.address, f.tls = e.embedded.frontend, e.embedded.keys.client
	return f, nil
}

// Client returns the engine's client, or nil before Start. Stop closes it, so stop the workers first.
func (e *Engine) Client() client.Client {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.client
}

// UIHandler serves Temporal's Web UI, read-only, below UIPath. It has no authentication: the caller must authenticate
// and authorize each request. It returns status 503 while the engine does not run.
func (e *Engine) UIHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ui := e.webUI.Load()
		if ui == nil {
			http.Error(w, "the workflow engine is not running", http.StatusServiceUnavailable)
			return
		}
		ui.ServeHTTP(w, r)
	})
}

// Users returns the Temporal namespaces of users. It returns nil while the engine does not run, and with an external
// cluster.
func (e *Engine) Users() *UserNamespaces { return e.users.Load() }

// Namespace returns the Temporal namespace of the server's own workflows.
func (e *Engine) Namespace() string { return e.config.Namespace }

// Healthy returns an error if the engine cannot process workflows. It is fast enough for a readiness probe.
func (e *Engine) Healthy() error {
	e.mu.Lock()
	c, server, stopped := e.client, e.embedded, e.stopped
	e.mu.Unlock()
	if c == nil || stopped {
		return errors.New("workflow engine: not running")
	}
	if server != nil {
		if err := server.failed(); err != nil {
			return fmt.Errorf("workflow engine: %w", err)
		}
	}
	for _, reason := range []*error{e.lost.Load(), e.worker.Load()} {
		if reason != nil {
			return fmt.Errorf("workflow engine: %w", *reason)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if _, err := c.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		return fmt.Errorf("workflow engine: %w", err)
	}
	return nil
}

// Stop stops the Web UI, the client and the embedded server, in this order. The caller must stop the workers first.
// Further calls do nothing.
func (e *Engine) Stop(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stop(ctx)
}

func (e *Engine) stop(ctx context.Context) error {
	if e.stopped {
		return nil
	}
	e.stopped = true
	if e.cancel != nil {
		e.cancel()
	}
	e.background.Wait()
	var errs []error
	if ui := e.webUI.Swap(nil); ui != nil {
		errs = append(errs, ui.Close())
	}
	if users := e.users.Swap(nil); users != nil {
		errs = append(errs, users.conn.Close())
	}
	if e.client != nil {
		e.client.Close()
	}
	if e.embedded != nil {
		errs = append(errs, e.embedded.stop(ctx))
	}
	return errors.Join(errs...)
}
