package storage

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// table is kine's table. It lists keys faster than kine; see lists. It changes the encryption of a row but not its
// revision, which kine cannot: a new revision of each object would end approved plans and make every client read
// everything again.
type table struct {
	db *sql.DB
	// write is held while a page is written; nil if the database allows several writers.
	write sync.Locker
	// file is the path of SQLite's file; empty for a database server.
	file string
	// numbered is true if the placeholders of the database are $1, $2.
	numbered bool
	// close closes db if it is not kine's own.
	close func() error
	// connector makes connections to a database with several writers, and postgres is the configuration of PostgreSQL.
	connector driver.Connector
	postgres  *pgx.ConnConfig
	// tail follows the table of a database with several writers; nil if only this process writes.
	tail *tail
}

// row is one revision of one key.
type row struct {
	id         int64
	name       string
	value, old []byte
}

// openTable opens another connection to a PostgreSQL or MySQL database, with kine's defaults for a DSN.
func openTable(scheme, rest string) (*table, error) {
	t := &table{}
	if scheme == "mysql" {
		config, err := mysql.ParseDSN(rest)
		if err != nil {
			return nil, errors.New("parse --datastore-endpoint")
		}
		if config.DBName == "" {
			config.DBName = kineDatabase
		}
		if config.Params == nil {
			config.Params = map[string]string{}
		}
		config.Params["wait_timeout"] = fmt.Sprint(int(mysqlIdle.Seconds()))
		connector, err := mysql.NewConnector(config)
		if err != nil {
			return nil, errors.New("parse --datastore-endpoint")
		}
		t.connector = connector
	} else {
		config, err := pgx.ParseConfig("postgres://" + rest)
		if err != nil {
			return nil, errors.New("parse --datastore-endpoint") // the cause may hold the password
		}
		config.Database = strings.ToLower(config.Database)
		if !pgDatabase.MatchString(rest) {
			config.Database = kineDatabase
		}
		// PostgreSQL overestimates the cost of a page, and compiles its query for longer than it runs.
		direct := func(ctx context.Context, c *pgx.Conn) error {
			_, _ = c.Exec(ctx, "SET jit = off") // a database without that setting does not compile
			_, _ = c.Exec(ctx, fmt.Sprintf("SET idle_in_transaction_session_timeout = %d",
				maxTransactionPause.Milliseconds()))
			return nil
		}
		t.connector, t.numbered, t.postgres = stdlib.GetConnector(*config, stdlib.OptionAfterConnect(direct)), true,
			config
	}
	t.db = sql.OpenDB(t.connector)
	t.db.SetMaxIdleConns(maxIdle)
	t.db.SetConnMaxIdleTime(maxIdleTime)
	t.close = t.db.Close
	return t, nil
}

const (
	// maxIdle is the maximum number of idle connections to the database, and maxIdleTime the time for which one is
	// kept.
	maxIdle     = 20
	maxIdleTime = 10 * time.Second
	// maxTransactionPause is the time after which PostgreSQL ends a transaction whose client is silent: it is stopped,
	// or its machine is gone. Its locks would make a standby wait. MySQL ends each silent connection after mysqlIdle.
	maxTransactionPause = 8 * time.Second
	mysqlIdle           = 15 * time.Second
)

// kineDatabase is the database that kine uses if the DSN names none. pgDatabase matches a DSN that names one.
const kineDatabase = "kubernetes"

var pgDatabase = regexp.MustCompile(`^[^/?]*/[^?]`)

// maxUncancellable is the maximum number of rows of a read that its caller cannot cancel.
const maxUncancellable = 1001

// reading returns the context of a short read, or the error of a context that has ended. On SQLite, the read cannot be
// cancelled; see sqliteBackend.
func (t *table) reading(ctx context.Context) (context.Context, error) {
	if err := ctx.Err(); err != nil || t.write == nil {
		return ctx, err
	}
	return context.WithoutCancel(ctx), nil
}

// settled returns the last revision up to which no transaction can add a row.
func (t *table) settled(last int64) int64 {
	if t.tail == nil {
		return last
	}
	return min(last, t.tail.at())
}

// complete implements lister.
func (t *table) complete(ctx context.Context) (int64, error) {
	if t.tail == nil {
		return 0, nil
	}
	last, _, err := t.revisions(ctx)
	if err != nil {
		return 0, err
	}
	return last, t.tail.reach(ctx, last)
}

func (t *table) query(text string) string {
	if !t.numbered {
		return text
	}
	var b strings.Builder
	parts := strings.Split(text, "?")
	for i, part := range parts[:len(parts)-1] {
		fmt.Fprintf(&b, "%s$%d", part, i+1)
	}
	return b.String() + parts[len(parts)-1]
}

