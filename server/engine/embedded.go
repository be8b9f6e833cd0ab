package engine

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/metrics"
	persistence "go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/common/primitives/timestamp"
	"go.temporal.io/server/common/resolver"
	"go.temporal.io/server/common/rpc/encryption"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
)

const (
	loopback    = "127.0.0.1"
	clusterName = "active" // Temporal's name for the only cluster

	// retention is the time for which Temporal keeps a finished workflow.
	retention = 7 * 24 * time.Hour
)

// services are the Temporal services that run. The fourth, "worker", hosts system workflows that poll constantly:
// scanners, batch operations, worker deployments. Hykube does not need it: schedules run in the history service (see
// tuning).
var services = []primitives.ServiceName{primitives.MatchingService, primitives.HistoryService,
	primitives.FrontendService}

// embedded is a Temporal server in this process. Its loopback ports accept only mutual TLS.
type embedded struct {
	server   temporal.Server
	frontend string // HOST:PORT
	ports    []string
	keys     *mutualTLS
	main     *config.SQL
	logger   *bridge
}

// startEmbedded prepares the files and starts the server. Another process may take a free port before the server
// listens, so startEmbedded retries with other ports.
func startEmbedded(ctx context.Context, dir, namespace string, logger *slog.Logger) (*embedded, error) {
	allowUnnamedUser()
	main, visibility := databases(dir)
	for _, d := range []database{main, visibility} {
		if err := ensureSchema(ctx, d, logger); err != nil {
			return nil, err
		}
	}
	if err := createNamespace(sqlConfig(main), namespace, nil); err != nil {
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
			return nil, fmt.Errorf("find free ports for Temporal: %w", err)
		}
		e, err := startOn(ports, main, visibility, keys, namespace, logger)
		if err == nil {
			return e, nil
		}
		if attempt == attempts || !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("start embedded Temporal server: %w", err)
		}
		logger.Debug("another process took a port of Temporal, trying others", "error", err)
	}
}

