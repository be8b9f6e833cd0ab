package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/k3s-io/kine/pkg/drivers"
	"github.com/k3s-io/kine/pkg/drivers/generic"
	"github.com/k3s-io/kine/pkg/drivers/mysql"
	"github.com/k3s-io/kine/pkg/drivers/pgsql"
	"github.com/k3s-io/kine/pkg/drivers/sqlite"
	"github.com/k3s-io/kine/pkg/metrics"
	"github.com/k3s-io/kine/pkg/server"
	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"k8s.io/apiserver/pkg/storage/etcd3"
)

const (
	// connectTimeout is the maximum time until the database answers at startup. kine's own limit is five minutes.
	connectTimeout = 15 * time.Second
	// notifyInterval is an option of kine's watch server, which this package does not use.
	notifyInterval = time.Minute
	// etcdVersion is the version that kine reports. It has every feature that the watch cache requires.
	etcdVersion = "3.6.11"
)

// Config configures a Store.
type Config struct {
	// DataDir is the server's data directory, which must exist. It contains the SQLite files and the encryption key.
	DataDir string
	// Endpoint is the kine DSN of another database ("postgres://...", "mysql://..."). Empty means SQLite in DataDir.
	Endpoint string
	// EncryptionConfig is the path of a user's EncryptionConfiguration. If it is empty, only the server's own key
	// encrypts data.
	EncryptionConfig string
	// Metrics registers the database's metrics; nil disables them.
	Metrics prometheus.Registerer
	// CanaryInterval is the time between two writes of the canary key; 0 means 10 seconds. See Store.Delivers.
	CanaryInterval time.Duration
	// Compaction sets the compaction of old revisions. The zero value means an interval of five minutes and 1000
	// retained revisions.
	Compaction Compaction
	// Logger receives the log; nil discards it.
	Logger *slog.Logger
}

// Compaction configures the compaction. Every Interval, the database removes the revisions that are older than one
// Interval, except the last Retain revisions. A zero field means its default.
type Compaction struct {
	Interval time.Duration
	Retain   int64
}

// Store is an open database.
type Store struct {
	client     *kubernetes.Client
	watches    *watches
	canary     *canary
	encryption *encryption
	objects    *sharedObjects
	stop       context.CancelFunc
	drained    *sync.WaitGroup
}

// Open opens the database and creates it if necessary. The caller must call Close.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	// The database outlives ctx, because requests need it while the server drains them.
	dbctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	encryption, err := openEncryption(dbctx, cfg)
	if err != nil {
		stop()
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	wg := new(sync.WaitGroup)
	backend, err := openBackend(dbctx, wg, cfg)
	if err == nil {
		err = backend.Start(dbctx)
	}
	backend = snapshots{backend}
	var watches *watches
	if err == nil {
		watches, err = newWatches(dbctx, backend, cfg.Logger)
	}
	if err != nil {
		stop()
		wg.Wait()
		// Omit the DSN, which may hold a password.
		return nil, fmt.Errorf("open %s: %w", describe(cfg), err)
	}
	replaceFeatureChecker()
	client := newClient(dbctx, backend, watches)
	canary := newCanary(dbctx, client.Client, cfg.CanaryInterval)
	return &Store{client: client, watches: watches, canary: canary, encryption: encryption, objects: newSharedObjects(), stop: stop, drained: wg}, nil
}

// Close ends all watches and closes the database.
func (s *Store) Close() error {
	s.canary.close()
	err := s.client.Close()
	s.stop()
	s.drained.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Ready returns an error if the database does not answer within 2 seconds.
func (s *Store) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if _, err := s.client.KV.Get(ctx, server.HealthKey); err != nil {
		return fmt.Errorf("ask database: %w", err)
	}
	return nil
}

// Delivers returns an error if watches no longer deliver events: a watch did not deliver a write of the canary in time.
func (s *Store) Delivers() error { return s.canary.healthy(time.Now()) }

