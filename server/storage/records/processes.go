package records

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// errEnded is the error of a write of a worker whose lease has ended.
var errEnded error = endedError{}

type endedError struct{}

func (endedError) Error() string {
	return "the lease of this worker has ended, and others have taken over its steps; start it again"
}

// Is makes it an ErrTakenOver.
func (endedError) Is(target error) bool { return target == ErrTakenOver }

// ErrOtherVersion is the error of a worker that has another version than the server.
var ErrOtherVersion = errors.New("the server has another version than this worker; run the same version for both")

// newProcess returns an identity for a process.
func newProcess() string { return rand.Text() }

// Join makes this process a worker of the database, until Close. The database must have a server with the same version.
// While it has none, Join calls waiting with the reason at each attempt, and waits. It returns an error if a newer
// version has written the database.
func (s *Store) Join(ctx context.Context, own Server, waiting func(reason string)) error {
	for {
		begun := time.Now()
		reason, err := s.join(ctx, own)
		if err != nil {
			return failed("join", err)
		}
		if reason == "" {
			s.lease.joined.Store(true)
			s.lease.renewed.Store(&begun)
			if err := s.awaitOthers(ctx); err != nil {
				return err
			}
			break
		}
		waiting(reason)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(waitEvery):
		}
	}
	s.renewInBackground(ctx, func(ctx context.Context, by time.Duration) (bool, error) {
		if _, version, _, err := s.server(ctx); err == nil && version.Version != own.Version {
			s.lease.lose(ErrOtherVersion)
			return false, nil
		}
		return s.extendProcess(ctx, by)
	})
	return nil
}

// awaitOthers waits until the other processes have renewed their leases, and so know this one: they share the limits of
// ProviderConfigs.
func (s *Store) awaitOthers(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(renewEvery):
	}
	begun := time.Now()
	held, err := s.extendProcess(ctx, leaseTime)
	if err == nil && !held {
		err = errEnded
	}
	if err == nil {
		s.lease.renewed.Store(&begun)
	}
	return err
}

// join tries to join the database. It returns the reason why this process has to wait; "" if it is a worker now.
func (s *Store) join(ctx context.Context, own Server) (reason string, err error) {
	live, holder, format, err := s.server(ctx)
	switch {
	case err != nil:
		return "", err
	case format > databaseFormat:
		return "", newerFormat(holder, format)
	case !live:
		return "no server serves the database", nil
	case holder.Version != own.Version:
		return fmt.Sprintf("the server %s has another version than this worker (%s)", holder, own.Version), nil
	}
	settings, err := s.processesOf(ctx, s.read, "SELECT settings FROM hykube_process WHERE leader = 1")
	if err != nil {
		return "", err
	}
	if len(settings) > 0 && settings[0] != own.Settings {
		return "", fmt.Errorf("the server has %s, and this worker has %s: give both the same flags", settings[0],
			own.Settings)
	}
	tx, err := s.write.BeginTx(ctx, &sql.TxOptions{Isolation: s.dialect.isolation})
	if err != nil {
		return "", err
	}
	if _, err = scanState(tx.QueryRowContext(ctx, s.dialect.lock)); err == nil {
		err = s.addProcess(ctx, tx, own, false)
	}
	if err != nil {
		return "", errors.Join(err, tx.Rollback())
	}
	return "", tx.Commit()
}

// server returns the server that has, or had, the lease of the database, and the format of the database. live is true
// while its lease is valid.
func (s *Store) server(ctx context.Context) (live bool, holder Server, format int, err error) {
	statement := "SELECT owner, address, version, format, CASE WHEN expires >= " + s.dialect.now +
		" THEN 1 ELSE 0 END FROM hykube_server WHERE id = 1"
	var valid int
	err = s.read.QueryRowContext(ctx, s.dialect.text(statement)).Scan(&holder.Owner, &holder.Address, &holder.Version,
		&format, &valid)
	return valid == 1, holder, format, err
}

// addProcess adds the row of this process, in a transaction that locks the ledger. An earlier process with the same
// data directory has ended: the lock of the directory proves it.
func (s *Store) addProcess(ctx context.Context, tx *sql.Tx, own Server, leader bool) error {
	if _, err := tx.ExecContext(ctx, s.dialect.text("DELETE FROM hykube_process WHERE owner = ?"),
		own.Owner); err != nil {
		return err
	}
	leads := 0
	if leader {
		leads = 1
	}
	_, err := tx.ExecContext(ctx, s.dialect.text(
		"INSERT INTO hykube_process (process, owner, leader, address, settings, expires) VALUES (?, ?, ?, ?, ?, "+
			s.dialect.now+" + ?)"),
		s.lease.process, own.Owner, leads, own.Address, own.Settings, leaseTime.Milliseconds())
	return err
}

// extendProcess makes the row of this process end after a time from now. It returns false if the row was removed. It
// also counts the live processes.
func (s *Store) extendProcess(ctx context.Context, by time.Duration) (held bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, renewEvery)
	defer cancel()
	_, err = s.write.ExecContext(ctx,
		s.dialect.text("UPDATE hykube_process SET expires = "+s.dialect.now+" + ? WHERE process = ?"),
		by.Milliseconds(), s.lease.process)
	if err != nil {
		return false, err
	}
	var own, live int64
	statement := "SELECT COALESCE(SUM(CASE WHEN process = ? THEN 1 ELSE 0 END), 0), COALESCE(SUM(CASE WHEN expires >= " + s.dialect.now + " THEN 1 ELSE 0 END), 0) FROM hykube_process"
	if err := s.read.QueryRowContext(ctx, s.dialect.text(statement), s.lease.process).Scan(&own, &live); err != nil {
		return false, err
	}
	s.lease.processes.Store(live)
	return own > 0, nil
}

