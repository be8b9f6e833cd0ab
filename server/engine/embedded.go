package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/metrics"
	persistence "go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/common/primitives/timestamp"
	"go.temporal.io/server/common/resolver"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
)

const (
	loopback    = "127.0.0.1"
	clusterName = "active" // Temporal's own name for the only cluster

	// retention is how long a finished workflow stays to be looked at.
	retention = 7 * 24 * time.Hour
)

// services that run. Temporal's fourth, "worker", hosts system workflows that keep polling: scanners, batch
// operations, worker deployments. Nothing here needs them: schedules run in the history service (see tuning).
var services = []primitives.ServiceName{primitives.MatchingService, primitives.HistoryService, primitives.FrontendService}

// embedded is a Temporal server in this process, on loopback ports that take mutual TLS alone.
type embedded struct {
	server   temporal.Server
	frontend string // HOST:PORT
	ports    []string
	keys     *mutualTLS
	main     *config.SQL
	logger   *bridge
}

// startEmbedded prepares the files and starts the server. A port that was free may be taken a moment later, so it
// tries again with others.
func startEmbedded(ctx context.Context, dir, namespace string, logger *slog.Logger) (*embedded, error) {
	main, visibility := databases(dir)
	for _, d := range []database{main, visibility} {
		if err := ensureSchema(ctx, d, logger); err != nil {
			return nil, err
		}
	}
	if err := createNamespace(sqlConfig(main), namespace); err != nil {
		return nil, err
	}
	keys, err := newMutualTLS()
	if err != nil {
		return nil, err
	}
	const attempts = 5
	for attempt := 1; ; attempt++ {
		ports, err := freePorts(len(services))
		if err != nil {
			return nil, fmt.Errorf("find free ports for the engine: %w", err)
		}
		e, err := startOn(ports, main, visibility, keys, logger)
		if err == nil {
			return e, nil
		}
		if attempt == attempts || !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("start embedded Temporal server: %w", err)
		}
		logger.Debug("a port of the engine was taken, trying others", "error", err)
	}
}

func startOn(ports []int, main, visibility database, keys *mutualTLS, logger *slog.Logger) (*embedded, error) {
	b := newBridge(logger)
	cfg := serverConfig(ports, main, visibility)
	e := &embedded{logger: b, main: sqlConfig(main), frontend: cfg.PublicClient.HostPort, keys: keys}

	// Static hosts instead of gossip. The worker service must be named, though it does not run.
	hosts := map[primitives.ServiceName]static.Hosts{primitives.WorkerService: static.SingleLocalHost(loopback + ":0")}
	names := make([]string, 0, len(services))
	for i, name := range services {
		hosts[name] = static.SingleLocalHost(net.JoinHostPort(loopback, strconv.Itoa(ports[i])))
		names = append(names, string(name))
		e.ports = append(e.ports, strconv.Itoa(ports[i]))
	}
	err := b.construct(func() (err error) {
		e.server, err = temporal.NewServer(
			temporal.WithConfig(cfg),
			temporal.ForServices(names),
			temporal.WithStaticHosts(hosts),
			temporal.WithTLSConfigFactory(keys),
			temporal.WithLogger(b),
			temporal.WithNamespaceLogger(b),
			temporal.WithDynamicConfigClient(tuning()),
			temporal.WithCustomMetricsHandler(metrics.NoopMetricsHandler),
		)
		return err
	})
	if err == nil {
		err = onGoroutine(e.server.Start)
	}
	if fatal := e.failed(); fatal != nil {
		err = fatal
	}
	if err != nil {
		b.state.stopping.Store(true)
		if e.server != nil {
			_ = onGoroutine(e.server.Stop)
		}
		return nil, err
	}
	return e, nil
}

// failed is the reason for which a part of the server gave up, or nil.
func (e *embedded) failed() error {
	e.logger.state.mu.Lock()
	defer e.logger.state.mu.Unlock()
	return e.logger.state.fatal
}