func startOn(ports []int, main, visibility database, keys *mutualTLS, namespace string,
	logger *slog.Logger) (*embedded, error) {
	b := &bridge{slog: logger.With("component", "temporal"), state: new(bridgeState)}
	cfg := serverConfig(ports, main, visibility)
	e := &embedded{logger: b, main: sqlConfig(main), frontend: cfg.PublicClient.HostPort, keys: keys}

	// Use static hosts instead of gossip. The worker service needs an entry although it does not run.
	hosts := map[primitives.ServiceName]static.Hosts{primitives.WorkerService: static.SingleLocalHost(loopback + ":0")}
	names := make([]string, 0, len(services))
	for i, name := range services {
		hosts[name] = static.SingleLocalHost(net.JoinHostPort(loopback, strconv.Itoa(ports[i])))
		names = append(names, string(name))
		e.ports = append(e.ports, strconv.Itoa(ports[i]))
	}
	err := b.construct(func() error {
		server, err := temporal.NewServer(
			temporal.WithConfig(cfg),
			temporal.ForServices(names),
			temporal.WithStaticHosts(hosts),
			temporal.WithTLSConfigFactory(keys),
			temporal.WithLogger(b),
			temporal.WithNamespaceLogger(b),
			temporal.WithDynamicConfigClient(tuning(namespace)),
			temporal.WithCustomMetricsHandler(metrics.NoopMetricsHandler),
		)
		if err == nil { // otherwise server is not nil, but has no content
			e.server = server
		}
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

// failed returns the error that stopped a part of the server, or nil.
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
		// No data is lost: the server commits every step before it acknowledges it.
		return fmt.Errorf("stop embedded Temporal server: %w", context.Cause(ctx))
	}
}

// checkpoint merges the write-ahead log into the database file, so that a backup of a stopped server needs only one
// file. Temporal's plugin keeps its connection until the process ends.
func (e *embedded) checkpoint() error {
	db, err := persistence.NewSQLAdminDB(sqlplugin.DbKindMain, e.main, resolver.NewNoopResolver(), log.NewNoopLogger(),
		metrics.NoopMetricsHandler)
	if err != nil {
		return err
	}
	return errors.Join(db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"), db.Close())
}

// onGoroutine runs f on a separate goroutine, which the bridge's Fatal may end. It then returns an error.
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

// sqlConfig uses one connection per file, because SQLite returns "busy" under load with more.
func sqlConfig(d database) *config.SQL {
	return &config.SQL{
		PluginName:   sqliteplugin.PluginName,
		DatabaseName: d.escaped(),
		MaxConns:     1,
		MaxIdleConns: 1,
		ConnectAttributes: map[string]string{
			"mode":         "rw",
			"journal_mode": "wal",
			// may lose the last writes on power failure, but stays consistent; the ledger has the outcomes
			"synchronous":        "normal",
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

// createNamespace writes the namespace directly to the file. A namespace that is registered through the API becomes
// visible only after seconds. data is kept with the namespace. A namespace that exists stays as it is.
func createNamespace(db *config.SQL, name string, data map[string]string) error {
	types := map[string]enumspb.IndexedValueType{}
	for _, a := range searchAttributes {
		types[a.name] = a.kind
	}
	namespace, err := sqliteschema.NewNamespaceConfig(clusterName, name, false, types)
	if err != nil {
		return fmt.Errorf("describe namespace %q: %w", name, err)
	}
	namespace.Detail.Config.Retention = timestamp.DurationPtr(retention)
	namespace.Detail.Info.Data = data
	if err := sqliteschema.CreateNamespaces(db, namespace); err != nil {
		return fmt.Errorf("create namespace %q: %w", name, err)
	}
	return nil
}

// tuning returns Temporal's dynamic configuration for one process on one machine that is mostly idle. Durations must be
// typed: a bare int would mean seconds. own is the namespace of the server; the others are those of users.
func tuning(own string) dynamicconfig.StaticClient {
	const (
		workers = 16 // goroutines per task queue processor instead of 512, since there is a single SQLite writer
		never   = 24 * time.Hour
	)
	values := map[dynamicconfig.Key]any{}
	set := func(setting dynamicconfig.GenericSetting, value any) { values[setting.Key()] = value }

	// Speed: by default, each step of a workflow waits about 45 ms for the next poll of its queue.
	set(dynamicconfig.TransferProcessorMaxPollRPS, 1000)
	set(dynamicconfig.TimerProcessorMaxPollRPS, 1000)
	set(dynamicconfig.VisibilityProcessorMaxPollRPS, 1000)
	set(dynamicconfig.OutboundProcessorMaxPollRPS, 1000)
	set(dynamicconfig.TimerProcessorMaxTimeShift, 100*time.Millisecond)
	// A client that waits for the end of a workflow sometimes misses it (about 1 in 100 here). The history service
	// drops a notification if the client has not read the previous one. The client polls again after this time instead
	// of 20 s.
	set(dynamicconfig.HistoryLongPollExpirationInterval, time.Second)
	set(dynamicconfig.MatchingNumTaskqueueReadPartitions, 1)
	set(dynamicconfig.MatchingNumTaskqueueWritePartitions, 1)

	// Features that Hykube uses.
	set(dynamicconfig.MatchingEnableFairness, true)
	set(dynamicconfig.WorkflowPauseEnabled, true)
	set(dynamicconfig.EnableCHASMSchedulerCreation, true) // run schedules without the worker service
	set(dynamicconfig.CHASMSchedulerCreationRolloutPercent, 100)

	// A workflow must not access another namespace.
	set(dynamicconfig.EnableCrossNamespaceCommands, false)
	// There is no system worker for this task.
	set(dynamicconfig.EnableParentClosePolicyWorker, false)

	limitUsers(values, own)

	// Memory.
	set(dynamicconfig.HistoryCacheHostLevelMaxSize, 512)
	set(dynamicconfig.EventsCacheMaxSizeBytes, 1<<20)
	set(dynamicconfig.TransferProcessorSchedulerWorkerCount, workers)
	set(dynamicconfig.TimerProcessorSchedulerWorkerCount, workers)
	set(dynamicconfig.VisibilityProcessorSchedulerWorkerCount, workers)
	set(dynamicconfig.ArchivalProcessorSchedulerWorkerCount, 1)
	set(dynamicconfig.MemoryTimerProcessorSchedulerWorkerCount, workers)
	set(dynamicconfig.ReplicationProcessorSchedulerWorkerCount, 1)
	set(dynamicconfig.ReplicationLowPriorityProcessorSchedulerWorkerCount, 1)

	// Idle load: no other process writes to these files, so periodic refreshes are unnecessary.
	set(dynamicconfig.ClusterMetadataRefreshInterval, never)
	set(dynamicconfig.MatchingNexusEndpointsRefreshInterval, never)
	set(dynamicconfig.PersistenceHealthSignalMetricsEnabled, false)
	return values
}

// limitUsers sets the limits of the namespaces of users. own is the namespace of the server, to which Temporal's
// defaults apply.
func limitUsers(values map[dynamicconfig.Key]any, own string) {
	set := func(setting dynamicconfig.GenericSetting, ours, theirs any) {
		values[setting.Key()] = []dynamicconfig.ConstrainedValue{
			{Constraints: dynamicconfig.Constraints{Namespace: own}, Value: ours},
			{Value: theirs},
		}
	}
	set(dynamicconfig.FrontendMaxNamespaceRPSPerInstance, 2400, 200)
	set(dynamicconfig.BlobSizeLimitWarn, 512<<10, 256<<10)
	set(dynamicconfig.BlobSizeLimitError, 2<<20, 512<<10)
	set(dynamicconfig.MemoSizeLimitWarn, 2<<10, 2<<10)
	set(dynamicconfig.MemoSizeLimitError, 2<<20, 16<<10) // a workflow can add to its memo
	set(dynamicconfig.HistorySizeLimitWarn, 10<<20, 4<<20)
	set(dynamicconfig.HistorySizeLimitError, 50<<20, 8<<20)
	set(dynamicconfig.HistoryCountLimitWarn, 10<<10, 5<<10)
	set(dynamicconfig.HistoryCountLimitError, 50<<10, 10<<10)
	// Callbacks would call addresses from this machine. Worker versions need the worker service. Heartbeats of workers
	// would only use memory.
	set(dynamicconfig.MaxCallbacksPerWorkflow, 32, 0)
	set(dynamicconfig.EnableDeploymentVersions, true, false)
	set(dynamicconfig.WorkerHeartbeatsEnabled, true, false)
}

// serverName is the name in the certificate of the embedded server.
const serverName = "temporal.hykube"

// mutualTLS authenticates the services of the embedded Temporal server and the client in this process. All of them
// share one key, which is generated at each start and stays in memory. Other processes on the machine can reach the
// ports but lack the key.
type mutualTLS struct {
	server, client *tls.Config
}

var _ encryption.TLSConfigProvider = (*mutualTLS)(nil)

func newMutualTLS() (*mutualTLS, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the embedded Temporal server: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: serverName},
		DNSNames:              []string{serverName},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.AddDate(100, 0, 0), // longer than any process runs
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the embedded Temporal server: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the embedded Temporal server: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	pair := []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: cert}}
	return &mutualTLS{
		server: &tls.Config{Certificates: pair, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
			MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}},
		client: &tls.Config{Certificates: pair, RootCAs: pool, ServerName: serverName, MinVersion: tls.VersionTLS13,
			NextProtos: []string{"h2"}},
	}, nil
}

func (m *mutualTLS) GetInternodeServerConfig() (*tls.Config, error) { return m.server, nil }

func (m *mutualTLS) GetInternodeClientConfig() (*tls.Config, error) { return m.client, nil }

func (m *mutualTLS) GetFrontendServerConfig() (*tls.Config, error) { return m.server, nil }

func (m *mutualTLS) GetFrontendClientConfig() (*tls.Config, error) { return m.client, nil }

func (m *mutualTLS) GetRemoteClusterClientConfig(string) (*tls.Config, error) { return m.client, nil }

func (m *mutualTLS) GetExpiringCerts(time.Duration) (expiring, expired encryption.CertExpirationMap, err error) {
	return nil, nil, nil
}