// mayWrite checks in a transaction that locks the ledger whether this process may write.
func (s *Store) mayWrite(ctx context.Context, tx *sql.Tx, epoch int64) error {
	if !s.lease.joined.Load() {
		return s.lease.check(epoch)
	}
	var rows int
	err := tx.QueryRowContext(ctx, s.dialect.text("SELECT COUNT(*) FROM hykube_process WHERE process = ?"),
		s.lease.process).Scan(&rows)
	if err != nil {
		return failed("read the processes of", err)
	}
	if rows == 0 {
		s.lease.lose(errEnded)
		return errEnded
	}
	return nil
}

// errStopping is the error of a call after StopCalls.
var errStopping = errors.New("this process stops")

// StopCalls makes MayCall return an error from now on.
func (s *Store) StopCalls() { s.lease.stopping.Store(true) }

// MayCall returns an error if no call of a provider may begin: this process may not have its lease, or it stops.
func (s *Store) MayCall() error {
	if s.lease.stopping.Load() {
		return errStopping
	}
	return s.Held()
}

// Own returns the identity of this process, which intents name.
func (s *Store) Own() string { return s.lease.process }

// Processes returns the number of live servers and workers of the database, at least 1.
func (s *Store) Processes() int { return int(max(1, s.lease.processes.Load())) }

// Others returns the addresses of the other live processes.
func (s *Store) Others(ctx context.Context) (addresses []string, err error) {
	if s.dialect.embedded {
		return nil, nil
	}
	return s.processesOf(ctx, s.read, "SELECT address FROM hykube_process WHERE process <> ? AND expires >= "+
		s.dialect.now+" ORDER BY address", s.lease.process)
}

// Live returns the address of a process that may still make a call; "" if it has ended. A process whose lease has
// expired counts as ended, and cannot write from then on.
func (s *Store) Live(ctx context.Context, process string) (address string, err error) {
	if s.dialect.embedded || process == s.lease.process {
		return "", nil
	}
	address, live, err := s.process(ctx, s.read, process)
	if err != nil || live || address == "" {
		return address, err
	}
	err = s.inTransaction(ctx, func(tx *sql.Tx, _ state) (err error) {
		if address, live, err = s.process(ctx, tx, process); err != nil {
			return err
		}
		if live || address == "" {
			return errUnchanged
		}
		address = ""
		return s.fence(ctx, tx, process)
	})
	if errors.Is(err, errUnchanged) {
		err = nil
	}
	return address, err
}

// EndWorkers ends the rights of each worker whose lease has expired, and returns their identities.
func (s *Store) EndWorkers(ctx context.Context) (ended []string, err error) {
	if s.dialect.embedded {
		return nil, nil
	}
	expired := "SELECT process FROM hykube_process WHERE leader = 0 AND expires < " + s.dialect.now
	if ended, err = s.processesOf(ctx, s.read, expired); err != nil || len(ended) == 0 {
		return nil, err
	}
	err = s.inTransaction(ctx, func(tx *sql.Tx, _ state) (err error) {
		if ended, err = s.processesOf(ctx, tx, expired); err != nil {
			return err
		}
		for _, process := range ended {
			if err := s.fence(ctx, tx, process); err != nil {
				return err
			}
		}
		return nil
	})
	return ended, err
}

// processesOf returns the text column of the rows of a query.
func (s *Store) processesOf(ctx context.Context, from querier, query string, args ...any) (out []string, err error) {
	rows, err := from.QueryContext(ctx, s.dialect.text(query), args...)
	if err != nil {
		return nil, failed("read the processes of", err)
	}
	defer func() { err = failed("read the processes of", errors.Join(err, rows.Close())) }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, rows.Err()
}

// process returns the address of a process, and whether its lease is valid; "" if it is unknown.
func (s *Store) process(ctx context.Context, from querier, process string) (address string, live bool, err error) {
	var valid int
	statement := "SELECT address, CASE WHEN expires >= " + s.dialect.now +
		" THEN 1 ELSE 0 END FROM hykube_process WHERE process = ?"
	err = from.QueryRowContext(ctx, s.dialect.text(statement), process).Scan(&address, &valid)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return address, valid == 1, failed("read the processes of", err)
}

// fence ends the rights of a process whose lease has expired. If it is the server, its epoch ends, too.
func (s *Store) fence(ctx context.Context, tx *sql.Tx, process string) error {
	var leads int
	if err := tx.QueryRowContext(ctx, s.dialect.text("SELECT leader FROM hykube_process WHERE process = ?"),
		process).Scan(&leads); err != nil {
		return failed("read the processes of", err)
	}
	statements := []string{"DELETE FROM hykube_process WHERE process = ?"}
	if leads == 1 {
		statements = append(statements, "UPDATE hykube_server SET epoch = epoch + 1, expires = 0 WHERE id = 1",
			"UPDATE hykube_ledger_state SET epoch = (SELECT epoch FROM hykube_server WHERE id = 1) WHERE id = 1")
	}
	for i, statement := range statements {
		var args []any
		if i == 0 {
			args = []any{process}
		}
		if _, err := tx.ExecContext(ctx, s.dialect.text(statement), args...); err != nil {
			return failed("end a process of", err)
		}
	}
	return nil
}
