package storage

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/server/storage/records"
)

const (
	// takenKey is a key of kine: its value holds the identity of the ledger's tables. It sorts before the records of an
	// older version, and no key decrypts it. So an older version refuses to start with tables that it does not know.
	takenKey    = ledgerPrefix + "!taken"
	takenPrefix = "a newer version of hykube:"
	// oldPage is the number of old rows that are read or removed at once.
	oldPage = 500
	// oldRetry is the time after which the removal of old rows continues. Within it, the canary may write a row with a
	// higher revision, so that the last old row can be removed, too.
	oldRetry = time.Second
)

// Steps of a takeover.
const (
	stepCopied   = "copied the ledger"
	stepTaken    = "noted the ledger's identity"
	stepComplete = "completed the takeover"
	stepRemoved  = "removed a page of old rows"
)

// takeover moves the ledger of an older version from kine to tables of its own. Before it is complete, nothing else
// writes to the tables, and kine keeps its rows, so a takeover that was interrupted begins again. Afterwards it checks
// at each start that the objects and the ledger belong together.
type takeover struct {
	table   *table
	records *records.Store
	log     *slog.Logger
	// at is called at the steps, so that tests can end the process there; nil does nothing.
	at func(step string)
}

func (o *takeover) reach(step string) {
	if o.at != nil {
		o.at(step)
	}
}

// openRecords opens the tables of the ledger: in a file of its own beside kine's SQLite file, or in kine's database.
func openRecords(ctx context.Context, cfg Config, t *table) (*records.Store, func() error, error) {
	own := records.Config{Logger: cfg.Logger, Read: t.db, Write: t.db}
	closed := func() error { return nil }
	switch {
	case cfg.Endpoint == "":
		var err error
		if own, err = openLedgerFile(filepath.Join(cfg.DataDir, "db", "ledger.db")); err != nil {
			return nil, nil, err
		}
		own.Logger = cfg.Logger
		closed = func() error { return errors.Join(own.Read.Close(), own.Write.Close()) }
	case t.numbered:
		own.Dialect = records.PostgreSQL
	default:
		own.Dialect = records.MySQL
	}
	s, err := records.Open(ctx, own)
	if err != nil {
		return nil, nil, errors.Join(err, closed())
	}
	return s, closed, nil
}

// openLedgerFile opens the ledger's SQLite file. With FULL, a transaction is on the disk when it ends. With NORMAL, a
// power loss could take an intent and its outcome together, and the next plan would create the resource again.
func openLedgerFile(path string) (c records.Config, err error) {
	c.Dialect = records.SQLite
	path += "?_journal_mode=WAL&_synchronous=FULL&_busy_timeout=30000&_stmt_cache_size=20"
	if c.Read, err = sql.Open("sqlite3", path+"&_txlock=deferred"); err != nil {
		return c, err
	}
	if c.Write, err = sql.Open("sqlite3", path+"&_txlock=immediate"); err != nil {
		return c, errors.Join(err, c.Read.Close())
	}
	c.Write.SetMaxOpenConns(1)
	c.Read.SetMaxIdleConns(8)
	return c, nil
}

// copy copies the records of an older version. It returns an error if the tables of the ledger and kine do not belong
// together.
func (o *takeover) copy(ctx context.Context) error {
	taken, _, err := o.table.get(ctx, takenKey)
	if err != nil {
		return err
	}
	identity, complete, err := o.records.Identity(ctx)
	if err != nil {
		return err
	}
	switch wanted := strings.TrimPrefix(string(bytes.TrimPrefix(taken, keyPrefix)), takenPrefix); {
	case complete && taken == nil:
		return errors.New("the ledger is newer than the objects: restore db/state.db and db/ledger.db, or the whole database, from one backup")
	case taken != nil && identity != wanted:
		return errors.New("the ledger is missing or belongs to other objects: restore db/state.db and db/ledger.db, or the whole database, from one backup")
	case taken != nil:
		return nil
	}
	last, err := o.table.last(ctx)
	if err != nil {
		return err
	}
	n := 0
	entries := func(yield func(ledger.Entry, error) bool) {
		for e, err := range o.table.existing(ctx, takenKey, clientv3.GetPrefixRangeEnd(ledgerPrefix)) {
			n++
			if e.Key = strings.TrimPrefix(e.Key, ledgerPrefix); !yield(e, err) {
				return
			}
		}
	}
	// The values stay encrypted, because their keys are part of the encryption.
	if err := o.records.TakeOver(ctx, rand.Text(), last, entries); err != nil {
		return fmt.Errorf("move the ledger to tables of its own: %w", err)
	}
	if n > 0 {
		o.log.Info("the ledger has tables of its own now", "records", n)
	}
	o.reach(stepCopied)
	return nil
}