// afterName is appended to a name to get the start of a range after it. It sorts after a space, with which MySQL pads
// names that it compares.
const afterName = "#"

// used reports whether the database has objects.
func (t *table) used(ctx context.Context) (bool, error) {
	for from := objectPrefix + "/"; ; {
		name, err := t.next(ctx, from, objectPrefix+"/")
		if err != nil || name == "" {
			return false, err
		}
		if _, ok := resourceOf(name); ok {
			return true, nil
		}
		from = name + afterName
	}
}

// next returns the first name with the prefix that is not before from; "" if there is none.
func (t *table) next(ctx context.Context, from, prefix string) (name string, err error) {
	err = t.db.QueryRowContext(ctx, t.query("SELECT name FROM kine WHERE name >= ? AND name < ? ORDER BY name LIMIT 1"),
		from, clientv3.GetPrefixRangeEnd(prefix)).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read database: %w", err)
	}
	return name, nil
}

// get returns the value and the revision of a key; revision 0 means that the key does not exist.
func (t *table) get(ctx context.Context, name string) (data []byte, revision int64, err error) {
	var deleted bool
	err = t.db.QueryRowContext(ctx,
		t.query("SELECT id, deleted, value FROM kine WHERE name = ? ORDER BY id DESC LIMIT 1"), name).Scan(&revision,
		&deleted, &data)
	if errors.Is(err, sql.ErrNoRows) || err == nil && deleted {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read database: %w", err)
	}
	return data, revision, nil
}

// maxSampleNames is the maximum number of deleted keys that samples skips to find one that exists.
const maxSampleNames = 20

// samples calls check with a row of each resource. The rows are not deleted.
func (t *table) samples(ctx context.Context, check func(name string, data []byte) error) error {
	for from, tried, resource := objectPrefix+"/", 0, ""; ; {
		name, err := t.next(ctx, from, objectPrefix+"/")
		if err != nil || name == "" {
			return err
		}
		if own := resourcePrefix(name); own != resource {
			tried, resource = 0, own
		}
		data, revision, err := t.get(ctx, name)
		if err != nil {
			return err
		}
		from, tried = name+afterName, tried+1
		if revision != 0 {
			if err := check(name, data); err != nil {
				return err
			}
		}
		if revision != 0 || tried == maxSampleNames {
			from = clientv3.GetPrefixRangeEnd(resource)
		}
	}
}

// resourcePrefix returns the prefix of the keys of the resource that has the key name.
func resourcePrefix(name string) string {
	part := strings.SplitAfterN(name, "/", 5) // "/", "registry/", group, resource, rest
	return strings.Join(part[:min(len(part), 4)], "")
}

// page returns up to limit rows after id, in the order of their revisions.
func (t *table) page(ctx context.Context, id int64, limit int) (rows []row, err error) {
	found, err := t.db.QueryContext(ctx,
		t.query("SELECT id, name, value, old_value FROM kine WHERE id > ? ORDER BY id LIMIT ?"), id, limit)
	if err != nil {
		return nil, fmt.Errorf("read database: %w", err)
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var r row
		if err := found.Scan(&r.id, &r.name, &r.value, &r.old); err != nil {
			return nil, fmt.Errorf("read database: %w", err)
		}
		rows = append(rows, r)
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("read database: %w", err)
	}
	return rows, nil
}

// last returns the ID of the last row.
func (t *table) last(ctx context.Context) (id int64, err error) {
	if err := t.db.QueryRowContext(ctx, "SELECT COALESCE(MAX(id), 0) FROM kine").Scan(&id); err != nil {
		return 0, fmt.Errorf("read database: %w", err)
	}
	return id, nil
}

// update replaces the values of rows in one transaction. A revision is immutable, so no other writer changes them.
func (t *table) update(ctx context.Context, rows []row) (err error) {
	if t.write != nil {
		t.write.Lock()
		defer t.write.Unlock()
	}
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("write database: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write database: %w", err), tx.Rollback())
		}
	}()
	if t.write != nil {
		// SQLite leaves old values in the file otherwise, and those may be plain text.
		if _, err := tx.ExecContext(ctx, "PRAGMA secure_delete = 1"); err != nil {
			return err
		}
	}
	for _, r := range rows {
		if _, err := tx.ExecContext(ctx, t.query("UPDATE kine SET value = ?, old_value = ? WHERE id = ?"), r.value,
			r.old, r.id); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// truncateLog removes old values from SQLite's write-ahead log.
func (t *table) truncateLog(ctx context.Context) error {
	if t.write == nil {
		return nil
	}
	t.write.Lock()
	defer t.write.Unlock()
	if _, err := t.db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return fmt.Errorf("empty the write-ahead log: %w", err)
	}
	return nil
}
