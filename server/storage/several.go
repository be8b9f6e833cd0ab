package storage

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/k3s-io/kine/pkg/drivers"
	"github.com/k3s-io/kine/pkg/drivers/generic"
	"github.com/k3s-io/kine/pkg/drivers/mysql"
	"github.com/k3s-io/kine/pkg/drivers/pgsql"
	"github.com/k3s-io/kine/pkg/logstructured"
	"github.com/k3s-io/kine/pkg/logstructured/sqllog"
	"github.com/k3s-io/kine/pkg/query"
	"github.com/k3s-io/kine/pkg/server"
	"github.com/sirupsen/logrus"
)

// openSeveral opens a database with several writers: PostgreSQL, or MySQL and MariaDB. With create, it creates a
// missing one. Kine makes its tables. Kine's own backend would lose events, so the backend here has another log: see
// tail.
func openSeveral(ctx context.Context, wg *sync.WaitGroup, dc *drivers.Config, create bool,
	log *slog.Logger) (_ server.Backend, _ *table, err error) {
	t, err := openTable(dc.Scheme, dc.DataSourceName)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	t.db.SetMaxOpenConns(dc.ConnectionPoolConfig.MaxOpen)
	if err := t.connect(ctx, connectTimeout, create); err != nil {
		return nil, nil, err
	}
	if err := makeTables(ctx, t.numbered, *dc); err != nil {
		return nil, nil, err
	}
	dc.ConnectionPoolConfig.MaxIdleTime = maxIdleTime
	name, placeholder := "mysql", "?"
	if t.numbered {
		name, placeholder = "pgx", "$"
	}
	d, err := generic.OpenDB(ctx, wg, name, t.connector, dc.ConnectionPoolConfig, placeholder, t.numbered,
		dc.MetricsRegisterer)
	if err != nil {
		return nil, nil, err
	}
	var running writers = mysqlWriters{t.db}
	if t.numbered {
		adaptPostgreSQL(d)
		running = postgresWriters{t.db}
		if _, err := t.db.ExecContext(ctx, catchUp); err != nil {
			return nil, nil, fmt.Errorf("compare the sequence of the table kine with its rows: %w", err)
		}
	} else {
		adaptMySQL(d)
	}
	rows := lasting{d}
	t.tail = newTail(rows, running, log)
	own := sqllog.New(rows, dc.CompactInterval, dc.CompactIntervalJitter, dc.CompactTimeout, dc.CompactMinRetain,
		dc.CompactBatchSize, dc.PollBatchSize)
	return logstructured.New(sharedLog{own, t.tail, wg}), t, nil
}

// makeTables lets kine create its table and indexes.
func makeTables(ctx context.Context, postgres bool, dc drivers.Config) error {
	dc.MetricsRegisterer = nil
	open := mysql.New
	if postgres {
		open = pgsql.New
	}
	var closed sync.WaitGroup
	ctx, done := context.WithCancel(ctx)
	_, _, err := open(ctx, &closed, &dc)
	done()
	closed.Wait()
	return err
}

// lasting is kine's dialect, whose failed transactions do not end the process. Kine ends it if the database goes away
// during a compaction.
type lasting struct{ *generic.Generic }

func (l lasting) BeginTx(ctx context.Context, opts *sql.TxOptions) (server.Transaction, error) {
	tx, err := l.Generic.BeginTx(ctx, opts)
	return lastingTx{tx}, err
}

type lastingTx struct{ server.Transaction }

func (t lastingTx) MustCommit() {
	if err := t.Commit(); err != nil {
		logrus.Errorf("Transaction commit failed: %v", err)
	}
}

// MustRollback ignores errors: without its connection, the database rolls back itself.
func (t lastingTx) MustRollback() { _ = t.Rollback() }

// adaptPostgreSQL sets what kine sets for PostgreSQL.
func adaptPostgreSQL(d *generic.Generic) {
	d.GetSizeSQL = query.New(`SELECT pg_total_relation_size('kine')`, "$", true, "GetSize")
	d.CompactSQL = query.New("DELETE FROM kine AS kv USING ("+replaced+") AS ks WHERE kv.id = ks.id", "$", true,
		"Compact")
	d.TranslateErr = func(err error) error {
		if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == pgerrcode.UniqueViolation {
			return server.ErrKeyExists
		}
		return err
	}
	d.ErrCode = func(err error) string {
		if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
			return refused.Code
		}
		return textOf(err)
	}
	d.TranslateStartKeyFunc = afterNull("\x1a")
}