// complete notes the identity of the tables in kine. From then on, the tables are the ledger, and kine's rows are removed
// in the background.
func (o *takeover) complete(ctx context.Context, client clientv3.KV, done *sync.WaitGroup) error {
	identity, complete, err := o.records.Identity(ctx)
	if err == nil && !complete {
		err = o.note(ctx, client, identity)
	}
	if err != nil {
		return err
	}
	return o.removeOldLater(ctx, done)
}

func (o *takeover) note(ctx context.Context, client clientv3.KV, identity string) error {
	value := append(bytes.Clone(keyPrefix), takenPrefix+identity...)
	if _, _, err := putAt(ctx, client, takenKey, value, 0); err != nil {
		return fmt.Errorf("note the identity of the ledger: %w", err)
	}
	o.reach(stepTaken)
	// kine's commits are not on the disk at once. Without this note, the next start would copy the old rows again.
	if err := o.table.truncateLog(ctx); err != nil {
		return err
	}
	if err := o.records.Complete(ctx); err != nil {
		return err
	}
	o.reach(stepComplete)
	return nil
}

// removeOldLater removes the records of an older version from kine in the background, if there are any.
func (o *takeover) removeOldLater(ctx context.Context, done *sync.WaitGroup) error {
	old, err := o.table.next(ctx, takenKey+afterName, ledgerPrefix)
	if err == nil && old != "" {
		done.Go(func() { o.removeOld(ctx) })
	}
	return err
}

// removeOld removes the records of an older version from kine, until none is left or ctx ends.
func (o *takeover) removeOld(ctx context.Context) {
	for {
		left, err := o.table.removeOld(ctx, takenKey, clientv3.GetPrefixRangeEnd(ledgerPrefix), func() { o.reach(stepRemoved) })
		if err == nil && !left {
			return
		}
		if err != nil && ctx.Err() == nil {
			o.log.Warn("cannot remove the records that have moved to tables of their own", "error", err)
		}
		if pause(ctx, oldRetry) != nil {
			return
		}
	}
}

// existing returns the keys between two names, without their deleted and previous revisions.
func (t *table) existing(ctx context.Context, after, end string) iter.Seq2[ledger.Entry, error] {
	query := t.query(`SELECT k.name, k.id, k.value FROM kine AS k WHERE k.name > ? AND k.name < ? AND k.deleted = 0
		AND k.id = (SELECT MAX(i.id) FROM kine AS i WHERE i.name = k.name) ORDER BY k.name LIMIT ?`)
	return func(yield func(ledger.Entry, error) bool) {
		for {
			page, err := t.entries(ctx, query, after, end, oldPage)
			if err != nil {
				yield(ledger.Entry{}, err)
				return
			}
			for _, e := range page {
				if after = e.Key; !yield(e, nil) {
					return
				}
			}
			if len(page) < oldPage {
				return
			}
		}
	}
}

func (t *table) entries(ctx context.Context, query string, args ...any) (out []ledger.Entry, err error) {
	rows, err := t.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read database: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var e ledger.Entry
		if err := rows.Scan(&e.Key, &e.Revision, &e.Value); err != nil {
			return nil, fmt.Errorf("read database: %w", err)
		}
		out = append(out, e)
	}
	return out, rows.Err()
}

// removeOld removes all revisions of the names between two names. It keeps the last revision of the database, from which
// kine counts: left is then true.
func (t *table) removeOld(ctx context.Context, after, end string, removed func()) (left bool, err error) {
	last, err := t.last(ctx)
	if err != nil {
		return false, err
	}
	query := t.query("SELECT name, id, NULL FROM kine WHERE name > ? AND name < ? LIMIT ?")
	for {
		page, err := t.entries(ctx, query, after, end, oldPage)
		if err != nil || len(page) == 0 {
			return false, err
		}
		var ids []any
		for _, e := range page {
			if e.Revision < last {
				ids = append(ids, e.Revision)
			}
		}
		if len(ids) == 0 {
			return true, nil
		}
		if err := t.remove(ctx, ids); err != nil {
			return false, err
		}
		removed()
		if err := pause(ctx, time.Millisecond*time.Duration(cmp.Or(len(ids)/50, 1))); err != nil { // leaves time to requests
			return false, err
		}
	}
}

func (t *table) remove(ctx context.Context, ids []any) error {
	if t.write != nil {
		t.write.Lock()
		defer t.write.Unlock()
	}
	_, err := t.db.ExecContext(ctx, t.query("DELETE FROM kine WHERE id IN ("+strings.TrimSuffix(strings.Repeat("?, ", len(ids)), ", ")+")"), ids...)
	if err != nil {
		return fmt.Errorf("write database: %w", err)
	}
	return nil
}
