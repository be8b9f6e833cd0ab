package storage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mattn/go-sqlite3"

	"github.com/hykube/hykube/internal/atomicfile"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/server/storage/records"
)

const (
	// spoolDir is the directory for spooled writes, in the data directory.
	spoolDir = "spool"
	// spoolAfter is the time after which a write of Persist that has no answer is spooled.
	spoolAfter = time.Second
	// Between two attempts, Persist waits for firstPause, and each time twice as long, up to maxPause.
	firstPause = 50 * time.Millisecond
	maxPause   = 5 * time.Second
	// warnEvery is the minimum time between two warnings of one write.
	warnEvery = time.Minute
)

// Persist implements ledger.KV.
func (k *KV) Persist(ctx context.Context, writes []ledger.Write, spool bool) ([]int64, error) {
	file := &spooled{kv: k, writes: writes}
	if spool {
		defer time.AfterFunc(spoolAfter, file.write).Stop()
		defer file.remove()
	}
	var warned time.Time
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		revisions, err := k.Batch(ctx, writes)
		if errors.Is(err, ledger.ErrConflict) && !warned.IsZero() {
			revisions, err = k.made(ctx, writes)
		}
		switch {
		case err == nil || errors.Is(err, ledger.ErrConflict) || tooLarge(err) || ctx.Err() != nil:
			return revisions, err
		case errors.Is(err, records.ErrClosed) || errors.Is(err, records.ErrTakenOver):
			file.keep()
			return nil, err
		case time.Since(warned) >= warnEvery:
			warned = time.Now()
			k.spool.log.WarnContext(ctx, "the database does not record a change; the server tries again", "record",
				writes[0].Key, "error", err)
		}
		if spool {
			file.write()
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// sleep waits, without the caller's slot of the processors. It returns the error of a context that ended meanwhile.
func sleep(ctx context.Context, pause time.Duration) error {
	defer fair.Pause(ctx)()
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tooLarge reports whether the database never takes a write, because it is too large for it.
func tooLarge(err error) bool {
	if e, ok := errors.AsType[sqlite3.Error](err); ok {
		return e.Code == sqlite3.ErrTooBig
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgerrcode.IsDataException(e.Code) || pgerrcode.IsProgramLimitExceeded(e.Code)
	}
	if e, ok := errors.AsType[*mysqldriver.MySQLError](err); ok {
		return e.Number == mysqlPacketTooLarge || e.Number == mysqlDataTooLong
	}
	return errors.Is(err, mysqldriver.ErrPktTooLarge)
}

// made returns the revisions of writes whose transaction was committed although its answer was lost, or
// ledger.ErrConflict if it was not. The transaction is proven if the database has a value of it.
func (k *KV) made(ctx context.Context, writes []ledger.Write) ([]int64, error) {
	revisions, committed := make([]int64, len(writes)), false
	for i, w := range writes {
		if w.Op != ledger.OpPut {
			continue
		}
		value, revision, err := k.Get(ctx, w.Key)
		if errors.Is(err, ledger.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if bytes.Equal(value, w.Value) {
			revisions[i], committed = revision, true
		}
	}
	if !committed {
		return nil, ledger.ErrConflict
	}
	return revisions, nil
}

// spool keeps writes in files until the database takes them.
type spool struct {
	dir string
	log *slog.Logger
}

// spooled is the file of the writes of one transaction.
type spooled struct {
	kv     *KV
	writes []ledger.Write

	mu sync.Mutex
	// path is that of the file; empty if there is none. ended is true if no file is needed any more.
	path  string
	ended bool
}

// write writes the file, unless it is written. An error is logged: the caller goes on with its attempts.
func (f *spooled) write() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || f.path != "" {
		return
	}
	path := filepath.Join(f.kv.spool.dir, uuid.NewString()+".json")
	var data []byte
	sealed, err := seal(context.Background(), f.kv.lastKeys, f.writes)
	if err == nil {
		data, err = json.Marshal(sealed)
	}
	if err == nil {
		err = atomicfile.Write(path, data, 0o600)
	}
	if err != nil {
		f.kv.spool.log.Error("the database does not record a change, and neither does the disk", "record",
			f.writes[0].Key, "error", err)
		return
	}
	f.path = path
}

// remove removes the file, if there is one, and prevents that it is written.
func (f *spooled) remove() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended = true; f.path == "" {
		return
	}
	if err := os.Remove(f.path); err != nil {
		f.kv.spool.log.Warn("remove a recorded change from the spool", "file", f.path, "error", err)
	}
}

// keep writes the file, and prevents that it is removed.
func (f *spooled) keep() {
	f.write()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.path, f.ended = "", true
}

// replay makes the writes that an earlier process left in the spool. It keeps a file whose records changed since, and
// logs that.
func (s spool) replay(ctx context.Context, kv *KV) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("make the spool: %w", err)
	}
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("read the spool: %w", err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".json") {
			continue
		}
		if err := s.replayFile(ctx, kv, filepath.Join(s.dir, file.Name())); err != nil {
			return fmt.Errorf("record the change in %s: %w", filepath.Join(s.dir, file.Name()), err)
		}
	}
	return nil
}

func (s spool) replayFile(ctx context.Context, kv *KV, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var writes []ledger.Write
	if err := json.Unmarshal(data, &writes); err != nil {
		return err
	}
	for i, w := range writes {
		if w.Op != ledger.OpPut {
			continue
		}
		if writes[i].Value, err = kv.decrypt(ctx, w.Key, w.Value); err != nil {
			return err
		}
	}
	_, err = kv.Batch(ctx, writes)
	if errors.Is(err, ledger.ErrConflict) {
		_, err = kv.made(ctx, writes)
	}
	switch {
	case errors.Is(err, ledger.ErrConflict):
		s.log.ErrorContext(ctx, "a provider's answer is not recorded, because its record was changed after the server stopped",
			"record", writes[0].Key, "file", path+".refused")
		return os.Rename(path, path+".refused")
	case err != nil:
		return err
	}
	s.log.InfoContext(ctx, "recorded a provider's answer that the database had not taken before the server stopped",
		"record", writes[0].Key)
	return os.Remove(path)
}
