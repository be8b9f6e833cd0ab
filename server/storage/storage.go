package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k3s-io/kine/pkg/drivers"
	"github.com/k3s-io/kine/pkg/drivers/generic"
	"github.com/k3s-io/kine/pkg/metrics"
	"github.com/k3s-io/kine/pkg/server"
	"github.com/mattn/go-sqlite3"
	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/storage/etcd3"

	"github.com/hykube/hykube/server/storage/records"
)

const (
	// notifyInterval is an option of kine's watch server, which this package does not use.
	notifyInterval = time.Minute
	// etcdVersion is the version that kine reports. It has every feature that the watch cache requires.
	etcdVersion = "3.6.11"
)

// Config configures a Store.
type Config struct {
	// DataDir is the server's data directory, which must exist. It contains the SQLite files and the root key.
	DataDir string
	// Endpoint is the kine DSN of another database ("postgres://...", "mysql://..."). Empty means SQLite in DataDir.
	Endpoint string
	// EncryptionConfig is the path of a user's EncryptionConfiguration. If it is empty, only the server's own keys
	// encrypt data.
	EncryptionConfig string
	// KeyFile is the path of a file with the root key, which encrypts the data keys. If it is empty, the server keeps
	// the root key in DataDir.
	KeyFile string
	// ProvidersTimeout is the maximum time until the KMS plugins of EncryptionConfig answer at startup; 0 means 15
	// seconds.
	ProvidersTimeout time.Duration
	// RotationSettle is the time that a rotation waits for running writes before it drops an old key; 0 means 75
	// seconds.
	RotationSettle time.Duration
	// Metrics registers the database's metrics; nil disables them.
	Metrics prometheus.Registerer
	// CanaryInterval is the time between two writes of the canary key; 0 means 10 seconds. See Store.Delivers.
	CanaryInterval time.Duration
	// Compaction sets the compaction of old revisions. The zero value means an interval of five minutes and 1000
	// retained revisions.
	Compaction Compaction
	// FreeBytes returns the bytes that are available in a directory; nil asks the operating system.
	FreeBytes func(dir string) (uint64, error)
	// AcceptRestored accepts stores of different moments, and files that are a copy.
	AcceptRestored bool
	// CreateDatabase allows the creation of a database on a database server, and an empty database behind a data
	// directory that knows another.
	CreateDatabase bool
	// MaxConnections is the maximum number of connections to a database server; 0 means DefaultMaxConnections.
	MaxConnections int
	// Server describes this server. It takes the lease of a database with several writers; without an owner, it takes
	// none.
	Server records.Server
	// Worker makes this process a worker of the database, which another process serves.
	Worker bool
	// Waiting is called with the reason why this process does not have its lease yet, at each attempt to take it; nil
	// does nothing.
	Waiting func(reason string)
	// Logger receives the log; nil discards it.
	Logger *slog.Logger
	// migrating opens a database that a migration moves or has moved.
	migrating bool
}

// Compaction configures the compaction. During each Interval, the database removes the revisions that were older than
// one Interval when it began, except the last Retain revisions. A zero field means its default.
type Compaction struct {
	Interval time.Duration
	Retain   int64
}

// Store is an open database.
type Store struct {
	client *kubernetes.Client
	// backend is the database behind client, for reads without the count of the remaining keys.
	backend    server.Backend
	watches    *watches
	canary     *canary
	encryption *encryption
	table      *table
	records    *records.Store
	// closeRecords closes the connections of records that are not those of table.
	closeRecords func() error
	rotator      *rotator
	moments      *moments
	objects      *sharedObjects
	// latest is nil if other servers may write to the database.
	latest *latest
	// changed and observedUpdates are set by Observe.
	changed         func(namespace string)
	observedUpdates []schema.GroupResource
	disk            disk
	spool           spool
	// snapshots is read-locked while a backup reads a snapshot.
	snapshots sync.RWMutex
	// restored is the note of a restore; nil without one.
	restored atomic.Pointer[Restored]
	// restoring is true while a restore fills the database.
	restoring bool
	stop      context.CancelFunc
	drained   *sync.WaitGroup
}