func (e *embedded) stop(ctx context.Context) error {
	e.logger.state.stopping.Store(true)
	done := make(chan error, 1)
	go func() {
		err := onGoroutine(e.server.Stop)
		if err == nil {
			err = e.checkpoint()
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("stop embedded Temporal server: %w", err)
		}
		return nil
	case <-ctx.Done():
		// Nothing is lost: every step was committed before it was acknowledged.
		return fmt.Errorf("stop embedded Temporal server: %w", context.Cause(ctx))
	}
}

// checkpoint folds the write-ahead log into the file, so that a stopped server leaves one whole file to copy.
// Temporal's plugin keeps its connection for the life of the process.
func (e *embedded) checkpoint() error {
	db, err := persistence.NewSQLAdminDB(sqlplugin.DbKindMain, e.main, resolver.NewNoopResolver(), log.NewNoopLogger(), metrics.NoopMetricsHandler)
	if err != nil {
		return err
	}
	return errors.Join(db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"), db.Close())
}

// onGoroutine runs f on a goroutine of its own, which Fatal of the bridge may end, and tells when it did.
func onGoroutine(f func() error) error {
	err := errors.New("gave up")
	var wg sync.WaitGroup
	wg.Go(func() { err = f() })
	wg.Wait()
	return err
}

func freePorts(n int) (ports []int, err error) {
	listeners := make([]net.Listener, 0, n)
	defer func() {
		for _, l := range listeners {
			err = errors.Join(err, l.Close())
		}
	}()
	for range n {
		l, err := net.Listen("tcp4", loopback+":0")
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, l)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// sqlConfig has one connection for a file: with more of them SQLite answers "busy" under load.
func sqlConfig(d database) *config.SQL {
	return &config.SQL{
		PluginName:   sqliteplugin.PluginName,
		DatabaseName: d.escaped(),
		MaxConns:     1,
		MaxIdleConns: 1,
		ConnectAttributes: map[string]string{
			"mode":               "rw",
			"journal_mode":       "wal",
			"synchronous":        "normal", // may lose the last moments on power failure, never consistency; the journal in our own store has them
			"busy_timeout":       "5000",
			"cache_size":         "-8192", // KiB
			"journal_size_limit": "16777216",
		},
	}
}

func serverConfig(ports []int, main, visibility database) *config.Config {
	rpc := map[string]config.Service{}
	var frontend string
	for i, name := range services {
		rpc[string(name)] = config.Service{RPC: config.RPC{GRPCPort: ports[i], BindOnIP: loopback}}
		if name == primitives.FrontendService {
			frontend = net.JoinHostPort(loopback, strconv.Itoa(ports[i]))
		}
	}
	return &config.Config{
		Global: config.Global{Membership: config.Membership{BroadcastAddress: loopback}},
		Persistence: config.Persistence{
			DefaultStore:     "main",
			VisibilityStore:  "visibility",
			NumHistoryShards: 1,
			DataStores: map[string]config.DataStore{
				"main":       {SQL: sqlConfig(main)},
				"visibility": {SQL: sqlConfig(visibility)},
			},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: frontend},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services:            rpc,
		Archival: config.Archival{
			History:    config.HistoryArchival{State: "disabled"},
			Visibility: config.VisibilityArchival{State: "disabled"},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
		}},
		PublicClient: config.PublicClient{HostPort: frontend},
	}
}

// createNamespace writes the namespace straight into the file. Over the API a new one takes seconds to be seen.
func createNamespace(db *config.SQL, name string) error {
	types := map[string]enumspb.IndexedValueType{}
	for _, a := range searchAttributes {
		types[a.name] = a.kind
	}
	namespace, err := sqliteschema.NewNamespaceConfig(clusterName, name, false, types)
	if err != nil {
		return fmt.Errorf("describe namespace %q: %w", name, err)
	}
	namespace.Detail.Config.Retention = timestamp.DurationPtr(retention)
	if err := sqliteschema.CreateNamespaces(db, namespace); err != nil {
		return fmt.Errorf("create namespace %q: %w", name, err)
	}
	return nil
}