func openBackend(ctx context.Context, wg *sync.WaitGroup, cfg Config) (server.Backend, error) {
	ctx, giveUp := context.WithCancelCause(ctx)
	timer := time.AfterFunc(connectTimeout, func() {
		giveUp(fmt.Errorf("the database did not answer within %s; check that it runs and that --datastore-endpoint is right", connectTimeout))
	})
	defer timer.Stop()

	dc := &drivers.Config{
		ConnectionPoolConfig: generic.ConnectionPoolConfig{MaxIdle: 20, MaxIdleTime: 2 * time.Minute},
		CompactInterval:      cmp.Or(cfg.Compaction.Interval, 5*time.Minute),
		CompactTimeout:       5 * time.Second,
		CompactMinRetain:     cmp.Or(cfg.Compaction.Retain, 1000),
		CompactBatchSize:     1000,
		PollBatchSize:        500,
	}
	if cfg.Metrics != nil {
		dc.MetricsRegisterer = tolerantRegisterer{cfg.Metrics}
		dc.MetricsRegisterer.MustRegister(metrics.SQLTotal, metrics.SQLTime, metrics.CompactTotal, metrics.InsertErrorsTotal)
	}
	scheme, rest, _ := strings.Cut(cfg.Endpoint, "://")
	var backend server.Backend
	var err error
	switch {
	case cfg.Endpoint == "":
		backend, err = openSQLite(ctx, wg, dc, filepath.Join(cfg.DataDir, "db"))
	case scheme == "postgres" || scheme == "postgresql":
		dc.Endpoint, dc.Scheme, dc.DataSourceName = cfg.Endpoint, scheme, rest
		_, backend, err = pgsql.New(ctx, wg, dc)
	case scheme == "mysql":
		dc.Endpoint, dc.Scheme, dc.DataSourceName = cfg.Endpoint, scheme, rest
		_, backend, err = mysql.New(ctx, wg, dc)
	default:
		return nil, errors.New(`unknown scheme: use "postgres://" or "mysql://", or leave --datastore-endpoint out for SQLite`)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return backend, err
}

func openSQLite(ctx context.Context, wg *sync.WaitGroup, dc *drivers.Config, dir string) (server.Backend, error) {
	if strings.ContainsRune(dir, '?') {
		return nil, fmt.Errorf("path %q: SQLite takes what follows a question mark for options; choose a data directory without one", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	dc.Scheme = "sqlite"
	dc.DataSourceName = filepath.Join(dir, "state.db") + "?" + sqlite.DefaultParams + "&_kine_disable_startup_vacuum"
	backend, dialect, err := sqlite.NewVariant(ctx, wg, "sqlite3", dc)
	if err != nil {
		return nil, err
	}
	// SQLite allows one writer. With a mutex, writers do not have to sleep on SQLITE_BUSY.
	dialect.LockWrites = true
	return backend, nil
}

// newClient returns an etcd client that calls kine directly. Its watches do not use kine's watch server: see watches.
func newClient(ctx context.Context, backend server.Backend, watches *watches) *kubernetes.Client {
	bridge := server.New(backend, "http", notifyInterval, etcdVersion)
	c := clientv3.NewCtxClient(ctx)
	c.KV = etcd3.NewETCDLatencyTracker(clientv3.NewKVFromKVClient(adapter.KvServerToKvClient(bridge), c))
	c.Lease = clientv3.NewLeaseFromLeaseClient(adapter.LeaseServerToLeaseClient(bridge), c, time.Second)
	c.Watcher = watches
	c.Maintenance = clientv3.NewMaintenanceFromMaintenanceClient(adapter.MaintenanceServerToMaintenanceClient(bridge), c)
	kc := &kubernetes.Client{Client: c}
	kc.Kubernetes = kc
	return kc
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

// snapshots is kine's backend, but the revision of a list is that of its content. Clients list, and then watch from the
// list's revision. Kine reads the revision of an empty list, or of one with more pages, after the content. An object
// that was written in between would appear neither in the list nor in the watch.
type snapshots struct{ server.Backend }

// List implements server.Backend. For an empty list, it reads the revision and then reads the list again.
func (s snapshots) List(ctx context.Context, key, end string, limit, revision int64, keysOnly bool) (int64, []*server.KeyValue, error) {
	at, kvs, err := s.Backend.List(ctx, key, end, limit, revision, keysOnly)
	if err != nil || len(kvs) > 0 || revision != 0 {
		return at, kvs, err
	}
	before, err := currentRevision(ctx, s.Backend)
	if err != nil {
		return 0, nil, err
	}
	at, kvs, err = s.Backend.List(ctx, key, end, limit, revision, keysOnly)
	if len(kvs) == 0 {
		at = before
	}
	return at, kvs, err
}

// Count implements server.Backend. Kine counts the remaining keys at the page's revision, and then uses the revision
// that Count returns as the page's revision.
func (s snapshots) Count(ctx context.Context, key, end string, revision int64) (int64, int64, error) {
	at, count, err := s.Backend.Count(ctx, key, end, revision)
	if revision != 0 {
		at = revision
	}
	return at, count, err
}
