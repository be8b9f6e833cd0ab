package records

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// leaseTime is the time for which a lease is valid after a renewal, by the clock of the database. Then another
	// server may take it.
	leaseTime = 15 * time.Second
	// trustTime is the time after a renewal for which the server trusts its lease, by its own clocks. The difference to
	// leaseTime is the margin for requests under way, and for a clock that runs fast.
	trustTime = 10 * time.Second
	// renewEvery is the time between two renewals, and waitEvery that between two attempts to take a lease.
	renewEvery = 3 * time.Second
	waitEvery  = time.Second
	// databaseFormat is the format of all tables of a database with several writers. A server refuses a newer one.
	databaseFormat = 1
)

// ErrTakenOver is the error of a write after another process has taken over.
var ErrTakenOver = errors.New("another server has taken over the database")

// errNotHeld says that the server could not renew its lease in time.
var errNotHeld = errors.New("the server could not renew its lease of the database in time, so that another server may take over; it waits for the database")

// Server describes a server that uses a database.
type Server struct {
	// Owner identifies the data directory of the server. A server takes the lease of an earlier process with the same
	// data directory at once: the lock of the directory proves that the process has ended.
	Owner string
	// Address and Version are for people. A worker has the version of its server.
	Address, Version string
	// Settings are the flags that a worker and its server must have in common.
	Settings string
}

func (s Server) String() string { return fmt.Sprintf("%s (version %s)", s.Address, s.Version) }

// lease lets a process write to the database: the one server that has the lease of the database, and the workers that
// joined it. The epoch grows each time that a server takes the lease. Each transaction of the ledger compares it, so
// that no server writes an intent after another one has taken over. A worker compares its row in the table of processes
// instead.
type lease struct {
	epoch atomic.Int64 // 0 without a lease, and for a worker
	// process identifies this process in intents. joined is true for a worker.
	process string
	joined  atomic.Bool
	// stopping is true after StopCalls.
	stopping atomic.Bool
	renewed  atomic.Pointer[time.Time]
	// processes is the number of processes that were live at the last renewal.
	processes atomic.Int64
	lost      chan struct{}
	losing    sync.Once
	reason    error // why the lease was lost; set before lost is closed
	// stop ends the renewals; nil without a lease. renewals is done after the last one.
	stop     context.CancelFunc
	renewals sync.WaitGroup
}

// check compares the epoch of the database with that of this server, which has 0 before it has taken the lease.
func (l *lease) check(epoch int64) error {
	own := l.epoch.Load()
	if epoch == own {
		return nil
	}
	if own != 0 {
		l.lose(ErrTakenOver)
	}
	return ErrTakenOver
}

// lose notes why this process may not write any more.
func (l *lease) lose(why error) {
	l.losing.Do(func() {
		l.reason = why
		close(l.lost)
	})
}

// held returns an error unless the lease was renewed at most trustTime ago. The clock of the machine counts, too: the
// other one stands still while a virtual machine is suspended.
func (l *lease) held() error {
	renewed := l.renewed.Load()
	if renewed == nil {
		return nil
	}
	select {
	case <-l.lost:
		return l.reason
	default:
	}
	if now := time.Now(); now.Sub(*renewed) > trustTime || now.Round(0).Sub(renewed.Round(0)) > trustTime {
		return errNotHeld
	}
	return nil
}

// Lead takes the lease of the database for a server, and renews it until Close. While another server has it, Lead calls
// waiting with the reason at each attempt, and waits. It returns an error if a newer version has written the database.
func (s *Store) Lead(ctx context.Context, own Server, waiting func(reason string)) error {
	for {
		begun := time.Now()
		holder, ok, err := s.take(ctx, own)
		if err != nil {
			return err
		}
		if ok {
			s.lease.renewed.Store(&begun)
			if _, err := s.extendProcess(ctx, leaseTime); err != nil { // it counts the workers
				return failed("count the processes of", err)
			}
			break
		}
		waiting(fmt.Sprintf("the server %s uses the database", holder))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(waitEvery):
		}
	}
	s.renewInBackground(ctx, s.extend)
	return nil
}

// renewInBackground renews the lease until Close.
func (s *Store) renewInBackground(ctx context.Context, extend func(context.Context, time.Duration) (bool, error)) {
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.lease.stop = stop
	s.lease.renewals.Go(func() { s.renewRegularly(renewing, extend) })
}

// Held returns an error unless this server surely has the lease of the database. It returns nil if the database needs
// none.
func (s *Store) Held() error { return s.lease.held() }

// Lost returns a channel that is closed when this process may not write any more. Held then returns the reason.
func (s *Store) Lost() <-chan struct{} { return s.lease.lost }

