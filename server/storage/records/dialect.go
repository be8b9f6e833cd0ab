package records

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Dialect is the SQL of one kind of database.
type Dialect struct {
	// tables are the statements that create the tables.
	tables []string
	// numbered is true if the placeholders are $1, $2 instead of ?.
	numbered bool
	// put begins a statement that writes rows, and putEnd ends it.
	put, putEnd string
	// lock reads the state and locks it until the transaction ends. SQLite locks the file when a transaction begins.
	lock string
	// isolation is the isolation of writing transactions. Each of them holds the lock.
	isolation sql.IsolationLevel
	// size returns the bytes of the tables.
	size string
	// byRevision makes a query read a table in the order of its revisions instead of its names.
	byRevision string
	// now is the time of the database in milliseconds.
	now string
	// embedded is true for SQLite, whose calls never wait for a network. Only one process uses its files, without a
	// lease.
	embedded bool
}

const (
	rowColumns = "(name, value, revision) VALUES "
	readState  = "SELECT revision, forgotten, identity, epoch FROM hykube_ledger_state WHERE id = 1"
)

// SQLite is the dialect of SQLite. The revision is the row's ID, so that new rows are written side by side.
var SQLite = Dialect{
	tables: []string{
		`CREATE TABLE IF NOT EXISTS hykube_ledger (revision INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, value BLOB NOT NULL)`,
		`CREATE TABLE IF NOT EXISTS hykube_ledger_deleted (revision INTEGER PRIMARY KEY, name BLOB NOT NULL, at INTEGER NOT NULL)`,
		`CREATE TABLE IF NOT EXISTS hykube_ledger_state (id INTEGER PRIMARY KEY, revision INTEGER NOT NULL, forgotten INTEGER NOT NULL,
			identity TEXT NOT NULL, epoch INTEGER NOT NULL,
			objects INTEGER NOT NULL, noted INTEGER NOT NULL)`,
		`INSERT OR IGNORE INTO hykube_ledger_state VALUES (1, 1, 0, '', 0, 0, 0)`,
	},
	put:        "INSERT OR REPLACE INTO hykube_ledger " + rowColumns,
	lock:       readState,
	size:       "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()",
	byRevision: " NOT INDEXED", // the revision is the row's ID
	embedded:   true,
}

// PostgreSQL is the dialect of PostgreSQL.
var PostgreSQL = Dialect{
	tables: []string{
		`CREATE TABLE IF NOT EXISTS hykube_ledger (name BYTEA PRIMARY KEY, value BYTEA NOT NULL, revision BIGINT NOT NULL UNIQUE)`,
		`CREATE TABLE IF NOT EXISTS hykube_ledger_deleted (revision BIGINT PRIMARY KEY, name BYTEA NOT NULL, at BIGINT NOT NULL)`,
		`CREATE TABLE IF NOT EXISTS hykube_ledger_state (id INT PRIMARY KEY, revision BIGINT NOT NULL, forgotten BIGINT NOT NULL,
			identity TEXT NOT NULL, epoch BIGINT NOT NULL, objects BIGINT NOT NULL, noted BIGINT NOT NULL)`,
		`INSERT INTO hykube_ledger_state VALUES (1, 1, 0, '', 0, 0, 0) ON CONFLICT DO NOTHING`,
		`CREATE TABLE IF NOT EXISTS hykube_server (id INT PRIMARY KEY, epoch BIGINT NOT NULL, owner TEXT NOT NULL, address TEXT NOT NULL,
			version TEXT NOT NULL, format INT NOT NULL, expires BIGINT NOT NULL)`,
		`INSERT INTO hykube_server VALUES (1, 0, '', '', '', 0, 0) ON CONFLICT DO NOTHING`,
		`CREATE TABLE IF NOT EXISTS hykube_process (process TEXT PRIMARY KEY, owner TEXT NOT NULL, leader INT NOT NULL,
			address TEXT NOT NULL, settings TEXT NOT NULL, expires BIGINT NOT NULL)`,
		`CREATE TABLE IF NOT EXISTS hykube_slot (id TEXT PRIMARY KEY, name TEXT NOT NULL, process TEXT NOT NULL)`,
		`CREATE TABLE IF NOT EXISTS hykube_share (name TEXT NOT NULL, process TEXT NOT NULL, want BIGINT NOT NULL, held BIGINT NOT NULL,
			turn BIGINT NOT NULL, PRIMARY KEY (name, process))`,
	},
	numbered:  true,
	put:       "INSERT INTO hykube_ledger " + rowColumns,
	putEnd:    " ON CONFLICT (name) DO UPDATE SET value = excluded.value, revision = excluded.revision",
	lock:      readState + " FOR UPDATE",
	isolation: sql.LevelReadCommitted,
	size:      "SELECT pg_total_relation_size('hykube_ledger') + pg_total_relation_size('hykube_ledger_deleted')",
	now:       "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
}

