package records

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hykube/hykube/internal/ledger"
)

// lead takes the lease within a minute.
func lead(t *testing.T, s *Store, own Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Lead(ctx, own, func(string) {}); err != nil {
		t.Fatal(err)
	}
}

// waits expects that another server has the lease.
func waits(t *testing.T, s *Store, own Server, want string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := s.Lead(ctx, own, func(reason string) {
		if !strings.Contains(reason, "the server "+want+" (version") {
			t.Errorf("waits because %s, want %s", reason, want)
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the lease is taken: %v", err)
	}
}

func write(t *testing.T, s *Store, key string) error {
	t.Helper()
	_, err := s.Batch(t.Context(), "", []ledger.Write{{Key: key, Value: []byte("v")}})
	return err
}

// expire makes the lease expire, as the end of its time does.
func expire(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.write.ExecContext(t.Context(), "UPDATE hykube_server SET expires = 1"); err != nil {
		t.Fatal(err)
	}
}

func TestOneServerLeads(t *testing.T) {
	for name, open := range map[string]func(*testing.T) opener{"PostgreSQL": inPostgreSQL, "MariaDB": inMariaDB} {
		t.Run(name, func(t *testing.T) { oneServerLeads(t, open(t)) })
	}
}

func oneServerLeads(t *testing.T, open opener) {
	a, b := Server{Owner: "a", Address: "a:1", Version: "1"}, Server{Owner: "b", Address: "b:1", Version: "1"}
	first, second := open(t), open(t)
	lead(t, first, a)
	waits(t, second, b, "a:1")
	if err := write(t, first, "one"); err != nil || first.Held() != nil {
		t.Fatalf("write: %v; held: %v", err, first.Held())
	}
	if err := write(t, second, "standby"); !errors.Is(err, ErrTakenOver) {
		t.Errorf("a server without the lease writes: %v", err)
	}
	third := open(t)
	expire(t, first)
	lead(t, third, b)
	if err := write(t, first, "two"); !errors.Is(err, ErrTakenOver) {
		t.Errorf("a server writes after another has taken over: %v", err)
	}
	select {
	case <-first.Lost():
	case <-time.After(time.Minute):
		t.Error("the server does not notice that it has lost the lease")
	}
	if err := first.Held(); !errors.Is(err, ErrTakenOver) {
		t.Errorf("held: %v", err)
	}
	if err := write(t, third, "three"); err != nil {
		t.Error(err)
	}
}

// TestALeaseIsGivenBack has a server that stops, and one that begins again in the same data directory after a crash.
// Neither makes another one wait until the lease expires.
func TestALeaseIsGivenBack(t *testing.T) {
	open := inPostgreSQL(t)
	a, b := Server{Owner: "a", Address: "a:1"}, Server{Owner: "b", Address: "b:1"}
	first := open(t)
	lead(t, first, a)
	first.Close()
	second := open(t)
	begun := time.Now()
	lead(t, second, b)
	lead(t, open(t), b)
	if took := time.Since(begun); took > leaseTime/2 {
		t.Errorf("the server waited for %s", took)
	}
}

// TestALeaseIsRenewed waits for a renewal, also after the time of the lease is over and no other server has taken it.
func TestALeaseIsRenewed(t *testing.T) {
	s := inPostgreSQL(t)(t)
	lead(t, s, Server{Owner: "a"})
	expire(t, s)
	old := time.Now().Add(-2 * trustTime)
	s.lease.renewed.Store(&old)
	if err := s.Held(); !errors.Is(err, errNotHeld) {
		t.Errorf("an old lease is held: %v", err)
	}
	for deadline := time.Now().Add(time.Minute); s.Held() != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the lease is not renewed")
		}
	}
	waits(t, s, Server{Owner: "b"}, "")
}

func TestANewerFormatIsRefused(t *testing.T) {
	s := inPostgreSQL(t)(t)
	if _, err := s.write.ExecContext(t.Context(), "UPDATE hykube_server SET format = 99, version = '9.9', address = 'x:1'"); err != nil {
		t.Fatal(err)
	}
	err := s.Lead(t.Context(), Server{Owner: "a"}, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "a newer version of hykube (9.9) wrote the database (format 99, this version knows 1)") {
		t.Errorf("got %v", err)
	}
}