// Open opens the database and creates it if necessary. The caller must call Close.
func Open(ctx context.Context, cfg Config) (_ *Store, err error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.FreeBytes == nil {
		cfg.FreeBytes = freeBytes
	}
	cfg.RotationSettle = cmp.Or(cfg.RotationSettle, rotationSettle)
	// The database outlives ctx, because requests need it while the server drains them.
	dbctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Store{objects: newSharedObjects(), stop: stop, drained: new(sync.WaitGroup),
		spool: spool{filepath.Join(cfg.DataDir, spoolDir), cfg.Logger}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.encryption, err = newEncryption(dbctx, cfg); err != nil {
		return nil, err
	}
	unopened, err := s.openBackend(dbctx, cfg)
	if err != nil {
		return nil, cfg.failed(err)
	}
	s.encryption.ring.table = s.table
	if err := s.openLedger(ctx, cfg); err != nil {
		return nil, cfg.failed(err)
	}
	if err := s.loadRestored(ctx); err != nil {
		return nil, cfg.failed(err)
	}
	if r := s.Restored(); r.Frozen("") {
		cfg.Logger.Warn("the server is frozen, because its database was restored from a backup: it applies no plan of a namespace that is not thawed: kubectl hykube thaw", "backup", r.Backup)
	}
	saveKeys, err := s.encryption.open(dbctx, s.table, s.records)
	if err != nil {
		return nil, err
	}
	backend, err := s.startBackend(dbctx, cfg, unopened)
	if err != nil {
		return nil, cfg.failed(err)
	}
	if err := saveKeys(dbctx); err != nil {
		return nil, err
	}
	s.moments.client = s.client.KV
	if !cfg.migrating && !cfg.Worker { // the data directory may note the other database already
		if err := s.moments.run(dbctx); err != nil {
			return nil, cfg.failed(err)
		}
	}
	if err := s.spool.replay(dbctx, s.KV()); err != nil {
		return nil, cfg.failed(err)
	}
	if cfg.Worker {
		s.drained.Go(func() { s.followRestored(dbctx, cfg.Logger) })
	} else {
		s.drained.Go(func() { s.compact(dbctx, cmp.Or(cfg.Compaction.Interval, 5*time.Minute)) })
	}
	s.canary = newCanary(dbctx, s.client.Client, cfg.CanaryInterval)
	s.rotator = &rotator{
		encryption: s.encryption, parts: []part{s.table, ledgerRows{s.records}}, snapshots: &s.snapshots,
		client: s.client.KV, log: cfg.Logger, ctx: dbctx, done: s.drained,
		settle: cfg.RotationSettle, retry: min(rotationRetry, cfg.RotationSettle),
	}
	err = registerSizes(cfg.Metrics,
		map[string]func(context.Context) (int64, error){"objects": backend.DbSize, "ledger": s.records.Size})
	if err != nil || cfg.Worker {
		return s, err
	}
	return s, s.rotator.resume(dbctx)
}

// startBackend starts kine's backend with its watches and its client. It returns the backend with Hykube's lists.
func (s *Store) startBackend(ctx context.Context, cfg Config, backend server.Backend) (_ server.Backend, err error) {
	if err := backend.Start(ctx); err != nil {
		return nil, err
	}
	if cfg.Endpoint == "" {
		s.disk = disk{dir: cfg.DataDir, free: cfg.FreeBytes}
	}
	backend = newLists(backend, s.table)
	s.backend = pausing{backend, cfg.Endpoint == ""}
	if cfg.Endpoint != "" {
		s.backend = leased{s.backend, s.records.Held}
	}
	if s.watches, err = newWatches(ctx, backend, cfg.Logger); err != nil {
		return nil, err
	}
	replaceFeatureChecker()
	s.client = newClient(ctx, s.backend, s.watches)
	s.encryption.ring.client = s.client.KV
	return backend, nil
}

// RotateKeys encrypts the data keys with the current root key. It adds a data key, which encrypts from now on, and
// encrypts all rows with it in the background, also after a restart. It returns ErrRotating while that is in progress.
func (s *Store) RotateKeys(ctx context.Context) error { return s.rotator.start(ctx) }

// KeyStatus returns the encryption keys and the progress of their rotation.
func (s *Store) KeyStatus(ctx context.Context) (KeyStatus, error) { return s.rotator.status(ctx) }

// HealthChecks returns the health checks of the KMS plugins.
func (s *Store) HealthChecks() []healthz.HealthChecker { return s.encryption.checks }

// Close ends all watches and closes the database.
func (s *Store) Close() error {
	var errs []error
	if s.canary != nil {
		s.canary.close()
	}
	if s.moments != nil {
		s.moments.close()
	}
	if s.client != nil {
		errs = append(errs, s.client.Close())
	}
	s.stop()
	s.drained.Wait()
	if s.records != nil {
		s.records.Close()
		errs = append(errs, s.closeRecords())
	}
	if s.table != nil && s.table.close != nil {
		errs = append(errs, s.table.close())
	}
	if err := errors.Join(errs...); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Ready returns an error if the database does not answer within 2 seconds.
func (s *Store) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := s.records.Held(); err != nil {
		return err
	}
	if _, err := s.client.KV.Get(ctx, server.HealthKey); err != nil {
		return fmt.Errorf("ask database: %w", err)
	}
	if _, err := s.records.Revision(ctx); err != nil {
		return fmt.Errorf("ask database of the ledger: %w", err)
	}
	return nil
}

// Delivers returns an error if watches no longer deliver events: a watch did not deliver a write of the canary in time.
func (s *Store) Delivers() error {
	now := time.Now()
	err := s.canary.healthy(now)
	if waits := s.table.tail.waits(now); err != nil && waits != nil {
		return waits
	}
	return err
}

// openBackend opens kine and its table.
func (s *Store) openBackend(ctx context.Context, cfg Config) (server.Backend, error) {
	scheme, rest, _ := strings.Cut(cfg.Endpoint, "://")
	dc := &drivers.Config{
		Endpoint:       cfg.Endpoint,
		Scheme:         scheme,
		DataSourceName: rest,
		ConnectionPoolConfig: generic.ConnectionPoolConfig{MaxIdle: maxIdle, MaxIdleTime: 2 * time.Minute,
			MaxOpen: cfg.poolSize()},
		CompactInterval:  0, // see Store.compact
		CompactTimeout:   5 * time.Second,
		CompactMinRetain: cmp.Or(cfg.Compaction.Retain, 1000),
		CompactBatchSize: compactionStep,
		PollBatchSize:    500,
	}
	if cfg.Metrics != nil {
		dc.MetricsRegisterer = tolerantRegisterer{cfg.Metrics}
		dc.MetricsRegisterer.MustRegister(metrics.SQLTotal, metrics.SQLTime, metrics.CompactTotal,
			metrics.InsertErrorsTotal)
	}
	var backend server.Backend
	var err error
	switch {
	case cfg.Endpoint == "":
		if err := checkRestored(filepath.Join(cfg.DataDir, "db")); err != nil && !s.restoring {
			return nil, err
		}
		var embedded *sqliteBackend
		if embedded, s.table, err = openSQLite(ctx, s.drained, dc, filepath.Join(cfg.DataDir, "db")); err == nil {
			backend, s.latest = embedded, embedded.latest
		}
	case scheme == "postgres" || scheme == "postgresql" || scheme == "mysql":
		backend, s.table, err = openSeveral(ctx, s.drained, dc, cfg.CreateDatabase, cfg.Logger)
	default:
		return nil, errors.New(`unknown scheme: use "postgres://" or "mysql://", or leave --datastore-endpoint out for SQLite`)
	}
	return backend, err
}

// newClient returns an etcd client that calls kine directly. Its watches do not use kine's watch server: see watches.
func newClient(ctx context.Context, backend server.Backend, watches *watches) *kubernetes.Client {
	bridge := server.New(backend, "http", notifyInterval, etcdVersion)
	c := clientv3.NewCtxClient(ctx)
	c.KV = etcd3.NewETCDLatencyTracker(clientv3.NewKVFromKVClient(adapter.KvServerToKvClient(bridge), c))
	c.Lease = clientv3.NewLeaseFromLeaseClient(adapter.LeaseServerToLeaseClient(bridge), c, time.Second)
	c.Watcher = watches
	c.Maintenance = clientv3.NewMaintenanceFromMaintenanceClient(adapter.MaintenanceServerToMaintenanceClient(bridge),
		c)
	kc := &kubernetes.Client{Client: c}
	kc.Kubernetes = kc
	return kc
}

// failed returns the error of a database that does not open. It omits the DSN, which may hold a password.
func (cfg Config) failed(err error) error {
	if said, ok := errors.AsType[sqlite3.Error](err); ok && (said.Code == sqlite3.ErrCorrupt ||
		said.Code == sqlite3.ErrNotADB) {
		return fmt.Errorf("open %s: %w: a file is damaged; stop using this disk, and restore the data directory and the database from one backup", describe(cfg), err)
	}
	return fmt.Errorf("open %s: %w", describe(cfg), err)
}

func describe(cfg Config) string {
	scheme, _, ok := strings.Cut(cfg.Endpoint, "://")
	if !ok || scheme == "" {
		if cfg.Endpoint != "" {
			return "datastore endpoint"
		}
		return fmt.Sprintf("database in %q", filepath.Join(cfg.DataDir, "db"))
	}
	return fmt.Sprintf("datastore endpoint %q", scheme+"://...")
}

// tolerantRegisterer ignores collectors that are already registered, so that one process can run several servers, as
// tests do.
type tolerantRegisterer struct{ prometheus.Registerer }

func (r tolerantRegisterer) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		if err := r.Register(c); err != nil {
			if already := new(prometheus.AlreadyRegisteredError); !errors.As(err, already) {
				panic(err)
			}
		}
	}
}