// MySQL is the dialect of MySQL and MariaDB.
var MySQL = Dialect{
	tables: []string{
		`CREATE TABLE IF NOT EXISTS hykube_ledger (name VARBINARY(640) PRIMARY KEY, value LONGBLOB NOT NULL, revision BIGINT NOT NULL UNIQUE)`,
		`CREATE TABLE IF NOT EXISTS hykube_ledger_deleted (revision BIGINT PRIMARY KEY, name VARBINARY(640) NOT NULL, at BIGINT NOT NULL)`,
		`CREATE TABLE IF NOT EXISTS hykube_ledger_state (id INT PRIMARY KEY, revision BIGINT NOT NULL, forgotten BIGINT NOT NULL,
			identity VARCHAR(64) NOT NULL, epoch BIGINT NOT NULL, objects BIGINT NOT NULL, noted BIGINT NOT NULL)`,
		`INSERT IGNORE INTO hykube_ledger_state VALUES (1, 1, 0, '', 0, 0, 0)`,
		`CREATE TABLE IF NOT EXISTS hykube_server (id INT PRIMARY KEY, epoch BIGINT NOT NULL, owner VARCHAR(255) NOT NULL, address VARCHAR(255) NOT NULL,
			version VARCHAR(255) NOT NULL, format INT NOT NULL, expires BIGINT NOT NULL)`,
		`INSERT IGNORE INTO hykube_server VALUES (1, 0, '', '', '', 0, 0)`,
		`CREATE TABLE IF NOT EXISTS hykube_process (process VARCHAR(64) PRIMARY KEY, owner VARCHAR(255) NOT NULL, leader INT NOT NULL,
			address VARCHAR(255) NOT NULL, settings TEXT NOT NULL, expires BIGINT NOT NULL)`,
		`CREATE TABLE IF NOT EXISTS hykube_slot (id VARCHAR(64) PRIMARY KEY, name VARCHAR(640) NOT NULL, process VARCHAR(64) NOT NULL)`,
		`CREATE TABLE IF NOT EXISTS hykube_share (name VARCHAR(640) NOT NULL, process VARCHAR(64) NOT NULL, want BIGINT NOT NULL,
			held BIGINT NOT NULL, turn BIGINT NOT NULL, PRIMARY KEY (name, process))`,
	},
	put:       "INSERT INTO hykube_ledger " + rowColumns,
	putEnd:    " ON DUPLICATE KEY UPDATE value = VALUES(value), revision = VALUES(revision)",
	lock:      readState + " FOR UPDATE",
	isolation: sql.LevelReadCommitted,
	size: `SELECT COALESCE(SUM(data_length + index_length), 0) FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_name IN ('hykube_ledger', 'hykube_ledger_deleted')`,
	now: "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// text returns a statement with the placeholders of the dialect.
func (d Dialect) text(statement string) string {
	if !d.numbered {
		return statement
	}
	parts := strings.Split(statement, "?")
	var b strings.Builder
	for i, part := range parts[:len(parts)-1] {
		fmt.Fprintf(&b, "%s$%d", part, i+1)
	}
	return b.String() + parts[len(parts)-1]
}

// repeat returns n times the text, separated by commas.
func repeat(text string, n int) string { return strings.Repeat(text+", ", n-1) + text }

// inRange returns the condition that a name begins with prefix, and its arguments.
func inRange(prefix string) (condition string, args []any) {
	if end := prefixEnd(prefix); end != nil {
		return "name >= ? AND name < ?", []any{[]byte(prefix), end}
	}
	return "name >= ?", []any{[]byte(prefix)}
}

// prefixEnd returns the first name after all names with the prefix; nil if there is none.
func prefixEnd(prefix string) []byte {
	end := []byte(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}