// take tries to take the lease. It returns the server that has it otherwise.
func (s *Store) take(ctx context.Context, own Server) (holder Server, ok bool, err error) {
	live, holder, format, err := s.server(ctx)
	if err != nil {
		return holder, false, failed("read the lease of", err)
	}
	if format > databaseFormat {
		return holder, false, newerFormat(holder, format)
	}
	if live && holder.Owner != own.Owner {
		return holder, false, nil
	}
	tx, err := s.write.BeginTx(ctx, &sql.TxOptions{Isolation: s.dialect.isolation})
	if err != nil {
		return holder, false, failed("take the lease of", err)
	}
	epoch, err := s.takeIn(ctx, tx, own)
	if err == nil && epoch > 0 {
		err = tx.Commit()
	} else {
		err = errors.Join(err, tx.Rollback())
	}
	if err != nil {
		return holder, false, failed("take the lease of", err)
	}
	s.lease.epoch.Store(epoch)
	return holder, epoch > 0, nil
}

func newerFormat(holder Server, format int) error {
	return fmt.Errorf("a newer version of hykube (%s) wrote the database (format %d, this version knows %d); run that version, or restore a backup made before the upgrade",
		holder.Version, format, databaseFormat)
}

// takeIn takes the lease in a transaction that locks the ledger. It returns the new epoch; 0 if another server has the
// lease.
func (s *Store) takeIn(ctx context.Context, tx *sql.Tx, own Server) (epoch int64, err error) {
	if _, err := scanState(tx.QueryRowContext(ctx, s.dialect.lock)); err != nil {
		return 0, err
	}
	now := s.dialect.now
	taken, err := tx.ExecContext(ctx,
		s.dialect.text("UPDATE hykube_server SET epoch = epoch + 1, owner = ?, address = ?, version = ?, format = ?, expires = "+now+" + ? WHERE id = 1 AND (expires < "+now+" OR owner = ?)"),
		own.Owner, own.Address, own.Version, databaseFormat, leaseTime.Milliseconds(), own.Owner)
	if err != nil {
		return 0, err
	}
	if n, err := taken.RowsAffected(); err != nil || n == 0 {
		return 0, err
	}
	if err := tx.QueryRowContext(ctx, "SELECT epoch FROM hykube_server WHERE id = 1").Scan(&epoch); err != nil {
		return 0, err
	}
	if _, err = tx.ExecContext(ctx, s.dialect.text("UPDATE hykube_ledger_state SET epoch = ? WHERE id = 1"),
		epoch); err != nil {
		return 0, err
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM hykube_process WHERE leader = 1"); err != nil {
		return 0, err
	}
	return epoch, s.addProcess(ctx, tx, own, true)
}

// renewRegularly renews the lease with extend until ctx ends or the lease is lost.
func (s *Store) renewRegularly(ctx context.Context, extend func(context.Context, time.Duration) (bool, error)) {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.lease.lost:
			return
		case <-ticker.C:
		}
		begun := time.Now()
		switch held, err := extend(ctx, leaseTime); {
		case err != nil && ctx.Err() == nil:
			s.log.Warn("cannot renew the lease of the database", "error", err)
		case err == nil && held:
			s.lease.renewed.Store(&begun)
		case err == nil:
			s.lease.lose(s.lost())
		}
	}
}

// lost returns why this process may not write any more, if a renewal finds another holder.
func (s *Store) lost() error {
	if s.lease.joined.Load() {
		return errEnded
	}
	return ErrTakenOver
}

// extend makes the lease end after a time from now. It returns false if another server has taken it.
func (s *Store) extend(ctx context.Context, by time.Duration) (held bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, renewEvery)
	defer cancel()
	statement := "UPDATE hykube_server SET expires = " + s.dialect.now + " + ? WHERE id = 1 AND epoch = ?"
	epoch := s.lease.epoch.Load()
	done, err := s.write.ExecContext(ctx, s.dialect.text(statement), by.Milliseconds(), epoch)
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	if err == nil && n == 0 { // MySQL does not count a row that has the value already
		var now int64
		err = s.read.QueryRowContext(ctx, "SELECT epoch FROM hykube_server WHERE id = 1").Scan(&now)
		if now != epoch {
			return false, err
		}
	}
	if err != nil {
		return false, err
	}
	return s.extendProcess(ctx, by)
}

// endLease gives the lease back, so that another server takes it at once, and calls of a worker end as such.
func (s *Store) endLease() {
	if s.lease.stop == nil {
		return
	}
	s.lease.stop()
	s.lease.renewals.Wait()
	if s.lease.held() != nil {
		return
	}
	extend := s.extend
	if s.lease.joined.Load() {
		extend = s.extendProcess
	}
	if _, err := extend(context.Background(), -time.Millisecond); err != nil {
		s.log.Warn("cannot give the lease of the database back; another server waits until it expires", "error", err)
	}
}
