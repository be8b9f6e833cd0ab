package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/k3s-io/kine/pkg/drivers"
	"github.com/k3s-io/kine/pkg/drivers/sqlite"
	"github.com/k3s-io/kine/pkg/logstructured"
	"github.com/k3s-io/kine/pkg/logstructured/sqllog"
	"github.com/k3s-io/kine/pkg/server"
)

// sqliteBackend is kine's backend on SQLite, with fewer statements for a write. Kine reads a key before it writes it.
// Here, the statement that writes has the condition, and kine reads the key only if the condition was not met.
//
// A caller can cancel a call before it begins, and a write while it waits for the writer. It cannot cancel a statement,
// because the driver starts a goroutine for each row and statement of a call that can be cancelled. That costs more
// than the row.
type sqliteBackend struct {
	server.Backend
	inserts *inserts
	log     *sqllog.SQLLog
	latest  *latest
}

// openSQLite opens the database in a directory. Its writer ends with ctx.
func openSQLite(ctx context.Context, wg *sync.WaitGroup, dc *drivers.Config,
	dir string) (*sqliteBackend, *table, error) {
	if strings.ContainsRune(dir, '?') {
		return nil, nil, fmt.Errorf("path %q: SQLite takes what follows a question mark for options; choose a data directory without one", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	dc.Scheme = "sqlite"
	file := filepath.Join(dir, "state.db")
	dc.DataSourceName = file + "?" + sqlite.DefaultParams + "&_kine_disable_startup_vacuum"
	_, dialect, err := sqlite.NewVariant(ctx, wg, "sqlite3", dc)
	if err != nil {
		return nil, nil, err
	}
	// SQLite allows one writer. With a mutex, writers do not have to sleep on SQLITE_BUSY.
	dialect.LockWrites = true
	dialect.CompactSQL, dialect.GetRevisionAfterSQL = compactSQLite, seedSQLite
	rows := newInserts(ctx, wg, dialect)
	log := sqllog.New(rows, dc.CompactInterval, dc.CompactIntervalJitter, dc.CompactTimeout, dc.CompactMinRetain,
		dc.CompactBatchSize, dc.PollBatchSize)
	backend := &sqliteBackend{Backend: logstructured.New(log), inserts: rows, log: log, latest: newLatest()}
	return backend, &table{db: dialect.DB, write: dialect, file: file}, nil
}

func (b *sqliteBackend) Get(ctx context.Context, key string, revision int64,
	keysOnly bool) (int64, *server.KeyValue, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	return b.Backend.Get(context.WithoutCancel(ctx), key, revision, keysOnly)
}

func (b *sqliteBackend) Create(ctx context.Context, key string, value []byte, lease int64) (int64, error) {
	defer b.latest.write(key)()
	event := &server.Event{Create: true, KV: &server.KeyValue{Key: key, Value: value, Lease: lease}}
	at, err := b.log.Append(ctx, event)
	if errors.Is(err, server.ErrKeyExists) {
		return b.Backend.Create(context.WithoutCancel(ctx), key, value, lease)
	}
	return at, err
}

func (b *sqliteBackend) Update(ctx context.Context, key string, value []byte, revision,
	lease int64) (int64, *server.KeyValue, bool, error) {
	defer b.latest.write(key)()
	event := &server.Event{KV: &server.KeyValue{Key: key, Value: value, Lease: lease},
		PrevKV: &server.KeyValue{ModRevision: revision}}
	at, err := b.log.Append(ctx, event)
	if errors.Is(err, server.ErrKeyExists) {
		return b.Backend.Update(context.WithoutCancel(ctx), key, value, revision, lease)
	}
	if err != nil {
		return 0, nil, false, err
	}
	event.KV.ModRevision = at
	return at, event.KV, true, nil
}

// Delete implements server.Backend. Kine's takes each error of the write for a conflict, and then returns a deleted key
// as one that exists.
func (b *sqliteBackend) Delete(ctx context.Context, key string, revision int64) (int64, *server.KeyValue, bool, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, false, err
	}
	defer b.latest.write(key)()
	for {
		at, current, err := b.Backend.Get(context.WithoutCancel(ctx), key, 0, false)
		if err != nil || current == nil || revision != 0 && current.ModRevision != revision {
			return at, current, false, err
		}
		event := &server.Event{Delete: true, KV: &server.KeyValue{Key: key},
			PrevKV: &server.KeyValue{ModRevision: current.ModRevision}}
		at, err = b.log.Append(ctx, event)
		if !errors.Is(err, server.ErrKeyExists) {
			return at, current, err == nil, err
		}
	}
}