// adaptMySQL sets what kine sets for MySQL.
func adaptMySQL(d *generic.Generic) {
	d.LastInsertID = true
	d.GetSizeSQL = query.New(`SELECT SUM(data_length + index_length) FROM information_schema.TABLES
		WHERE table_schema = DATABASE() AND table_name = 'kine'`, "?", false, "GetSize")
	d.CompactSQL = query.New("DELETE kv FROM kine AS kv INNER JOIN ("+replaced+") AS ks ON kv.id = ks.id", "?", false,
		"Compact")
	d.TranslateErr = func(err error) error {
		if refused, ok := errors.AsType[*mysqldriver.MySQLError](err); ok && refused.Number == mysqlDuplicate {
			return server.ErrKeyExists
		}
		return err
	}
	d.ErrCode = func(err error) string {
		if refused, ok := errors.AsType[*mysqldriver.MySQLError](err); ok {
			return fmt.Sprint(refused.Number)
		}
		return textOf(err)
	}
	d.TranslateStartKeyFunc = afterNull(afterName)
}

// afterNull replaces a null byte at the end of a key, with which the database cannot compare.
func afterNull(by string) generic.SubstituteFunc {
	return func(key string) string {
		if start, ok := strings.CutSuffix(key, "\x00"); ok {
			return start + by
		}
		return key
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// replaced selects the rows up to a revision that a later row replaced, and deletions.
const replaced = `
	SELECT kp.prev_revision AS id FROM kine AS kp
	WHERE kp.name != 'compact_rev_key' AND kp.prev_revision != 0 AND kp.id <= ?
	UNION
	SELECT kd.id AS id FROM kine AS kd WHERE kd.deleted != 0 AND kd.id <= ?`

// catchUp moves PostgreSQL's sequence to the last row if it is behind. A logical replica has the rows, but not the
// state of the sequence. New rows would be numbered before the existing ones, and no watch would see them.
const catchUp = `SELECT setval(own.sequence, own.last) FROM (
		SELECT pg_get_serial_sequence('kine', 'id') AS sequence, (SELECT MAX(id) FROM kine) AS last
	) AS own
	WHERE own.sequence IS NOT NULL AND own.last > COALESCE(pg_sequence_last_value(own.sequence::regclass), 0)`

// postgresWriters are the transactions of PostgreSQL. A transaction that takes a number from a sequence holds a lock of
// the sequence until it ends, also before it has written a row and has an ID. Without a sequence of its own, the table
// shows the transactions: one that inserts holds a lock of the table before it takes a number.
type postgresWriters struct{ db *sql.DB }

func (w postgresWriters) running(ctx context.Context) (found map[string]string, err error) {
	rows, err := w.db.QueryContext(ctx, `SELECT virtualtransaction, COALESCE(pid, 0) FROM pg_locks
		WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND relation = COALESCE(pg_get_serial_sequence('kine', 'id'), 'kine')::regclass`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	found = map[string]string{}
	for rows.Next() {
		var id string
		var process int64
		if err := rows.Scan(&id, &process); err != nil {
			return nil, err
		}
		if found[id] = "a prepared transaction"; process != 0 {
			found[id] = fmt.Sprintf("process %d of PostgreSQL", process)
		}
	}
	return found, rows.Err()
}

// mysqlWriters are the transactions of MySQL and MariaDB. Only administrators may list them. So running locks the
// table: it receives the lock when no transaction that writes to the table is open. Meanwhile, new transactions wait.
type mysqlWriters struct{ db *sql.DB }

const (
	mysqlDuplicate      = 1062
	mysqlPacketTooLarge = 1153
	mysqlLockTimeout    = 1205
	mysqlDataTooLong    = 1406
)

func (w mysqlWriters) running(ctx context.Context) (found map[string]string, err error) {
	c, err := w.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		// The settings and the lock belong to the connection, so it is not used again after an error.
		if _, failed := c.ExecContext(ctx, "UNLOCK TABLES"); failed != nil || err != nil {
			_ = c.Raw(func(any) error { return driver.ErrBadConn })
		}
		_ = c.Close()
	}()
	if _, err := c.ExecContext(ctx, "SET SESSION lock_wait_timeout = 1"); err != nil {
		return nil, err
	}
	_, err = c.ExecContext(ctx, "LOCK TABLES kine READ")
	if refused, ok := errors.AsType[*mysqldriver.MySQLError](err); ok && refused.Number == mysqlLockTimeout {
		found, err = map[string]string{"": "one that writes to the table kine"}, nil
	}
	if err != nil {
		return nil, err
	}
	_, err = c.ExecContext(ctx, "SET SESSION lock_wait_timeout = @@GLOBAL.lock_wait_timeout")
	return found, err
}
