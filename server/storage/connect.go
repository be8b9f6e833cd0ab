package storage

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// connectTimeout is the maximum time until the database answers at startup. kine's own limit is five minutes.
	connectTimeout = 15 * time.Second
	// connectRetry is the time between two attempts to connect to a database that may be starting.
	connectRetry = 500 * time.Millisecond
)

const (
	// DefaultMaxConnections is the default of Config.MaxConnections, and LeastMaxConnections its minimum: some parts of
	// the server hold a connection for a while.
	DefaultMaxConnections = 64
	LeastMaxConnections   = 16
)

// poolSize returns the maximum number of connections of each of the two pools: that of kine, and that of the ledger and
// of long reads.
func (cfg Config) poolSize() int {
	return max(cmp.Or(cfg.MaxConnections, DefaultMaxConnections), LeastMaxConnections) / 2
}

// refusal is an answer of a database, or an error of the connection to it.
type refusal struct {
	// text is what the database or the network said. It has no password.
	text string
	// missing is true if the server answered, and has no database of the given name.
	missing bool
	// final is true if another attempt would fail, too.
	final bool
}

// refusalOf explains the error of an attempt to connect.
func refusalOf(err error) refusal {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		final := pgerrcode.IsInvalidAuthorizationSpecification(said.Code) ||
			pgerrcode.IsSyntaxErrororAccessRuleViolation(said.Code)
		return refusal{"the database says: " + said.Error(), said.Code == pgerrcode.InvalidCatalogName, final}
	}
	if said, ok := errors.AsType[*mysqldriver.MySQLError](err); ok {
		switch said.Number {
		case mysqlUnknownDatabase:
			return refusal{"the database says: " + said.Error(), true, false}
		case 1044, 1045, 1130, 1251, 1698, 3118, 3159: // no access for the user, the host, or without TLS
			return refusal{"the database says: " + said.Error(), false, true}
		}
		return refusal{text: "the database says: " + said.Error()}
	}
	text := err.Error()
	if failed, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		text = failed.Unwrap().Error() // without the user and the database
	}
	text = "no connection to the database: " + strings.ReplaceAll(text, "\n", "; ")
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	return refusal{text: text, final: untrusted || plain || errors.Is(err, mysqldriver.ErrNoTLS)}
}

// mysqlUnknownDatabase is MySQL's error for a database that does not exist.
const mysqlUnknownDatabase = 1049

// checkEndpoint is what an administrator can do about a database that refuses.
const checkEndpoint = "; check --datastore-endpoint"

// connect waits until the database accepts a connection. With create, it creates a database that does not exist. Its
// error has what the database said.
func (t *table) connect(ctx context.Context, timeout time.Duration, create bool) error {
	trying, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	last := "the database did not answer" // unless an attempt ends before the time does
	for {
		err := t.db.PingContext(trying)
		if err == nil {
			return nil
		}
		// An attempt that the end of the time cuts off says less than the one before.
		if cut, ok := errors.AsType[net.Error](err); trying.Err() == nil && !(ok && cut.Timeout()) {
			said := refusalOf(err)
			if said.missing && !create {
				return errors.New(said.text + "; create it, or start once with --create-database" + checkEndpoint)
			}
			if said.missing {
				return t.create(trying, said.text)
			}
			if last = said.text; said.final {
				return errors.New(last + checkEndpoint)
			}
		}
		if pause(trying, connectRetry) != nil {
			return fmt.Errorf("%s; the server tried for %s%s", last, timeout, checkEndpoint)
		}
	}
}

// create creates the database, which does not exist. Kine creates that of MySQL.
func (t *table) create(ctx context.Context, missing string) error {
	if t.postgres == nil {
		return nil
	}
	other := t.postgres.Copy()
	other.Database = "postgres"
	c, err := pgx.ConnectConfig(ctx, other)
	if err == nil {
		defer func() { _ = c.Close(ctx) }()
		_, err = c.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{t.postgres.Database}.Sanitize())
	}
	if err != nil {
		return fmt.Errorf("%s; create it: %s%s", missing, refusalOf(err).text, checkEndpoint)
	}
	return nil
}
